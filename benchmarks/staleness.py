"""How long does one staleness check take over everything that is watched?

300,000 subscriptions of ten data types, about 80,000 pairs, a tenth of them due. Ours is a check as a drain makes it,
in two sessions that share the data types; what one session takes alone is measured as well. The peers work on the
same tables, in one session, because two would do everything twice: the symbol-by-symbol function of the original
design, and one set-based statement for each data type. Two more checks are measured: one when nothing is newly due
although every market is closed, and one with ten times the viewers.
"""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Size:
    """`symbols` of each type, `copies` further viewers of each subscription, `idle_seconds` of one check a second."""

    rounds: int
    subscriptions: int
    symbols: int
    copies: int
    idle_seconds: int


FULL = Size(rounds=5, subscriptions=300_000, symbols=10_000, copies=9, idle_seconds=75)
QUICK = Size(rounds=3, subscriptions=150_000, symbols=5_000, copies=2, idle_seconds=5)
TINY = Size(rounds=1, subscriptions=300, symbols=100, copies=1, idle_seconds=1)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Compare on one database; the slow peer is measured once, the others in interleaved rounds."""
    url = server.migrated("staleness", as_superuser=True)
    with (
        psycopg.connect(url, autocommit=True) as connection,
        psycopg.connect(url, autocommit=True) as second,
    ):
        connection.execute(statement("staleness.registry"))
        connection.execute(statement("staleness.prices"), {"symbols": size.symbols})
        fill = {"subscriptions": size.subscriptions, "symbols": size.symbols}
        connection.execute(statement("staleness.subscriptions"), fill)
        for name in ("choose", "seed_schema", "analyze"):
            connection.execute(statement(f"staleness.{name}"))
        chosen = _count(connection, "chosen")
        pairs = _count(connection, "pairs")
        server.checkpoint()

        seed = _peer(connection, "seed_tick", chosen)
        connection.execute(statement("staleness.seed_done"))
        ticks = medians(
            {
                "ours": lambda: _ours(chosen, connection, second),
                "alone": lambda: _ours(chosen, connection),
                "set_based": lambda: _peer(connection, "set_tick", chosen),
            },
            size.rounds,
        )
        connection.execute(statement("staleness.more_subscriptions"), {"copies": size.copies})
        connection.execute(statement("staleness.analyze"))
        server.checkpoint()
        crowded = medians({"ours": lambda: _ours(chosen, connection, second)}, size.rounds)["ours"]

        connection.execute(statement("staleness.empty_queue"))
        with connection.transaction():
            connection.execute(statement("staleness.market_closes"))
        idle = _idle(connection, size.idle_seconds)
        if _count(connection, "queued"):
            raise RuntimeError("a closed market was asked for prices")
    return [
        Row(
            "tick_seconds",
            f"s for {size.subscriptions:,} subscriptions, {pairs:,} pairs, {chosen:,} due",
            ticks["ours"],
            {"seed_function": seed, "set_based": ticks["set_based"]},
            lower_is_better=True,
        ),
        Row(
            "tick_seconds_alone",
            "s, the same in one session",
            ticks["alone"],
            {"seed_function": seed, "set_based": ticks["set_based"]},
            lower_is_better=True,
        ),
        Row(
            "tick_seconds_crowded",
            f"s for {size.subscriptions * (1 + size.copies):,} subscriptions of the same pairs",
            crowded,
            {"fewer_viewers": ticks["ours"]},
            lower_is_better=True,
        ),
        Row(
            "idle_tick_ms",
            f"ms, one check a second, {pairs:,} pairs of closed markets",
            statistics.median(idle),
        ),
        Row("idle_tick_mean_ms", "ms, the same ticks, their mean", statistics.fmean(idle)),
    ]


def _ours(chosen: int, *sessions: Connection) -> float:
    """The check by all these sessions, which begin at the same time."""
    connection = sessions[0]
    connection.execute(statement("staleness.empty_queue"))
    connection.execute(statement("staleness.fall_due"))
    connection.execute(statement("staleness.tidy"))
    with ThreadPoolExecutor(len(sessions)) as workers:
        began = time.monotonic()
        for _ in workers.map(lambda session: _timed(session, "tick"), sessions):
            pass
        seconds = time.monotonic() - began
    _check(_count(connection, "queued"), chosen)
    return seconds


def _peer(connection: Connection, tick: str, chosen: int) -> float:
    connection.execute(statement("staleness.empty_seed_queue"))
    connection.execute(statement("staleness.fall_due"))
    connection.execute(statement("staleness.tidy"))
    seconds = _timed(connection, tick)
    _check(_count(connection, "seed_queued"), chosen)
    return seconds


def _idle(connection: Connection, seconds: int) -> list[float]:
    """Milliseconds of each check, one a second, after all pairs were checked once."""
    while _timed(connection, "tick") > 0.1:
        pass
    ticks = []
    for _ in range(seconds):
        took = _timed(connection, "tick")
        ticks.append(took * 1000)
        time.sleep(max(0.0, 1 - took))
    return ticks


def _timed(connection: Connection, tick: str) -> float:
    began = time.monotonic()
    connection.execute(statement(f"staleness.{tick}"))
    return time.monotonic() - began


def _check(queued: int, chosen: int) -> None:
    """Fails if the outcome differs, because the figure would then mean nothing."""
    if not chosen * 0.99 <= queued <= chosen * 1.01:
        raise RuntimeError(f"{queued} pairs were queued where {chosen} are due")


def _count(connection: Connection, name: str) -> int:
    row = connection.execute(statement(f"staleness.{name}")).fetchone()
    return int(row[0]) if row else 0
