"""How a live stream spells what it tells: Server-Sent Events with JSON, and ids by which a client goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, Field

from pricing_pipeline.api.prices import Reason
from pricing_pipeline.demand.stream_log import Pair, Told

_ID = re.compile(r"(\d{1,18})-([0-9a-f]{12})")


class StreamedPrice(BaseModel):
    """Of `price` and `freshness`: the latest price of a pair. Times are UTC."""

    data_type: str = Field(examples=["equity_quote"])
    symbol: str = Field(examples=["AAPL"])
    price: Decimal = Field(examples=["189.95"])
    """Exact, as a string."""
    currency: str | None = Field(examples=["USD"])
    observed_at: datetime
    """The source's own time of the price."""
    fetched_at: datetime
    """When a provider had confirmed it when it was told."""
    provider: str
    fresh: bool
    """Whether that is within its TTL, and five seconds more, or nothing newer is to be expected."""
    why: Reason | None
    """Of a price that is not fresh."""


class StreamedMissing(BaseModel):
    """Of `missing`: a pair without a price."""

    data_type: str
    symbol: str
    why: Reason


class Ready(BaseModel):
    """Of `ready`: all that holds of so many pairs is told; what follows is what changes."""

    pairs: int


class Missed(BaseModel):
    """Of `missed`: some events are not told. What holds of each pair follows."""

    events: int | None
    """How many, if that is known."""
    detail: str


class Left(BaseModel):
    """Of `left`: the user does not watch this pair any more."""

    data_type: str
    symbol: str


@dataclass(frozen=True, slots=True)
class EventId:
    """Where in the log a stream of these pairs is. A stream of other pairs cannot go on from there."""

    position: int
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.position}-{self.fingerprint}"


def read_id(given: str | None) -> EventId | None:
    """The id that a client has read last; None if there is none, or it is none of ours."""
    found = _ID.fullmatch(given or "")
    return EventId(int(found[1]), found[2]) if found else None


def fingerprint(pairs: Iterable[Pair]) -> str:
    """Tells sets of pairs apart."""
    return sha256(
        "\n".join(f"{data_type}:{symbol}" for data_type, symbol in sorted(pairs)).encode()
    ).hexdigest()[:12]


def spell(kind: str, data: BaseModel) -> bytes:
    """An event without an id."""
    return f"event: {kind}\ndata: {data.model_dump_json()}\n\n".encode()


def spell_told(told: Told) -> bytes:
    """What is told of a pair."""
    # What the database keeps is valid, and thousands are told a second.
    pair: dict[str, Any] = {"data_type": told.pair[0], "symbol": told.pair[1]}
    reason: dict[str, Any] = {
        "state": told.state,
        "sentence": told.sentence,
        "since": _utc(told.since),
        "next_at": _utc(told.next_at),
    }
    pair["why"] = Reason.model_construct(**reason) if told.state is not None else None
    if told.price is None:
        return spell("missing", StreamedMissing.model_construct(**pair))
    pair |= {
        "price": told.price,
        "currency": told.currency,
        "observed_at": _utc(told.observed_at),
        "fetched_at": _utc(told.fetched_at),
        "provider": told.provider,
        "fresh": told.is_fresh,
    }
    price = StreamedPrice.model_construct(**pair)
    return spell("price" if told.is_new_price else "freshness", price)


def _utc(time: datetime | None) -> datetime | None:
    return time.astimezone(UTC) if time is not None else None
