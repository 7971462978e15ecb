"""Typed reads that only commands need, over `db/queries/cli.sql`; raises what a person's request deserves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import instruments
from pricing_pipeline.demand.backfills import Progress
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.registry import data_type_registry


@dataclass(frozen=True, slots=True)
class Cost:
    """What a backfill has taken and brought. `units` are the provider's own; rows are new or revised ones."""

    calls: int
    units: int
    wire_bytes: int
    rows_stored: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task of a backfill failed."""

    symbol: str
    kind: str
    message: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A symbol that backs off (until `backoff_until`, UTC), and what it failed of."""

    symbol: str
    reason: str
    backoff_until: datetime


@dataclass(frozen=True, slots=True)
class Warned:
    """One trouble of the last 24 hours: how often it was met at least, when last, and what was said then."""

    source: str
    subject: str
    times: int
    last_at: datetime
    sqlstate: str | None
    message: str


def revision(connection: Connection) -> str:
    """The migration that the database is at."""
    return str(connection.execute(query("cli.revision")).scalar_one())


def any_data_type(connection: Connection, name: str) -> Mapping[str, Any]:
    """Everything about the data type of this name, active or retired. Raises UnknownDataType."""
    about = data_type_registry.about(connection, name)
    if about is None:
        raise UnknownDataType(
            f"no data type is called {name!r}. `pricing-pipeline type list --retired` shows those there are."
        )
    return about


def require_instruments(connection: Connection, kind: DataType, symbols: Sequence[str]) -> None:
    """Have the database refuse, in a sentence, symbols that are no instruments that the data type applies to."""
    instruments.symbols_by_type(connection, [kind.data_type], symbols)


def faults(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[Fault]:
    """Which of the symbols back off because their last task failed, and why."""
    rows = connection.execute(query("cli.faults"), {"data_type": data_type, "symbols": list(symbols)})
    return [Fault(**row) for row in rows.mappings()]


def queue_counts(connection: Connection) -> dict[str, int]:
    """Tasks that are pending, processing, scheduled or dead; all four are always there."""
    counts = {row.status: int(row.tasks) for row in connection.execute(query("cli.queue_counts"))}
    return {status: counts.get(status, 0) for status in ("pending", "processing", "scheduled", "dead")}


def warnings(connection: Connection) -> list[Warned]:
    """What went wrong in the last 24 hours without stopping anything else, the newest first."""
    return [Warned(**row) for row in connection.execute(query("cli.warnings")).mappings()]


def first_price(connection: Connection, since: datetime) -> datetime | None:
    """When a call that a run made first stored a latest price, at or after `since`; None when none has."""
    at: datetime | None = connection.execute(query("prices.first_price"), {"since": since}).scalar_one()
    return at


def backfill_of_run(connection: Connection, run_id: str, data_type: str) -> UUID | None:
    """The backfill that a run has planned; None while it has not."""
    backfill_id: UUID | None = connection.execute(
        query("cli.backfill_of_run"), {"run_id": run_id, "data_type": data_type}
    ).scalar_one_or_none()
    return backfill_id


def backfill_progress(connection: Connection, backfill_id: UUID) -> Progress:
    """How far a backfill is; notes in its row when it has ended."""
    row = connection.execute(query("backfill.progress"), {"backfill_id": backfill_id}).one()
    return Progress(row.tasks, row.open, row.failed)


def why_backfill_waits(connection: Connection, backfill_id: UUID) -> list[str]:
    """Why the providers of its tasks are not called now, a sentence for each; a rate limit is no reason to be told."""
    return list(connection.execute(query("cli.why_backfill_waits"), {"backfill_id": backfill_id}).scalars())


def backfill_cost(connection: Connection, backfill_id: UUID) -> Cost:
    """What a backfill has taken and brought so far."""
    row = connection.execute(query("cli.backfill_cost"), {"backfill_id": backfill_id}).one()
    return Cost(row.calls, row.units, row.wire_bytes, row.rows_stored)


def backfill_failures(connection: Connection, backfill_id: UUID) -> list[Failure]:
    """Why tasks of a backfill failed; the first 20 by symbol."""
    rows = connection.execute(query("backfill.failures"), {"backfill_id": backfill_id})
    return [Failure(row.symbol, row.failure_kind, row.message) for row in rows]
