"""Backfills as people handle them: what one would cost, how far each is, calling one off.

What is missing is decided in SQL (`pricing.missing_windows`), and fetched by a drain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.windows import Window


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a backfill is, in tasks."""

    tasks: int
    open: int
    failed: int

    @property
    def is_finished(self) -> bool:
        return self.open == 0


@dataclass(frozen=True, slots=True)
class Backfill:
    """A planned backfill. Zero tasks: there is nothing to ask for, beside what is `left_out`, counted by reason."""

    id: UUID
    data_type: str
    tasks: int
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a backfill would ask of one provider, before it is planned.

    `provider` is None where no route leads to one: those tasks would fail. `units` are the provider's own;
    `wire_bytes` are estimated by what its answers were like; `seconds` hold if nobody else needs the provider.
    `left_bytes` is what its quota still leaves for backfills; None without a provider.
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
        """The part of the whole quota that it would take."""
        return None if not self.quota_bytes else self.wire_bytes / self.quota_bytes

    @property
    def fits(self) -> bool:
        """False when it would be refused: no provider, or more bytes than the quota leaves for backfills."""
        return self.left_bytes is not None and self.wire_bytes <= self.left_bytes


@dataclass(frozen=True, slots=True)
class Listed:
    """A backfill and how far it is.

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


def estimate(
    connection: Connection, data_type: str, window: Window, symbols: Sequence[str] | None = None
) -> list[Estimate]:
    """What a backfill of these days would cost, by provider; empty when nothing is missing. Queues nothing.

    The database refuses, in a sentence, what `plan_backfill` would refuse.
    """
    rows = connection.execute(
        query("backfill.cost"),
        {
            "data_type": data_type,
            "first_day": window.start,
            "last_day": window.end,
            "symbols": None if symbols is None else list(symbols),
        },
    )
    return [Estimate(**row) for row in rows.mappings()]


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many histories and bars of a type wait to be fetched again, and what for (see `pricing.refetches`)."""

    provider: str | None
    data_type: str
    waits_for: str
    histories: int
    bars: int

    @property
    def words(self) -> str:
        """How many, and what they wait for, in a sentence."""
        counts = ((self.histories, "histor", "y", "ies"), (self.bars, "bar", "", "s"))
        counted = [
            f"{count} {noun}{singular if count == 1 else plural}"
            for count, noun, singular, plural in counts
            if count
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
        "`pricing-pipeline queue list --status failed` names what it does not know; a retry or a new route asks again",
    ),
    "no_instrument": ("no instrument of this type", "watching a symbol makes it one"),
}


def left_out_words(left_out: Mapping[str, int]) -> str | None:
    """What is left out, why, and the way out, in a sentence; None when nothing is."""
    if not left_out:
        return None
    count = sum(left_out.values())
    why = ", ".join(f"{number} {_LEFT_OUT[reason][0]}" for reason, number in sorted(left_out.items()))
    ways = "; ".join(_LEFT_OUT[reason][1] for reason in sorted(left_out))
    return f"{count} instrument{'s are' if count > 1 else ' is'} left out: {why} ({ways})"


def left_out(connection: Connection, data_type: str, symbols: Sequence[str] | None = None) -> dict[str, int]:
    """How many instruments a backfill of a whole type, or of some symbols, would leave out, by reason."""
    parameters = {"data_type": data_type, "symbols": None if symbols is None else list(symbols)}
    return dict(connection.execute(query("backfill.left_out"), parameters).scalar_one())


_STANDINGS = {
    "stored": "stored already",
    "queued": "queued already",
    "not_listed": "not listed yet on those days",
    "empty": "known to have no values",
    "nothing_yet": "without a trading day that is over",
}


def nothing_words(window: Window, standing: Mapping[str, int], left_out: Mapping[str, int]) -> str:
    """Why nothing is asked for between two days, in a clause: what `standing` counts, beside what is left out."""
    days = f"from {window.start} to {window.end}"
    if not standing:
        return f"nothing {days} is asked for"
    if set(standing) == {"stored"}:
        return f"everything{' else' if left_out else ''} {days} is stored already"
    counts = ", ".join(f"{standing[name]} {words}" for name, words in _STANDINGS.items() if name in standing)
    return f"nothing{' else' if left_out else ''} {days} is to be asked for: {counts}"


def standing(
    connection: Connection, data_type: str, window: Window, symbols: Sequence[str] | None = None
) -> dict[str, int]:
    """How the instruments that a backfill does not leave out stand in these days, counted."""
    parameters = {
        "data_type": data_type,
        "first_day": window.start,
        "last_day": window.end,
        "symbols": None if symbols is None else list(symbols),
    }
    return dict(connection.execute(query("backfill.standing"), parameters).scalar_one())


def left_out_by_type(connection: Connection) -> dict[str, dict[str, int]]:
    """The same for each active type with a schedule or a history that leaves out some."""
    return {row.data_type: row.left_out for row in connection.execute(query("registry.left_out"))}


def waiting_refetches(connection: Connection) -> list[Waiting]:
    """What is to be fetched again, and cannot be now."""
    return [Waiting(**row) for row in connection.execute(query("backfill.waiting_refetches")).mappings()]


def left_out_of(connection: Connection, backfill_id: UUID) -> dict[str, int]:
    """How many instruments a backfill has left out, by reason."""
    return dict(connection.execute(query("backfill.left_out_of"), {"backfill_id": backfill_id}).scalar_one())


def recent(connection: Connection, at_most: int) -> list[Listed]:
    """The backfills that were asked for last, newest first."""
    return [
        Listed(**row) for row in connection.execute(query("backfill.recent"), {"at_most": at_most}).mappings()
    ]


def cancelled(connection: Connection, backfill_id: UUID) -> int:
    """How many tasks of a backfill people have called off; its progress counts them among those that failed."""
    return int(connection.execute(query("backfill.cancelled"), {"backfill_id": backfill_id}).scalar_one())


def progress(connection: Connection, backfill: Backfill) -> Progress:
    """How far a backfill is."""
    row = connection.execute(query("backfill.progress"), {"backfill_id": backfill.id}).one()
    return Progress(row.tasks, row.open, row.failed)


def ended(connection: Connection, backfill_id: UUID) -> tuple[datetime | None, datetime | None]:
    """When a backfill ended, and when it was called off; None = not (yet)."""
    row = connection.execute(query("backfill.ended"), {"backfill_id": backfill_id}).one()
    return row.finished_at, row.cancelled_at


def under_way(connection: Connection) -> dict[UUID, str]:
    """Backfills that runs of Dagster asked for and that have tasks in the queue, with the ids of those runs."""
    return {row.backfill_id: row.run_id for row in connection.execute(query("backfill.under_way"))}


def cancel(connection: Connection, backfill_id: UUID) -> int:
    """Take what is left of a backfill out of the queue; returns how many tasks that were.

    What is stored stays, and so does what a later backfill waits for.
    """
    return int(connection.execute(query("backfill.cancel"), {"backfill_id": backfill_id}).scalar_one())
