"""The staleness check and the periodic duties: what is due becomes tasks."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query


def enqueue_due(connection: Connection) -> int:
    """Queue every pair that is due and stale; returns how many. Checks at once share the data types between them."""
    return int(connection.execute(query("demand.enqueue_due")).scalar_one())


def run_duties(connection: Connection) -> list[str]:
    """Run the periodic duties that are overdue; returns their names."""
    return list(connection.execute(query("demand.run_duties")).scalar_one())


def fetch_now(connection: Connection, data_type: str, symbols: Sequence[str] | None = None) -> list[int]:
    """Queue what people watch or hold of a data type, or some of it, however fresh it is; returns the tasks.

    What is paused, backs off or finds no room in a quota is left out.
    """
    parameters = {"data_type": data_type, "symbols": None if symbols is None else list(symbols)}
    return list(connection.execute(query("demand.fetch_now"), parameters).scalar_one())


def how_far(connection: Connection, tasks: Sequence[int]) -> tuple[int, int, int]:
    """Of some tasks: how many there are, how many are not finished, and how many failed."""
    row = connection.execute(query("demand.how_far"), {"tasks": list(tasks)}).one()
    return len(tasks), row.open, row.failed
