"""Counting units against a limit per window of time, as providers do. What a unit is, the dialects decide."""

from __future__ import annotations

from collections import deque

from pricing_pipeline.sandbox.settings import MOST_KEYS


class UnitWindow:
    """Units used in the current window: a calendar one (aligned to the epoch, hence to UTC) or a sliding one.

    Times are epoch seconds and must not go back by more than one window. `limit` None only counts.
    """

    def __init__(self, limit: int | None, seconds: int, *, sliding: bool = False) -> None:
        self.limit = limit
        self.seconds = seconds
        self._sliding = sliding
        self.reset()

    def reset(self) -> None:
        self._used = 0
        self._bucket = 0
        self._events: deque[tuple[float, int]] = deque()

    def used(self, now: float) -> int:
        """Units charged in the window that `now` lies in."""
        if self._sliding:
            while self._events and self._events[0][0] <= now - self.seconds:
                self._used -= self._events.popleft()[1]
        elif (bucket := int(now // self.seconds)) != self._bucket:
            self._bucket, self._used = bucket, 0
        return self._used

    def charge(self, units: int, now: float) -> int:
        """Add units, whether or not they fit, and return what is used with them."""
        self._used = self.used(now) + units
        if self._sliding and units:
            self._events.append((now, units))
        return self._used

    def is_over(self, used: int) -> bool:
        return self.limit is not None and used > self.limit

    def left(self, used: int) -> int | None:
        """Units that still fit, or None without a limit."""
        return None if self.limit is None else max(self.limit - used, 0)


class KeyWindows:
    """A sliding minute for each key, as of an account of its own. Too many keys are refused like wrong ones."""

    def __init__(self, calls_per_minute: int | None) -> None:
        self._limit = calls_per_minute
        self._windows: dict[str, UnitWindow] = {}

    def of(self, key_name: str) -> UnitWindow | None:
        """The minute of a key; None when there are too many keys."""
        if key_name not in self._windows and len(self._windows) < MOST_KEYS:
            self._windows[key_name] = UnitWindow(self._limit, 60, sliding=True)
        return self._windows.get(key_name)

    def reset(self) -> None:
        self._windows.clear()


class WorstWindow:
    """The most units in any sliding window of some length so far, counted as calls arrive."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._events: deque[tuple[float, int]] = deque()
        self._used = 0
        self.worst = 0

    def add(self, at: float, units: int) -> None:
        """Count units at a monotonic time. The window holds what is younger than its length."""
        while self._events and self._events[0][0] <= at - self._seconds:
            self._used -= self._events.popleft()[1]
        self._events.append((at, units))
        self._used += units
        self.worst = max(self.worst, self._used)
