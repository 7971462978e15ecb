"""How much one token may request at once, so that no caller keeps the others waiting.

The limits are those of this process and hold as long as it runs; the caps of users are in the database.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pricing_pipeline.api.problems import Refused

WRONG_TOKENS = 10.0
"""So many wrong tokens a second are answered in this process, and ten times as many at once; the others are put off."""
_MOST_UNDER_WAY = 32
"""Requests of one token that are read, wait for their turn, or whose answer is not read yet."""
_MOST_BYTES_UNDER_WAY = 4_000_000
"""Bytes of the bodies of these."""
_ROUND = {"OPTIONS": 1, "HEAD": 1, "GET": 2}
"""The requests that a spreadsheet sends for one cell."""
_ROUND_SECONDS = 10.0
"""So long a round lasts."""
_MOST_ROUNDS = 1_000
"""Rounds of one token that are remembered."""
_BYTES_OF_ONE = 2_000
"""A body counts as one more request for each of these bytes: they take about as long to read."""

Clock = Callable[[], float]


class Bucket:
    """A token bucket: it gains `rate` units a second and holds at most `burst`."""

    def __init__(self, rate: float, burst: float, clock: Clock = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._units, self._at = burst, clock()

    def take(self, units: float = 1.0) -> float:
        """Take units if anything is there; returns 0, or the seconds until something is.

        It may go below zero: a large request passes, and a longer wait pays for it.
        """
        now = self._clock()
        self._units, self._at = min(self._burst, self._units + (now - self._at) * self._rate), now
        if self._units < 1:
            return (1 - self._units) / self._rate
        self._units -= units
        return 0.0


class Share:
    """What one token uses of this process: requests a second, requests under way, and threads."""

    def __init__(self, rate: float, threads: int, clock: Clock) -> None:
        self._bucket = Bucket(rate, max(rate, 1), clock)
        self._requests = 0
        self._bytes = 0
        self._clock = clock
        self._rounds: dict[int, tuple[float, dict[str, int]]] = {}
        self.threads = asyncio.Semaphore(threads)

    def take(self, body_bytes: int) -> None:
        """Count one more request of this second. Raises Refused when there are too many."""
        wait = self._bucket.take(1 + body_bytes / _BYTES_OF_ONE)
        if wait:
            raise _too_many("this token sends more requests than PRICING_API_REQUESTS_PER_SECOND", wait)

    def take_round(self, url: str, method: str) -> None:
        """Count what a spreadsheet sends for one URL as one request. Raises Refused when there are too many."""
        now, key = self._clock(), hash(url)
        until, left = self._rounds.get(key, (now, _ROUND))
        if now >= until or not left.get(method):
            self.take(0)
            until, left = now + _ROUND_SECONDS, dict(_ROUND)
            self._rounds.pop(key, None)
            self._rounds[key] = until, left
            if len(self._rounds) > _MOST_ROUNDS:
                del self._rounds[next(iter(self._rounds))]
        left[method] = left.get(method, 1) - 1

    @contextmanager
    def under_way(self, body_bytes: int) -> Iterator[None]:
        """Count a request until it is over. Raises Refused when there are too many, or too many bytes of them."""
        if self._requests >= _MOST_UNDER_WAY or (self._bytes and self._bytes + body_bytes > _MOST_BYTES_UNDER_WAY):
            raise _too_many(
                f"{self._requests} requests of this token are under way. Send the next when one is answered",
                1,
            )
        self._requests += 1
        self._bytes += body_bytes
        try:
            yield
        finally:
            self._requests -= 1
            self._bytes -= body_bytes


class Shares:
    """The share of each token: `rate` requests a second, and as many `threads` at most."""

    def __init__(self, rate: float, threads: int, clock: Clock = time.monotonic) -> None:
        self._of: defaultdict[int, Share] = defaultdict(lambda: Share(rate, threads, clock))
        self._wrong = Bucket(WRONG_TOKENS, 10 * WRONG_TOKENS, clock)

    def of(self, token_id: int) -> Share:
        """The share of a token."""
        return self._of[token_id]

    def count_wrong_token(self) -> None:
        """Count a wrong token. Raises Refused when too many come; right ones never wait for them."""
        wait = self._wrong.take()
        if wait:
            raise _too_many("too many wrong tokens come", wait)


def _too_many(detail: str, wait: float) -> Refused:
    return Refused(429, "too-many-requests", detail, {"Retry-After": str(max(1, round(wait + 0.5)))})
