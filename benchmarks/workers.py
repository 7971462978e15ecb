"""How many calls a second does each of 2, 4 and 8 workers make, compared with one that works alone?

Each worker is a process with the product's refresher, as a drain has it, and makes ten calls at once; a call takes
a second, and no limit is near. A provider gets at most ten calls at once from all workers together. So there are as
many providers as workers: with one provider a second worker would find nothing to do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import psycopg

from benchmarks import crew, provider
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.refresher import Refresher

AT_ONCE, LATENCY_MS = 10, 1000
_PATIENCE_SECONDS = 100
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of workers to compare, beginning with 1; calls that wait for each worker."""

    rounds: int
    workers: tuple[int, ...]
    calls: int


FULL = Size(rounds=3, workers=(1, 2, 4, 8), calls=400)
QUICK = Size(rounds=1, workers=(1, 2, 4, 8), calls=160)
TINY = Size(rounds=1, workers=(1, 2), calls=10)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Calls a second of each worker, compared with those of one that works alone."""
    database_url = server.migrated("workers")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement("workers.arrange"), {"most": max(size.workers), "at_once": AT_ONCE})

    def rate_of_each(url: str, workers: int) -> float:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(statement("workers.enqueue"), {"providers": workers, "calls": size.calls})
        server.checkpoint()
        command = crew.module("workers", url, max(size.workers))
        work = crew.run([command] * workers, server.worker_url("workers"))
        if work.total != workers * size.calls:
            raise crew.WorkerError(f"{work.total} of {workers * size.calls} prices were stored: {work.answers}")
        return work.rate / workers

    with provider.running(LATENCY_MS) as url:
        ways: Mapping[str, Callable[[], float]] = {
            str(workers): partial(rate_of_each, url, workers) for workers in size.workers
        }
        rates = medians(ways, size.rounds)
    alone = rates.pop("1")
    return [
        Row(
            f"calls_per_second_of_{workers}_workers",
            f"calls/s for each worker, {LATENCY_MS} ms a call, {workers} providers",
            rate,
            {"one_worker": alone},
        )
        for workers, rate in rates.items()
    ]


def work(provider_url: str, providers: int, database_url: str) -> Callable[[], int]:
    """Run a worker until the queue is empty. Returns how many prices it stored."""
    engine = make_engine(database_url, pool_size=AT_ONCE)
    stored: list[int] = []
    ends, next_poll, is_left = time.monotonic() + _PATIENCE_SECONDS, 0.0, True
    clients = {
        f"provider{number}": ProviderClient(PROVIDERS["twelvedata"], provider_url, SANDBOX_KEY)
        for number in range(1, providers + 1)
    }
    refresher = Refresher(
        engine,
        clients,
        worker="benchmark",
        on_report=lambda tallies: stored.extend(len(tally.symbols) for tally in tallies),
        report_every=0,
    )

    def is_over() -> bool:
        nonlocal next_poll, is_left
        now = time.monotonic()
        if now > ends:  # also while the database does not answer
            return True
        if now >= next_poll:
            with engine.connect() as connection:
                is_left = task_queue.is_busy(connection)
            next_poll = now + _POLL_SECONDS
        return not is_left

    def drain() -> int:
        refresher._work_until(is_over)
        return sum(stored)

    return drain


if __name__ == "__main__":
    _, url, count = sys.argv
    crew.serve(lambda database_url: work(url, int(count), database_url))
