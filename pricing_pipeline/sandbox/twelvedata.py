"""Twelve Data: endpoints, batches, credits, refusals, and its JSON, in which numbers are texts of fixed decimals.

Charged is one credit per symbol, refused calls included. Shapes and wordings are those of
recorded answers (2021 to 2026). Where recordings are silent, the choice is named at its place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta

from pricing_pipeline.sandbox.calls import Dialect, Invalid, ProviderCall, Reply, bearer, listed
from pricing_pipeline.sandbox.instruments import Instrument, Kind, matching_instruments
from pricing_pipeline.sandbox.limits import Charge, Plan
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.spellings import TYPES, of_twelvedata
from pricing_pipeline.sandbox.units import CENT, UNITS, decimal_text, divided

_MOST_ROWS, _USUAL_ROWS = 5000, 30
_MOST_FOUND, _USUALLY_FOUND = 120, 30
_CONTENT_TYPE = "application/json; charset=utf-8"
_PRICING = "https://twelvedata.com/pricing"

Member = dict[str, object]


class TwelveData(Dialect):
    name = "twelvedata"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        per_minute, per_day = settings.credits_per_minute, settings.credits_per_day
        super().__init__(Plan(settings.key, per_minute, per_day))
        self._market = market
        self._members: dict[str, Callable[[Instrument, ProviderCall], Member]] = {
            "quote": self._quote,
            "price": self._price,
            "time_series": self._time_series,
        }
        self._services: dict[str, Callable[[ProviderCall], Member]] = {
            "symbol_search": self._search,
            # Its own client asks for the list of indicators first; the sandbox has none.
            "technical_indicators": lambda call: {"data": {}, "status": "ok"},
        }

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        return listed(params.get("symbol", ""))

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        return params.get("apikey") or bearer(headers, "apikey")

    def invalid(self, name: str, given: str) -> Reply:
        return _refusal(400, f"Invalid **{name}** provided: {given}")

    def units(self, call: ProviderCall) -> int:
        return max(len(call.symbols), 1)

    def limit_headers(self, charge: Charge) -> Mapping[str, str]:
        headers = {"Api-Credits-Used": str(charge.in_minute), "Api-Credits-Request": str(charge.units)}
        left = self.plan.left_in_minute(charge)
        return headers if left is None else headers | {"Api-Credits-Left": str(left)}

    def wrong_key(self, call: ProviderCall) -> Reply:
        return _refusal(
            401,
            "**apikey** parameter is incorrect or not specified. You can get your free API key instantly following "
            f"this link: {_PRICING}. If you believe that everything is correct, you can contact us at "
            "https://twelvedata.com/contact/customer",
        )

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        if charge.exceeds == "day":
            used, limit, when = charge.in_day, self.plan.per_day, "the day"
        else:
            used, limit, when = charge.in_minute, self.plan.per_minute, "the current minute"
        return _refusal(
            429,
            f"You have run out of API credits for {when}. {used} API credits were used, with the current limit "
            f"being {limit}. Wait for the next {charge.exceeds} or consider switching to a higher tier plan at "
            f"{_PRICING}",
        )

    def answered(self, call: ProviderCall) -> Reply:
        if service := self._services.get(call.endpoint):
            return _reply(service(call))
        if call.endpoint not in self._members:
            served = ", ".join(f"/{name}" for name in (*self._members, *self._services))
            return _refusal(404, f"/{call.endpoint} is not served by the sandbox. It serves {served}.")
        if len(call.symbols) > 1:
            members = {symbol: self._member(symbol, call) for symbol in call.symbols}
            # By this header its own client knows an answer whose members may be errors.
            return replace(_reply(members), headers={"Is_batch": "true"})
        member = self._member(call.symbols[0] if call.symbols else "", call)
        code = member.get("code", 200)
        return _reply(member, code if isinstance(code, int) else 200)

    def _member(self, symbol: str, call: ProviderCall) -> Member:
        params = call.params
        listing = (params.get(name, "") for name in ("exchange", "mic_code", "country", "type"))
        instrument = of_twelvedata(call.answers.get(symbol, symbol), *listing)
        if instrument is None or not self._market.is_listed(instrument, call.now):
            return _unknown_symbol()
        return self._members[call.endpoint](instrument, call)

    def _search(self, call: ProviderCall) -> Member:
        """The matches for part of a ticker or of a name. Pairs have their quote currency there."""
        query = call.params.get("symbol", "").strip()
        if not query:
            raise Invalid("symbol")
        found = [one for one in matching_instruments(query) if self._market.is_listed(one, call.now)]
        rows = [
            {
                "symbol": one.symbol,
                "instrument_name": one.name,
                "exchange": one.exchange,
                "mic_code": one.mic_code,
                "exchange_timezone": one.zone.key,
                "instrument_type": TYPES[one.kind],
                "country": one.venue.country,
                "currency": one.currency,
            }
            for one in found[: call.whole("outputsize", _USUALLY_FOUND, _MOST_FOUND, least=1)]
        ]
        return {"data": rows, "status": "ok"}

    def _quote(self, instrument: Instrument, call: ProviderCall) -> Member:
        """Pairs have no currency, MIC code or volume."""
        quote = self._market.quote(instrument, call.now)
        is_share = instrument.kind is Kind.EQUITY
        return {
            "symbol": instrument.symbol,
            "name": instrument.name,
            "exchange": instrument.exchange,
            **({"mic_code": instrument.mic_code, "currency": instrument.currency} if is_share else {}),
            "datetime": str(quote.day),
            "timestamp": quote.stamped_at,
            "last_quote_at": quote.stamped_at,
            "open": decimal_text(quote.open),
            "high": decimal_text(quote.high),
            "low": decimal_text(quote.low),
            "close": decimal_text(quote.close),
            **({"volume": str(quote.volume)} if is_share else {}),
            "previous_close": decimal_text(quote.previous_close),
            "change": decimal_text(quote.close - quote.previous_close),
            "percent_change": _percent(quote.close, quote.previous_close),
            "average_volume": str(quote.average_volume),
            "is_market_open": quote.is_open,
        }

    def _price(self, instrument: Instrument, call: ProviderCall) -> Member:
        return {"price": decimal_text(self._market.quote(instrument, call.now).close)}

    def _time_series(self, instrument: Instrument, call: ProviderCall) -> Member:
        interval = call.params.get("interval", "")
        if interval != "1day":
            raise Invalid("interval", interval)
        bars = self._bars(instrument, call)
        if not bars:
            words = "No data is available on the specified dates. Try setting different start/end dates."
            return _error(400, words)
        if call.params.get("order", "desc").lower() != "asc":
            bars.reverse()
        is_adjusted = call.params.get("adjust", "splits").lower() == "splits"
        return {
            "meta": _meta(instrument),
            "values": [_row(instrument, bar, is_adjusted=is_adjusted) for bar in bars],
            "status": "ok",
        }

    def _bars(self, instrument: Instrument, call: ProviderCall) -> list[Bar]:
        """The newest of the days asked for, oldest first. 30 unless a date is given, as documented."""
        start, end = call.day("start_date"), call.day("end_date")
        usual = _USUAL_ROWS if start is None and end is None else _MOST_ROWS
        most = call.whole("outputsize", usual, _MOST_ROWS, least=1)
        last = self._market.last_final_day(instrument, call.now)
        last = last if end is None else min(last, end)
        # Enough days for `most` rows: weekends and holidays take less than a third of them.
        first = max(last - timedelta(days=most * 3 // 2 + 30), start or date.min)
        bars = self._market.final_bars(instrument, first, last)
        forming = self._market.forming_bar(instrument, call.now)
        if forming is not None and (start or date.min) <= forming.day <= (end or date.max):
            bars.append(forming)
        return bars[-most:]


def _percent(close: int, base: int) -> str:
    """How much higher `close` is than `base`, in percent with five decimals, cut off."""
    share = abs(close - base) * 100 * UNITS // base if base else 0
    return decimal_text(-share if close < base else share)


def _meta(instrument: Instrument) -> Member:
    meta: Member = {"symbol": instrument.symbol, "interval": "1day"}
    if instrument.kind is Kind.EQUITY:
        meta |= {"currency": instrument.currency, "exchange_timezone": instrument.zone.key}
        meta |= {"exchange": instrument.exchange, "mic_code": instrument.mic_code}
    else:
        meta |= {"currency_base": instrument.base, "currency_quote": instrument.quote}
        if instrument.kind is Kind.CRYPTO:
            meta["exchange"] = instrument.exchange
    return meta | {"type": TYPES[instrument.kind]}


def _row(instrument: Instrument, bar: Bar, *, is_adjusted: bool) -> Member:
    """One day. Unadjusted days keep their source's own spelling, to the last digit."""
    recorded, split = bar.recorded, 1
    if recorded is None:
        texts = [decimal_text(price) for price in bar.prices[:4]]
        if instrument.tick == CENT and not is_adjusted:
            texts = [text[:-3] for text in texts]
    elif is_adjusted:
        split = recorded.split
        texts = [decimal_text(divided(price, split)) for price in bar.prices[:4]]
    else:
        texts = [recorded.open, recorded.high, recorded.low, recorded.close]
    row: Member = {
        "datetime": str(bar.day),
        **dict(zip(("open", "high", "low", "close"), texts, strict=True)),
    }
    return row | {"volume": str(bar.prices.volume * split)} if instrument.kind is Kind.EQUITY else row


def _error(code: int, message: str) -> Member:
    """An error, alone or as a member of a batch."""
    return {"code": code, "message": message, "status": "error"}


def _unknown_symbol() -> Member:
    return _error(
        404,
        "**symbol** or **figi** parameter is missing or invalid. Please provide a valid symbol according to "
        "API documentation: https://twelvedata.com/docs#reference-data",
    )


def _refusal(code: int, message: str) -> Reply:
    return _reply(_error(code, message), code)


def _reply(value: Mapping[str, object], status: int = 200) -> Reply:
    return Reply(status, json.dumps(value, separators=(",", ":")).encode(), _CONTENT_TYPE)
