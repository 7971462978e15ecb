"""Tables of CSV (RFC 4180) that people may open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula, and runs it."""

_SPECIAL = (*'",;\r\n', *(f"\0{sign}" for sign in _FORMULA))
"""Marks of texts that must be quoted or would be a formula, where a NUL stands before each text."""
_THREE = re.compile(r"\.\d{3}(?!\d)")


class Decimals(StrEnum):
    """What stands before the decimals of a number. Where it is a comma, semicolons stand between cells."""

    POINT = "point"
    COMMA = "comma"


def safe(text: str) -> str:
    """Text from outside that no spreadsheet executes: an apostrophe precedes what would be a formula.

    Not for numbers: negative ones begin with a minus.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def number(spelled: str, decimals: Decimals) -> str:
    """A number in fixed point, or several with spaces between them. With three decimals after a point a number gets a
    zero: where the point parts thousands, a spreadsheet takes 1.234 for a whole number.
    """
    return (
        spelled.replace(".", ",") if decimals is Decimals.COMMA else _THREE.sub(lambda found: f"{found[0]}0", spelled)
    )


def numbers(spelled: Sequence[str], decimals: Decimals) -> list[str]:
    """A column of numbers; a missing one is empty."""
    return number(" ".join(spelled), decimals).split(" ")[: len(spelled)]


def texts(words: Sequence[str], decimals: Decimals) -> Sequence[str]:
    """A column of texts from outside, each as `cell` writes it. All are searched at once, because few are special."""
    each = set(words)
    if any(map("\0".join(("", *each)).__contains__, _SPECIAL)):
        return list(map({word: cell(word, decimals) for word in each}.__getitem__, words))
    return words


def cell(text: str, decimals: Decimals) -> str:
    """A text from outside as `table` writes it: safe, and quoted if it must be."""
    return table([[safe(text), None]], decimals)[: -len(",\r\n")]


def between(decimals: Decimals) -> str:
    """What stands between two cells."""
    return ";" if decimals is Decimals.COMMA else ","


def lines(rows: Iterable[Iterable[str]], decimals: Decimals) -> str:
    """Rows whose cells are spelled already, so that it takes less time than `table`, which looks at each cell."""
    return "\r\n".join((*map(between(decimals).join, rows), ""))


def table(rows: Iterable[Iterable[object]], decimals: Decimals) -> str:
    """Rows as lines; what is None is empty."""
    file = io.StringIO()
    # csv.writer quotes only the characters of its own line end.
    csv.writer(file, delimiter=between(decimals), lineterminator="\r\n").writerows(rows)
    return file.getvalue()
