"""Yahoo Finance: charts of one symbol, `spark` of several, and the ways in which it refuses. No keys.

`yahoo_chart` has the series and their `meta`. Where recordings are silent, the choice is named at its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from pricing_pipeline.sandbox.calls import JSON, Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.instruments import Instrument
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.spellings import of_yahoo
from pricing_pipeline.sandbox.yahoo_chart import RANGES, Charts

MOST_SYMBOLS = 20
_CHART, _SPARK = "v8/finance/chart/", "v7/finance/spark"
_SERVED = frozenset(
    {"interval", "range", "period1", "period2", "events", "symbols"}
    | {"includePrePost", "includeAdjustedClose", "includeTimestamps", "indicators", "useYfid"}
    | {"lang", "region", "corsDomain", "crumb", "formatted"}
)
"""Parameters that are known from recordings and clients; those of the last two lines change nothing."""
_CRUMB = "v1/test/getcrumb"
"""Clients that pose as browsers fetch a cookie and a crumb first. No endpoint served here needs them."""
_COOKIE = "A3=sandbox; Path=/"
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
        self._charts = Charts(settings, market)
        self._minute = UnitWindow(settings.yahoo_calls_per_minute, 60, sliding=True)

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        if endpoint == _SPARK:
            symbols = tuple(symbol for symbol in params.get("symbols", "").split(",") if symbol)
        else:
            symbol = endpoint.removeprefix(_CHART)
            symbols = (symbol,) if endpoint.startswith(_CHART) and symbol else ()
        return ProviderCall(endpoint, params, symbols, None, now, agent=headers.get("user-agent", ""))

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
        if call.endpoint == _CRUMB:
            return Reply(200, b"sandbox.crumb", "text/plain;charset=utf-8", {"Set-Cookie": _COOKIE})
        if not call.symbols:
            return _error("finance", 404, "Not Found", "HTTP 404 Not Found")
        if call.params.get("interval", "1d") != "1d":
            error = f"interval {call.params['interval']} is not served by the sandbox; 1d is."
            return _error("chart", 422, "Unprocessable Entity", error)
        for name in call.params.keys() - _SERVED:
            return _error("chart", 400, "Bad Request", f"{name} is not a parameter that the sandbox serves")
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
                series = self._charts.spark(instrument, spelled, call.now)
                members.append({"symbol": spelled, "response": [series]})
        if not members:
            return _error("spark", 404, "Not Found", "No data found for spark symbols")
        return _reply({"spark": {"result": members, "error": None}})

    def _chart(self, call: ProviderCall) -> Reply:
        instrument, spelled = self._find(call, call.symbols[0])
        if instrument is None:
            return self._unknown(spelled)
        try:
            first, last, is_whole = self._span(call.params, instrument, call.now)
        except ValueError as error:
            return _error("chart", 400, "Bad Request", str(error))
        if last < instrument.first_day:
            ends = f"startDate = {call.params['period1']}, endDate = {call.params['period2']}"
            return _error("chart", 400, "Bad Request", f"Data doesn't exist for {ends}")
        span = call.params.get("range", "1d") if is_whole else ""
        series = self._charts.chart(
            instrument, spelled, first, last, call.now, wanted=call.params.get("events", ""), span=span
        )
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
        instrument = of_yahoo(spelled)
        if instrument is None or not self._market.is_listed(instrument, call.now):
            return None, spelled
        return instrument, spelled

    def _span(
        self, params: Mapping[str, str], instrument: Instrument, now: datetime
    ) -> tuple[date, date, bool]:
        """First and last day asked for, in the exchange's zone, and whether as a `range`."""
        charts = self._charts
        today = charts.day_of(instrument, now)
        if "period1" not in params:
            name = params.get("range", "1d")
            if name not in RANGES:
                known = ", ".join(RANGES)
                raise ValueError(f"Invalid input - range={name} is not supported. Valid ranges: [{known}]")
            if name == "ytd":
                return date(today.year, 1, 1), today, True
            return today - timedelta(days=RANGES[name] - 1), today, True
        try:
            since, until = (
                datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(params[name]))
                for name in ("period1", "period2")
            )
        except (KeyError, ValueError, OverflowError):
            raise ValueError("period1 and period2 must be epoch seconds") from None
        first, last = charts.day_of(instrument, since), charts.day_of(instrument, until)
        # A day belongs to the span if its stamp does; both ends are included.
        late = charts.stamp(instrument, first, now) < int(params["period1"])
        early = charts.stamp(instrument, last, now) > int(params["period2"])
        return first + timedelta(days=late), last - timedelta(days=early), False


def _error(root: str, status: int, code: str, description: str) -> Reply:
    return _reply({root: {"result": None, "error": {"code": code, "description": description}}}, status)


def _reply(value: object, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value, separators=(",", ":")).encode(), JSON)
