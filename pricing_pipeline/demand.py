"""Who wants what: heartbeats, the staleness check, and how fresh the watched pairs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from pricing_pipeline.db.query_loader import named


@dataclass(frozen=True, slots=True)
class Freshness:
    """How one data type serves its viewers. Counts are of watched pairs; times are UTC.

    `due` counts pairs owed a refresh, `late` those owed it for longer than max(30 s, TTL/4), `held`
    those left alone after their task died.
    """

    data_type: str
    default_ttl_minutes: int
    watched: int
    fresh: int
    due: int
    late: int
    held: int
    oldest_fetched_at: datetime | None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What decides whether a drain is needed.

    `drain_began_epoch` is when the last drain began, alive or not; it and `now_epoch` are Unix seconds
    by the database's clock.
    """

    watched: bool
    queued: bool
    watched_types: list[str] | None
    queued_types: list[str] | None
    drain_id: UUID | None
    drain_seconds_left: float | None
    drain_began_epoch: float | None
    now_epoch: float
    registry_version: int


def heartbeat(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Say that a user looks at these (data type, symbol) pairs now; returns how many are new.

    Missing instruments are created, unverified until a provider's first valid answer; what is missing
    or stale is queued in the same transaction.
    """
    return int(connection.execute(text(named("demand.heartbeat")), _pairs(user_id, pairs)).scalar_one())


def unsubscribe(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """A user stops looking at these pairs; returns how many subscriptions ended."""
    return int(connection.execute(text(named("demand.unsubscribe")), _pairs(user_id, pairs)).scalar_one())


def enqueue_due(connection: Connection) -> int:
    """Queue every pair that is due and stale; returns how many. A check beside another does nothing."""
    return int(connection.execute(text(named("demand.enqueue_due"))).scalar_one())


def enqueue_scheduled(connection: Connection, data_type: str) -> int:
    """Queue all active instruments of a scheduled type, behind on-demand work; returns how many are new."""
    parameters = {"data_type": data_type}
    return int(connection.execute(text(named("demand.enqueue_scheduled")), parameters).scalar_one() or 0)


def run_duties(connection: Connection) -> list[str]:
    """Run the periodic duties that are overdue; returns their names."""
    return list(connection.execute(text(named("demand.run_duties"))).scalar_one())


def freshness(connection: Connection, data_types: Sequence[str] | None = None) -> list[Freshness]:
    """How each active data type (or those named) serves its viewers."""
    parameters = {"data_types": list(data_types) if data_types is not None else None}
    return [
        Freshness(**row) for row in connection.execute(text(named("demand.freshness")), parameters).mappings()
    ]


def outlook(connection: Connection) -> Outlook:
    """What decides whether a drain is needed now."""
    return Outlook(**connection.execute(text(named("demand.outlook"))).mappings().one())


def _pairs(user_id: str, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    ordered = sorted(set(pairs))
    return {
        "user_id": user_id,
        "data_types": [data_type for data_type, _ in ordered],
        "symbols": [symbol for _, symbol in ordered],
    }
