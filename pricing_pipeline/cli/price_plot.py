"""`price history --plot`: the values, where some are missing, and which were revised."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pricing_pipeline.cli.output import console
from pricing_pipeline.cli.plot import GAP, REVISED, Candle, draw
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.errors import InvalidRange
from pricing_pipeline.prices.price_reader import Bar
from pricing_pipeline.registry import calendars
from pricing_pipeline.registry.calendars import Gap

_HEIGHT = 16


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks of a plot: gaps between values, oldest first; times (UTC) of revised values; the number of holidays."""

    gaps: Sequence[Gap]
    revised: frozenset[datetime]
    closed: int = 0


def marks(
    connection: Connection, symbol: str, type_: DataType, bars: Sequence[Bar], as_of: datetime | None
) -> Marks:
    """What is to be marked of the values between the first and the last of `bars`, which are not empty.

    Gaps are those of daily values with a trading calendar, as they are now: of another time they are not known.
    """
    first, last = bars[0].observed_at, bars[-1].observed_at
    parameters = {
        "data_type": type_.data_type,
        "symbol": symbol,
        "first": first,
        "last": last,
        "as_of": as_of,
    }
    revised = frozenset(connection.execute(query("cli.revised"), parameters).scalars())
    if as_of is not None or not type_.fetcher.is_daily:
        return Marks((), revised)
    try:
        pair = (connection, type_.data_type, symbol, first.date(), last.date())
        return Marks(calendars.gaps(*pair), revised, len(calendars.closed_days(*pair)))
    except InvalidRange:
        return Marks((), revised)  # it has no trading calendar


def show(symbol: str, data_type: str, bars: Sequence[Bar], labels: Sequence[str], to_mark: Marks) -> None:
    """Draw the values on the console, each with a label that says when it was, under a line that says what is seen."""
    screen = console()
    width = min(screen.width, 120) if screen.is_terminal else 100
    days = [bar.observed_at.date() for bar in bars]
    after_gaps = {bisect_left(days, gap.first_day) for gap in to_mark.gaps}
    candles = [
        Candle(
            label,
            bar.close if bar.open is None else bar.open,
            bar.close if bar.high is None else bar.high,
            bar.close if bar.low is None else bar.low,
            bar.close,
            number in after_gaps,
            bar.observed_at in to_mark.revised,
        )
        for number, (bar, label) in enumerate(zip(bars, labels, strict=True))
    ]
    legend = [f"{symbol} {data_type}, {len(bars)} values, {bars[-1].currency or 'no currency known'}"]
    if to_mark.gaps:
        sessions = sum(gap.sessions for gap in to_mark.gaps)
        legend.append(f"{GAP} {sessions} trading day{'s' if sessions > 1 else ''} missing")
    if to_mark.closed:
        legend.append(f"closed on {to_mark.closed} holiday{'s' if to_mark.closed > 1 else ''}")
    if count := sum(candle.is_revised for candle in candles):
        legend.append(f"{REVISED} {count} revised")
    screen.print("; ".join(legend))
    for line in draw(candles, width, _HEIGHT):
        screen.print(line)
