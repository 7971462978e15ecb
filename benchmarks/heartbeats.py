"""How many watched pairs a second can clients keep alive, three in a call?

The peer is a bare prepared durable upsert of the same rows into a table of the same shape. Ours also looks for new
pairs, and counts; a call that only renews does not wait for the disk. A second part measures whether all updates were
heap-only, and whether the table keeps its size under a steady load.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks import crew
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement

CLIENTS = 2
PAIRS = 3
_STEADY_PAIRS_PER_SECOND = 5000
_WARM_UP = 0.2
"""Share of the steady load after which the table has found its size."""


@dataclass(frozen=True, slots=True)
class Size:
    """`seconds` of each measurement, `steady_seconds` of the steady load."""

    rounds: int
    users: int
    seconds: float
    steady_seconds: float


FULL = Size(rounds=5, users=100_000, seconds=10, steady_seconds=600)
QUICK = Size(rounds=3, users=20_000, seconds=3, steady_seconds=10)
TINY = Size(rounds=1, users=100, seconds=0.3, steady_seconds=0.5)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Compare on one database in interleaved rounds, then watch the table under a steady load."""
    url = server.migrated("heartbeats", as_superuser=True)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("heartbeats.data_type"))
        connection.execute(statement("heartbeats.instruments"))
        connection.execute(statement("heartbeats.users"), {"users": size.users})
        for name in ("bare_table", "bare_users", "bare_index", "tidy"):
            connection.execute(statement(f"heartbeats.{name}"))
        server.checkpoint()

        def pairs_per_second(way: str) -> float:
            arguments = (way, size.users, size.seconds, 0)
            return crew.run([crew.module("heartbeats", *arguments)] * CLIENTS, url).total / size.seconds

        rates = medians(
            {
                "ours": lambda: pairs_per_second("ours"),
                "bare_upsert": lambda: pairs_per_second("bare"),
            },
            size.rounds,
        )
        warm, steady = size.steady_seconds * _WARM_UP, size.steady_seconds * (1 - _WARM_UP)
        _steady(url, size.users, warm)
        before = _number(connection, "size")
        hot_before = _hot(connection)
        _steady(url, size.users, steady)
        hot, updates = (after - was for after, was in zip(_hot(connection), hot_before, strict=True))
        growth = _number(connection, "size") / before
    return [
        Row("pairs_per_second", f"pairs/s, {PAIRS} in a call", rates.pop("ours"), rates),
        Row("hot_share", f"of {updates:,} updates were heap-only", hot / updates),
        Row(
            "table_growth",
            f"times its size after {steady:.0f} s of {_STEADY_PAIRS_PER_SECOND:,} pairs/s",
            growth,
        ),
    ]


def _steady(url: str, users: int, seconds: float) -> None:
    each = _STEADY_PAIRS_PER_SECOND / PAIRS / CLIENTS
    crew.run([crew.module("heartbeats", "ours", users, seconds, each)] * CLIENTS, url)


def _hot(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    row = connection.execute(statement("heartbeats.hot")).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def _number(connection: psycopg.Connection[Any], name: str) -> int:
    row = connection.execute(statement(f"heartbeats.{name}")).fetchone()
    return int(row[0]) if row else 0


def work(way: str, users: int, seconds: float, calls_per_second: float, database_url: str) -> Callable[[], int]:
    """A client: sends prepared heartbeats of random users for a time, at a pace if one is given, and counts pairs."""
    connection = psycopg.connect(database_url, autocommit=True, prepare_threshold=0)
    query = statement(f"heartbeats.{way}")
    data_types = ["equity_quote", "equity_daily", "equity_hourly"]
    dice = random.Random()  # noqa: S311 - whom it asks for is no secret

    def send() -> int:
        pairs = 0
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            if calls_per_second and pairs / PAIRS > (now - began) * calls_per_second:
                time.sleep(0.001)
                continue
            user = dice.randint(1, users)
            symbols = [f"S{(user * 7 + k) % 10_000}" for k in range(PAIRS)]
            connection.execute(query, {"user": f"user{user}", "data_types": data_types, "symbols": symbols})
            pairs += PAIRS
        connection.execute(statement("heartbeats.flush"))
        return pairs

    return send


if __name__ == "__main__":
    _, way, users, seconds, pace = sys.argv
    crew.serve(lambda url: work(way, int(users), float(seconds), float(pace), url))
