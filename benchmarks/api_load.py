"""The load generator of the question `api`: a worker that sends each request when it is due.

A module of its own, so that it imports only what it needs: it starts anew for each load. It shares the machine with
what it measures, so it does as little as possible while it measures.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import uvloop

from benchmarks import crew

SYMBOLS_READ = 20
_CONNECTIONS = 16
_FIRST = 100
"""Number of requests that are sent before counting begins."""
TOKEN = "BENCHMARK_TOKEN"  # noqa: S105 - a variable's name


class _Connection(asyncio.Protocol):
    """A keep-alive connection with one request at a time. It reads only what it needs to find the end of the answer."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        self._lost = lost
        self._answered: Callable[[], None] = lambda: None
        self._seen = b""
        self._end = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def ask(self, request: bytes, answered: Callable[[], None]) -> None:
        """Send a request; `answered` is called when the whole answer has arrived."""
        self._seen, self._end, self._answered = b"", 0, answered
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._end:
            head, is_whole, _ = self._seen.partition(b"\r\n\r\n")
            if not is_whole:
                return
            if not head.startswith(b"HTTP/1.1 200"):
                self._lost(f"the server answered {head[:2000]!r}")
                return
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            self._end = len(head) + 4 + length
        if len(self._seen) >= self._end:
            self._answered()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost(f"the server hung up: {error}")


class _Load:
    """Requests, and how many ms after they were due they were sent and answered."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._free: deque[_Connection] = deque()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self.taken: list[float] = []
        self.late: list[float] = []

    async def connect(self, port: int) -> None:
        """Open the connections."""
        for _ in range(_CONNECTIONS):
            _, connection = await self._loop.create_connection(lambda: _Connection(self._fail), "127.0.0.1", port)
            self._free.append(connection)

    def _fail(self, why: str) -> None:
        if not self._over.done():
            self._over.set_exception(RuntimeError(why))

    async def send(self, requests: list[bytes], per_second: float) -> None:
        """Send requests at a pace, and wait for their answers. Raises RuntimeError unless each is 200."""
        self.taken, self.late = [], []
        self._over = self._loop.create_future()
        began = time.monotonic() + 0.05
        for number, request in enumerate(requests):
            due = began + number / per_second
            while (early := due - time.monotonic()) > 0:
                await asyncio.sleep(early)
            self.late.append(-early * 1000)
            self._waiting.append((request, due))
            self._send_next(len(requests))
        await self._over

    def _send_next(self, count: int) -> None:
        if not (self._free and self._waiting):
            return
        # Uses the connections in turns, because a server closes one that is idle for some seconds.
        connection, (request, due) = self._free.popleft(), self._waiting.popleft()

        def answered() -> None:
            self.taken.append((time.monotonic() - due) * 1000)
            self._free.append(connection)
            self._send_next(count)
            if len(self.taken) == count:
                self._over.set_result(None)

        connection.ask(request, answered)


def _requests(port: int, path: str, symbols: int, count: int) -> list[bytes]:
    dice = random.Random(1)  # noqa: S311 - which symbols are read is no secret
    rest = f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {os.environ[TOKEN]}\r\n\r\n"
    names = [f"R{number}" for number in range(symbols)]
    return [f"GET {path}{','.join(dice.sample(names, SYMBOLS_READ))}{rest}".encode() for _ in range(count)]


async def _send(first: list[bytes], counted: list[bytes], port: int, per_second: float) -> dict[str, Any]:
    load = _Load()
    await load.connect(port)
    # These requests open the sessions and plan the statements.
    await load.send(first, float("inf"))
    await load.send(counted, per_second)
    return {
        "requests": len(first) + len(counted),
        "milliseconds": load.taken,
        "late": load.late,
    }


def _work(port: str, path: str, symbols: str, per_second: str, seconds: str) -> Callable[[], Any]:
    count = _FIRST + int(float(per_second) * float(seconds))
    requests = _requests(int(port), path, int(symbols), count)
    gc.disable()  # it would stop all requests at once, and nothing here needs it
    return lambda: uvloop.run(_send(requests[:_FIRST], requests[_FIRST:], int(port), float(per_second)))


if __name__ == "__main__":
    crew.serve(lambda _: _work(*sys.argv[1:]))
