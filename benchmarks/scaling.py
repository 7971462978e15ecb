"""How does the cost of the same work grow with subscriptions, data types, prices fetched a day and rows of history?

Each number grows step by step on one database; at each step the same work is timed. A flat curve shows that the work
does not depend on that number. `python -m benchmarks.curves` draws the curves. How many new values a second one session
can store follows from `day_of_1000`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import psycopg

from benchmarks.report import Row
from benchmarks.server import BenchmarkServer, statement

Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Size:
    """Steps of each number; `times` each piece of work is timed; `symbols` that are watched, of `types` types.

    `events` are prices fetched a day: tasks of the last seven days, and calls of the last 35, are in the database. With
    so many rows as `partitioned` says, one table is compared with a table partition for each month.
    """

    times: int
    symbols: int
    types: int
    subscriptions: tuple[int, ...]
    more_types: tuple[int, ...]
    events: tuple[int, ...]
    rows: tuple[int, ...]
    partitioned: int


FULL = Size(
    times=7,
    symbols=10_000,
    types=10,
    subscriptions=(10_000, 100_000, 1_000_000, 3_000_000),
    more_types=(50, 200, 500),
    events=(10_000, 100_000, 1_000_000, 3_000_000),
    rows=(1_000_000, 10_000_000, 100_000_000),
    partitioned=10_000_000,
)
QUICK = Size(
    times=3,
    symbols=10_000,
    types=10,
    subscriptions=(10_000, 100_000, 300_000),
    more_types=(50, 200),
    events=(10_000, 100_000, 300_000),
    rows=(100_000, 1_000_000, 3_000_000),
    partitioned=3_000_000,
)
TINY = Size(
    times=1,
    symbols=50,
    types=2,
    subscriptions=(100, 200),
    more_types=(3,),
    events=(50, 100),
    rows=(5_000, 10_000),
    partitioned=10_000,
)

_DAYS = 5_000
"""Daily bars of each symbol."""
_WORK_OF_DEMAND = ("heartbeat", "check", "claim")


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """All curves, one after the other; a row for each point, named `<work>@<kind of number>=<number>`."""
    url = server.migrated("scaling", as_superuser=True)
    with psycopg.connect(url, autocommit=True) as connection:
        return [
            *_demand(server, connection, size),
            *_types(server, connection, size),
            *_events(server, connection, size),
            *_history(server, connection, size),
        ]


def _demand(server: BenchmarkServer, connection: Connection, size: Size) -> list[Row]:
    connection.execute(statement("scaling.without_limits"))
    connection.execute(statement("scaling.types"), {"first": 0, "last": size.types - 1})
    connection.execute(statement("scaling.symbols"), {"first": 0, "last": size.symbols - 1})
    rows: list[Row] = []
    first = 0
    for number in size.subscriptions:
        connection.execute(
            statement("scaling.watched"),
            {"first": first, "last": number - 1, "symbols": size.symbols, "types": size.types},
        )
        first = number
        connection.execute(statement("scaling.queue"), {"symbols": size.symbols})
        _vacuum_and_checkpoint(server, connection)
        rows += _points(connection, size, "subscriptions", number, _WORK_OF_DEMAND)
    return rows


def _types(server: BenchmarkServer, connection: Connection, size: Size) -> list[Row]:
    rows: list[Row] = []
    first = size.types
    for number in size.more_types:
        connection.execute(statement("scaling.types"), {"first": first, "last": number - 1})
        first = number
        _vacuum_and_checkpoint(server, connection)
        rows += _points(connection, size, "data_types", number, ("definitions", "check"))
    return rows


def _events(server: BenchmarkServer, connection: Connection, size: Size) -> list[Row]:
    rows: list[Row] = []
    before = 0
    for number in size.events:
        connection.execute(
            statement("scaling.events"), {"added": number - before, "symbols": size.symbols, "per_call": 50}
        )
        before = number
        connection.execute(statement("scaling.queue"), {"symbols": size.symbols})
        _vacuum_and_checkpoint(server, connection)
        rows += _points(connection, size, "events", number, ("check", "claim", "prune"))
    return rows


def _history(server: BenchmarkServer, connection: Connection, size: Size) -> list[Row]:
    rows: list[Row] = []
    first = day = 0
    for number in size.rows:
        symbols = max(number // _DAYS, 1)
        connection.execute(statement("scaling.history"), {"first": first, "last": symbols - 1})
        first = symbols
        _vacuum_and_checkpoint(server, connection)
        for name in ("year", "as_of", "month", "marks"):
            rows.append(_point(connection, size, "rows", number, name, {"symbol": f"H{symbols // 2}"}))
        taken = []
        for _ in range(size.times):
            day += 1
            taken.append(_timed(connection, "day", {"day": day}))
        rows.append(_row("day_of_1000", "rows", number, median(taken)))
        if number == size.partitioned:
            rows += _partitions(connection, size)
    return rows


def _partitions(connection: Connection, size: Size) -> list[Row]:
    """A history in one table, and the same in a table partition for each month."""
    connection.execute(statement("scaling.partitioned"))
    connection.execute(statement("scaling.fill_partitioned"))
    connection.execute(statement("scaling.vacuum"))
    symbol = {"symbol": f"H{max(size.partitioned // _DAYS, 1) // 2}"}
    rows = []
    for name in ("year", "past"):
        one, other = (
            _point(connection, size, "rows", size.partitioned, f"{name}_{where}", symbol)
            for where in ("in_one", "by_month")
        )
        rows.append(Row(one.metric, one.unit, one.ours, {"by_month": other.ours}, lower_is_better=True))
    deleted = _timed(connection, "delete_in_one", {})
    dropped = _timed(connection, "drop_by_month", {})
    connection.execute(statement("scaling.forget_partitioned"))
    rows.append(
        Row(
            f"month_leaves@rows={size.partitioned}",
            "ms",
            deleted,
            {"by_month": dropped},
            lower_is_better=True,
        )
    )
    return rows


def _points(connection: Connection, size: Size, kind: str, number: int, names: tuple[str, ...]) -> list[Row]:
    return [_point(connection, size, kind, number, name, {}) for name in names]


def _point(connection: Connection, size: Size, kind: str, number: int, name: str, parameters: Mapping[str, Any]) -> Row:
    _timed(connection, name, parameters)
    return _row(name, kind, number, median(_timed(connection, name, parameters) for _ in range(size.times)))


def _row(name: str, kind: str, number: int, milliseconds: float) -> Row:
    return Row(f"{name}@{kind}={number}", "ms", milliseconds, lower_is_better=True)


def _timed(connection: Connection, name: str, parameters: Mapping[str, Any]) -> float:
    """Milliseconds that a statement takes."""
    began = time.perf_counter()
    connection.execute(statement(f"scaling.{name}"), parameters)
    return (time.perf_counter() - began) * 1000


def _vacuum_and_checkpoint(server: BenchmarkServer, connection: Connection) -> None:
    connection.execute(statement("scaling.vacuum"))
    server.checkpoint()
