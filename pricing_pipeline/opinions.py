"""Second opinions: another provider is asked about a held value, once, when a person wants to know.

The database grants the call within the provider's limits, quota and breaker, as it grants every other; what comes is
kept beside the held value and is never stored as a price.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Engine, Row

from pricing_pipeline import limits
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain import FailureKind, Fetcher, Observation, Window
from pricing_pipeline.errors import (
    KeyRefused,
    PricingError,
    ProviderDown,
    ProviderError,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.client import Fetched, ProviderClient

_KEY_REFUSED_PAUSE = 60.0
_KINDS: tuple[tuple[type[ProviderError], FailureKind], ...] = (
    (Throttled, FailureKind.THROTTLED),
    (KeyRefused, FailureKind.KEY_REFUSED),
    (SchemaDrift, FailureKind.SCHEMA_DRIFT),
    (ProviderDown, FailureKind.PROVIDER_DOWN),
)
"""What says something about the provider or its key, and so counts for its breaker and pauses."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What another provider said about a held value: a value with its time (UTC), or a `failure` in words."""

    provider: str
    call_id: int
    asked_at: datetime
    answered_at: datetime | None
    observed_at: datetime | None
    value: Decimal | None
    currency: str | None
    failure: str | None


def of(connection: Connection, value_id: int) -> list[Opinion]:
    """What is known already of what others say about a held value."""
    return [
        Opinion(**row) for row in connection.execute(query("opinions.of"), {"value_id": value_id}).mappings()
    ]


def ask(engine: Engine, clients: Mapping[str, ProviderClient], value_id: int, worker: str) -> str | None:
    """Ask the next provider that is routed to a held value's pair; returns why nobody may be asked now, else None.

    Makes one call, of 10 s at most. `of` tells what came of it.
    """
    keys = sorted({name for client in clients.values() for name in client.key_names})
    with engine.begin() as connection:
        row = connection.execute(
            query("opinions.claim"), {"value_id": value_id, "worker": worker, "keys": keys}
        ).one()
    if row.refusal is not None:
        return str(row.refusal)
    window = None if row.day is None else Window(row.day, row.day)
    try:
        fetched = clients[row.provider].fetch(
            Fetcher(row.fetcher), [row.symbol], window, now=row.claimed_at, key_name=row.key_name
        )
    except PricingError as error:
        _note_failure(engine, value_id, row, error)
    else:
        _note(engine, value_id, row, fetched)
    return None


def _note(engine: Engine, value_id: int, row: Row[Any], fetched: Fetched) -> None:
    answer = fetched.answer
    found = max(answer.observations, key=lambda one: one.observed_at, default=None)
    failure = None
    if found is None:
        failure = next(
            (f.message for f in answer.failures), f"{row.provider} has no value of {row.symbol} for that time"
        )
    with engine.begin() as connection:
        _keep(connection, value_id, row.call_id, found, failure)
        limits.settle(
            connection,
            row.call_id,
            "ok",
            http_status=fetched.http_status,
            wire_bytes=fetched.wire_bytes,
            units_left=fetched.units_left,
        )


def _note_failure(engine: Engine, value_id: int, row: Row[Any], error: PricingError) -> None:
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), None)
    with engine.begin() as connection:
        _keep(connection, value_id, row.call_id, None, str(error))
        limits.settle(
            connection,
            row.call_id,
            "failed",
            http_status=getattr(error, "http_status", None),
            wire_bytes=getattr(error, "wire_bytes", 0),
            error=str(error),
            kind=kind,
        )
        if isinstance(error, Throttled | KeyRefused):
            pause = error.retry_after if isinstance(error, Throttled) else _KEY_REFUSED_PAUSE
            limits.throttle(connection, row.provider, row.key_name, pause, str(error))


def _keep(
    connection: Connection, value_id: int, call_id: int, found: Observation | None, failure: str | None
) -> None:
    parameters = {
        "value_id": value_id,
        "call_id": call_id,
        "observed_at": None if found is None else found.observed_at,
        "value": None if found is None else found.close,
        "currency": None if found is None else found.currency,
        "failure": failure,
    }
    connection.execute(query("opinions.note"), parameters)
