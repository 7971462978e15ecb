"""The quarantine: values that are not believed, with the answer that brought them. What is not believed, and why, is
decided in plausibility.py and by the providers' parsers; what happens to a held value is decided by people."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.answers import Adjustment, Observation, RejectedValue, SymbolFailure, storable
from pricing_pipeline.domain.bars import by_symbol
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.validation.knowledge import Doubt, Doubted, Point, Rival

_MAX_VALUE = 100


@dataclass(frozen=True, slots=True)
class Count:
    """Held values of one data type, provider and kind that wait for a person."""

    data_type: str
    provider: str
    kind: str
    held: int
    symbols: int
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class HeldValue:
    """One value that is held. `value` is the source's spelling, empty where its answer was refused as a whole."""

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
    """held, released or rejected; the four below say who decided so, when and why."""
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    bar: Mapping[str, str] | None
    """All that would be stored, as text; None where it could not be read."""

    @property
    def observation(self) -> Observation | None:
        """The value as its provider gave it; None when it could not be read, or names no time."""
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
    """A believed value to compare a held one with: `place` is before, same, after or other type."""

    place: str
    data_type: str
    observed_at: datetime
    price: Decimal
    currency: str | None
    provider: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one held value that a person decided on.

    `outcome` is released, rejected, released_already, rejected_already, unreadable (there is no value that could be
    stored), retired (nor a data type to store it in) or unknown. `is_latest` says that a released value is the pair's
    newest price now; `revised` that it took the place of another one of the same time.
    """

    value_id: int
    outcome: str
    value: HeldValue | None = None
    is_latest: bool = False
    revised: bool = False


def hold(
    connection: Connection,
    call: Call,
    values: Sequence[Doubted | RejectedValue | SymbolFailure],
    body: bytes,
    http_status: int | None,
    body_size: int | None = None,
) -> int:
    """Keep values of one call within the caller's transaction; returns how many are new.

    A SymbolFailure stands for a symbol whose answer was refused before it gave a value. `body` is the answer without
    API keys, or its beginning where `body_size` is more.
    """
    parameters = {
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "held": json.dumps([_row(value) for value in values]),
        "body": zlib.compress(body) if body else None,
        "body_size": len(body) if body_size is None else body_size,
        "http_status": http_status,
    }
    return int(connection.execute(query("quarantine.hold"), parameters).scalar_one())


def witnesses(connection: Connection, call: Call, symbols: Sequence[str]) -> Mapping[str, tuple[Point, ...]]:
    """Values that were held lately for being far from the last one: repeated often enough, they are believed."""
    found: defaultdict[str, tuple[Point, ...]] = defaultdict(tuple)
    parameters = {"data_type": call.data_type, "provider": call.provider, "symbols": list(symbols)}
    for row in connection.execute(query("quarantine.witnesses"), parameters):
        found[row.symbol] += (Point(row.observed_at, row.value),)
    return found


def rivals(
    connection: Connection, call: Call, observations: Sequence[Observation]
) -> Mapping[str, Mapping[datetime, Rival]]:
    """What other providers said of the times of an answer's values, and was held, by symbol and time."""
    rows = by_symbol(observations)
    found: defaultdict[str, dict[datetime, Rival]] = defaultdict(dict)
    parameters = {
        "data_type": call.data_type,
        "provider": call.provider,
        "symbols": list(rows),
        "first_times": [min(row.observed_at for row in mine) for mine in rows.values()],
        "last_times": [max(row.observed_at for row in mine) for mine in rows.values()],
        "currencies": [mine[0].currency for mine in rows.values()],
        "bases": [mine[0].adjustment.value for mine in rows.values()],
    }
    for row in connection.execute(query("quarantine.rivals"), parameters):
        found[row.symbol][row.observed_at] = Rival(row.observed_at, row.value, row.provider)
    return found


def counts(connection: Connection) -> list[Count]:
    """What waits for a person."""
    return [Count(**row) for row in connection.execute(query("quarantine.counts")).mappings()]


def held(
    connection: Connection,
    data_type: str | None,
    symbol: str | None,
    at_most: int,
    status: str | None = "held",
) -> list[HeldValue]:
    """Values of one data type and symbol or of all, in one state or (None) in all, those that came last first."""
    parameters = {"data_type": data_type, "symbol": symbol, "at_most": at_most, "status": status}
    return [HeldValue(**row) for row in connection.execute(query("quarantine.list"), parameters).mappings()]


def show(connection: Connection, value_id: int) -> HeldValue | None:
    """One value, whatever has become of it; None when there is none of this id."""
    row = connection.execute(query("quarantine.show"), {"value_id": value_id}).mappings().one_or_none()
    return None if row is None else HeldValue(**row)


def neighbours(connection: Connection, value_id: int) -> list[Neighbour]:
    """What is believed around a held value, oldest first."""
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


def released(
    connection: Connection, call: Call, symbols: Sequence[str]
) -> set[tuple[str, datetime, Decimal]]:
    """Values (symbol, time, price) of the call's provider that people have released: they are believed for good."""
    parameters = {"data_type": call.data_type, "provider": call.provider, "symbols": list(symbols)}
    rows = connection.execute(query("quarantine.released"), parameters)
    return {(row.symbol, row.observed_at, row.value) for row in rows}


def level(connection: Connection, value_id: int) -> list[int]:
    """The ids of the values that are held with this one, on its level: itself, and mostly no other."""
    return list(connection.execute(query("quarantine.level"), {"value_id": value_id}).scalar_one())


def of_level(connection: Connection, data_type: str, symbol: str) -> list[HeldValue]:
    """What is held of a pair for its level, of each provider and time the value that came last; oldest first."""
    rows = connection.execute(query("quarantine.of_level"), {"data_type": data_type, "symbol": symbol})
    return [HeldValue(**row) for row in rows.mappings()]


def decide(
    connection: Connection, ids: Sequence[int], decision: str, by: str, why: str | None
) -> list[Decision]:
    """Have values `released` or `rejected`, all in one; what became of each, as a person's decision."""
    parameters = {"ids": list(ids), "decision": decision, "by_whom": by, "why": why}
    made = connection.execute(query("quarantine.decide"), parameters).all()
    rows = connection.execute(query("quarantine.show_some"), {"ids": list(ids)}).mappings()
    values = {row["value_id"]: HeldValue(**row) for row in rows}
    return [
        Decision(row.value_id, row.outcome, values.get(row.value_id), row.is_latest, row.revised)
        for row in made
    ]


def body(connection: Connection, value_id: int) -> bytes | None:
    """The answer that first brought a held value, cut at MAX_EVIDENCE; None when it is not kept (any more)."""
    row = connection.execute(query("quarantine.body"), {"value_id": value_id}).one_or_none()
    return None if row is None else zlib.decompress(row.body)


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
    given = {
        "close": row.close,
        "open": row.open,
        "high": row.high,
        "low": row.low,
        "volume": row.volume,
        "currency": row.currency,
        "adjustment": row.adjustment.value,
        "quality": row.quality,
    }
    return {name: str(value) for name, value in given.items() if value is not None}
