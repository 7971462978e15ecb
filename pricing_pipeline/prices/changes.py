"""Versions of stored data: which types and months have changed, numbered in the order of commits."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LOOK_AGAIN_SECONDS = 0.1
_PATIENCE_SECONDS = 15.0
"""How long to wait for the turn to tell: news told twice is a smaller evil than news behind a frozen session."""


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The newest version of a month of a type's history, or of its latest values (`month` is None).

    `month` is the first day of a UTC month. `version` rises with each change, over all types and months. `changes`
    counts all values ever added, changed or removed.
    """

    data_type: str
    month: date | None
    version: int
    changes: int


def note(connection: Connection, data_type: str, months: Mapping[date, int]) -> None:
    """Note, in the transaction that stores it, how many values of UTC months of a history have changed.

    Functions that store prices do this themselves.
    """
    parameters = {"data_type": data_type, "months": list(months), "changes": list(months.values())}
    connection.execute(query("changes.note"), parameters)


def note_latest(connection: Connection, data_type: str, changes: int) -> None:
    """Note, in the transaction that stores them, how many of the latest values of a type have changed.

    Functions that store prices do this themselves.
    """
    if changes:
        call_sql(connection, "note_latest_changes", data_type, changes)


def note_shared(connection: Connection, fetcher: str, changes: Mapping[str, int]) -> None:
    """Note how many values have changed, by symbol, for all types of a fetcher, which share them."""
    parameters = {"fetcher": fetcher, "symbols": list(changes), "changes": list(changes.values())}
    connection.execute(query("changes.note_shared"), parameters)


def is_unnumbered(connection: Connection) -> bool:
    """Whether anything has changed that has no version."""
    return bool(connection.execute(query("changes.is_unnumbered")).scalar_one())


def number(engine: Engine) -> None:
    """Give the committed changes since the last time their versions."""
    with engine.begin() as connection:
        call_sql(connection, "number_changes")


@contextmanager
def turn_to_tell(engine: Engine) -> Iterator[Connection]:
    """A transaction in which this process alone updates what Dagster was told. Waits a while for its turn."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with engine.begin() as connection:
        while not connection.execute(query("changes.take_turn")).scalar_one():
            if time.monotonic() > deadline:
                break
            time.sleep(_LOOK_AGAIN_SECONDS)
        yield connection


def log(connection: Connection) -> str:
    """The id of this database's sequence of versions; a restored backup has another one."""
    return str(connection.execute(query("changes.log")).scalar_one())


def since(connection: Connection, version: int, at_most: int) -> list[DataVersion]:
    """What has changed after a version, at most `at_most` rows in the order of the changes."""
    rows = connection.execute(query("changes.since"), {"version": version, "at_most": at_most})
    return [DataVersion(*row) for row in rows]


def current(connection: Connection, data_type: str, months: Sequence[date | None]) -> dict[date | None, DataVersion]:
    """The versions of some months (None = the latest values) of a type, without those that never changed."""
    rows = connection.execute(query("changes.current"), {"data_type": data_type, "months": list(months)})
    return {row.month: DataVersion(*row) for row in rows}


def filling(connection: Connection) -> set[str]:
    """The data types for which a backfill is under way."""
    return set(connection.execute(query("changes.filling")).scalars())
