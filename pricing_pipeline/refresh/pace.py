"""Work that a loop does from time to time."""

from __future__ import annotations

import time


class Pace:
    """Says that something is due, at most once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = float("-inf")

    def is_due(self) -> bool:
        """Whether it is due; if so, it counts as done now."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True
