"""Prices as lines of plain-text accounting, for ledger, hledger and beancount.

Each dates a price by a day, and allows only some names of commodities without quotes or at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum

from pricing_pipeline.domain.words import decimal
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.currencies import digits_of

_LETTERS = re.compile("[A-Za-z]+")
_BEANCOUNT = re.compile("[A-Z]([A-Z0-9'._-]*[A-Z0-9])?")


class Journal(StrEnum):
    """The program that reads the lines."""

    LEDGER = "ledger"
    HLEDGER = "hledger"
    BEANCOUNT = "beancount"


@dataclass(frozen=True, slots=True)
class DayPrice:
    """The last price of an instrument on a day of its market."""

    day: date
    symbol: str
    price: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Written:
    """Lines for a journal, and the names that it has for symbols where they differ."""

    lines: list[str]
    names: dict[str, str]


def write(
    prices: Sequence[DayPrice], journal: Journal, own_names: Mapping[str, str], *, has_directives: bool
) -> Written:
    """A line for each price, by day and name; before them, where wanted, how many decimals each currency shows.

    `own_names` are names of commodities by symbol; without one, EUR/USD is EUR, and VOD:XLON is VOD.XLON in beancount.
    Raises PricingError if a name is not possible, if two symbols have the same one, or if a pair comes both ways.
    """
    pairs: dict[tuple[str, str], str] = {}
    for price in prices:
        pair = _commodity(price, journal, own_names), price.currency
        first = pairs.setdefault(pair, price.symbol)
        if first != price.symbol:
            raise PricingError(
                f"{first} and {price.symbol} would both be {pair[0]} in {price.currency}. Export one of them, or "
                f"give it another name: --name {price.symbol}=NAME"
            )
    for (commodity, currency), symbol in pairs.items():
        inverse = pairs.get((currency, commodity))
        if inverse is not None:
            raise PricingError(f"{symbol} and {inverse} are the same pair both ways. Export one of them.")
    by_day = sorted(
        ((_commodity(price, journal, own_names), price) for price in prices),
        key=lambda named: (named[1].day, named[0], named[1].currency),
    )
    lines = list(_directives({currency for _, currency in pairs}, journal)) if has_directives else []
    lines += [_line(price, commodity, journal) for commodity, price in by_day]
    return Written(lines, {symbol: name for (name, _), symbol in pairs.items() if name != symbol})


def _commodity(price: DayPrice, journal: Journal, own_names: Mapping[str, str]) -> str:
    own = own_names.get(price.symbol)
    if own is not None:
        _require_name(own, journal)
        return own
    name = price.symbol.removesuffix(f"/{price.currency}")
    if journal is not Journal.BEANCOUNT:
        return name
    name = re.sub("[^A-Z0-9'._-]", ".", name.upper()).rstrip("'._-")
    return name if name[:1].isalpha() else f"X{name}"


def _require_name(name: str, journal: Journal) -> None:
    if journal is Journal.BEANCOUNT and not _BEANCOUNT.fullmatch(name):
        raise PricingError(
            f"{name!r} is no commodity of beancount: write capital letters, digits and '._-, a letter first, and a "
            "letter or digit last."
        )
    if '"' in name or not name.isprintable():
        raise PricingError(f"{name!r} is no commodity of {journal}: write it without quotation marks.")


def _directives(currencies: Iterable[str], journal: Journal) -> Iterator[str]:
    """Without them hledger shows as many decimals as the longest price has, and ledger none."""
    if journal is Journal.BEANCOUNT:  # which goes by its transactions
        return
    for currency in sorted(currencies):
        decimals = "0" * digits_of(currency)
        # hledger needs the mark even without decimals, and ledger does not know it then.
        mark = "." if decimals or journal is Journal.HLEDGER else ""
        yield f"commodity {_quoted(currency)}"
        yield f"  format 1000{mark}{decimals} {_quoted(currency)}"


def _line(price: DayPrice, commodity: str, journal: Journal) -> str:
    """A price without exponent, thousands mark or time: these are read differently by each program."""
    amount = f"{decimal(price.price)} {_quoted(price.currency)}"
    if journal is Journal.BEANCOUNT:
        return f"{price.day} price {commodity} {amount}"
    return f"P {price.day} {_quoted(commodity)} {amount}"


def _quoted(name: str) -> str:
    """A name as ledger and hledger need it: they take BRK-B without quotes for BRK at a price of B."""
    return name if _LETTERS.fullmatch(name) else f'"{name}"'
