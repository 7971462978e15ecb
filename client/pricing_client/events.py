"""Server-Sent Events as the API sends them, read from the lines of a response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from pricing_client.prices import Price, shaped
from pricing_client.shapes import Notice, Update

_NOTICES = frozenset({"ready", "missed"})
_PRICES, _OTHERS = frozenset({"price", "freshness"}), frozenset({"missing", "left"})


@dataclass(frozen=True, slots=True)
class Event:
    """The fields up to an empty line. Without data they only give the id to resume at."""

    id: str | None
    kind: str
    data: Any


def lines_of(texts: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in parts. Only LF ends a line: JSON strings may contain other line ends."""
    begun = ""
    for text in texts:
        *lines, begun = (begun + text).split("\n")
        yield from lines


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream. An event that the end of the stream cuts off is left out.

    A comment ends an id that stands alone: the API sends both while nothing happens.
    """
    fields: dict[str, str] = {}
    for line in lines:
        if line and not (line.startswith(":") and fields.keys() == {"id"}):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        data = fields.get("data")
        if data is not None or "id" in fields:
            content = json.loads(data, parse_float=Decimal) if data is not None else None
            yield Event(fields.get("id"), fields.get("event", ""), content)
        fields = {}


def as_update(event: Event) -> Update | Notice | None:
    """The event as a program gets it; None for one without data, or of a kind that this client does not know."""
    if event.data is None:
        return None
    if event.kind in _NOTICES:
        return shaped(Notice, {"kind": event.kind, **event.data})
    if event.kind in _PRICES:
        price = shaped(Price, event.data)
        return Update(cast("Literal['price']", event.kind), price.data_type, price.symbol, price, price.why)
    if event.kind in _OTHERS:
        return shaped(Update, {"kind": event.kind, **event.data})
    return None
