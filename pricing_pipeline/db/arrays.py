"""Write lists in PostgreSQL's text form of arrays, for statements that take whole columns.

The driver would look at the type of each item, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime


def plain(items: Iterable[object]) -> str:
    """An array of numbers or None, or of other values that need no quotes."""
    return f"{{{','.join(['NULL' if item is None else str(item) for item in items])}}}"


def texts(items: Iterable[str | None]) -> str:
    """An array of any texts."""
    return f"{{{','.join(['NULL' if item is None else _quoted(item) for item in items])}}}"


def spans(times: Mapping[str, tuple[datetime, datetime]]) -> dict[str, str]:
    """Parameters of a query about symbols, each with its first and its last time."""
    found = sorted(times.items())
    return {
        "symbols": texts(symbol for symbol, _ in found),
        "first_times": plain(first for _, (first, _) in found),
        "last_times": plain(last for _, (_, last) in found),
    }


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
