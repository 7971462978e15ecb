"""How values are spelled: exactly for programs, and for people as spans, sizes and printable text."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unicodedata import category

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with a final Z; with microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plain(value: object) -> object:
    """Times as ISO 8601 in UTC, days as ISO 8601, exact decimals as strings; all else as it is."""
    match value:
        case datetime():
            return iso(value)
        case date():
            return value.isoformat()
        case Decimal():
            return decimal(value)
    return value


def as_json(value: object) -> object:
    """What JSON has no type for: a dataclass as `as_object`, all else as `plain` spells it. For json.dumps."""
    return as_object(value) if is_dataclass(value) else str(plain(value))


def as_object(value: Any) -> dict[str, object]:
    """The fields of a dataclass by name, without those of OF_CONVERTED that are None."""
    named = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name: part for field, part in named if part is not None or not field.metadata}


def decimal(value: Decimal) -> str:
    """Every stored digit, never an exponent: 1E-8 is 0.00000001."""
    return format(value, "f")


def read_number(text: str) -> Decimal:
    """A number as people write it. Raises ValueError, also for what Decimal takes besides: 1_0, NaN, other digits."""
    if _NUMBER.fullmatch(text.strip()) is None:
        raise ValueError(f"{text[:60]!r} is not a number. Write it like 0.5")
    return Decimal(text.strip())


def counted(count: int, noun: str) -> str:
    """A number of things: 1 task, 2 tasks, 2 quantities."""
    several = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{count} {noun if count == 1 else several}"


def printable(text: str) -> str:
    """Text from outside, safe to print: control characters and those that reverse a line are escaped (`\\x1b`)."""
    return "".join(
        char
        if char.isprintable() or char in "\n\t" or category(char) == "Zs"
        else char.encode("unicode_escape").decode()
        for char in text
    )


def duration(seconds: float) -> str:
    """A span for people: its two largest units."""
    whole = max(0, round(seconds))
    for size, unit, small, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def size(count: int) -> str:
    """Bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
