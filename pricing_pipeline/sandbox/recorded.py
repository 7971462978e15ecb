"""Real daily bars, 2000-03-01 to 2013-03-01, in their source's own spelling.

They come from the CSV text that the package `bokeh_sampledata` ships; its Python module is not used,
because it turns every price into a float. What follows after the last recorded day is not here.
"""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files

SYMBOLS = ("AAPL", "GOOG", "IBM", "META", "MSFT")
_TODAY = {"FB": "META"}
"""Symbols of shares that were called otherwise when they were recorded."""


@dataclass(frozen=True, slots=True)
class RecordedBar:
    """One trading day as recorded, unadjusted. `split` is what later splits divide its prices by."""

    day: date
    open: str
    high: str
    low: str
    close: str
    volume: int
    split: int


@cache
def recorded_bars() -> dict[str, tuple[RecordedBar, ...]]:
    """All recorded bars by symbol, oldest first."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    rows: dict[str, list[dict[str, str]]] = {symbol: [] for symbol in SYMBOLS}
    for row in csv.DictReader(io.StringIO(gzip.decompress(packed).decode("ascii"), newline="")):
        rows[_TODAY.get(row["Ticker"], row["Ticker"])].append(row)
    return {symbol: _with_splits(own) for symbol, own in rows.items()}


def _with_splits(rows: list[dict[str, str]]) -> tuple[RecordedBar, ...]:
    """Find the splits within the recording and give each bar the product of those that came after it.

    A split shows as a jump of close / adjusted close by a whole factor. Dividends make it move too, though
    never by a whole factor (the largest, Microsoft's of 2004-11-15, is 1.11). Splits after the recording
    scale all its adjusted closes alike, so they do not show, which is right: the walk that follows knows
    nothing of them.
    """
    later = 1
    bars = []
    following: Decimal | None = None
    for row in reversed(rows):
        ratio = Decimal(row["Close"]) / Decimal(row["Adj Close"])
        if following is not None:
            jump = ratio / following
            whole = round(jump)
            if whole >= 2 and abs(jump - whole) < Decimal("0.01"):
                later *= whole
        following = ratio
        bars.append(
            RecordedBar(
                day=date.fromisoformat(row["Date"]),
                open=row["Open"],
                high=row["High"],
                low=row["Low"],
                close=row["Close"],
                volume=int(row["Volume"]),
                split=later,
            )
        )
    return tuple(reversed(bars))
