"""The events of a live stream as text: Server-Sent Events with JSON, and ids by which a client resumes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pydantic import Field

from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.prices import Reason
from pricing_pipeline.demand.stream_log import Pair, PairEvent

_ID = re.compile(r"(\d{1,18})-([0-9a-f]{12})")


class StreamedPrice(Shape):
    """Of `price` and `freshness`: the latest price of a pair. Times are UTC."""

    data_type: str = Field(examples=["equity_quote"])
    symbol: str = Field(examples=["AAPL"])
    price: Exact = Field(examples=["189.95"])
    """Exact, as a string."""
    currency: str | None = Field(examples=["USD"])
    observed_at: datetime
    """The source's own time of the price."""
    fetched_at: datetime
    """When a provider last confirmed it, at the time of this event."""
    provider: str
    fresh: bool
    """Whether `fetched_at` is within the TTL and five more seconds, or nothing newer can exist."""
    why: Reason | None
    """Of a price that is not fresh."""


class StreamedMissing(Shape):
    """Of `missing`: a pair without a price."""

    data_type: str
    symbol: str
    why: Reason


class Ready(Shape):
    """Of `ready`: the state of so many pairs is sent; only changes follow."""

    pairs: int


class Missed(Shape):
    """Of `missed`: some events are left out. The state of each pair follows."""

    events: int | None
    """How many, if that is known."""
    detail: str


class Left(Shape):
    """Of `left`: the user does not watch this pair any more."""

    data_type: str
    symbol: str


@dataclass(frozen=True, slots=True)
class EventId:
    """A position of a log, and a fingerprint of this log and the stream's pairs: no other stream can resume there."""

    position: int
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.position}-{self.fingerprint}"


def read_id(text: str | None) -> EventId | None:
    """The id that a client sends as Last-Event-ID; None if it is missing or has another form."""
    parts = _ID.fullmatch(text or "")
    return EventId(int(parts[1]), parts[2]) if parts else None


def fingerprint(log: str, pairs: Iterable[Pair]) -> str:
    """Tells logs, and sets of pairs, apart."""
    lines = [log, *(f"{data_type}:{symbol}" for data_type, symbol in sorted(pairs))]
    return sha256("\n".join(lines).encode()).hexdigest()[:12]


def spell(kind: str, data: Shape) -> bytes:
    """An event without an id."""
    return f"event: {kind}\ndata: {data.model_dump_json()}\n\n".encode()


def spell_pair_event(event: PairEvent) -> bytes:
    """An event of a pair, without an id."""
    # Without validation: the database checks its rows, and there are thousands of events a second.
    pair: dict[str, Any] = {"data_type": event.pair[0], "symbol": event.pair[1]}
    reason: dict[str, Any] = {
        "state": event.state,
        "sentence": event.sentence,
        "since": _utc(event.since),
        "next_at": _utc(event.next_at),
    }
    pair["why"] = Reason.model_construct(**reason) if event.state is not None else None
    if event.price is None:
        return spell("missing", StreamedMissing.model_construct(**pair))
    pair |= {
        "price": event.price,
        "currency": event.currency,
        "observed_at": _utc(event.observed_at),
        "fetched_at": _utc(event.fetched_at),
        "provider": event.provider,
        "fresh": event.is_fresh,
    }
    price = StreamedPrice.model_construct(**pair)
    return spell("price" if event.is_new_price else "freshness", price)


def _utc(time: datetime | None) -> datetime | None:
    return time.astimezone(UTC) if time is not None else None
