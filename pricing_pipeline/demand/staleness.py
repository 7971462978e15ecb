"""The staleness check, which queues due pairs, and the periodic duties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Unasked:
    """Pairs of a data type that cannot be fetched now: how many, the first symbol, and a sentence that says why."""

    pairs: int
    symbol: str
    why: str


def enqueue_due(connection: Connection) -> int:
    """Queue every due pair; returns how many. Checks that run at once share the data types between them."""
    return int(call_sql(connection, "enqueue_due").scalar_one())


def run_duties(connection: Connection) -> list[str]:
    """Run the periodic duties that are overdue; returns their names."""
    return list(call_sql(connection, "run_duties").scalar_one())


def fetch_now(connection: Connection, data_type: str, symbols: Sequence[str] | None = None) -> list[int]:
    """Queue all watched or held pairs of a data type, or some symbols, however fresh they are; returns the tasks.

    It leaves out pairs that are paused, back off or exceed a quota.
    """
    wanted = None if symbols is None else list(symbols)
    return list(call_sql(connection, "fetch_now", data_type, wanted).scalar_one())


def waits_for(connection: Connection, data_type: str) -> list[str]:
    """Why the providers of queued pairs of a data type are not called now, a sentence each, except for rate limits."""
    return list(connection.execute(query("demand.waits_for"), {"data_type": data_type}).scalars())


def unasked(
    connection: Connection, data_type: str, symbols: Sequence[str] | None, tasks: Sequence[int]
) -> Unasked | None:
    """The watched or held pairs of a data type, or these symbols, that are in none of the tasks of `fetch_now`.

    Call it in the transaction of `fetch_now`. None if all are.
    """
    parameters = {
        "data_type": data_type,
        "symbols": None if symbols is None else list(symbols),
        "tasks": list(tasks),
    }
    row = connection.execute(query("demand.unasked"), parameters).mappings().one_or_none()
    return None if row is None else Unasked(**row)


def progress(connection: Connection, tasks: Sequence[int]) -> tuple[int, int, int]:
    """The number of these tasks, of the unfinished ones and of the failed ones."""
    row = connection.execute(query("demand.progress"), {"tasks": list(tasks)}).one()
    return len(tasks), row.open, row.failed
