"""Write lists in PostgreSQL's text form of arrays, for statements that take whole columns.

The driver would look at the type of each item, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable


def plain(items: Iterable[object]) -> str:
    """An array of numbers or None, or of other values that need no quotes."""
    return f"{{{','.join(['NULL' if item is None else str(item) for item in items])}}}"


def texts(items: Iterable[str | None]) -> str:
    """An array of any texts."""
    return f"{{{','.join(['NULL' if item is None else _quoted(item) for item in items])}}}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
