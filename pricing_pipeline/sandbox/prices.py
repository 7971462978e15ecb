"""The price of every instrument at a given second: quotes, the day that is forming, and bars within a day.

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
    stamped_at: int
    is_open: bool
    open: int
    high: int
    low: int
    close: int
    volume: int
    previous_close: int
    average_volume: int
    year_low: int
    year_high: int


class _State(NamedTuple):
    """The day of an instrument, from which all its quotes are made.

    Its price moves from the open over two extremes to the close; times are in seconds since opening.
    """

    whole: Quote
    """The quote at the end of the day, with high and low of the year before it."""
    opened_at: int
    length: int
    first: int
    first_at: int
    second: int
    second_at: int
    tick: int
    salt: int

    @property
    def noise(self) -> int:
        return (self.whole.high - self.whole.low) // 16


class Market:
    """Prices of all instruments. `hours` as in SandboxSettings.market_hours."""

    def __init__(self, seed: int, hours: Literal["always", "exchange"] = "always") -> None:
        self._seed = seed
        self.is_always_open = hours == "always"
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
        elapsed = int(now.timestamp()) - state.opened_at
        is_open, whole = elapsed < state.length, state.whole
        elapsed = min(elapsed, state.length)
        high, low = _extremes(state, elapsed)
        return whole._replace(
            stamped_at=state.opened_at + elapsed,
            is_open=is_open,
            high=high,
            low=low,
            close=_price(state, elapsed),
            volume=whole.volume * elapsed // state.length,
            year_low=min(whole.year_low, low),
            year_high=max(whole.year_high, high),
        )

    def _day(self, instrument: Instrument, now: datetime) -> _State:
        """The day that quotes are of: today, or the last one that has begun."""
        day = now.astimezone(instrument.zone).date()
        if not self.is_always_open and now < self.session(instrument, day)[0]:
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
        if not self.is_always_open and not series.is_trading_day(day):
            day = series.trading_day_before(day)
        earlier = series.before(day, _YEAR_OF_DAYS)
        if series.is_trading_day(day):
            ((_, prices, _),) = series.between(day, day)
        else:
            # The market is declared open without trading: the price idles around its last close.
            close = earlier[-1].close
            prices = Day(close, close + close // 250, close - close // 250, close, 0)
        opening, closing = self.session(instrument, day)
        length = int((closing - opening).total_seconds())
        key = f"{self._seed}:{instrument.kind}:{instrument.key}:{day}"
        opened, high, low, close, volume = prices
        # A rising day usually dips first, and the other way round.
        first, second = (low, high) if close >= opened else (high, low)
        volumes = [bar.volume for bar in earlier[-_VOLUME_DAYS:]] or [volume]
        whole = Quote(
            day=day,
            stamped_at=int(closing.timestamp()),
            is_open=False,
            open=opened,
            high=high,
            low=low,
            close=close,
            volume=volume,
            previous_close=earlier[-1].close if earlier else opened,
            average_volume=sum(volumes) // len(volumes),
            year_low=min([bar.low for bar in earlier], default=opened),
            year_high=max([bar.high for bar in earlier], default=opened),
        )
        return _State(
            whole,
            opened_at=int(opening.timestamp()),
            length=length,
            first=first,
            first_at=length * pick(f"{key}:first", 15, 45) // 100,
            second=second,
            second_at=length * pick(f"{key}:second", 55, 85) // 100,
            tick=instrument.tick,
            salt=pick(key, 0, 1 << 32),
        )

    def session(self, instrument: Instrument, day: date) -> tuple[datetime, datetime]:
        """When the day's trading opens and closes."""
        if instrument.kind is Kind.EQUITY and not self.is_always_open:
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


def _line(state: _State, elapsed: int) -> int:
    """The price without noise: straight lines between opening, the two extremes and close."""
    if elapsed < state.first_at:
        return state.whole.open + (state.first - state.whole.open) * elapsed // state.first_at
    if elapsed < state.second_at:
        done, whole = elapsed - state.first_at, state.second_at - state.first_at
        return state.first + (state.second - state.first) * done // whole
    done, whole = elapsed - state.second_at, state.length - state.second_at
    return state.second + (state.whole.close - state.second) * done // whole


def _price(state: _State, elapsed: int) -> int:
    """The price `elapsed` seconds after opening; the last one of a day is its close."""
    if elapsed >= state.length:
        return state.whole.close
    noise = state.noise
    shake = crc32((state.opened_at + elapsed).to_bytes(6, "big"), state.salt) % (2 * noise + 1) - noise
    price = max(state.whole.low, min(state.whole.high, _line(state, elapsed) + shake))
    return price - price % state.tick


def _extremes(state: _State, elapsed: int) -> tuple[int, int]:
    """High and low of the day so far: they never shrink, always hold the price, and end at the bar's own."""
    if elapsed >= state.length:
        return state.whole.high, state.whole.low
    seen = [state.whole.open, _line(state, elapsed)]
    if elapsed >= state.first_at:
        seen.append(state.first)
    if elapsed >= state.second_at:
        seen.append(state.second)
    high, low = min(state.whole.high, max(seen) + state.noise), max(state.whole.low, min(seen) - state.noise)
    return high - high % state.tick, low - low % state.tick
