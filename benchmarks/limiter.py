"""Do eight processes keep a provider's limit, and use it up?

20 calls a second through the real client against a real HTTP server, judged by that server's own log; then 8
credits a window, spent in batches. The peer looks up when the last call was made, waits, and calls: the usual way,
and a race.
"""

from __future__ import annotations

import bisect
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg

from benchmarks import crew
from benchmarks.report import Row
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.queue import limits
from pricing_pipeline.queue import task_queue as product

CALLS, CALLS_WINDOW = 20, 1
CREDITS = 8
_PROVIDER = "twelvedata"
_POLL = 0.02
_SANDBOX = "BENCHMARK_SANDBOX_URL"


@dataclass(frozen=True, slots=True)
class Size:
    """Processes; seconds of calling at 20 a second; number and length of the windows in which credits are spent."""

    workers: int
    seconds: float
    window: int
    windows: int


FULL = Size(workers=8, seconds=60, window=60, windows=4)
QUICK = Size(workers=8, seconds=8, window=5, windows=3)
TINY = Size(workers=1, seconds=1.5, window=1, windows=2)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Count by the server's log: calls above the limit in any window, and the share of the allowance that was used."""
    with _sandbox(size.workers) as sandbox:
        url = server.migrated("limiter", as_superuser=True)
        _arrange(url, units=CALLS, seconds=CALLS_WINDOW, symbols=1, tasks=int(CALLS * (size.seconds + 5)))
        calls = sandbox.log(url, "ours", size.seconds)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement("limiter.look_table"))
        looked = sandbox.log(url, "look_then_call", size.seconds)

        url = server.migrated("credits", as_superuser=True)
        _arrange(url, units=CREDITS, seconds=size.window, symbols=3, tasks=CREDITS * (size.windows + 2))
        credits = sandbox.log(url, "ours", size.window * (size.windows + 0.5))
    span = f"{size.workers} processes, {CALLS} calls a second allowed, {size.seconds:g} s"
    spent = f"{size.workers} processes, {CREDITS} credits in {size.window} s allowed, in batches of 3"
    return [
        Row(
            "calls_over_limit",
            f"calls, {span}",
            _over(calls, CALLS_WINDOW, CALLS),
            {"look_then_call": _over(looked, CALLS_WINDOW, CALLS)},
            lower_is_better=True,
        ),
        Row(
            "utilisation",
            f"of the allowance, {span}",
            _used(calls, CALLS_WINDOW, CALLS),
        ),
        Row(
            "credits_over_limit",
            f"credits, {spent}",
            _over(credits, size.window, CREDITS),
            lower_is_better=True,
        ),
        Row("credit_utilisation", f"of the allowance, {spent}", _used(credits, size.window, CREDITS)),
    ]


def _arrange(url: str, *, units: int, seconds: int, symbols: int, tasks: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection, psycopg.ClientCursor(connection) as cursor:
        cursor.execute(statement("limiter.limit"), {"units": units, "seconds": seconds})
        cursor.execute(statement("limiter.batch"), {"symbols": symbols})
        cursor.execute(statement("limiter.enqueue"), {"tasks": tasks})


Calls = Sequence[tuple[float, int]]
"""When a call arrived at the server, in seconds, and its units; oldest first."""


def _over(calls: Calls, window: float, limit: int) -> int:
    """How many units the worst sliding window holds above the limit."""
    times = [at for at, _ in calls]
    sums = [0]
    for _, units in calls:
        sums.append(sums[-1] + units)
    worst = max(
        (sums[bisect.bisect_left(times, at + window)] - sums[index] for index, at in enumerate(times)),
        default=0,
    )
    return max(0, worst - limit)


def _used(calls: Calls, window: float, limit: int) -> float:
    """Share of the allowance that was used: units before the last window's first call, by the time they took."""
    if not calls:
        return 0.0
    first, last = calls[0][0], calls[-1][0]
    whole = [index for index, (at, _) in enumerate(calls) if at > last - window / 2]
    begin = calls[whole[0]][0] if whole else last
    units = sum(units for at, units in calls if at < begin)
    return units / limit * window / (begin - first) if begin > first else 0.0


class _Sandbox:
    def __init__(self, url: str, workers: int) -> None:
        self.url = url
        self._workers = workers

    def log(self, database_url: str, way: str, seconds: float) -> Calls:
        """Run the crew, and return the calls that arrived, timed by the server's monotonic clock."""
        self._client("POST", "reset")
        crew.run([crew.module("limiter", way, seconds, self.url)] * self._workers, database_url)
        return sorted((call["monotonic"], call["units"]) for call in self._client("GET", "calls"))

    def _client(self, method: str, path: str) -> Any:
        answer = httpx.request(method, f"{self.url}/_sandbox/{path}", params={"limit": 200_000}, trust_env=False)
        answer.raise_for_status()
        return answer.json()


@contextmanager
def _sandbox(workers: int) -> Iterator[_Sandbox]:
    """The sandbox in a process of its own, without limits: it only keeps the log."""
    port = require_free_port(0, "the sandbox", "port")
    command = [
        sys.executable,
        "-m",
        "pricing_pipeline.cli",
        "sandbox",
        "--port",
        str(port),
        "--credits-per-minute",
        "0",
    ]
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stdout=said, stderr=said) as process:
        try:
            while not _answers(f"{url}/_sandbox/health"):
                if process.poll() is not None or time.monotonic() > deadline:
                    said.seek(0)
                    raise crew.WorkerError(f"the sandbox did not start. It wrote:\n{said.read()}")
                time.sleep(0.05)
            yield _Sandbox(url, workers)
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=1.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def work_ours(seconds: float, sandbox_url: str, database_url: str) -> Callable[[], int]:
    """A worker of ours: claim what is allowed, commit, call, settle."""
    engine = make_engine(database_url, pool_size=1)
    client = ProviderClient(PROVIDERS[_PROVIDER], f"{sandbox_url}/{_PROVIDER}", SANDBOX_KEY)
    connection = engine.connect()

    def call() -> int:
        made = 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            with connection.begin():
                calls = product.claim(connection, _PROVIDER, f"worker {os.getpid()}", 1, None)
            if not calls:
                time.sleep(_POLL)
            for claimed in calls:
                fetched = client.fetch(claimed.fetcher, claimed.symbols, claimed.window, now=claimed.claimed_at)
                made += 1
                with connection.begin():
                    product.complete(connection, claimed.task_ids, claimed.claim_token)
                    limits.settle(connection, claimed.id, Receipt(200, fetched.wire_bytes))
        return made

    return call


def work_look_then_call(seconds: float, sandbox_url: str, database_url: str) -> Callable[[], int]:
    """The peer: read the time of the last call, wait for the rest of the pause, call, and write the time."""
    connection = psycopg.connect(database_url, autocommit=True)
    client = ProviderClient(PROVIDERS[_PROVIDER], f"{sandbox_url}/{_PROVIDER}", SANDBOX_KEY)

    def call() -> int:
        made = 0
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            row = connection.execute(statement("limiter.look")).fetchone()
            if row and row[0] is not None and row[0] < CALLS_WINDOW / CALLS:
                time.sleep(CALLS_WINDOW / CALLS - row[0])
            connection.execute(statement("limiter.note"))
            client.fetch(Fetcher.QUOTE, ["AAPL"], None, now=datetime.now(UTC))
            made += 1
        return made

    return call


if __name__ == "__main__":
    _, way, seconds, sandbox_url = sys.argv
    worker = {"ours": work_ours, "look_then_call": work_look_then_call}[way]
    crew.serve(lambda url: worker(float(seconds), sandbox_url, url))
