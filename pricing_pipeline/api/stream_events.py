"""The events of a live stream as text: Server-Sent Events with JSON, and ids by which a client resumes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.demand.stream_log import Pair, PairEvent
from pricing_pipeline.domain.prices import Missing
from pricing_pipeline.domain.words import as_json

_ID = re.compile(r"(\d{1,18})-([0-9a-f]{12})")


class Ready(Shape):
    """Of `ready`: the number of pairs whose state was sent; only changes follow."""

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


def fingerprint(log: str, pairs: Iterable[Pair], currency: str | None = None) -> str:
    """Tells logs, sets of pairs, and currencies apart."""
    lines = [
        log,
        *(f"{data_type}:{symbol}" for data_type, symbol in sorted(pairs)),
        *filter(None, [currency]),
    ]
    return sha256("\n".join(lines).encode()).hexdigest()[:12]


def spell(kind: str, data: Shape) -> bytes:
    """An event without an id."""
    return f"event: {kind}\ndata: {data.model_dump_json()}\n\n".encode()


def spell_pair_event(event: PairEvent) -> bytes:
    """An event of a pair, without an id. Its data is a price, or a missing one, as `/v1/prices` answers it."""
    kind = "missing" if isinstance(event.content, Missing) else "price" if event.is_new_price else "freshness"
    data = json.dumps(event.content, default=as_json, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()
