"""Work that a loop does from time to time."""

from __future__ import annotations

import time


class Pace:
    """Says when something is due again: `seconds` after it last was. The monotonic clock measures them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = float("-inf")

    def is_due(self) -> bool:
        """Whether it is due; if so, it is not due again before `seconds` are over."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True
