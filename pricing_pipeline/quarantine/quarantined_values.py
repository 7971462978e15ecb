"""The quarantine: values that are not believed, with the answer that brought them.

plausibility.py and the providers' parsers decide which values are not believed. People decide on quarantined values.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import RejectedValue, SymbolFailure, storable
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.judging.knowledge import Doubt, Doubted
from pricing_pipeline.providers.fetched import MAX_EVIDENCE

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MAX_VALUE = 100


@dataclass(frozen=True, slots=True)
class Count:
    """Quarantined values of one data type, provider and kind that wait for a person."""

    data_type: str
    provider: str
    kind: str
    quarantined: int
    symbols: int
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class QuarantinedValue:
    """A quarantined value. `value` is the source's spelling, empty if its answer was refused as a whole."""

    value_id: int
    data_type: str
    symbol: str
    provider: str
    observed_at: datetime | None
    kind: str
    value: str
    reason: str
    times: int
    recorded_at: datetime
    last_seen_at: datetime
    call_id: int
    has_body: bool
    status: str
    """quarantined, released or rejected; the next three say when, by which person and why that was decided."""
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    bar: Mapping[str, str] | None
    """All parts of the value, as text; None if it could not be read."""

    @property
    def observation(self) -> Observation | None:
        """The value as its provider sent it; None if it could not be read, or names no time."""
        if self.bar is None or self.observed_at is None:
            return None

        def number(name: str) -> Decimal | None:
            return None if self.bar is None or name not in self.bar else Decimal(self.bar[name])

        return Observation(
            symbol=self.symbol,
            observed_at=self.observed_at,
            close=Decimal(self.bar["close"]),
            text=self.value,
            currency=self.bar.get("currency"),
            open=number("open"),
            high=number("high"),
            low=number("low"),
            volume=number("volume"),
            adjustment=Adjustment(self.bar["adjustment"]),
            quality=self.bar.get("quality"),
        )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A believed value to compare a quarantined one with: `place` is before, same, after or other type."""

    place: str
    data_type: str
    observed_at: datetime
    price: Decimal
    currency: str | None
    provider: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a person's decision on one quarantined value.

    `outcome` is released, rejected, released_already, rejected_already, unreadable (no value that could be stored),
    retired (no data type to store it in) or unknown. `is_latest`: the released value is the pair's newest price now.
    `revised`: it replaced another value of the same time.
    """

    value_id: int
    outcome: str
    value: QuarantinedValue | None = None
    is_latest: bool = False
    revised: bool = False

    def is_refused(self, decision: str) -> bool:
        """Whether the value is not what the person wants it to be: `released` or `rejected`."""
        return self.outcome in ("unknown", "unreadable", "retired") or (
            self.outcome == "released_already" and decision == "rejected"
        )


def quarantine(
    connection: Connection,
    call: Call,
    values: Sequence[Doubted | RejectedValue | SymbolFailure],
    body: bytes,
    http_status: int | None,
    body_size: int | None = None,
) -> int:
    """Quarantine values of one call within the caller's transaction; returns how many are new.

    A SymbolFailure stands for a symbol whose answer was refused before it gave a value. `body` is the answer without
    API keys, or its beginning if `body_size` is more.
    """
    return int(
        call_sql(
            connection,
            "quarantine",
            call.data_type,
            call.provider,
            call.id,
            json.dumps([_row(value) for value in values]),
            zlib.compress(body) if body else None,
            len(body) if body_size is None else body_size,
            http_status,
        ).scalar_one()
    )


def counts(connection: Connection) -> list[Count]:
    """The numbers of values that wait for a person."""
    return [Count(**row) for row in connection.execute(query("quarantine.counts")).mappings()]


def listed(
    connection: Connection,
    data_type: str | None,
    symbol: str | None,
    at_most: int,
    status: str | None = "quarantined",
    *,
    by_id: bool = False,
    after: int | None = None,
) -> list[QuarantinedValue]:
    """Values of one data type and symbol or of all, in one state or (None) in all states, the last ones first.

    `by_id` is the order of pages, in which no row moves: the newest first, those of smaller ids than `after`.
    """
    parameters = {
        "data_type": data_type,
        "symbol": symbol,
        "at_most": at_most,
        "status": status,
        "by_id": by_id,
        "after_id": after,
    }
    return [QuarantinedValue(**row) for row in connection.execute(query("quarantine.list"), parameters).mappings()]


def show(connection: Connection, value_id: int) -> QuarantinedValue | None:
    """One value in any state; None for an unknown id."""
    row = connection.execute(query("quarantine.show_some"), {"ids": [value_id]}).mappings().one_or_none()
    return None if row is None else QuarantinedValue(**row)


def neighbours(connection: Connection, value_id: int) -> list[Neighbour]:
    """The believed values around a quarantined one, oldest first."""
    rows = connection.execute(query("quarantine.neighbours"), {"value_id": value_id})
    return [
        Neighbour(
            row.place,
            row.data_type,
            row.observed_at,
            to_decimal(row.amount, row.scale),
            row.currency,
            row.provider,
        )
        for row in rows
    ]


def level(connection: Connection, value_id: int) -> list[int]:
    """The ids of the quarantined values on the level of this one: mostly only its own."""
    return list(call_sql(connection, "level_of", value_id).scalar_one())


def of_level(connection: Connection, data_type: str, symbol: str) -> list[QuarantinedValue]:
    """A pair's values in doubt because of their level, the last one of each provider and time; oldest first."""
    rows = connection.execute(query("quarantine.of_level"), {"data_type": data_type, "symbol": symbol})
    return [QuarantinedValue(**row) for row in rows.mappings()]


def decide(connection: Connection, ids: Sequence[int], decision: str, by: str, why: str | None) -> list[Decision]:
    """Make values `released` or `rejected`, all at once, as a person's decision; returns the outcomes."""
    decided = call_sql(connection, "decide_quarantined", list(ids), decision, by, why).all()
    rows = connection.execute(query("quarantine.show_some"), {"ids": list(ids)}).mappings()
    values = {row["value_id"]: QuarantinedValue(**row) for row in rows}
    return [
        Decision(row.value_id, row.outcome, values.get(row.value_id), row.is_latest, row.revised) for row in decided
    ]


def body(connection: Connection, value_id: int) -> bytes | None:
    """The answer that first brought a quarantined value, cut at MAX_EVIDENCE; None if it is not kept (any more)."""
    row = connection.execute(query("quarantine.body"), {"value_id": value_id}).one_or_none()
    # It never unpacks to more than this.
    return None if row is None else zlib.decompressobj().decompress(row.body, MAX_EVIDENCE)


def _row(value: Doubted | RejectedValue | SymbolFailure) -> dict[str, Any]:
    match value:
        case Doubted(observation, kind, reason):
            return {
                "symbol": observation.symbol,
                "observed_at": observation.observed_at.isoformat(),
                "kind": kind.value,
                "value": observation.text[:_MAX_VALUE],
                "reason": reason,
                "bar": _bar(observation),
            }
        case RejectedValue():
            return {
                "symbol": value.symbol,
                "observed_at": None if value.observed_at is None else value.observed_at.isoformat(),
                "kind": Doubt.REFUSED.value,
                "value": storable(value.text[:_MAX_VALUE]),
                "reason": storable(value.reason),
            }
        case SymbolFailure():
            return {
                "symbol": value.symbol,
                "observed_at": None,
                "kind": Doubt.REFUSED.value,
                "value": "",
                "reason": storable(value.message),
            }


def _bar(row: Observation) -> dict[str, str]:
    fields = {
        "close": row.close,
        "open": row.open,
        "high": row.high,
        "low": row.low,
        "volume": row.volume,
        "currency": row.currency,
        "adjustment": row.adjustment.value,
        "quality": row.quality,
    }
    return {name: str(value) for name, value in fields.items() if value is not None}
