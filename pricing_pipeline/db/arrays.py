"""Lists as PostgreSQL spells arrays, for statements that take a column at a time.

The driver would look at the type of each item, which costs ten times as much. What the items mean is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable


def plain(items: Iterable[object]) -> str:
    """An array of numbers, None among them, or of what else needs no quotes."""
    return f"{{{','.join(['NULL' if item is None else str(item) for item in items])}}}"


def texts(items: Iterable[str | None]) -> str:
    """An array of any texts."""
    return f"{{{','.join(['NULL' if item is None else _quoted(item) for item in items])}}}"


def _quoted(text: str) -> str:
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
