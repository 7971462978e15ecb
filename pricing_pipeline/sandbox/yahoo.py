"""Yahoo Finance: charts of one symbol, `spark` and quotes of several, and the ways in which it refuses. No keys.

Prices are written as it writes them: bars are binary32 numbers spelled out, divided by all later splits. Where
recordings are silent, the choice is named at its place.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypedDict
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox import company_events as events
from pricing_pipeline.sandbox.calls import Dialect, ProviderCall, Refused, Reply, json_reply, listed
from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.prices import Market, Quote
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.spellings import of_yahoo
from pricing_pipeline.sandbox.units import UNITS, number

RANGES = {
    "1d": 1, "5d": 7, "1mo": 31, "3mo": 92, "6mo": 183, "1y": 366, "2y": 731, "5y": 1827, "10y": 3653,
    "ytd": 0, "max": 36_525,
}  # fmt: skip
"""Calendar days of a `range`; the year's first day is that of `ytd`."""
_CHART, _SPARK, _QUOTE = "v8/finance/chart/", "v7/finance/spark", "v7/finance/quote"
_PAGE, _GET_CRUMB, _CRUMB, _COOKIE = "quote/", "v1/test/getcrumb", "sandbox.crumb", "A3=sandbox"
"""Quotes are for clients that fetched this crumb and its cookie first, which pages for people bring as well. Charts are
for all.
"""
_GONE = "No data found, symbol may be delisted"
_TYPES = {
    Kind.EQUITY: "EQUITY",
    Kind.INDEX: "INDEX",
    Kind.FUTURE: "FUTURE",
    Kind.FOREX: "CURRENCY",
    Kind.CRYPTO: "CRYPTOCURRENCY",
}
_MARKETS = {Kind.FOREX: "ccy", Kind.CRYPTO: "ccc"}

Row = dict[str, object]


class Yahoo(Dialect):
    name = "yahoo"

    def __init__(self, market: Market) -> None:
        super().__init__()
        self._market = market

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        if endpoint in (_SPARK, _QUOTE):
            return listed(params.get("symbols", ""))
        symbol = endpoint.removeprefix(_CHART)
        return (symbol,) if endpoint.startswith(_CHART) and symbol else ()

    def answered(self, call: ProviderCall) -> Reply:
        cookie = {"Set-Cookie": f"{_COOKIE}; Path=/"}
        if call.endpoint == _GET_CRUMB:
            return Reply(200, _CRUMB.encode(), "text/plain;charset=utf-8", cookie)
        if call.endpoint.startswith(_PAGE):
            return Reply(200, b"<html></html>", "text/html; charset=utf-8", cookie)
        if call.endpoint == _QUOTE and not (
            call.params.get("crumb") == _CRUMB and _COOKIE in call.headers.get("cookie", "")
        ):
            raise _refused("finance", 401, "Unauthorized", "Invalid Crumb")
        if not call.symbols:
            raise _refused("finance", 404, "Not Found", "HTTP 404 Not Found")
        if call.endpoint == _QUOTE:
            rows = [chart.quoted() for chart in self._charts(call)]
            return json_reply({"quoteResponse": {"result": rows, "error": None}})
        if call.params.get("interval", "1d") != "1d":
            error = f"interval {call.params['interval']} is not served by the sandbox; 1d is."
            raise _refused("chart", 422, "Unprocessable Entity", error)
        return json_reply(self._spark(call) if call.endpoint == _SPARK else self._chart(call))

    def _charts(self, call: ProviderCall) -> list[_Chart]:
        """Those of the symbols that are known; about the others it says nothing."""
        spelled = [call.answers.get(symbol, symbol) for symbol in call.symbols]
        found = [(symbol, of_yahoo(symbol)) for symbol in spelled]
        return [
            _Chart(self._market, one, symbol, call.now)
            for symbol, one in found
            if one is not None and self._market.is_listed(one, call.now)
        ]

    def _spark(self, call: ProviderCall) -> Row:
        members = [{"symbol": chart.symbol, "response": [chart.spark()]} for chart in self._charts(call)]
        if not members:
            raise _refused("spark", 404, "Not Found", "No data found for spark symbols")
        return {"spark": {"result": members, "error": None}}

    def _chart(self, call: ProviderCall) -> Row:
        charts, params = self._charts(call), call.params
        if not charts:
            raise _refused("chart", 404, "Not Found", _GONE)
        (chart,) = charts
        first, last = _span(params, chart)
        if last < chart.instrument.first_day:
            ends = f"startDate = {params['period1']}, endDate = {params['period2']}"
            raise _refused("chart", 400, "Bad Request", f"Data doesn't exist for {ends}")
        span = "" if "period1" in params else params.get("range", "1d")
        series = chart.series(first, last, wanted=params.get("events", ""), span=span)
        return {"chart": {"result": [series], "error": None}}


@dataclass(frozen=True, slots=True)
class _Chart:
    """One instrument at a moment, as Yahoo shows it."""

    market: Market
    instrument: Instrument
    symbol: str
    now: datetime

    @property
    def zone(self) -> ZoneInfo:
        """The zone that Yahoo counts its days by."""
        venue = self.instrument.venue
        return ZoneInfo(venue.yahoo_zone) if venue.yahoo_zone else venue.zone

    @property
    def quote(self) -> Quote:
        return self.market.quote(self.instrument, self.now)

    def stamp(self, day: date) -> int:
        """The opening of the day's session, in epoch seconds.

        Where the market is declared open round the clock, a day begins before its exchange opens. Until then its
        bar has the time of the newest trade, as Yahoo's have before the session.
        """
        if self.zone != self.instrument.zone:
            opening = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        else:
            opening = self.market.stamp(self.instrument, day)
        at = int(opening.timestamp())
        today = self.now.astimezone(self.instrument.zone).date()
        return min(at, int(self.now.timestamp())) if day == today else at

    def spark(self) -> Row:
        """The newest close."""
        quote = self.quote
        return {
            "meta": self._meta("1d", number(quote.previous_close)),
            "timestamp": [self.stamp(quote.day)],
            "indicators": {"quote": [{"close": [number(quote.close)]}]},
        }

    def quoted(self) -> Row:
        """A row of `/v7/finance/quote`."""
        quote = self.quote
        clock, country = _clock(self.zone, quote.stamped_at), self.instrument.venue.country_code
        return {
            "language": "en-US",
            "region": "US",
            "triggerable": True,
            "tradeable": False,
            "esgPopulated": False,
            "sourceInterval": 15,
            "exchangeDataDelayedBy": 0,
            "exchangeTimezoneShortName": clock["timezone"],
            "gmtOffSetMilliseconds": clock["gmtoffset"] * 1000,
            "market": f"{_MARKETS.get(self.instrument.kind, country.lower() or 'us')}_market",
            "quoteType": _TYPES[self.instrument.kind],
            "currency": self.instrument.currency,
            "exchange": self.instrument.venue.yahoo_code or self.instrument.exchange,
            "fullExchangeName": self.instrument.venue.name,
            "exchangeTimezoneName": self.zone.key,
            "shortName": self.instrument.name,
            "longName": self.instrument.name,
            "marketState": "REGULAR" if quote.is_open else "CLOSED",
            "regularMarketPrice": number(quote.close),
            "regularMarketTime": quote.stamped_at,
            "regularMarketChange": number(quote.close - quote.previous_close),
            "regularMarketOpen": number(quote.open),
            "regularMarketDayHigh": number(quote.high),
            "regularMarketDayLow": number(quote.low),
            "regularMarketPreviousClose": number(quote.previous_close),
            "regularMarketVolume": quote.volume,
            "fiftyTwoWeekHigh": number(quote.year_high),
            "fiftyTwoWeekLow": number(quote.year_low),
            "symbol": self.symbol,
        }

    def series(self, first: date, last: date, *, wanted: str, span: str) -> Row:
        """Days from `first` to `last`, and which of the events that are wanted fell on them."""
        bars = self._bars(first, last)
        series: Row = {"meta": self._meta(span, self._close_before(bars))}
        if not bars:
            return series | {"indicators": {"quote": [{}], "adjclose": [{}]}}
        series["timestamp"] = [self.stamp(bar.day) for bar in bars]
        if told := self._events(bars, wanted):
            series["events"] = told
        return series | {"indicators": self._indicators(bars)}

    def _bars(self, first: date, last: date) -> list[Bar]:
        """Days from `first` to `last`; that of a session in progress looks like all others."""
        final = self.market.last_final_day(self.instrument, self.now)
        bars = self.market.final_bars(self.instrument, first, min(last, final))
        forming = self.market.forming_bar(self.instrument, self.now)
        return [*bars, forming] if forming is not None and first <= forming.day <= last else bars

    def _close_before(self, bars: list[Bar]) -> float:
        """The close before the first day of the chart; of a first day ever, its own opening."""
        if not bars:
            return number(self.quote.previous_close)
        first = bars[0].day
        before = self.market.final_bars(self.instrument, first - timedelta(days=14), first)[:-1]
        if not before:
            return _binary32(bars[0].prices.open, events.divisor(bars[0]))
        return round(_binary32(before[-1].prices.close, events.divisor(before[-1])), 3)

    def _meta(self, span: str, close_before: float) -> Row:
        quote, venue = self.quote, self.instrument.venue
        is_pair = self.instrument.kind is Kind.FOREX
        name = self.instrument.symbol if is_pair else self.instrument.name
        return {
            "currency": self.instrument.currency,
            "symbol": self.symbol,
            "exchangeName": venue.yahoo_code or venue.exchange,
            "fullExchangeName": venue.name,
            "instrumentType": _TYPES[self.instrument.kind],
            "firstTradeDate": self.stamp(self.instrument.first_day),
            "regularMarketTime": quote.stamped_at,
            "hasPrePostMarketData": False,
            **_clock(self.zone, quote.stamped_at),
            "exchangeTimezoneName": self.zone.key,
            "regularMarketPrice": number(quote.close),
            "fiftyTwoWeekHigh": number(quote.year_high),
            "fiftyTwoWeekLow": number(quote.year_low),
            "regularMarketDayHigh": number(quote.high),
            "regularMarketDayLow": number(quote.low),
            "regularMarketVolume": quote.volume,
            "longName": name,
            "shortName": name,
            "chartPreviousClose": close_before,
            "priceHint": 4 if is_pair else 2,
            "currentTradingPeriod": self._periods(),
            "dataGranularity": "1d",
            "range": span,
            "validRanges": list(RANGES),
        }

    def _periods(self) -> Row:
        """The session of the day, without any trading before and after it."""
        today = self.now.astimezone(self.instrument.zone).date()
        opening, closing = self.market.session(self.instrument, today)
        moments = {"pre": (opening, opening), "regular": (opening, closing), "post": (closing, closing)}
        return {
            name: {
                **_clock(self.zone, int(start.timestamp())),
                "start": int(start.timestamp()),
                "end": int(end.timestamp()),
            }
            for name, (start, end) in moments.items()
        }

    def _events(self, bars: list[Bar], wanted: str) -> Row:
        """Dividends and splits of the days sent, as far as they are wanted; dividends are divided like prices."""
        answer: Row = {}
        divisors = {bar.day: events.divisor(bar) for bar in bars}
        if "div" in wanted:
            paid = {
                self.stamp(day): _binary32(units, divisors[day])
                for day, units in events.dividends(self.market, self.instrument, bars[0].day, bars[-1].day)
                if day in divisors
            }
            if paid:
                answer["dividends"] = {str(at): {"amount": cash, "date": at} for at, cash in paid.items()}
        if "split" in wanted:
            found = events.splits(self.market, self.instrument, bars)
            ratios = {self.stamp(day): ratio for day, ratio in found}
            if ratios:
                answer["splits"] = {
                    str(at): {"date": at, "numerator": ratio, "denominator": 1, "splitRatio": f"{ratio}:1"}
                    for at, ratio in ratios.items()
                }
        return answer

    def _indicators(self, bars: list[Bar]) -> Row:
        columns: dict[str, list[float]] = {
            name: [_binary32(getattr(bar.prices, name), events.divisor(bar)) for bar in bars]
            for name in ("open", "high", "low", "close")
        }
        columns["volume"] = [bar.prices.volume * events.divisor(bar) for bar in bars]
        adjusted = [
            _float32(bar.prices.close / (UNITS * events.divisor(bar)) * share)
            for bar, share in zip(bars, self._shares_left(bars), strict=True)
        ]
        return {"quote": [columns], "adjclose": [{"adjclose": adjusted}]}

    def _shares_left(self, bars: list[Bar]) -> list[float]:
        """The part of each day's close that remains after later dividends, each as a part of the close before it."""
        forming = self.market.forming_bar(self.instrument, self.now)
        last = forming.day if forming is not None else self.market.last_final_day(self.instrument, self.now)
        paid = events.dividends(self.market, self.instrument, bars[0].day + timedelta(days=1), last)
        left, share = [], 1.0
        for bar in reversed(bars):
            while paid and paid[-1].day > bar.day:
                close = self.market.close_before(self.instrument, paid[-1].day)
                share *= 1 - paid[-1].units / close if close else 1.0
                paid.pop()
            left.append(share)
        return left[::-1]


def _span(params: Mapping[str, str], chart: _Chart) -> tuple[date, date]:
    """First and last day asked for, in the zone that Yahoo counts its days by."""
    if "period1" not in params:
        name, today = params.get("range", "1d"), chart.now.astimezone(chart.zone).date()
        if name not in RANGES:
            known = ", ".join(RANGES)
            words = f"Invalid input - range={name} is not supported. Valid ranges: [{known}]"
            raise _refused("chart", 400, "Bad Request", words)
        return date(today.year, 1, 1) if name == "ytd" else today - timedelta(days=RANGES[name] - 1), today
    try:
        since, until = (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(params[name])) for name in ("period1", "period2")
        )
    except (KeyError, ValueError, OverflowError):
        raise _refused("chart", 400, "Bad Request", "period1 and period2 must be epoch seconds") from None
    first, last = since.astimezone(chart.zone).date(), until.astimezone(chart.zone).date()
    # A day belongs to the span if its stamp does; both ends are included.
    late, early = chart.stamp(first) < int(params["period1"]), chart.stamp(last) > int(params["period2"])
    return first + timedelta(days=late), last - timedelta(days=early)


class _Clock(TypedDict):
    gmtoffset: int
    timezone: str | None


def _clock(zone: ZoneInfo, at: int) -> _Clock:
    """Offset and short name of the zone at a moment."""
    local = datetime.fromtimestamp(at, zone)
    offset = local.utcoffset() or timedelta()
    return {"gmtoffset": int(offset.total_seconds()), "timezone": local.tzname()}


def _binary32(units: int, divisor: int) -> float:
    """A price as Yahoo keeps it."""
    return _float32(units / (UNITS * divisor))


def _float32(price: float) -> float:
    """Whole numbers have no decimal point there."""
    kept: float = struct.unpack("f", struct.pack("f", price))[0]
    return int(kept) if kept.is_integer() else kept


def _refused(root: str, status: int, code: str, description: str) -> Refused:
    error = {"code": code, "description": description}
    return Refused(json_reply({root: {"result": None, "error": error}}, status))
