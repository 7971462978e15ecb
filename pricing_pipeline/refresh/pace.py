"""Work that a loop does from time to time."""

from __future__ import annotations

import time


class Pace:
    """Lets a loop begin a work again once `seconds` have passed since it last did, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = float("-inf")

    def begin(self) -> bool:
        """Begin the work if it is due; returns whether."""
        now = time.monotonic()
        if now - self._began < self._seconds:
            return False
        self._began = now
        return True
