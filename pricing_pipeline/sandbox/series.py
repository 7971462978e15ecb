"""The daily bars of one instrument: recorded days first, then its walk over the weekdays that follow.

The walk goes on while the market is closed for a day, which has no bar.

Bars here are whole days, whatever the time is; what part of today has happened is decided in `prices`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date, timedelta
from typing import NamedTuple

from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.recorded import RecordedBar, recorded_bars
from pricing_pipeline.sandbox.units import units_of
from pricing_pipeline.sandbox.walk import Day, Walk

_SPARE_DAYS = 64  # a walk is made a little longer than asked, so that a new day does not remake it


class Bar(NamedTuple):
    """One trading day, unadjusted; `recorded` keeps the source's spelling, if there is a source."""

    day: date
    prices: Day
    recorded: RecordedBar | None = None


class Series:
    """All trading days of one instrument, from its first to any day asked for."""

    def __init__(self, instrument: Instrument, seed: int) -> None:
        self._instrument = instrument
        self._seed = seed
        recorded: tuple[RecordedBar, ...] = ()
        if instrument.kind is Kind.EQUITY:
            recorded = recorded_bars().get(instrument.key, ())
        self._recorded = [Bar(bar.day, _prices(bar), bar) for bar in recorded]
        self._recorded_days = [bar.day for bar in self._recorded]
        self._walk_from = recorded[-1].day + timedelta(days=1) if recorded else instrument.first_day
        self._origin = self._weekday_count(self._walk_from)
        self._walk = self._make_walk(0)

    def is_trading_day(self, day: date) -> bool:
        if day < self._walk_from:
            at = bisect_left(self._recorded_days, day)
            return at < len(self._recorded_days) and self._recorded_days[at] == day
        return day.weekday() < self._instrument.week_days and self._instrument.venue.trades_on(day)

    def trading_day_before(self, day: date) -> date:
        """The last trading day before `day`; `day` must lie after the first one."""
        day -= timedelta(days=1)
        while not self.is_trading_day(day):
            day -= timedelta(days=1)
        return day

    def before(self, day: date, count: int) -> list[Day]:
        """The last `count` trading days before `day`, oldest first; fewer where the instrument is younger."""
        end = max(self._weekday_count(day) - self._origin, 0)
        days: list[Day] = []
        while end > 0 and len(days) < count:
            begin = max(end - (count - len(days)), 0)
            days = [bar.prices for bar in self._open(begin, end)] + days
            end = begin
        if len(days) < count and self._recorded:
            until = bisect_left(self._recorded_days, day)
            missing = count - len(days)
            return [bar.prices for bar in self._recorded[max(until - missing, 0) : until]] + days
        return days

    def between(self, first: date, last: date) -> list[Bar]:
        """The trading days from `first` to `last`, both included, oldest first."""
        days = self._recorded_days
        recorded = self._recorded[bisect_left(days, first) : bisect_right(days, last)]
        begin = max(self._weekday_count(first) - self._origin, 0)
        end = self._weekday_count(last + timedelta(days=1)) - self._origin
        return recorded + self._open(begin, end)

    def _open(self, begin: int, end: int) -> list[Bar]:
        """The bars of the walk from index `begin` up to, not including, `end`, without those of closed days."""
        walked = enumerate(self._walked(begin, end), self._origin + begin)
        bars = [Bar(self._weekday(count), prices) for count, prices in walked]
        return [bar for bar in bars if self._instrument.venue.trades_on(bar.day)]

    def _walked(self, begin: int, end: int) -> list[Day]:
        """Days of the walk from index `begin` up to, not including, `end`."""
        if end <= begin:
            return []
        if end > self._walk.length:
            self._walk = self._make_walk(end)
        return self._walk.days(begin, end - 1)

    def _make_walk(self, length: int) -> Walk:
        instrument = self._instrument
        return Walk(
            f"{self._seed}:{instrument.kind}:{instrument.key}",
            length + _SPARE_DAYS,
            anchor=instrument.anchor,
            tick=instrument.tick,
            swing=instrument.swing,
            bound=instrument.bound,
            volume=instrument.volume,
        )

    def _weekday_count(self, day: date) -> int:
        """How many weekdays of its market lie before this day, counted from the first Monday of the calendar."""
        week = self._instrument.week_days
        weeks, rest = divmod(day.toordinal() - 1, 7)
        return weeks * week + min(rest, week)

    def _weekday(self, count: int) -> date:
        """The weekday of its market that has `count` others before it."""
        weeks, rest = divmod(count, self._instrument.week_days)
        return date.fromordinal(weeks * 7 + rest + 1)


def _prices(recorded: RecordedBar) -> Day:
    return Day(
        open=units_of(recorded.open),
        high=units_of(recorded.high),
        low=units_of(recorded.low),
        close=units_of(recorded.close),
        volume=recorded.volume,
    )
