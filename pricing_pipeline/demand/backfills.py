"""Backfills for people: estimate the cost, show the progress, cancel.

SQL finds the missing days (`pricing.missing_windows`), and a drain fetches them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from psycopg import errors

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import DataType, Fetcher
from pricing_pipeline.domain.windows import Window, span
from pricing_pipeline.errors import InvalidRange, UnknownBackfill
from pricing_pipeline.registry import calendars, data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a backfill, in tasks."""

    tasks: int
    open: int
    failed: int

    @property
    def is_finished(self) -> bool:
        return self.open == 0


@dataclass(frozen=True, slots=True)
class Backfill:
    """A planned backfill. Without tasks there is nothing to fetch. `left_out` counts skipped instruments by reason."""

    id: UUID
    data_type: str
    tasks: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a backfill at one provider, before it is planned.

    `provider` is None without a route: those tasks would fail. `units` are the provider's own; `wire_bytes` are
    estimated from its past answers; `seconds` are right if nobody else needs the provider. `left_bytes` is the part of
    its quota that is left for backfills; None without a provider.
    """

    provider: str | None
    symbols: int
    tasks: int
    calls: int
    units: int
    wire_bytes: int
    seconds: float
    quota_bytes: int | None
    used_bytes: int | None
    left_bytes: int | None

    @property
    def quota_share(self) -> float | None:
        """The share of the whole quota that it would use."""
        return None if not self.quota_bytes else self.wire_bytes / self.quota_bytes

    @property
    def fits(self) -> bool:
        """False if it would be refused: no provider, or more bytes than the quota leaves for backfills."""
        return self.left_bytes is not None and self.wire_bytes <= self.left_bytes


@dataclass(frozen=True, slots=True)
class Listed:
    """A backfill and its progress.

    `symbols` None: every instrument but those `left_out`; `run_id` None: no run of Dagster.
    """

    backfill_id: UUID
    data_type: str
    first_day: date
    last_day: date
    symbols: list[str] | None
    run_id: str | None
    requested_at: datetime
    finished_at: datetime | None
    cancelled_at: datetime | None
    left_out: Mapping[str, int]
    tasks: int
    done: int
    failed: int
    cancelled: int
    open: int

    @property
    def state(self) -> str:
        """One word: cancelled, running, failed or cancelled (in part at least), or done."""
        if self.cancelled_at is not None:
            return "cancelled"
        if self.open:
            return "running"
        if self.failed:
            return "failed"
        return "cancelled" if self.cancelled else "done"


@dataclass(frozen=True, slots=True)
class Request:
    """A possible backfill: of a data type with history, over days that may have some."""

    type_: DataType
    window: Window
    symbols: list[str] | None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost and the result of a backfill. `units` are the provider's own; rows are new or revised ones."""

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


def checked(connection: Connection, name: str, first: date, last: date | None, symbols: list[str] | None) -> Request:
    """Refuse, with a sentence, a backfill whose run would fail later. Days without history are cut off.

    The last day None is today, by the database's clock in UTC. Raises UnknownDataType and InvalidRange.
    """
    today = calendars.today(connection)
    asked = span(first, last or max(today, first))
    type_ = data_type_registry.active_data_type(connection, name)
    if type_.history_from is None:
        raise InvalidRange(f"data type {name} keeps no history that could be backfilled. {way_to_history(type_)}")
    if asked.end < type_.history_from or asked.start > today:
        raise InvalidRange(f"there is no history of {name} before {type_.history_from} or after {today}.")
    if symbols is not None:
        symbols = instruments.symbols_by_type(connection, [name], symbols)[name]
    return Request(type_, Window(max(asked.start, type_.history_from), min(asked.end, today)), symbols)


def way_to_history(type_: DataType) -> str:
    """What to do about a type that keeps no history."""
    if type_.fetcher is Fetcher.QUOTE:
        return (
            "A quote is the current price. Days of the past are in a data type of daily bars; if `pricing-pipeline "
            f"type list` has none: pricing-pipeline type add {type_.asset_class}_daily "
            f"--asset-class {type_.asset_class} --fetcher daily_bars --ttl 1440 --history-from 2000-01-01"
        )
    return f"If its provider has history: pricing-pipeline type change {type_.data_type} --history-from 2000-01-01"


def ask_again(connection: Connection, request: Request) -> int:
    """Have the next backfill ask for days without a value again; returns for how many pairs.

    In a transaction that is rolled back it serves to estimate such a backfill.
    """
    return int(
        call_sql(
            connection,
            "ask_again",
            request.type_.data_type,
            request.window.start,
            request.window.end,
            request.symbols,
        ).scalar_one()
    )


def estimate(
    connection: Connection, data_type: str, window: Window, symbols: Sequence[str] | None = None
) -> list[Estimate]:
    """The cost of a backfill of these days, by provider; empty if nothing is missing. Queues nothing.

    The database refuses the same cases as for `plan_backfill`, with a sentence.
    """
    rows = call_sql(
        connection,
        "cost_backfill",
        data_type,
        window.start,
        window.end,
        None if symbols is None else list(symbols),
    )
    return [Estimate(**row) for row in rows.mappings()]


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many histories and bars of a type wait to be fetched again, and why (see `pricing.refetches`)."""

    provider: str | None
    data_type: str
    waits_for: str
    histories: int
    bars: int

    @property
    def words(self) -> str:
        """Their number and the reason of their wait, in a sentence."""
        counts = ((self.histories, "histor", "y", "ies"), (self.bars, "bar", "", "s"))
        counted = [
            f"{count} {noun}{singular if count == 1 else plural}" for count, noun, singular, plural in counts if count
        ]
        is_one = self.histories + self.bars == 1
        return (
            f"{' and '.join(counted)} of {self.data_type} {'is' if is_one else 'are'} to be fetched again, "
            f"and {'waits' if is_one else 'wait'}: {_WAITS_FOR[self.waits_for].format(self.provider)}"
        )


_WAITS_FOR = {
    "room": "the quota of {} leaves backfills no room for all of that",
    "paused": "paused (`pricing-pipeline instrument resume SYMBOL` ends that)",
    "retired": "the data type is retired",
    "no_history": "the data type has no history_from",
    "no_provider": "no provider that is switched on serves it",
}

_LEFT_OUT = {
    "paused": ("paused", "`pricing-pipeline instrument resume SYMBOL` ends that"),
    "unknown_symbol": (
        "unknown to the provider",
        "`pricing-pipeline task list --status failed` names what it does not know; a retry or a new route asks again",
    ),
    "no_instrument": ("no instrument of this type", "watching a symbol makes it one"),
}


def left_out_words(left_out: Mapping[str, int]) -> str | None:
    """How many instruments are left out, why, and what to do, in a sentence; None if none is."""
    if not left_out:
        return None
    count = sum(left_out.values())
    why = ", ".join(f"{number} {_LEFT_OUT[reason][0]}" for reason, number in sorted(left_out.items()))
    ways = "; ".join(_LEFT_OUT[reason][1] for reason in sorted(left_out))
    return f"{count} instrument{'s are' if count > 1 else ' is'} left out: {why} ({ways})"


def left_out(connection: Connection, data_type: str, symbols: Sequence[str] | None = None) -> dict[str, int]:
    """How many instruments a backfill of a type, or of some symbols, would leave out, by reason."""
    return dict(call_sql(connection, "left_out", data_type, None if symbols is None else list(symbols)).scalar_one())


_STATE_WORDS = {
    "stored": "stored already",
    "queued": "queued already",
    "not_listed": "not listed yet on those days",
    "empty": "known to have no values",
    "nothing_yet": "without a trading day that is over",
}


def nothing_words(window: Window, states: Mapping[str, int], left_out: Mapping[str, int]) -> str:
    """Why a backfill between two days asks for nothing, in a clause, from the counts of `states` and `left_out`."""
    days = f"from {window.start} to {window.end}"
    if not states:
        return f"nothing {days} is asked for"
    if set(states) == {"stored"}:
        return f"everything{' else' if left_out else ''} {days} is stored already"
    counts = ", ".join(f"{states[name]} {words}" for name, words in _STATE_WORDS.items() if name in states)
    return f"nothing{' else' if left_out else ''} {days} is to be asked for: {counts}"


def states(
    connection: Connection, data_type: str, window: Window, symbols: Sequence[str] | None = None
) -> dict[str, int]:
    """The states of the instruments in these days, counted, without those that a backfill leaves out."""
    return dict(
        call_sql(
            connection,
            "history_standing",
            data_type,
            window.start,
            window.end,
            None if symbols is None else list(symbols),
        ).scalar_one()
    )


def left_out_by_type(connection: Connection) -> dict[str, dict[str, int]]:
    """The same for each active type with a schedule or a history, if it leaves out any."""
    return {row.data_type: row.left_out for row in connection.execute(query("registry.left_out"))}


def waiting_refetches(connection: Connection) -> list[Waiting]:
    """Histories and bars that must be fetched again and cannot be fetched now."""
    return [Waiting(**row) for row in call_sql(connection, "waiting_refetches").mappings()]


def left_out_of(connection: Connection, backfill_id: UUID) -> dict[str, int]:
    """How many instruments a backfill has left out, by reason."""
    return dict(connection.execute(query("backfill.outcome"), {"backfill_id": backfill_id}).scalar_one())


def recent(connection: Connection, at_most: int, after: tuple[datetime, UUID] | None = None) -> list[Listed]:
    """The most recent backfills, newest first; `after` is the sort key of one: when it was requested, and its id."""
    at, id_ = after or (None,) * 2
    parameters = {"backfill_id": None, "at_most": at_most, "after_at": at, "after_id": id_}
    return [Listed(**row) for row in connection.execute(query("backfill.recent"), parameters).mappings()]


def find(connection: Connection, backfill_id: UUID) -> Listed:
    """A backfill and its progress. Raises UnknownBackfill."""
    parameters = {"backfill_id": backfill_id, "at_most": 1, "after_at": None, "after_id": None}
    row = connection.execute(query("backfill.recent"), parameters).mappings().one_or_none()
    if row is None:
        raise UnknownBackfill(f"there is no backfill {backfill_id}. `pricing-pipeline backfill list` shows them.")
    return Listed(**row)


def of_run(connection: Connection, run_id: str, data_type: str | None = None) -> UUID | None:
    """The backfill that a run has planned, of one data type or any; None while it has not."""
    parameters = {"run_id": run_id, "data_type": data_type}
    found: UUID | None = connection.execute(query("backfill.of_run"), parameters).scalar_one_or_none()
    return found


def cost(connection: Connection, backfill_id: UUID) -> Cost:
    """The cost and the result of a backfill so far."""
    row = connection.execute(query("backfill.spent"), {"backfill_id": backfill_id}).one()
    return Cost(row.calls, row.units, row.wire_bytes, row.rows_stored)


def failures(connection: Connection, backfill_id: UUID) -> list[Failure]:
    """Why tasks of a backfill failed; the first 20 by symbol."""
    rows = connection.execute(query("backfill.failures"), {"backfill_id": backfill_id})
    return [Failure(row.symbol, row.failure_kind, row.message) for row in rows]


def waits_for(connection: Connection, backfill_id: UUID) -> list[str]:
    """Why the providers of its tasks are not called now, a sentence for each; rate limits are not mentioned."""
    return list(connection.execute(query("backfill.waits_for"), {"backfill_id": backfill_id}).scalars())


def cancelled(connection: Connection, backfill_id: UUID) -> int:
    """How many tasks of a backfill were cancelled; its progress counts them as failed."""
    return int(connection.execute(query("backfill.cancelled"), {"backfill_id": backfill_id}).scalar_one())


def progress(connection: Connection, backfill_id: UUID) -> Progress:
    """The progress of a backfill; notes in its row when it has ended."""
    row = call_sql(connection, "backfill_progress", backfill_id).one()
    return Progress(row.tasks, row.open, row.failed)


def ended(connection: Connection, backfill_id: UUID) -> tuple[datetime | None, datetime | None]:
    """When a backfill ended, and when it was cancelled; None = not (yet)."""
    row = connection.execute(query("backfill.outcome"), {"backfill_id": backfill_id}).one()
    return row.finished_at, row.cancelled_at


def under_way(connection: Connection) -> dict[UUID, str]:
    """Backfills of Dagster runs with tasks in the queue, and the ids of those runs."""
    return {row.backfill_id: row.run_id for row in connection.execute(query("backfill.under_way"))}


def cancel(connection: Connection, backfill_id: UUID) -> int:
    """Cancel the unfinished tasks of a backfill; returns how many.

    Stored values stay, and so do tasks that a later backfill waits for. Raises UnknownBackfill.
    """
    try:
        return int(call_sql(connection, "cancel_backfill", backfill_id).scalar_one())
    except statement_error() as error:
        if not isinstance(error.orig, errors.InvalidParameterValue):
            raise
        raise UnknownBackfill(reason(error)) from error
