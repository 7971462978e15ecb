"""A cache of one value for many callers: one thread gathers it, the value lasts some seconds, and no caller waits
long."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

THREAD = "cached"
"""The name of the threads that gather."""


class Cached(Generic[T]):
    """What `gather` returns, at most `seconds` old.

    A daemon thread of its own gathers it: that takes no thread from requests, and a hanging one does not keep the
    process from ending. For one event loop.
    """

    def __init__(self, gather: Callable[[], T], *, seconds: float, patience: float) -> None:
        self._gather = gather
        self._seconds = seconds
        self._patience = patience
        self._began = 0.0
        self._gathered: asyncio.Future[tuple[T | None, Exception | None]] | None = None

    async def get(self) -> T:
        """The value. Raises what gathering it raised, and TimeoutError if that takes more than `patience` seconds."""
        gathered = self._gathered
        if gathered is None or (gathered.done() and self._began + self._seconds <= time.monotonic()):
            filled: Future[tuple[T | None, Exception | None]] = Future()
            began = time.monotonic()
            # First: if no thread can start, the next caller tries again.
            threading.Thread(target=self._fill, args=(filled,), name=THREAD, daemon=True).start()
            # Wrapped once, so that callers who give up on a hanging look leave nothing behind.
            gathered = self._gathered = asyncio.wrap_future(filled)
            self._began = began
        left = self._began + self._patience - time.monotonic()
        if not gathered.done():
            await asyncio.wait([gathered], timeout=max(left, 0.0))
        if not gathered.done():
            raise TimeoutError
        value, error = gathered.result()
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # without an error there is one

    def _fill(self, gathered: Future[tuple[T | None, Exception | None]]) -> None:
        try:
            outcome: tuple[T | None, Exception | None] = self._gather(), None
        except Exception as error:  # every caller gets it, whatever it is
            outcome = None, error
        gathered.set_result(outcome)
