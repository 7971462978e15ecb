"""Numbers as people and programs write them. A file shows which sign is the decimal mark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum


class Mark(StrEnum):
    """The sign before the decimals."""

    POINT = "point"
    COMMA = "comma"


class NotANumber(ValueError):
    """A text that is not a number, or could be two; the message says which."""


_SPACES = re.compile("[\\s\u00a0\u2007\u2009\u202f'\u2019_]")
"""What stands between thousands in some countries, and never before decimals."""
_SIGNED = re.compile(r"(?P<sign>[+-]?)(?P<digits>[0-9.,]*[0-9])(?P<power>[eE][+-]?[0-9]{1,3})?")
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{2,3})*,[0-9]{3}")
"""Thousands; in India hundreds of thousands have two digits."""
_SWAPPED = str.maketrans(".,", ",.")
_MOST_CHARACTERS = 60
_WITH_A_MARK = re.compile(r"[0-9][.,eE]|[.,][0-9]")
_CURRENCY = re.compile(r"^[^\W\d_]{3}(?=[\s\d.,+-])|(?<=[\s\d.,])[^\W\d_]{3}$|[$\u00a3\u20ac\u20b9\u00a5]")


def mark_of(texts: Iterable[str]) -> Mark | None:
    """The decimal mark that numbers show; None where they show none or both. 1.500 shows nothing, 1.50 does."""
    shown = {mark for mark in map(_shown, texts) if mark is not None}
    return shown.pop() if len(shown) == 1 else None


def number(text: str, mark: Mark | None) -> Decimal:
    """The number that a text is, with this decimal mark; None: with that which it shows itself. Raises NotANumber."""
    sign, digits, power = _parts(text)
    mark = _shown(text) or mark
    if mark is None:
        if "." in digits or "," in digits:
            raise NotANumber(
                f"{text.strip()!r} can be two numbers, and the file does not show which sign is the decimal mark"
            )
        mark = Mark.POINT
    if not _fits(digits, mark):
        raise NotANumber(f"{text.strip()!r} is not a number")
    if mark is Mark.COMMA:
        digits = digits.translate(_SWAPPED)
    value = Decimal(f"{sign}{digits.replace(',', '')}{power}")
    if abs(value.adjusted()) > 30:
        raise NotANumber(f"{text.strip()!r} is not a quantity of anything")
    return value


def is_vague(text: str) -> bool:
    """Whether the other decimal mark would make this another number: of 1.500, but not of 1.50 or 0.500."""
    try:
        _, digits, _ = _parts(text)
    except NotANumber:
        return False
    return ("." in digits or "," in digits) and _shown(text) is None


def _parts(text: str) -> tuple[str, str, str]:
    bare = _CURRENCY.sub("", text.strip()[: _MOST_CHARACTERS + 1].replace("\u2212", "-"))
    bare = _SPACES.sub("", bare)
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1]}"
    elif bare.endswith("-"):
        bare = f"-{bare[:-1]}"
    parts = _SIGNED.fullmatch(bare)
    if parts is None or len(text.strip()) > _MOST_CHARACTERS:
        raise NotANumber(f"{text.strip()[:_MOST_CHARACTERS]!r} is not a number")
    return parts["sign"], parts["digits"], parts["power"] or ""


def _shown(text: str) -> Mark | None:
    """The decimal mark that this number alone shows."""
    if _WITH_A_MARK.search(text) is None:  # as most of a file's hundred thousand cells
        return None
    try:
        _, digits, power = _parts(text)
    except NotANumber:
        return None
    could_be = [mark for mark in Mark if _fits(digits, mark)]
    if power and Mark.POINT in could_be:
        return Mark.POINT
    return could_be[0] if len(could_be) == 1 else None


def _fits(digits: str, mark: Mark) -> bool:
    """Whether digits can be a number with this decimal mark. 05.11.2026 and 1.2.3 cannot."""
    if mark is Mark.COMMA:
        digits = digits.translate(_SWAPPED)
    whole, point, decimals = digits.partition(".")
    if whole.startswith("0") and "," in whole:
        return False
    return (whole.isdigit() or not whole or _GROUPED.fullmatch(whole) is not None) and (
        decimals.isdigit() if point else True
    )
