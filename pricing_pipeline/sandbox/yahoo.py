"""Yahoo Finance: charts of one symbol, `spark` of several, and the ways in which it refuses. No keys.

Prices are written as it writes them: binary32 numbers spelled out, bars divided by all later splits. This is the one
place of the sandbox where floats are made, and they go nowhere but into the text. Where recordings are silent, the
choice is named at its place.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta

from pricing_pipeline.sandbox import company_events as events
from pricing_pipeline.sandbox.calls import JSON, Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.instruments import Instrument, Kind, find_instrument
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.units import UNITS, decimal_text

MOST_SYMBOLS = 20
_CHART, _SPARK = "v8/finance/chart/", "v7/finance/spark"
_RANGES = {"1d": 1, "5d": 7, "1mo": 31, "3mo": 92, "6mo": 183, "1y": 366, "5y": 1827, "max": 36_525}
"""Calendar days of a `range`."""
_PAIR, _COIN = re.compile(r"([A-Z]{3})([A-Z]{3})=X"), re.compile(r"([A-Z]{2,5})-([A-Z]{3,4})")
_TYPES = {Kind.EQUITY: "EQUITY", Kind.FOREX: "CURRENCY", Kind.CRYPTO: "CRYPTOCURRENCY"}
_TOO_FAST = Reply(429, b"Edge: Too Many Requests", "text/plain")
_CONSENT = Reply(307, b"", "text/html; charset=utf-8", {"Location": "https://consent.example/consent"})
_GONE = "No data found, symbol may be delisted"
# A wording of our own: what is answered to too many symbols is not recorded.
_TOO_MANY = f"more than {MOST_SYMBOLS} symbols"


class Yahoo:
    """The provider; every caller shares its limit, since there are no keys."""

    name = "yahoo"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._settings = settings
        self._market = market
        self._minute = UnitWindow(settings.yahoo_calls_per_minute, 60, sliding=True)

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        if endpoint == _SPARK:
            symbols = tuple(symbol for symbol in params.get("symbols", "").split(",") if symbol)
        else:
            symbol = endpoint.removeprefix(_CHART)
            symbols = (symbol,) if endpoint.startswith(_CHART) and symbol else ()
        return ProviderCall(endpoint, params, symbols, None, now)

    def admit(self, call: ProviderCall) -> Admission:
        # Its edge refuses before anything behind it counts; that a refused call is not charged is our choice.
        at = call.now.timestamp()
        if self._minute.left(self._minute.used(at)) == 0:
            return Admission(0, _TOO_FAST, is_over_limit=True)
        self._minute.charge(1, at)
        return Admission(1)

    def answer(self, call: ProviderCall) -> Reply:
        if self._settings.yahoo_consent:
            return _CONSENT
        if not call.symbols:
            return _error("finance", 404, "Not Found", "HTTP 404 Not Found")
        if call.params.get("interval", "1d") != "1d":
            error = f"interval {call.params['interval']} is not served by the sandbox; 1d is."
            return _error("chart", 422, "Unprocessable Entity", error)
        return self._spark(call) if call.endpoint == _SPARK else self._chart(call)

    def plan(self) -> dict[str, object]:
        return {"calls_per_minute": self._minute.limit}

    def reset(self) -> None:
        self._minute.reset()

    def _spark(self, call: ProviderCall) -> Reply:
        """Members for the symbols that are known; about the others it says nothing."""
        if len(call.symbols) > MOST_SYMBOLS:
            return _error("spark", 400, "Bad Request", _TOO_MANY)
        members = []
        for symbol in call.symbols:
            instrument, spelled = self._find(call, symbol)
            if instrument is not None:
                quote = self._market.quote(instrument, call.now)
                series = {
                    "meta": self._meta(instrument, spelled, call.now, "1d"),
                    "timestamp": [quote.opened_at],
                    "indicators": {"quote": [{"close": [_number(quote.close)]}]},
                }
                members.append({"symbol": spelled, "response": [series]})
        if not members:
            return _error("spark", 404, "Not Found", "No data found for spark symbols")
        return _reply({"spark": {"result": members, "error": None}})

    def _chart(self, call: ProviderCall) -> Reply:
        instrument, spelled = self._find(call, call.symbols[0])
        if instrument is None:
            return self._unknown(spelled)
        try:
            first, last, is_whole = _span(call.params, instrument, call.now)
        except ValueError as error:
            return _error("chart", 400, "Bad Request", str(error))
        if last < instrument.first_day:
            ends = f"startDate = {call.params['period1']}, endDate = {call.params['period2']}"
            return _error("chart", 400, "Bad Request", f"Data doesn't exist for {ends}")
        bars = self._bars(instrument, first, last, call.now)
        meta = self._meta(instrument, spelled, call.now, call.params.get("range", "") if is_whole else "")
        series: dict[str, object] = {"meta": meta}
        if bars:
            series["timestamp"] = [self._opening(instrument, bar.day) for bar in bars]
            events = self._events(instrument, bars, call.params.get("events", ""))
            if events:
                series["events"] = events
        series["indicators"] = self._indicators(bars)
        return _reply({"chart": {"result": [series], "error": None}})

    def _unknown(self, symbol: str) -> Reply:
        if self._settings.yahoo_unknown == "error":
            return _error("chart", 404, "Not Found", _GONE)
        meta = {"currency": None, "symbol": symbol, "exchangeName": "YHD", "instrumentType": "MUTUALFUND"}
        shell = {"meta": meta, "indicators": {"quote": [{}], "adjclose": [{}]}}
        return _reply({"chart": {"result": [shell], "error": None}})

    def _find(self, call: ProviderCall, symbol: str) -> tuple[Instrument | None, str]:
        """The instrument whose data is to be sent, and the spelling it goes by there."""
        spelled = call.answers.get(symbol, symbol)
        instrument = find_instrument(_twelvedata_spelling(spelled))
        if instrument is None or not self._market.is_listed(instrument, call.now):
            return None, spelled
        return instrument, spelled

    def _meta(self, instrument: Instrument, symbol: str, now: datetime, span: str) -> dict[str, object]:
        quote = self._market.quote(instrument, now)
        opening, closing = self._market.session(instrument, now.astimezone(instrument.zone).date())
        zone = instrument.zone.key
        regular = {"start": int(opening.timestamp()), "end": int(closing.timestamp())}
        return {
            "currency": instrument.currency,
            "symbol": symbol,
            "exchangeName": instrument.exchange,
            "instrumentType": _TYPES[instrument.kind],
            "regularMarketTime": quote.stamped_at,
            "exchangeTimezoneName": zone,
            "regularMarketPrice": _number(quote.close),
            "chartPreviousClose": _number(quote.previous_close),
            "priceHint": 2 if instrument.kind is Kind.EQUITY else 4,
            "currentTradingPeriod": {"regular": regular},
            "dataGranularity": "1d",
            "range": span,
        }

    def _opening(self, instrument: Instrument, day: date) -> int:
        return int(self._market.session(instrument, day)[0].timestamp())

    def _bars(self, instrument: Instrument, first: date, last: date, now: datetime) -> list[Bar]:
        """Days from `first` to `last`; that of a session in progress looks like all others."""
        final = self._market.last_final_day(instrument, now)
        bars = self._market.final_bars(instrument, first, min(last, final))
        forming = self._market.forming_bar(instrument, now)
        return [*bars, forming] if forming is not None and first <= forming.day <= last else bars

    def _events(self, instrument: Instrument, bars: Sequence[Bar], wanted: str) -> dict[str, object]:
        """Dividends and splits of the days sent, as far as they are wanted; dividends are divided like prices."""
        chart_events: dict[str, object] = {}
        if "div" in wanted:
            divisors = {bar.day: events.divisor(bar) for bar in bars}
            paid = {
                self._opening(instrument, day): _binary32(units, divisors[day])
                for day, units in events.dividends(self._market, instrument, bars[0].day, bars[-1].day)
                if day in divisors
            }
            if paid:
                chart_events["dividends"] = {
                    str(at): {"amount": cash, "date": at} for at, cash in paid.items()
                }
        if "split" in wanted:
            ratios = {
                self._opening(instrument, day): ratio
                for day, ratio in events.splits(self._market, instrument, bars)
            }
            if ratios:
                chart_events["splits"] = {
                    str(at): {"date": at, "numerator": ratio, "denominator": 1, "splitRatio": f"{ratio}:1"}
                    for at, ratio in ratios.items()
                }
        return chart_events

    def _indicators(self, bars: Sequence[Bar]) -> dict[str, object]:
        if not bars:
            return {"quote": [{}], "adjclose": [{}]}
        every = self._settings.yahoo_hole_every
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
        return {"quote": [columns], "adjclose": [{"adjclose": columns["close"]}]}


def _twelvedata_spelling(symbol: str) -> str:
    """How the sandbox's list of instruments spells it: `EURUSD=X` is EUR/USD, `BTC-USD` is BTC/USD."""
    if pair := _PAIR.fullmatch(symbol):
        return f"{pair[1]}/{pair[2]}"
    if coin := _COIN.fullmatch(symbol):
        return f"{coin[1]}/{coin[2]}"
    return "" if "/" in symbol else symbol


def _span(params: Mapping[str, str], instrument: Instrument, now: datetime) -> tuple[date, date, bool]:
    """First and last day asked for, in the exchange's zone, and whether as a `range`."""
    today = now.astimezone(instrument.zone).date()
    if "period1" not in params:
        days = _RANGES.get(params.get("range", "1d"))
        if days is None:
            raise ValueError(
                f"range {params['range']} is not served by the sandbox: {', '.join(_RANGES)} are."
            )
        return today - timedelta(days=days - 1), today, True
    try:
        since, until = (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(params[name]))
            for name in ("period1", "period2")
        )
    except (KeyError, ValueError, OverflowError):
        raise ValueError("period1 and period2 must be epoch seconds") from None
    first = since.astimezone(instrument.zone)
    # A day belongs to the span if its opening does; those that open before `since` do not.
    return (
        first.date() + timedelta(days=first.time() > time()),
        until.astimezone(instrument.zone).date(),
        False,
    )


def _binary32(units: int, divisor: int) -> float:
    """A price as Yahoo keeps it."""
    number: float = struct.unpack("f", struct.pack("f", units / (UNITS * divisor)))[0]
    return number


def _number(units: int) -> float:
    """A price of `meta`, which has no noise: the shortest spelling of its decimal."""
    return float(decimal_text(units))


def _error(root: str, status: int, code: str, description: str) -> Reply:
    return _reply({root: {"result": None, "error": {"code": code, "description": description}}}, status)


def _reply(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value, separators=(",", ":")).encode(), JSON)
