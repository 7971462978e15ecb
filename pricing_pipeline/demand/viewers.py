"""Subscriptions and holdings of users: heartbeats, leaving, holding, closing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import errors
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import CapExceeded


@dataclass(frozen=True, slots=True)
class Watching:
    """The subscriptions of a data type or of a client; of all if both are None. `seen_at` is the last heartbeat."""

    data_type: str | None
    user_id: str | None
    subscriptions: int
    clients: int
    pairs: int
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A viewer of a pair: since when, and the last heartbeat."""

    user_id: str
    data_type: str
    symbol: str
    subscribed_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """A holder of a pair; `status` is active, or closed since `closed_at`."""

    user_id: str
    data_type: str
    symbol: str
    status: str
    since: datetime
    closed_at: datetime | None


def heartbeat(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Note that a user watches these (data type, symbol) pairs now; returns how many are new.

    Missing instruments are created, unverified until a provider's first valid answer; missing or stale prices are
    queued in the same transaction. Raises CapExceeded if these are too many pairs for the user.
    """
    return within_caps(connection, "demand.heartbeat", _pairs(user_id, pairs))


def unsubscribe(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """End a user's subscriptions to these pairs; returns how many ended."""
    return int(connection.execute(query("demand.unsubscribe"), _pairs(user_id, pairs)).scalar_one())


def hold(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Note that a user holds these pairs from now on; returns how many of the holdings are new.

    Held pairs are fetched if they have no price, and kept fresh by the background TTL. Missing instruments are created
    as by a heartbeat. Raises CapExceeded if these are too many pairs for the user.
    """
    return within_caps(connection, "demand.hold", _pairs(user_id, pairs))


def release(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> int:
    """Close a user's holdings of these pairs; returns how many were closed."""
    return int(connection.execute(query("demand.release"), _pairs(user_id, pairs)).scalar_one())


def serve_requests(connection: Connection) -> int:
    """Serve new requests of clients; returns how many pairs are queued. `enqueue_due` does it, too."""
    return int(connection.execute(query("demand.serve_requests")).scalar_one())


def subscriptions(
    connection: Connection,
    user_id: str | None,
    data_type: str | None,
    symbols: Sequence[str] | None,
    at_most: int,
    after: tuple[str, str, str] | None = None,
) -> list[Subscription]:
    """Who watches what, by user, data type and symbol, after these three; None does not choose."""
    parameters = {
        "user_id": user_id,
        "data_type": data_type,
        "symbols": symbols,
        "at_most": at_most,
        **_after(after),
    }
    rows = connection.execute(query("demand.subscriptions"), parameters).mappings()
    return [Subscription(**row) for row in rows]


def holdings(
    connection: Connection,
    user_id: str | None,
    data_type: str | None,
    symbols: Sequence[str] | None,
    at_most: int,
    *,
    closed_too: bool,
    after: tuple[str, str, str] | None = None,
) -> list[Holding]:
    """Who holds what, by user, data type and symbol, after these three; None does not choose."""
    parameters = {
        "user_id": user_id,
        "data_type": data_type,
        "symbols": symbols,
        "at_most": at_most,
        "closed_too": closed_too,
        **_after(after),
    }
    return [Holding(**row) for row in connection.execute(query("demand.holdings"), parameters).mappings()]


def watching(connection: Connection) -> list[Watching]:
    """The subscriptions of all, of each data type and of each client, the largest number first."""
    return [Watching(**row) for row in connection.execute(query("demand.watching")).mappings()]


def within_caps(connection: Connection, name: str, parameters: dict[str, object]) -> int:
    """The number that a query gives which refuses what goes past a user's caps. Raises CapExceeded."""
    try:
        return int(connection.execute(query(name), parameters).scalar_one())
    except DBAPIError as error:
        diagnostics = getattr(error.orig, "diag", None)
        if diagnostics is None or not isinstance(error.orig, errors.ConfigurationLimitExceeded):
            raise
        detail = json.loads(diagnostics.message_detail)
        room, retry_after = detail["room"], detail.get("retry_after")
        when = f" and for the rest in {retry_after} s" if retry_after is not None else ""
        raise CapExceeded(
            f"{diagnostics.message_primary}. There is room for {room} of them now{when}. {diagnostics.message_hint}",
            room=room,
            retry_after=retry_after,
        ) from error


def _after(key: tuple[str, str, str] | None) -> dict[str, str | None]:
    return dict(zip(("after_user", "after_type", "after_symbol"), key or (None,) * 3, strict=True))


def _pairs(user_id: str, pairs: Sequence[tuple[str, str]]) -> dict[str, object]:
    ordered = sorted(set(pairs))
    return {
        "user_id": user_id,
        "data_types": [data_type for data_type, _ in ordered],
        "symbols": [symbol for _, symbol in ordered],
    }
