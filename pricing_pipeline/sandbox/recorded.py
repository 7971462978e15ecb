"""Real daily bars, 2000-03-01 to 2013-03-01, in their source's own spelling.

They come from the CSV text that the package `bokeh_sampledata` ships; its Python module is not used,
because it turns every price into a float. What follows after the last recorded day is not here.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

SYMBOLS = ("AAPL", "GOOG", "IBM", "META", "MSFT")
_TODAY = {"FB": "META"}
"""Symbols of shares that were called otherwise when they were recorded."""
_SPLITS = {"AAPL": (("2000-06-21", 2), ("2005-02-28", 2)), "MSFT": (("2003-02-18", 2),)}
"""Splits within the recording, by their first day. Later ones do not count: the walk that follows knows none."""


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
    return {symbol: _with_splits(symbol, own) for symbol, own in rows.items()}


def _with_splits(symbol: str, rows: list[dict[str, str]]) -> tuple[RecordedBar, ...]:
    """Each bar with the product of the splits that came after it."""
    return tuple(
        RecordedBar(
            day=date.fromisoformat(row["Date"]),
            open=row["Open"],
            high=row["High"],
            low=row["Low"],
            close=row["Close"],
            volume=int(row["Volume"]),
            split=math.prod(ratio for day, ratio in _SPLITS.get(symbol, ()) if row["Date"] < day),
        )
        for row in rows
    )
