"""What every instrument costs at a given second: quotes, the day that is forming, and bars within a day.

The market is a pure function of its seed and of the time it is asked about, so that two processes agree.
How a provider writes these numbers is not decided here. All prices are integers in units of 10^-5, times
are UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple
from zlib import crc32
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox.instruments import Instrument, Kind, pick
from pricing_pipeline.sandbox.series import Bar, Series
from pricing_pipeline.sandbox.venues import Venue
from pricing_pipeline.sandbox.walk import Day

_YEAR_OF_DAYS = 260
_VOLUME_DAYS = 9  # Twelve Data's default `volume_time_period`
_SERIES_KEPT = 256  # a series is about 80 kB
_DAYS_KEPT = 50_000


class Quote(NamedTuple):
    """The state of one instrument at one second. Stamps are epoch seconds."""

    day: date
    opened_at: int
    stamped_at: int
    is_open: bool
    open: int
    high: int
    low: int
    close: int
    volume: int
    previous_close: int
    week_ago_close: int
    average_volume: int
    year_low: int
    year_high: int


class Slice(NamedTuple):
    """A bar within a day, that began at epoch second `start`."""

    start: int
    open: int
    high: int
    low: int
    close: int
    volume: int


class _Path(NamedTuple):
    """How the price moves within one day: from `open` over two extremes to `close`, in seconds since
    opening."""

    opened_at: int
    length: int
    open: int
    first: int
    first_at: int
    second: int
    second_at: int
    close: int
    high: int
    low: int
    noise: int
    tick: int
    salt: int


class _State(NamedTuple):
    """What all quotes of one instrument on one day need."""

    day: date
    path: _Path
    volume: int
    previous_close: int
    week_ago_close: int
    average_volume: int
    year_low: int
    year_high: int


class Market:
    """Prices of all instruments. `hours` as in SandboxSettings.market_hours."""

    def __init__(self, seed: int, hours: Literal["always", "exchange"] = "always") -> None:
        self._seed = seed
        self._always = hours == "always"
        self._series = lru_cache(_SERIES_KEPT)(lambda instrument: Series(instrument, seed))
        self._days: dict[str, tuple[date, _State]] = {}

    def is_listed(self, instrument: Instrument, now: datetime) -> bool:
        """Whether it has traded yet: before its first day it has no price at all."""
        return now >= self.session(instrument, instrument.first_day)[0]

    def last_final_day(self, instrument: Instrument, now: datetime) -> date:
        """The newest day whose bar will not change any more. It need not be a trading day."""
        today = now.astimezone(instrument.zone).date()
        is_over = now >= self.session(instrument, today)[1]
        return today if is_over else today - timedelta(days=1)

    def final_bars(self, instrument: Instrument, first: date, last: date) -> list[Bar]:
        """Whole days from `first` to `last`, both included. The caller keeps `last` out of the future."""
        return self._series(instrument).between(max(first, instrument.first_day), last)

    def trading_day_from(self, instrument: Instrument, day: date) -> date:
        """The first trading day that is not before `day`."""
        series = self._series(instrument)
        while not series.is_trading_day(day):
            day += timedelta(days=1)
        return day

    def close_before(self, instrument: Instrument, day: date) -> int | None:
        """The close of the last trading day before `day`, None before the first one."""
        if day <= instrument.first_day:
            return None
        return self._series(instrument).before(day, 1)[-1].close

    def forming_bar(self, instrument: Instrument, now: datetime) -> Bar | None:
        """Today's bar as far as the day has come, or None when no day is in progress."""
        today = now.astimezone(instrument.zone).date()
        opening, closing = self.session(instrument, today)
        if not opening <= now < closing or not self._series(instrument).is_trading_day(today):
            return None
        quote = self.quote(instrument, now)
        return Bar(today, Day(quote.open, quote.high, quote.low, quote.close, quote.volume))

    def quote(self, instrument: Instrument, now: datetime) -> Quote:
        """The latest price and the day around it. The instrument must be listed."""
        state = self._day(instrument, now)
        path = state.path
        elapsed = int(now.timestamp()) - path.opened_at
        is_open = elapsed < path.length
        elapsed = min(elapsed, path.length)
        high, low = _extremes(path, elapsed)
        return Quote(
            day=state.day,
            opened_at=path.opened_at,
            stamped_at=path.opened_at + elapsed,
            is_open=is_open,
            open=path.open,
            high=high,
            low=low,
            close=_price(path, elapsed),
            volume=state.volume * elapsed // path.length,
            previous_close=state.previous_close,
            week_ago_close=state.week_ago_close,
            average_volume=state.average_volume,
            year_low=min(state.year_low, low),
            year_high=max(state.year_high, high),
        )

    def slices(
        self, instrument: Instrument, seconds: int, first: datetime, last: datetime, most: int, now: datetime
    ) -> list[Slice]:
        """Bars of `seconds` length that began from `first` to `last`, the newest `most`, oldest first."""
        series = self._series(instrument)
        last = min(last, now)
        day = last.astimezone(instrument.zone).date()
        end = max(first.astimezone(instrument.zone).date(), instrument.first_day)
        begin_at, last_at, now_at = int(first.timestamp()), int(last.timestamp()), int(now.timestamp())
        newest_first: list[Slice] = []
        while day >= end and len(newest_first) < most:
            if series.is_trading_day(day):
                path, volume = self._trading_path(instrument, day)
                count = path.length // seconds
                for index in range(min(count - 1, (last_at - path.opened_at) // seconds), -1, -1):
                    start = path.opened_at + index * seconds
                    if start < begin_at or len(newest_first) == most:
                        break
                    newest_first.append(_slice(path, index * seconds, seconds, now_at, volume // count))
            day -= timedelta(days=1)
        newest_first.reverse()
        return newest_first

    def _day(self, instrument: Instrument, now: datetime) -> _State:
        day = now.astimezone(instrument.zone).date()
        if not self._always and now < self.session(instrument, day)[0]:
            day -= timedelta(days=1)
        key = f"{instrument.kind}:{instrument.key}"
        known = self._days.get(key)
        if known is not None and known[0] == day:
            return known[1]
        if len(self._days) >= _DAYS_KEPT:
            self._days.clear()
        state = self._make_day(instrument, day)
        self._days[key] = (day, state)
        return state

    def _make_day(self, instrument: Instrument, day: date) -> _State:
        series = self._series(instrument)
        if not self._always and not series.is_trading_day(day):
            day = series.trading_day_before(day)
        earlier = series.before(day, _YEAR_OF_DAYS)
        if series.is_trading_day(day):
            path, volume = self._trading_path(instrument, day)
        else:
            path, volume = self._idle_path(instrument, day, earlier[-1].close), 0
        before = [bar.close for bar in earlier[-7:]] or [path.open]
        volumes = [bar.volume for bar in earlier[-_VOLUME_DAYS:]] or [volume]
        return _State(
            day=day,
            path=path,
            volume=volume,
            previous_close=before[-1],
            week_ago_close=before[0],
            average_volume=sum(volumes) // len(volumes),
            year_low=min([bar.low for bar in earlier], default=path.open),
            year_high=max([bar.high for bar in earlier], default=path.open),
        )

    def _trading_path(self, instrument: Instrument, day: date) -> tuple[_Path, int]:
        (bar,) = self._series(instrument).between(day, day)
        return self._path(instrument, day, bar.prices), bar.prices.volume

    def _idle_path(self, instrument: Instrument, day: date, close: int) -> _Path:
        """A day without trading while the market is declared open: the price idles around its last close."""
        reach = close // 250
        return self._path(instrument, day, Day(close, close + reach, close - reach, close, 0))

    def _path(self, instrument: Instrument, day: date, prices: Day) -> _Path:
        opening, closing = self.session(instrument, day)
        length = int((closing - opening).total_seconds())
        key = f"{self._seed}:{instrument.kind}:{instrument.key}:{day}"
        opened, high, low, close, _ = prices
        # A rising day usually dips first, and the other way round.
        first, second = (low, high) if close >= opened else (high, low)
        return _Path(
            opened_at=int(opening.timestamp()),
            length=length,
            open=opened,
            first=first,
            first_at=length * pick(f"{key}:first", 15, 45) // 100,
            second=second,
            second_at=length * pick(f"{key}:second", 55, 85) // 100,
            close=close,
            high=high,
            low=low,
            noise=(high - low) // 16,
            tick=instrument.tick,
            salt=pick(key, 0, 1 << 32),
        )

    def session(self, instrument: Instrument, day: date) -> tuple[datetime, datetime]:
        """When the day's trading opens and closes."""
        if instrument.kind is Kind.EQUITY and not self._always:
            return _hours(instrument.venue, day)
        return _whole_day(instrument.zone, day)

    def stamp(self, instrument: Instrument, day: date) -> datetime:
        """The opening of the exchange on a day, also where the market is declared open round the clock."""
        return _hours(instrument.venue, day)[0]


@lru_cache(4096)
def _hours(venue: Venue, day: date) -> tuple[datetime, datetime]:
    opening, closing = (datetime.combine(day, at, venue.zone) for at in venue.hours)
    return opening.astimezone(UTC), closing.astimezone(UTC)


@lru_cache(4096)
def _whole_day(zone: ZoneInfo, day: date) -> tuple[datetime, datetime]:
    opening = datetime.combine(day, time(), zone)
    closing = datetime.combine(day + timedelta(days=1), time(), zone)
    return opening.astimezone(UTC), closing.astimezone(UTC)


def _line(path: _Path, elapsed: int) -> int:
    """The price without noise: straight lines between opening, the two extremes and close."""
    if elapsed < path.first_at:
        return path.open + (path.first - path.open) * elapsed // path.first_at
    if elapsed < path.second_at:
        done, whole = elapsed - path.first_at, path.second_at - path.first_at
        return path.first + (path.second - path.first) * done // whole
    done, whole = elapsed - path.second_at, path.length - path.second_at
    return path.second + (path.close - path.second) * done // whole


def _price(path: _Path, elapsed: int) -> int:
    """The price `elapsed` seconds after opening; the last one of a day is its close."""
    if elapsed >= path.length:
        return path.close
    noise = path.noise
    shake = crc32((path.opened_at + elapsed).to_bytes(6, "big"), path.salt) % (2 * noise + 1) - noise
    price = max(path.low, min(path.high, _line(path, elapsed) + shake))
    return price - price % path.tick


def _extremes(path: _Path, elapsed: int) -> tuple[int, int]:
    """High and low of the day so far: they never shrink, always hold the price, and end at the bar's own."""
    if elapsed >= path.length:
        return path.high, path.low
    seen = [path.open, _line(path, elapsed)]
    if elapsed >= path.first_at:
        seen.append(path.first)
    if elapsed >= path.second_at:
        seen.append(path.second)
    high, low = min(path.high, max(seen) + path.noise), max(path.low, min(seen) - path.noise)
    return high - high % path.tick, low - low % path.tick


def _slice(path: _Path, begin: int, seconds: int, now_at: int, volume: int) -> Slice:
    until = min(begin + seconds, now_at - path.opened_at)
    opened, close = _price(path, begin), _price(path, max(until - 1, begin))
    stretch = path.noise // 4
    high, low = min(max(opened, close) + stretch, path.high), max(min(opened, close) - stretch, path.low)
    done = max(until - begin, 0)
    return Slice(
        path.opened_at + begin,
        opened,
        high - high % path.tick,
        low - low % path.tick,
        close,
        volume * done // seconds,
    )
