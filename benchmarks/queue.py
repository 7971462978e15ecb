"""How many tasks a second do two workers claim and finish, in batches of 50?

Ours is claim, complete and settle as a drain does them, with quota, lease, fence, call log and history. The peers
are pgqueuer and procrastinate in their best documented configurations, and the bare statements that any fenced
queue needs. Whether the queue is right is for the test suite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from sqlalchemy.exc import OperationalError

from benchmarks import crew, peers
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.errors import is_locked
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.queue import task_queue as product

BATCH, WORKERS = 50, 2
_PROVIDER = "twelvedata"

Claimed = TypeVar("Claimed")


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of a run: tasks in a round, fewer for a slow peer, and tasks that were finished before."""

    rounds: int
    tasks: int
    slow_tasks: int
    finished: int


FULL = Size(rounds=5, tasks=50_000, slow_tasks=2_500, finished=1_000_000)
QUICK = Size(rounds=2, tasks=8_000, slow_tasks=250, finished=20_000)
TINY = Size(rounds=1, tasks=200, slow_tasks=50, finished=200)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Compare with the peers on fresh databases, then ours with itself after much work and under a snapshot."""
    subjects = {
        "ours": lambda: _ours(server, size.tasks),
        "watched": lambda: _ours(server, size.tasks, watched=True),
        "bare_sql": lambda: _bare(server, size.tasks),
    }
    if peers.are_installed():
        subjects["pgqueuer"] = lambda: _peer(server, "pgqueuer", size.tasks, BATCH)
        subjects["procrastinate"] = lambda: _peer(server, "procrastinate", size.slow_tasks, 20)
    rates = medians(subjects, size.rounds)
    ours, watched = rates.pop("ours"), rates.pop("watched")
    url = _prepared(server)
    fresh = medians({"fresh": lambda: _drain(server, url, size.tasks)}, size.rounds)["fresh"]
    _drain(server, url, size.finished)
    after = medians({"after": lambda: _drain(server, url, size.tasks)}, size.rounds)["after"]
    held = medians({"held": lambda: _drain_under_snapshot(server, url, size.tasks)}, size.rounds)["held"]
    return [
        Row("tasks_per_second", "tasks/s", ours, rates),
        Row("tasks_per_second_watched", "tasks/s", watched, rates),
        Row(
            "tasks_per_second_after_finished",
            f"tasks/s after {size.finished:,} finished tasks",
            after,
            {"fresh": fresh},
        ),
        Row(
            "tasks_per_second_under_snapshot",
            f"tasks/s, {size.tasks:,} tasks under a held-open snapshot",
            held,
            {"fresh": fresh},
        ),
    ]


def _ours(server: BenchmarkServer, tasks: int, *, watched: bool = False) -> float:
    return _drain(server, _prepared(server), tasks, watched=watched)


def _prepared(server: BenchmarkServer) -> str:
    url = server.migrated("ours")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("queue.arrange"))
    return url


def _drain(server: BenchmarkServer, url: str, tasks: int, *, watched: bool = False) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        if watched:
            connection.execute(statement("queue.watch"), {"tasks": tasks})
        connection.execute(statement("queue.enqueue"), {"tasks": tasks})
    server.checkpoint()
    return _counted(crew.run([crew.module("queue", "ours")] * WORKERS, url), tasks)


def _drain_under_snapshot(server: BenchmarkServer, url: str, tasks: int) -> float:
    with psycopg.connect(url) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute(statement("queue.look"))
        return _drain(server, url, tasks)


def _bare(server: BenchmarkServer, tasks: int) -> float:
    url = server.empty("bare")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("queue.bare_schema"))
        connection.execute(statement("queue.bare_enqueue"), {"tasks": tasks})
    server.checkpoint()
    return _counted(crew.run([crew.module("queue", "bare_sql")] * WORKERS, url), tasks)


def _peer(server: BenchmarkServer, name: str, tasks: int, width: int) -> float:
    url = server.empty(name)
    peers.run(f"{name}_drain", "fill", tasks, database_url=url)
    server.checkpoint()
    return _counted(crew.run([peers.command(f"{name}_drain", "drain", width)] * WORKERS, url), tasks)


def _counted(work: crew.Work, tasks: int) -> float:
    """Return the rate. Fails if work was not done, because the rate would then mean nothing."""
    if work.total != tasks:
        raise crew.WorkerError(f"{work.total} of {tasks} tasks were finished: {work.answers}")
    return work.rate


def work_ours(database_url: str) -> Callable[[], int]:
    """A worker of ours: claim; finish and settle; each a transaction of its own."""
    engine = make_engine(database_url, pool_size=2).execution_options(isolation_level="AUTOCOMMIT")
    claiming, finishing = engine.connect(), engine.connect()

    def claim() -> list[Call]:
        while True:
            try:
                return product.claim(claiming, _PROVIDER, "benchmark", 1, None)
            # On a busy disk, the other worker's commit may lock the provider for longer than a claim waits.
            except OperationalError as error:
                if not is_locked(error):
                    raise

    def finish(calls: list[Call]) -> int:
        receipt = Receipt(http_status=200, wire_bytes=12_345)
        return sum(len(product.finish(finishing, call, call.task_ids, receipt)) for call in calls)

    return _two_handed(claim, finish)


def work_bare(database_url: str) -> Callable[[], int]:
    """A worker with the bare statements, each a transaction of its own."""
    claiming, finishing = (psycopg.connect(database_url, autocommit=True) for _ in range(2))

    def claim() -> dict[str, Any] | None:
        token = uuid4()
        rows = claiming.execute(statement("queue.bare_claim"), {"batch": BATCH, "token": token}).fetchall()
        return {"ids": [row[0] for row in rows], "token": token} if rows else None

    def finish(claimed: dict[str, Any]) -> int:
        return finishing.execute(statement("queue.bare_finish"), claimed).rowcount

    return _two_handed(claim, finish)


def _two_handed(claim: Callable[[], Claimed | None], finish: Callable[[Claimed], int]) -> Callable[[], int]:
    """As a drain does it: while one batch is finished, the next is claimed, on a connection of its own."""

    def drain() -> int:
        finished = 0
        with ThreadPoolExecutor(1) as other_hand:
            claimed = claim()
            while claimed:
                finishing = other_hand.submit(finish, claimed)
                claimed = claim()
                finished += finishing.result()
        return finished

    return drain


if __name__ == "__main__":
    crew.serve({"ours": work_ours, "bare_sql": work_bare}[sys.argv[1]])
