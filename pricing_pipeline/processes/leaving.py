"""Waiting for a signal in the thread that its handler interrupts.

A handler of Python runs in the main thread, between any two of its steps. If it set a threading.Event while that thread
is about to wait for it, it would wait forever for a lock that its own thread has.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class Leave:
    """Whether somebody has asked to leave. `set` may be called in a handler of signals."""

    def __init__(self) -> None:
        self._is_set = False
        self._asked: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Ask to leave."""
        self._is_set = True
        self._asked.put(None)

    def is_set(self) -> bool:
        """Whether somebody has asked."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait this long, or until somebody asks; returns whether somebody has."""
        if not self._is_set:
            with suppress(Empty):
                self._asked.get(timeout=seconds)
        return self._is_set
