"""Cells of a CSV file that people may open in a spreadsheet."""

from __future__ import annotations

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula, and runs it."""


def safe(text: str) -> str:
    """Words of others so that no spreadsheet runs them: with an apostrophe before what would be a formula.

    Not for numbers, of which the negative ones begin with a minus.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
