"""How Yahoo Finance tells a series of days: stamps, columns, adjusted closes, events and `meta`.

Prices are written as it writes them: binary32 numbers spelled out, bars divided by all later splits. This is the one
place of the sandbox where floats are made, and they go nowhere but into the text.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox import company_events as events
from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.units import UNITS, decimal_text

RANGES = {
    "1d": 1, "5d": 7, "1mo": 31, "3mo": 92, "6mo": 183, "1y": 366, "2y": 731, "5y": 1827, "10y": 3653,
    "ytd": 0, "max": 36_525,
}  # fmt: skip
"""Calendar days of a `range`; the year's first day is that of `ytd`."""
_TYPES = {
    Kind.EQUITY: "EQUITY",
    Kind.INDEX: "INDEX",
    Kind.FUTURE: "FUTURE",
    Kind.FOREX: "CURRENCY",
    Kind.CRYPTO: "CRYPTOCURRENCY",
}
_BEFORE, _AFTER = timedelta(hours=5, minutes=30), timedelta(hours=4)
"""How long shares of the United States trade before and after the session."""


class Charts:
    """Series of the market in Yahoo's words."""

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._always = settings.market_hours == "always"
        self._hole_every = settings.yahoo_hole_every
        self._market = market

    def day_of(self, instrument: Instrument, at: datetime) -> date:
        """The day in the zone that Yahoo counts its days by."""
        return at.astimezone(_zone(instrument)).date()

    def stamp(self, instrument: Instrument, day: date, now: datetime) -> int:
        """The opening of the day's session, in epoch seconds.

        Where the market is declared open round the clock, a day begins before its exchange opens. Until then its
        bar has the time of the newest trade, as Yahoo's have before the session.
        """
        zone = _zone(instrument)
        opening = self._market.stamp(instrument, day)
        if zone != instrument.zone:
            opening = datetime(day.year, day.month, day.day, tzinfo=zone)
        at = int(opening.timestamp())
        return min(at, int(now.timestamp())) if day == self._today(instrument, now) else at

    def _today(self, instrument: Instrument, now: datetime) -> date:
        """The day of the market's session, which is in progress or next."""
        return now.astimezone(instrument.zone).date()

    def spark(self, instrument: Instrument, symbol: str, now: datetime) -> dict[str, object]:
        """The newest close of one symbol."""
        quote = self._market.quote(instrument, now)
        before = _number(quote.previous_close)
        return {
            "meta": self._meta(instrument, symbol, now, "1d", before),
            "timestamp": [self.stamp(instrument, quote.day, now)],
            "indicators": {"quote": [{"close": [_number(quote.close)]}]},
        }

    def chart(
        self,
        instrument: Instrument,
        symbol: str,
        first: date,
        last: date,
        now: datetime,
        *,
        wanted: str,
        span: str,
    ) -> dict[str, object]:
        """Days from `first` to `last`, and which of the events that are wanted fell on them."""
        bars = self._bars(instrument, first, last, now)
        series: dict[str, object] = {
            "meta": self._meta(instrument, symbol, now, span, self._close_before(instrument, bars, now))
        }
        if bars:
            series["timestamp"] = [self.stamp(instrument, bar.day, now) for bar in bars]
            events = self._events(instrument, bars, wanted, now)
            if events:
                series["events"] = events
        series["indicators"] = self._indicators(instrument, bars, now)
        return series

    def _bars(self, instrument: Instrument, first: date, last: date, now: datetime) -> list[Bar]:
        """Days from `first` to `last`; that of a session in progress looks like all others."""
        final = self._market.last_final_day(instrument, now)
        bars = self._market.final_bars(instrument, first, min(last, final))
        forming = self._market.forming_bar(instrument, now)
        return [*bars, forming] if forming is not None and first <= forming.day <= last else bars

    def _close_before(self, instrument: Instrument, bars: Sequence[Bar], now: datetime) -> float:
        """The close before the first day of the chart; of a first day ever, its own opening."""
        if not bars:
            return _number(self._market.quote(instrument, now).previous_close)
        before = self._market.final_bars(instrument, bars[0].day - timedelta(days=14), bars[0].day)[:-1]
        if not before:
            return _binary32(bars[0].prices.open, events.divisor(bars[0]))
        return round(_binary32(before[-1].prices.close, events.divisor(before[-1])), 3)

    def _meta(
        self, instrument: Instrument, symbol: str, now: datetime, span: str, close_before: float
    ) -> dict[str, object]:
        quote = self._market.quote(instrument, now)
        venue, zone = instrument.venue, _zone(instrument)
        is_pair = instrument.kind is Kind.FOREX
        name = instrument.symbol if is_pair else instrument.name
        return {
            "currency": instrument.currency,
            "symbol": symbol,
            "exchangeName": venue.yahoo_code,
            "fullExchangeName": venue.yahoo_name,
            "instrumentType": _TYPES[instrument.kind],
            "firstTradeDate": self.stamp(instrument, instrument.first_day, now),
            "regularMarketTime": quote.stamped_at,
            "hasPrePostMarketData": _has_more_hours(instrument),
            **_clock(zone, quote.stamped_at),
            "exchangeTimezoneName": zone.key,
            "regularMarketPrice": _number(quote.close),
            "fiftyTwoWeekHigh": _number(quote.year_high),
            "fiftyTwoWeekLow": _number(quote.year_low),
            "regularMarketDayHigh": _number(quote.high),
            "regularMarketDayLow": _number(quote.low),
            "regularMarketVolume": quote.volume,
            "longName": name,
            "shortName": name,
            "chartPreviousClose": close_before,
            "priceHint": 4 if is_pair else 2,
            "currentTradingPeriod": self._periods(instrument, zone, now),
            "dataGranularity": "1d",
            "range": span,
            "validRanges": list(RANGES),
        }

    def _periods(self, instrument: Instrument, zone: ZoneInfo, now: datetime) -> dict[str, object]:
        """The session, and the trading before and after it: none of either where no moment is left for it."""
        opening, closing = self._market.session(instrument, self._today(instrument, now))
        has_more = _has_more_hours(instrument) and not self._always
        moments = {
            "pre": (opening - _BEFORE if has_more else opening, opening),
            "regular": (opening, closing),
            "post": (closing, closing + _AFTER if has_more else closing),
        }
        return {
            name: {
                "timezone": _clock(zone, int(start.timestamp()))["timezone"],
                "start": int(start.timestamp()),
                "end": int(end.timestamp()),
                "gmtoffset": _clock(zone, int(start.timestamp()))["gmtoffset"],
            }
            for name, (start, end) in moments.items()
        }

    def _events(
        self, instrument: Instrument, bars: Sequence[Bar], wanted: str, now: datetime
    ) -> dict[str, object]:
        """Dividends and splits of the days sent, as far as they are wanted; dividends are divided like prices."""
        answer: dict[str, object] = {}
        if "div" in wanted:
            divisors = {bar.day: events.divisor(bar) for bar in bars}
            paid = {
                self.stamp(instrument, day, now): _binary32(units, divisors[day])
                for day, units in events.dividends(self._market, instrument, bars[0].day, bars[-1].day)
                if day in divisors
            }
            if paid:
                answer["dividends"] = {str(at): {"amount": cash, "date": at} for at, cash in paid.items()}
        if "split" in wanted:
            ratios = {
                self.stamp(instrument, day, now): ratio
                for day, ratio in events.splits(self._market, instrument, bars)
            }
            if ratios:
                answer["splits"] = {
                    str(at): {"date": at, "numerator": ratio, "denominator": 1, "splitRatio": f"{ratio}:1"}
                    for at, ratio in ratios.items()
                }
        return answer

    def _indicators(self, instrument: Instrument, bars: Sequence[Bar], now: datetime) -> dict[str, object]:
        if not bars:
            return {"quote": [{}], "adjclose": [{}]}
        every = self._hole_every
        # Holes stay where they are whatever window is asked, hence by the day's number.
        kept = [None if every and bar.day.toordinal() % every == 0 else bar for bar in bars]
        columns: dict[str, list[object]] = {
            name: [
                None if bar is None else _binary32(getattr(bar.prices, name), events.divisor(bar))
                for bar in kept
            ]
            for name in ("open", "high", "low", "close")
        }
        columns["volume"] = [None if bar is None else bar.prices.volume * events.divisor(bar) for bar in kept]
        shares = self._shares_left(instrument, bars, now)
        adjusted = [
            None if bar is None else _float32(bar.prices.close / (UNITS * events.divisor(bar)) * share)
            for bar, share in zip(kept, shares, strict=True)
        ]
        return {"quote": [columns], "adjclose": [{"adjclose": adjusted}]}

    def _shares_left(self, instrument: Instrument, bars: Sequence[Bar], now: datetime) -> list[float]:
        """The part of each day's close that remains after later dividends, each as a part of the close before it."""
        forming = self._market.forming_bar(instrument, now)
        last = forming.day if forming is not None else self._market.last_final_day(instrument, now)
        paid = events.dividends(self._market, instrument, bars[0].day + timedelta(days=1), last)
        left, share = [], 1.0
        for bar in reversed(bars):
            while paid and paid[-1].day > bar.day:
                close = self._market.close_before(instrument, paid[-1].day)
                share *= 1 - paid[-1].units / close if close else 1.0
                paid.pop()
            left.append(share)
        return left[::-1]


def _zone(instrument: Instrument) -> ZoneInfo:
    return ZoneInfo(instrument.venue.yahoo_zone) if instrument.venue.yahoo_zone else instrument.zone


def _has_more_hours(instrument: Instrument) -> bool:
    return instrument.kind is Kind.EQUITY and not instrument.venue.suffix


def _clock(zone: ZoneInfo, at: int) -> dict[str, object]:
    """Offset and short name of the zone at a moment."""
    local = datetime.fromtimestamp(at, zone)
    offset = local.utcoffset() or timedelta()
    return {"gmtoffset": int(offset.total_seconds()), "timezone": local.tzname()}


def _binary32(units: int, divisor: int) -> float:
    """A price as Yahoo keeps it."""
    return _float32(units / (UNITS * divisor))


def _float32(number: float) -> float:
    kept: float = struct.unpack("f", struct.pack("f", number))[0]
    return _spelled(kept)


def _spelled(number: float) -> float:
    """Whole numbers have no decimal point there."""
    return int(number) if number.is_integer() else number


def _number(units: int) -> float:
    """A price of `meta`, which has no noise: the shortest spelling of its decimal."""
    return _spelled(float(decimal_text(units)))
