"""Server-Sent Events as the API sends them, read from the lines of a response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pricing_pipeline.client.shapes import Notice, Update, shaped

_NOTICES = frozenset({"ready", "missed"})
_UPDATES = frozenset({"price", "freshness", "missing", "left"})


@dataclass(frozen=True, slots=True)
class Event:
    """What came up to an empty line. One without data says only how far the stream is."""

    id: str | None
    kind: str
    data: Any


def lines_of(texts: Iterable[str]) -> Iterator[str]:
    """The lines of a text that comes in parts. Only LF ends one: JSON may have other ends of lines in its strings."""
    begun = ""
    for text in texts:
        *lines, begun = (begun + text).split("\n")
        yield from lines


def read_events(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream. What an end of the stream has cut off is left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        data = fields.get("data")
        if data is not None or "id" in fields:
            content = json.loads(data) if data is not None else None
            yield Event(fields.get("id"), fields.get("event", ""), content)
        fields = {}


def told(event: Event) -> Update | Notice | None:
    """What an event tells a program; None if nothing, or nothing that this client knows."""
    if event.data is None:
        return None
    if event.kind in _NOTICES:
        return shaped(Notice, {"kind": event.kind, **event.data})
    if event.kind in _UPDATES:
        return shaped(Update, {"kind": event.kind, **event.data})
    return None
