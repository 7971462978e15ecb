"""How many prices a second reach live streams, how late, are any lost or doubled, and does a drain notice?

A process stores prices at a steady rate, and the API serves them to streams that a third process reads. Each stream is
cut off now and then and goes on. Prices of a pair count up, so the reader sees each that is missing or comes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg

from benchmarks import crew, provider
from benchmarks.report import Row, medians, percentile
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens

_BATCH = 100
_VIEWERS_OF_PAIR = 4
_CUT_SECONDS = (2.0, 6.0)
_LAST_SECONDS = 3.0
"""Seconds that streams get after the last price is stored."""


@dataclass(frozen=True, slots=True)
class Size:
    """Streams; pairs stored at a steady rate; symbols of a drain, a ninth of them streamed."""

    streams: int
    pairs: int
    per_second: int
    seconds: int
    rounds: int
    drained: int


FULL = Size(streams=200, pairs=1000, per_second=1000, seconds=60, rounds=5, drained=30_000)
QUICK = Size(streams=200, pairs=1000, per_second=1000, seconds=10, rounds=3, drained=10_000)
TINY = Size(streams=4, pairs=100, per_second=100, seconds=2, rounds=1, drained=180)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Measures streams under a steady load, then drains with open streams and without, in turns."""
    rounds = max(1, size.per_second * size.seconds // size.pairs)
    url = server.migrated("stream")
    with _api(url) as (place, token), _readers(place, token, size.streams, size.pairs, cut=True) as readers:
        stored = crew.run([crew.module("stream", "store", size.pairs, rounds, size.per_second)], url)
        time.sleep(_LAST_SECONDS)
        read = readers.stop(rounds)
    if stored.total != rounds * size.pairs:
        raise crew.WorkerError(f"{stored.total} of {rounds * size.pairs} prices were stored")
    rates = _drains(server, size)
    return [
        Row("prices_per_second", f"prices/s stored, {size.streams} streams", stored.rate),
        Row("delivered_per_second", "prices/s delivered", read["delivered"] / stored.seconds),
        Row("lost", "prices that a stream did not get", read["lost"], lower_is_better=True),
        Row("doubled", "prices that a stream got twice", read["doubled"], lower_is_better=True),
        Row("reconnects", "streams that were cut off and went on", read["reconnects"]),
        Row("delay_ms", "ms from store to reader, median", read["median_ms"], lower_is_better=True),
        Row("late_delay_ms", "ms, 99 of 100 are quicker", read["late_ms"], lower_is_better=True),
        Row("drained_per_second", "symbols/s, streams are open", rates.pop("ours"), rates),
    ]


def _drains(server: BenchmarkServer, size: Size) -> dict[str, float]:
    """Symbols a second that a drain refreshes, with streams of a ninth of them and without."""
    url = server.migrated("drained")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("refresh.arrange"), {"batch": _BATCH, "in_flight": 10})
    streamed = max(1, size.drained // 9)

    def drain() -> float:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement("refresh.enqueue"), {"symbols": size.drained})
        server.checkpoint()
        work = crew.run([crew.module("refresh", "ours", provider_url, size.drained)], url)
        if work.answers[0][0] < size.drained:
            raise crew.WorkerError(f"{work.answers[0][0]} of {size.drained} prices were stored")
        return size.drained / work.seconds

    def drain_with_streams() -> float:
        with _readers(place, token, size.streams, streamed, cut=False) as readers:
            rate = drain()
            time.sleep(_LAST_SECONDS)
            if not readers.stop(0)["delivered"]:
                raise crew.WorkerError("the streams received nothing")
        return rate

    with provider.running(50) as provider_url, _api(url) as (place, token):
        if size.rounds > 1:  # one round means nothing, whatever goes before it
            drain()  # so that prices are stored, and somebody watches in both ways
            drain_with_streams()
        return medians({"ours": drain_with_streams, "without_streams": drain}, size.rounds)


@contextmanager
def _api(url: str) -> Iterator[tuple[str, str]]:
    """The API in a process of its own: its address, and a token for any user."""
    engine = make_engine(url)
    with engine.begin() as connection:
        token = api_tokens.add(connection, "benchmark", [Scope.READ, Scope.WATCH], None).get_secret_value()
    engine.dispose()
    with _process("serve") as process:
        _say(process, url)
        yield _hear(process), token
        process.terminate()


class _Readers:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def stop(self, last: int) -> dict[str, float]:
        """What they have read, if the last price of each pair is `last` (0: unknown)."""
        _say(self._process, str(last))
        found: dict[str, float] = json.loads(_hear(self._process))
        return found


@contextmanager
def _readers(address: str, token: str, streams: int, pairs: int, *, cut: bool) -> Iterator[_Readers]:
    """A process that reads this many open streams."""
    with _process("read", address, streams, pairs, int(cut)) as process:
        _say(process, token)
        if _hear(process) != "ready":
            raise crew.WorkerError("the streams did not begin")
        yield _Readers(process)


@contextmanager
def _process(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        crew.module("stream", *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    line = process.stdout.readline()
    if not line:
        raise crew.WorkerError("a process of the streams died")
    return line.strip()


def _symbols(stream: int, streams: int, pairs: int) -> list[str]:
    """The symbols of a stream, chosen so that each pair has some viewers."""
    each = max(1, min(pairs, pairs * _VIEWERS_OF_PAIR // streams))
    first = stream * pairs // streams
    return [f"S{(first + place) % pairs + 1}" for place in range(each)]


@dataclass
class _Reader:
    """One stream: the last price of each symbol, and the faults that were found."""

    place: str
    token: str
    user: str
    symbols: Sequence[str]
    cut: bool
    known: dict[str, int] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    reconnects: int = 0
    began: bool = False
    last_id: str | None = None

    async def read(self, ready: asyncio.Semaphore) -> None:
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(None) as cutting:
                    await self._read_once(ready, cutting)
            self.reconnects += 1

    async def _read_once(self, ready: asyncio.Semaphore, cutting: asyncio.Timeout) -> None:
        host, port = self.place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=2**22)
        pairs = ",".join(f"equity_quote:{symbol}" for symbol in self.symbols)
        last = f"Last-Event-ID: {self.last_id}\r\n" if self.last_id else ""
        head = f"GET /v1/stream?user={self.user}&pairs={pairs} HTTP/1.1\r\nHost: {self.place}\r\n"
        writer.write(f"{head}Authorization: Bearer {self.token}\r\n{last}\r\n".encode())
        try:
            if b" 200 " not in (await reader.readuntil(b"\r\n\r\n")):
                raise crew.WorkerError((await reader.read(2000)).decode())
            text = b""
            while size := int(await reader.readline(), 16):
                text += (await reader.readexactly(size + 2))[:-2]
                *events, text = text.split(b"\n\n")
                for event in events:
                    self._take(event.decode())
                    if b"event: ready" in event:
                        self._note_ready(ready, cutting)
        finally:
            writer.close()

    def _note_ready(self, ready: asyncio.Semaphore, cutting: asyncio.Timeout) -> None:
        if self.cut:
            cutting.reschedule(asyncio.get_running_loop().time() + random.uniform(*_CUT_SECONDS))  # noqa: S311
        if not self.began:
            self.began = True
            ready.release()

    def _take(self, event: str) -> None:
        fields = dict(line.split(": ", 1) for line in event.split("\n") if ": " in line)
        if fields.get("event") == "price":
            price = json.loads(fields["data"])
            self._take_price(price, is_truth="id" not in fields)
        self.last_id = fields.get("id", self.last_id)

    def _take_price(self, price: dict[str, Any], *, is_truth: bool) -> None:
        number, before = round(float(price["price"]) * 100), self.known.get(price["symbol"])
        if not is_truth and before is not None:
            self.lost += max(0, number - before - 1)
            self.doubled += number <= before
        if not is_truth:
            at = datetime.fromisoformat(price["observed_at"]).timestamp()
            self.delays.append((time.time() - at) * 1000)
        self.known[price["symbol"]] = number


def work_store(pairs: int, rounds: int, per_second: int, database_url: str) -> Callable[[], int]:
    """Store the next price of each pair, round after round, at a rate."""
    connection = psycopg.connect(database_url, autocommit=True)
    symbols = [f"S{number}" for number in range(1, pairs + 1)]

    def store() -> int:
        began, stored = time.monotonic(), 0
        for round_ in range(1, rounds + 1):
            for first in range(0, pairs, _BATCH):
                batch = symbols[first : first + _BATCH]
                parameters = {"symbols": batch, "count": len(batch), "amount": round_}
                connection.execute(statement("stream.store"), parameters)
                stored += len(batch)
                time.sleep(max(0.0, began + stored / per_second - time.monotonic()))
        return stored

    return store


def serve() -> None:
    """Run the API on the database that the first line of input names."""
    # Importing it takes seconds, and the other processes of this module do not need it.
    from pricing_pipeline.api.app import AT_ONCE, make_app
    from pricing_pipeline.api.server import make_server

    engine = make_engine(sys.stdin.readline().strip(), pool_size=AT_ONCE)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        sys.stdout.write(place + "\n")
        sys.stdout.flush()
        make_server(make_app(engine, {place})).run(sockets=[listener])


async def read(place: str, streams: int, pairs: int, cut: bool) -> None:
    """Read streams until the next line, and say what was read."""
    token = sys.stdin.readline().strip()
    ready = asyncio.Semaphore(0)
    readers = [
        _Reader(place, token, f"user{number}", _symbols(number, streams, pairs), cut) for number in range(streams)
    ]
    tasks = [asyncio.create_task(reader.read(ready)) for reader in readers]
    for task in tasks:
        task.add_done_callback(_require_life)
    for _ in readers:
        await ready.acquire()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    last = int(await asyncio.to_thread(sys.stdin.readline))
    for reader in readers:
        if last:
            reader.lost += sum(last - reader.known.get(symbol, 0) for symbol in reader.symbols)
    delays = [delay for reader in readers for delay in reader.delays] or [0.0]
    found = {
        "delivered": sum(len(reader.delays) for reader in readers),
        "lost": sum(reader.lost for reader in readers),
        "doubled": sum(reader.doubled for reader in readers),
        "reconnects": sum(reader.reconnects for reader in readers),
        "median_ms": percentile(delays, 0.5),
        "late_ms": percentile(delays, 0.99),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    for task in tasks:
        task.cancel()


def _require_life(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        sys.stderr.write(f"a stream ended: {task.exception()!r}\n")
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "read":
        asyncio.run(read(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "1"))
    else:
        pairs_, rounds_, per_second_ = map(int, sys.argv[2:])
        crew.serve(lambda database_url: work_store(pairs_, rounds_, per_second_, database_url))
