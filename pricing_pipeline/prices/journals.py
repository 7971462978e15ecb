"""Prices as lines of plain-text accounting, for ledger, hledger and beancount, and of GnuCash's import of prices.

Each dates a price by a day, and allows only some names of commodities without quotes or at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

from pricing_pipeline.domain.words import decimal
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.currencies import COINS, CURRENCIES, digits_of

_LETTERS = re.compile("[A-Za-z]+")
_BEANCOUNT = re.compile("[A-Z]([A-Z0-9'._-]*[A-Z0-9])?")
_CURRENCIES_OF_GNUCASH = CURRENCIES.difference(COINS, ("CNH",))
_MORE_DIGITS_OF_GNUCASH = 4
"""How many decimals its import keeps of a price, beyond those of the currency."""


class Journal(StrEnum):
    """The program that reads the lines."""

    LEDGER = "ledger"
    HLEDGER = "hledger"
    BEANCOUNT = "beancount"
    GNUCASH = "gnucash"


@dataclass(frozen=True, slots=True)
class DayPrice:
    """The last price of an instrument on a day of its market."""

    day: date
    symbol: str
    price: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Written:
    """Lines for a journal, the names that it has for symbols where they differ, and what it cannot hold, in words."""

    lines: list[str]
    names: dict[str, str]
    losses: list[str]


def write(
    prices: Sequence[DayPrice],
    journal: Journal,
    own_names: Mapping[str, str],
    *,
    has_directives: bool,
    namespace: str = "",
) -> Written:
    """A line for each price, by day and name; before them, where wanted, how many decimals each currency shows.

    `own_names` are names of commodities by symbol; without one, EUR/USD is EUR, and VOD:XLON is VOD.XLON in beancount.
    `namespace` is what GnuCash calls the type of a security. Raises PricingError if a name is not possible, if two
    symbols have the same one, or if a pair comes both ways.
    """
    losses: list[str] = []
    if journal is Journal.GNUCASH:
        _require_name(namespace, journal)
        prices, losses = _held_by_gnucash(prices)
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
    lines += [_line(price, commodity, journal, namespace) for commodity, price in by_day]
    return Written(lines, {symbol: name for (name, _), symbol in pairs.items() if name != symbol}, losses)


def _held_by_gnucash(prices: Sequence[DayPrice]) -> tuple[list[DayPrice], list[str]]:
    """The prices that its import can store, and what is lost of others."""
    held = []
    losses = dict[str, None]()
    for price in prices:
        decimals = digits_of(price.currency) + _MORE_DIGITS_OF_GNUCASH
        stored = price.price.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        if price.currency not in _CURRENCIES_OF_GNUCASH:
            losses[f"{price.symbol} is left out: GnuCash has no currency {price.currency}."] = None
        elif not stored:
            losses[f"Prices of {price.symbol} that GnuCash would store as 0 are left out."] = None
        else:
            held.append(price)
            if stored != price.price:
                losses[f"GnuCash rounds prices of {price.symbol} to {decimals} decimals."] = None
    return held, list(losses)


def _commodity(price: DayPrice, journal: Journal, own_names: Mapping[str, str]) -> str:
    own = own_names.get(price.symbol)
    if own is not None:
        _require_name(own, journal)
        return own
    name = price.symbol.removesuffix(f"/{price.currency}")
    if journal is Journal.GNUCASH:  # other pairs are securities there, which it asks for by their symbol
        return name if name in _CURRENCIES_OF_GNUCASH else price.symbol
    if journal is not Journal.BEANCOUNT:
        return name
    name = re.sub("[^A-Z0-9'._-]", ".", name.upper()).rstrip("'._-")
    return name if name[:1].isalpha() else f"X{name}"


def _require_name(name: str, journal: Journal) -> None:
    if journal is Journal.BEANCOUNT and not _BEANCOUNT.fullmatch(name):
        raise PricingError(
            f"{name!r} is not a commodity of beancount: write capital letters, digits and '._-, a letter first, and a "
            "letter or digit last."
        )
    if '"' in name or "\\" in name or not name.isprintable():
        raise PricingError(
            f"{name!r} is not a commodity of {journal}: write it without quotation marks and backslashes."
        )


def _directives(currencies: Iterable[str], journal: Journal) -> Iterator[str]:
    """Without them hledger shows as many decimals as the longest price has, and ledger none."""
    if journal in (Journal.BEANCOUNT, Journal.GNUCASH):  # which go by their transactions
        return
    for currency in sorted(currencies):
        decimals = "0" * digits_of(currency)
        # hledger needs the mark even without decimals, and ledger does not know it then.
        mark = "." if decimals or journal is Journal.HLEDGER else ""
        yield f"commodity {_quoted(currency)}"
        yield f"  format 1000{mark}{decimals} {_quoted(currency)}"


def _line(price: DayPrice, commodity: str, journal: Journal, namespace: str) -> str:
    """A price without exponent, thousands mark or time: these are read differently by each program."""
    if journal is Journal.GNUCASH:
        is_rate = commodity in _CURRENCIES_OF_GNUCASH and price.symbol == f"{commodity}/{price.currency}"
        space = "CURRENCY" if is_rate else namespace
        cells = (str(price.day), decimal(price.price), commodity, space, price.currency)
        return ",".join(f'"{cell}"' if "," in cell else cell for cell in cells)
    amount = f"{decimal(price.price)} {_quoted(price.currency)}"
    if journal is Journal.BEANCOUNT:
        return f"{price.day} price {commodity} {amount}"
    return f"P {price.day} {_quoted(commodity)} {amount}"


def _quoted(name: str) -> str:
    """A name as ledger and hledger need it: they take BRK-B without quotes for BRK at a price of B."""
    return name if _LETTERS.fullmatch(name) else f'"{name}"'
