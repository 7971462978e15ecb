"""Prices as whole numbers: units of 10^-5 of a currency unit, and how JSON spells them."""

from __future__ import annotations

DIGITS = 5
UNITS = 100_000
"""Units of one currency unit."""
CENT = UNITS // 100


def decimal_text(units: int) -> str:
    """Units as a decimal number with five decimals, as both providers write prices."""
    sign, units = ("-", -units) if units < 0 else ("", units)
    return f"{sign}{units // UNITS}.{units % UNITS:05d}"


def number(units: int) -> float:
    """Units as a number of JSON with the fewest digits: whole numbers have no decimal point."""
    return units // UNITS if units % UNITS == 0 else units / UNITS


def divided(units: int, by: int) -> int:
    """A price after a split, rounded half-even as money is everywhere here."""
    whole, rest = divmod(units, by)
    return whole + (rest * 2 > by or (rest * 2 == by and whole % 2 == 1))


def units_of(text: str) -> int:
    """The units of a decimal number of at most five decimals, without sign."""
    whole, _, part = text.partition(".")
    if len(part) > DIGITS:
        raise ValueError(f"{text} has more than {DIGITS} decimals")
    return int(whole) * UNITS + int(part.ljust(DIGITS, "0"))
