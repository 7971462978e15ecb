"""The load generator of the question `api`: a worker that sends requests, each when its time has come.

Apart from the question, so that it loads nothing but what it sends with: it is started anew for each load.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Callable
from typing import Any

from benchmarks import crew

SYMBOLS_READ = 20
_CONNECTIONS = 16
_FIRST = 100
"""So many requests are sent before those that are counted."""
TOKEN = "BENCHMARK_TOKEN"  # noqa: S105 - a variable's name


class _Connection(asyncio.Protocol):
    """A kept connection with one request under way at a time, read no further than is needed to know its end."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[bytes] | None = None
        self._seen = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of TCP
        self.transport = transport

    async def ask(self, request: bytes) -> None:
        """Send a request and wait for its whole answer. Raises RuntimeError unless it is 200."""
        self._seen = b""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        head = await self._answer
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the server answered {head[:2000]!r}")

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, _, body = self._seen.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0] or -1)
        if body and len(body) >= length >= 0 and self._answer is not None:
            self._answer.set_result(head)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(RuntimeError(f"the server hung up: {error}"))


async def _send(port: int, path: str, symbols: int, per_second: int, seconds: float) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    dice = random.Random(1)  # noqa: S311 - which symbols are read is no secret
    free: asyncio.Queue[_Connection] = asyncio.Queue()
    for _ in range(_CONNECTIONS):
        _, connection = await loop.create_connection(_Connection, "127.0.0.1", port)
        free.put_nowait(connection)
    token = os.environ[TOKEN]
    taken: list[float] = []

    async def ask(due: float) -> None:
        names = ",".join(f"R{number}" for number in dice.sample(range(symbols), SYMBOLS_READ))
        head = (
            f"GET {path}{names} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        )
        connection = await free.get()
        await connection.ask(head.encode())
        free.put_nowait(connection)
        taken.append((loop.time() - due) * 1000)

    # These open sessions and plan statements.
    await asyncio.gather(*(ask(loop.time()) for _ in range(_FIRST)))
    taken.clear()
    count = int(per_second * seconds)
    began = loop.time() + 0.05
    async with asyncio.TaskGroup() as requests:
        for number in range(count):
            due = began + number / per_second
            if (early := due - loop.time()) > 0:
                await asyncio.sleep(early)
            requests.create_task(ask(due))
    return {"requests": _FIRST + count, "milliseconds": taken}


def _work(port: str, path: str, symbols: str, per_second: str, seconds: str) -> Callable[[], Any]:
    return lambda: asyncio.run(_send(int(port), path, int(symbols), int(per_second), float(seconds)))


if __name__ == "__main__":
    crew.serve(lambda _: _work(*sys.argv[1:]))
