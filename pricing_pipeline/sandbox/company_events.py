"""Splits and dividends of the sandbox's shares, the same for every dialect: how each spells them is its own affair.

Splits are those of the recorded days. Dividends are made up, a pure function of the market: most shares pay four times
a year, about as much of their price as companies do. The price does not fall for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from pricing_pipeline.sandbox.instruments import Instrument, Kind, pick
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.units import CENT

_MONTHS = (2, 5, 8, 11)
_PAYS_NOTHING = frozenset({"META", "GOOG"})
"""Shares of the recording that paid nothing in it."""


class Split(NamedTuple):
    """From `day` on, `ratio` shares replace one share."""

    day: date
    ratio: int


class Payment(NamedTuple):
    """Units of money for one share as it was on `day`, the first that trades without."""

    day: date
    units: int


def divisor(bar: Bar) -> int:
    """The number by which later splits divide the day's prices."""
    return bar.recorded.split if bar.recorded else 1


def splits(market: Market, instrument: Instrument, bars: Sequence[Bar]) -> list[Split]:
    """Splits on the days of `bars`, oldest first. One shows where a bar is divided by less than the one before it."""
    if not bars:
        return []
    before = market.final_bars(instrument, bars[0].day - timedelta(days=14), bars[0].day)[-2:-1]
    return [
        Split(later.day, ratio)
        for earlier, later in pairwise([*before, *bars])
        if (ratio := divisor(earlier) // divisor(later)) > 1
    ]


def all_splits(market: Market, instrument: Instrument, last: date) -> list[Split]:
    """Splits until a day: only recorded days have any, and those are the first ones."""
    bars = market.final_bars(instrument, instrument.first_day, last)
    return splits(market, instrument, [bar for bar in bars if bar.recorded is not None])


def dividends(market: Market, instrument: Instrument, first: date, last: date) -> list[Payment]:
    """The payments from `first` to `last`, both included, oldest first."""
    symbol = instrument.key
    pays = symbol not in _PAYS_NOTHING if symbol in SYMBOLS else pick(f"pays:{symbol}", 0, 4) > 0
    if instrument.kind is not Kind.EQUITY or not pays:
        return []
    day_of_month, permille = pick(f"pays on:{symbol}", 3, 20), pick(f"pays much:{symbol}", 2, 9)
    payments = []
    for year in range(max(first, instrument.first_day).year, last.year + 1):
        for month in _MONTHS:
            ex_on = market.trading_day_from(instrument, date(year, month, day_of_month))
            close = market.close_before(instrument, ex_on)
            if first <= ex_on <= last and close is not None:
                units = close * permille // 1000
                payments.append(Payment(ex_on, max(units - units % CENT, CENT)))
    return payments
