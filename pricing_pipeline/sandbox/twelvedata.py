"""Twelve Data: endpoints, batches, credits and refusals. `twelvedata_params` has the parameters, `_text` the JSON.

Charged is one credit per symbol, refused calls included; `/api_usage` is free. Where recordings are silent,
the choice is named at its place.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from pricing_pipeline.sandbox import twelvedata_params as parameters
from pricing_pipeline.sandbox import twelvedata_text as text
from pricing_pipeline.sandbox.calls import Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.keys import key_name
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.searching import matching_instruments
from pricing_pipeline.sandbox.settings import MOST_KEYS, SandboxSettings
from pricing_pipeline.sandbox.spellings import of_twelvedata
from pricing_pipeline.sandbox.twelvedata_params import Refused
from pricing_pipeline.sandbox.units import decimal_text

MOST_SYMBOLS = 120
MOST_FOUND, USUALLY_FOUND = 120, 30
CONTENT_TYPE = "application/json; charset=utf-8"

_SERVED_MINUTES = {"1min": 1, "5min": 5, "15min": 15, "30min": 30, "1h": 60}
_OFFERED = "1min, 5min, 15min, 30min, 45min, 1h, 2h, 4h, 8h, 1day, 1week, 1month"
_ABOUT = ("symbol_search", "technical_indicators", "api_usage")
"""Endpoints about the service. Its own client asks for the list of indicators first; the sandbox has none."""
_YEARS_KEPT = 1024  # rendered rows of one year take about 40 kB
_DAY_OF_ROW = slice(len('{"datetime":"'), len('{"datetime":"2000-01-01'))

Member = tuple[int, str]
"""HTTP-like code and JSON text of the answer for one symbol."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one key has used."""

    minute: UnitWindow
    day: UnitWindow


class TwelveData:
    """The provider as the accounts behind its keys see it."""

    name = "twelvedata"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._settings = settings
        self._style = settings.error_style
        self._market = market
        self._key = settings.twelvedata_key
        self._plans: dict[str, _Plan] = {}
        self._year_rows = lru_cache(_YEARS_KEPT)(self._render_year)
        self._members: dict[str, Callable[[Instrument, ProviderCall], Member]] = {
            "quote": self._quote,
            "price": self._price,
            "exchange_rate": self._exchange_rate,
            "time_series": self._time_series,
        }

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        key = params.get("apikey")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if key is None and scheme.lower() == "apikey":
            key = given.strip()
        asked = (part.strip() for part in params.get("symbol", "").split(","))
        return ProviderCall(endpoint, params, tuple(symbol for symbol in asked if symbol), key, now)

    def admit(self, call: ProviderCall) -> Admission:
        name = key_name(call.key, self._key)
        plan = None if name is None else self._plan(name)
        if plan is None:
            return Admission(0, self._reply(text.wrong_key(self._style)))
        units = 0 if call.endpoint == "api_usage" else max(len(call.symbols), 1)
        at = call.now.timestamp()
        used, used_today = plan.minute.charge(units, at), plan.day.charge(units, at)
        headers = {"Api-Credits-Used": str(used), "Api-Credits-Request": str(units)}
        if (left := plan.minute.left(used)) is not None:
            headers["Api-Credits-Left"] = str(left)
        refusal = None
        if units and plan.day.limit is not None and used_today > plan.day.limit:
            refusal = self._reply(text.out_of_credits("day", used_today, plan.day.limit))
        elif units and plan.minute.limit is not None and used > plan.minute.limit:
            refusal = self._reply(text.out_of_credits("minute", used, plan.minute.limit))
        return Admission(units, refusal, headers, is_over_limit=refusal is not None, key_name=name)

    def _plan(self, name: str) -> _Plan | None:
        """The windows of a key, as of an account of its own; None when there are too many keys."""
        plan = self._plans.get(name)
        if plan is None and len(self._plans) < MOST_KEYS:
            settings = self._settings
            sliding = settings.credit_window == "sliding"
            plan = self._plans[name] = _Plan(
                UnitWindow(settings.credits_per_minute, 60, sliding=sliding),
                UnitWindow(settings.credits_per_day, 86_400),
            )
        return plan

    def answer(self, call: ProviderCall) -> Reply:
        if call.endpoint not in (*self._members, *_ABOUT):
            served = ", ".join(f"/{name}" for name in (*self._members, *_ABOUT))
            error = f"/{call.endpoint} is not served by the sandbox. It serves {served}."
            return self._reply((404, text.error_text(404, error)))
        try:
            parameters.check(call.endpoint, call.params)
            if call.endpoint == "symbol_search":
                return self._reply((200, self._search(call)))
        except Refused as refusal:
            return self._reply((400, text.error_text(400, str(refusal))))
        if call.endpoint == "api_usage":
            return self._reply((200, self._usage(call)))
        if call.endpoint == "technical_indicators":
            return self._reply((200, '{"data":{},"status":"ok"}'))
        if len(call.symbols) > MOST_SYMBOLS:
            # Only the limit is documented, not the wording of its refusal.
            error = f"{len(call.symbols)} symbols were requested; a batch holds at most {MOST_SYMBOLS}."
            return self._reply((400, text.error_text(400, error)))
        if len(call.symbols) > 1:
            members = {symbol: self._member(symbol, call)[1] for symbol in call.symbols}
            body = ",".join(f"{json.dumps(symbol)}:{member}" for symbol, member in members.items())
            # By this header its own client knows an answer whose members may be errors.
            return replace(self._reply((200, f"{{{body}}}")), headers={"Is_batch": "true"})
        return self._reply(self._member(call.symbols[0] if call.symbols else "", call))

    def plan(self) -> dict[str, object]:
        return {
            "credits_per_minute": self._settings.credits_per_minute,
            "credits_per_day": self._settings.credits_per_day,
            "credit_window": self._settings.credit_window,
        }

    def reset(self) -> None:
        self._plans.clear()

    def _reply(self, member: Member) -> Reply:
        code, body = member
        return Reply(200 if self._style == "body" else code, body.encode(), CONTENT_TYPE)

    def _member(self, symbol: str, call: ProviderCall) -> Member:
        params = call.params
        listing = (params.get(name, "") for name in ("exchange", "mic_code", "country", "type"))
        instrument = of_twelvedata(call.answers.get(symbol, symbol), *listing)
        if instrument is None or not self._market.is_listed(instrument, call.now):
            interval = params.get("interval", "1day")
            return text.unknown_symbol(self._style, symbol, params.get("symbol", ""), interval)
        code, body = self._members[call.endpoint](instrument, call)
        return code, parameters.rounded(body, params)

    def _search(self, call: ProviderCall) -> str:
        """What a person gets who types part of a ticker or of a name."""
        query = call.params.get("symbol", "").strip()
        if not query:
            raise Refused("**symbol** parameter is missing")
        most = parameters.count(call.params, USUALLY_FOUND, MOST_FOUND)
        listed = (
            instrument
            for instrument in matching_instruments(query)
            if self._market.is_listed(instrument, call.now)
        )
        return text.search_text(list(listed)[:most])

    def _usage(self, call: ProviderCall) -> str:
        at = call.now.timestamp()
        plan = self._plans[key_name(call.key, self._key) or ""]
        usage: dict[str, object] = {
            "timestamp": call.now.strftime("%Y-%m-%d %H:%M:%S"),
            "current_usage": plan.minute.used(at),
            "plan_limit": plan.minute.limit,
        }
        if plan.day.limit is not None:  # plans without a daily cap do not mention one
            usage |= {"daily_usage": plan.day.used(at), "plan_daily_limit": plan.day.limit}
        return json.dumps(usage, separators=(",", ":"))

    def _quote(self, instrument: Instrument, call: ProviderCall) -> Member:
        quote = self._market.quote(instrument, call.now)
        stamps = (quote.stamped_at, quote.stamped_at)
        if self._settings.quote_stamps == "candle":
            last_second = quote.stamped_at if quote.is_open else quote.stamped_at - 1
            stamps = (quote.opened_at, last_second - last_second % 60)
        return 200, text.quote_text(instrument, quote, *stamps)

    def _price(self, instrument: Instrument, call: ProviderCall) -> Member:
        quote = self._market.quote(instrument, call.now)
        return 200, f'{{"price":"{decimal_text(quote.close)}"}}'

    def _exchange_rate(self, instrument: Instrument, call: ProviderCall) -> Member:
        if instrument.kind is Kind.EQUITY:
            return text.unknown_symbol(self._style, instrument.symbol, call.params.get("symbol", ""), "")
        quote = self._market.quote(instrument, call.now)
        return 200, text.rate_text(instrument.symbol, quote.close, quote.stamped_at)

    def _time_series(self, instrument: Instrument, call: ProviderCall) -> Member:
        interval = call.params.get("interval", "")
        try:
            if interval == "1day":
                rows = self._daily_rows(instrument, call)
            elif interval in _SERVED_MINUTES:
                rows = self._slice_rows(instrument, call, _SERVED_MINUTES[interval] * 60)
            elif interval in _OFFERED.split(", "):
                raise Refused(f"interval {interval} is not served by the sandbox; 1day and 1min to 1h are.")
            else:
                raise Refused(f"Invalid **interval** provided: {interval}. Supported intervals: {_OFFERED}")
        except Refused as error:
            meta = {"symbol": call.params.get("symbol", ""), "interval": interval, "exchange": ""}
            return 400, text.error_text(400, str(error), meta)
        if not rows:
            return text.no_data()
        if call.params.get("order", "desc").lower() != "asc":
            rows.reverse()
        return 200, text.series_text(instrument, interval, rows)

    def _daily_rows(self, instrument: Instrument, call: ProviderCall) -> list[str]:
        """Rows oldest first. Dates are trading days of the exchange whatever `timezone` says."""
        adjust = call.params.get("adjust", "splits").lower()
        if adjust not in ("splits", "none"):
            raise Refused(f"adjust={adjust} is not served by the sandbox; splits and none are.")
        split_adjusted = adjust == "splits"
        start, end, most = parameters.window(call.params, UTC, call.now)
        final = last = self._market.last_final_day(instrument, call.now)
        forming = self._market.forming_bar(instrument, call.now)
        if end is not None:
            last = min(last, end.date())
            if forming is not None and forming.day > end.date():
                forming = None
        # Enough days for `most` rows: weekends and holidays take less than a third of them.
        first = last - timedelta(days=most * 3 // 2 + 30)
        first = max(first, instrument.first_day, start.date() if start else date.min)
        rows = self._final_rows(instrument, first, last, final, split_adjusted)
        if forming is not None and (start is None or forming.day >= start.date()):
            rows.append(text.daily_row(instrument, forming, split_adjusted=split_adjusted))
        return rows[-most:]

    def _final_rows(
        self, instrument: Instrument, first: date, last: date, final: date, split_adjusted: bool
    ) -> list[str]:
        """Rows from `first` to `last`, cut from rendered years; `final` is the newest day that is over."""
        rows: list[str] = []
        for year in range(first.year, last.year + 1):
            known = self._year_rows(instrument, year, min(date(year, 12, 31), final), split_adjusted)
            rows += _clipped(known, first, last) if year in (first.year, last.year) else known
        return rows

    def _render_year(self, instrument: Instrument, year: int, until: date, split_adjusted: bool) -> list[str]:
        bars = self._market.final_bars(instrument, date(year, 1, 1), until)
        return [text.daily_row(instrument, bar, split_adjusted=split_adjusted) for bar in bars]

    def _slice_rows(self, instrument: Instrument, call: ProviderCall, seconds: int) -> list[str]:
        """Rows oldest first. A date alone means its midnight, at both ends."""
        zone = parameters.zone_of(call.params, instrument)
        start, end, most = parameters.window(call.params, zone, call.now)
        begin = start or datetime.combine(instrument.first_day, time(), UTC)
        slices = self._market.slices(instrument, seconds, begin, end or call.now, most, call.now)
        return [text.slice_row(instrument, row, zone) for row in slices]


def _clipped(rows: list[str], first: date, last: date) -> list[str]:
    """The rows, oldest first, whose day lies from `first` to `last`."""

    def day(row: str) -> str:
        return row[_DAY_OF_ROW]

    return rows[bisect_left(rows, str(first), key=day) : bisect_right(rows, str(last), key=day)]
