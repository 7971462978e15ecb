"""How many side effects a second do two processes do, and what does it cost to queue one?

Ours is the runner of the notifier: recover, claim, hand each to its handler with a time limit, record the outcome; the
handler does nothing. The peer is procrastinate with a task that does nothing. The cost of queueing is how much
longer a heartbeat's transaction takes when it also queues an operation.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from benchmarks import crew, peers
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner

WORKERS = 2
_PROCRASTINATE_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Size:
    """Operations in a round, fewer for the slow peer; `transactions` of each kind that are timed."""

    rounds: int
    operations: int
    slow_operations: int
    transactions: int


FULL = Size(rounds=5, operations=20_000, slow_operations=2_500, transactions=5_000)
QUICK = Size(rounds=3, operations=4_000, slow_operations=500, transactions=1_000)
TINY = Size(rounds=1, operations=100, slow_operations=50, transactions=20)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Compare the runner with the peer on fresh databases, then time transactions with and without an operation."""
    subjects = {"ours": lambda: _ours(server, size.operations)}
    if peers.are_installed():
        subjects["procrastinate"] = lambda: _procrastinate(server, size.slow_operations)
    rates = medians(subjects, size.rounds)
    enqueue_ms, with_ms, without_ms = _enqueue(server, size.transactions)
    return [
        Row("operations_per_second", "operations/s", rates.pop("ours"), rates),
        Row("enqueue_ms", "ms of the transaction's time for queueing one", enqueue_ms),
        Row(
            "transaction_ms",
            "ms for a heartbeat of three pairs that also queues an operation, durable",
            with_ms,
            {"heartbeat_alone": without_ms},
            lower_is_better=True,
        ),
    ]


def _ours(server: BenchmarkServer, operations: int) -> float:
    url = server.migrated("operations")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("operations.type"))
        connection.execute(statement("operations.fill"), {"operations": operations})
    server.checkpoint()
    return _counted(crew.run([crew.module("operations")] * WORKERS, url), operations)


def _procrastinate(server: BenchmarkServer, operations: int) -> float:
    url = server.empty("procrastinate")
    peers.run("procrastinate_drain", "fill", operations, database_url=url)
    server.checkpoint()
    worker = peers.command("procrastinate_drain", "drain", _PROCRASTINATE_AT_ONCE)
    return _counted(crew.run([worker] * WORKERS, url), operations)


def _counted(work: crew.Work, operations: int) -> float:
    """Return the rate. Fails if an operation did not happen, or happened twice: the rate would mean nothing."""
    if work.total != operations:
        raise crew.WorkerError(f"{work.total} of {operations} operations happened: {work.answers}")
    return work.rate


def _enqueue(server: BenchmarkServer, transactions: int) -> tuple[float, float, float]:
    """Medians in ms: the queueing statement, a transaction with it, and a transaction without it."""
    url = server.migrated("enqueue")
    queueing: list[float] = []
    whole: dict[bool, list[float]] = {True: [], False: []}
    with psycopg.connect(url, prepare_threshold=0) as connection:
        connection.execute(statement("operations.type"))
        connection.execute(statement("operations.heartbeat"))
        connection.commit()
        for number in range(2 * transactions):
            also_queues = number % 2 == 0
            began = time.perf_counter()
            connection.execute(statement("operations.heartbeat"))
            if also_queues:
                queues_from = time.perf_counter()
                connection.execute(statement("operations.enqueue"))
                queueing.append(time.perf_counter() - queues_from)
            connection.commit()
            whole[also_queues].append(time.perf_counter() - began)
    with_one, without = (statistics.median(whole[also_queues]) for also_queues in (True, False))
    return 1000 * statistics.median(queueing), 1000 * with_one, 1000 * without


def work(database_url: str) -> Callable[[], int]:
    """A process of ours with a handler that does nothing; counts how often it was called."""
    happened: list[int] = []

    def handle(operation: Operation) -> None:
        happened.append(operation.id)

    runner = OperationRunner(make_engine(database_url), {"no_op": handle}, worker="benchmark")

    def run() -> int:
        runner.run_due()
        return len(happened)

    return run


if __name__ == "__main__":
    crew.serve(work)
