"""Financial Modeling Prep, `stable`: endpoints, plans and refusals. `fmp_company` makes up what companies report.

Charged is one call, refused ones included. Of the free plan: five symbols, no batches, five years of statements.
It has shares only. Where recordings are silent, the choice is named at its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import overload

from pricing_pipeline.sandbox import company_events as events
from pricing_pipeline.sandbox import fmp_company as company
from pricing_pipeline.sandbox.calls import Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.fmp_company import Digits, Row
from pricing_pipeline.sandbox.instruments import Instrument, Kind
from pricing_pipeline.sandbox.keys import key_name
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline.sandbox.searching import matching_instruments
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import MOST_KEYS, SandboxSettings
from pricing_pipeline.sandbox.spellings import for_fmp, of_fmp
from pricing_pipeline.sandbox.units import decimal_text, divided

MOST_SYMBOLS = 100
"""Most symbols of a batch; more are left out. Not documented: a cautious guess."""
YEARS = 5
"""Years of daily bars in one answer, up to its last day."""
FREE_STATEMENTS = 5

CONTENT_TYPE, TEXT = "application/json; charset=utf-8", "text/plain; charset=utf-8"
_SITE = "https://financialmodelingprep.com/"
_HELP = "https://site.financialmodelingprep.com/"
_SERVED = {
    "quote": {"symbol"},
    "batch-quote": {"symbols"},
    "historical-price-eod/full": {"symbol", "from", "to"},
    "profile": {"symbol"},
    "earnings": {"symbol", "limit"},
    "income-statement": {"symbol", "limit", "period"},
    "dividends": {"symbol", "limit"},
    "splits": {"symbol", "limit"},
    "search-symbol": {"query", "limit", "exchange"},
}
"""Parameters of each endpoint, beside the key."""
USUAL_STATEMENTS, USUALLY_FOUND, MOST_ROWS = 5, 50, 1000
_UPGRADE = (
    "is not available under your current subscription please visit our subscription page to upgrade your plan "
    f"at {_SITE}"
)

_LEGACY = (
    "Legacy Endpoint : Due to Legacy endpoints being no longer supported - This endpoint is only available for "
    "legacy users who have valid subscriptions prior August 31, 2025."
)


class _Refused(Exception):
    """What the provider does not answer: status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.reply = Reply(status, text.encode(), TEXT)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one key has used."""

    minute: UnitWindow
    day: UnitWindow


class Fmp:
    """The provider as the accounts behind its keys see it."""

    name = "fmp"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._settings = settings
        self._market = market
        self._plans: dict[str, _Plan] = {}
        self._average = lru_cache(10_000)(self._average_close)
        self._is_free = settings.fmp_plan == "free"
        self._makers: dict[str, Callable[[Instrument, ProviderCall], list[Row]]] = {
            "quote": self._quote,
            "batch-quote": self._quote,
            "historical-price-eod/full": self._bars,
            "profile": self._profile,
            "earnings": self._earnings,
            "income-statement": self._statements,
            "dividends": self._dividends,
            "splits": self._splits,
        }

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        # Its address ends with /stable; ours may, too.
        endpoint = endpoint.removeprefix("stable/")
        key = params.get("apikey") or headers.get("apikey")
        name = "symbols" if endpoint == "batch-quote" else "symbol"
        asked = (part.strip() for part in params.get(name, "").split(","))
        symbols = tuple(symbol for symbol in asked if symbol)
        return ProviderCall(endpoint, params, symbols, key, now)

    def admit(self, call: ProviderCall) -> Admission:
        name = key_name(call.key, self._settings.fmp_key)
        plan = None if name is None else self._plan(name)
        if plan is None:
            words = "Invalid API KEY. Please retry or visit our documentation to create one FREE"
            return Admission(0, _error(401, f"{words} {_HELP}developer/docs"))
        at = call.now.timestamp()
        is_over = plan.minute.is_over(plan.minute.charge(1, at)) | plan.day.is_over(plan.day.charge(1, at))
        words = "Limit Reach . Please upgrade your plan or visit our documentation for more details at"
        refusal = _error(429, f"{words} {_HELP}") if is_over else None
        return Admission(1, refusal, is_over_limit=is_over, key_name=name)

    def _plan(self, name: str) -> _Plan | None:
        """The windows of a key, as of an account of its own; None when there are too many keys."""
        plan = self._plans.get(name)
        if plan is None and len(self._plans) < MOST_KEYS:
            settings = self._settings
            plan = self._plans[name] = _Plan(
                UnitWindow(settings.fmp_calls_per_minute, 60, sliding=True),
                UnitWindow(settings.fmp_calls_per_day, 86_400),
            )
        return plan

    def answer(self, call: ProviderCall) -> Reply:
        # The address of before 2025 is below another root, but is what people try.
        if call.endpoint.startswith("api/v"):
            return _error(403, _LEGACY)
        if call.endpoint not in _SERVED:
            return Reply(404, b"[]", CONTENT_TYPE)
        try:
            self._check(call)
            if call.endpoint == "search-symbol":
                return Reply(200, _text(self._search(call)).encode(), CONTENT_TYPE)
            make, most = self._makers[call.endpoint], _limit(call, None)
            asked = call.symbols[:MOST_SYMBOLS]
            rows = [row for symbol in asked for row in self._rows(symbol, call, make)[:most]]
        except _Refused as refused:
            return refused.reply
        return Reply(200, _text(rows).encode(), CONTENT_TYPE)

    def plan(self) -> dict[str, object]:
        return {
            "plan": self._settings.fmp_plan,
            "calls_per_minute": self._settings.fmp_calls_per_minute,
            "calls_per_day": self._settings.fmp_calls_per_day,
        }

    def reset(self) -> None:
        self._plans.clear()

    def _check(self, call: ProviderCall) -> None:
        for name in call.params.keys() - {"apikey", *_SERVED[call.endpoint]}:
            raise _invalid(name)
        if call.endpoint == "search-symbol":
            return
        if not call.symbols:
            name = "symbols" if call.endpoint == "batch-quote" else "symbol"
            raise _invalid(name)
        if not self._is_free:
            return
        if call.endpoint == "batch-quote":
            raise _Refused(402, f"Restricted Endpoint: This endpoint {_UPGRADE}")
        if call.endpoint == "income-statement" and _limit(call, USUAL_STATEMENTS) > FREE_STATEMENTS:
            raise _gate("limit")
        # A list of symbols is a value that the plan does not have, as is each symbol beyond its own.
        if len(call.symbols) > 1 or call.symbols[0] not in SYMBOLS:
            raise _gate("symbol")

    def _rows(
        self, symbol: str, call: ProviderCall, make: Callable[[Instrument, ProviderCall], list[Row]]
    ) -> list[Row]:
        instrument = of_fmp(call.answers.get(symbol, symbol))
        if instrument is None:
            return []
        return make(instrument, call) if self._market.is_listed(instrument, call.now) else []

    def _search(self, call: ProviderCall) -> list[Row]:
        """Shares whose ticker or name fits, of one exchange if it is named."""
        query, exchange = call.params.get("query", "").strip(), call.params.get("exchange")
        if not query:
            raise _invalid("query")
        shares = [share for share in matching_instruments(query) if share.kind is Kind.EQUITY]
        shares = [share for share in shares if exchange in (None, share.venue.fmp_code)]
        return [
            {
                "symbol": for_fmp(share),
                "name": share.name,
                "currency": share.currency,
                "exchangeFullName": share.venue.yahoo_name,
                "exchange": share.venue.fmp_code,
            }
            for share in shares[: _limit(call, USUALLY_FOUND)]
        ]

    def _quote(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        quote = self._market.quote(instrument, call.now)
        change = quote.close - quote.previous_close
        return [
            {
                "symbol": for_fmp(instrument),
                "name": instrument.name,
                "price": _number(quote.close),
                "changePercentage": _number(change * 10_000_000 // quote.previous_close),
                "change": _number(change),
                "volume": quote.volume,
                "dayLow": _number(quote.low),
                "dayHigh": _number(quote.high),
                "yearHigh": _number(quote.year_high),
                "yearLow": _number(quote.year_low),
                "marketCap": company.shares(for_fmp(instrument)) * quote.close // 100_000,
                "priceAvg50": _number(self._average(instrument, quote.day, 50)),
                "priceAvg200": _number(self._average(instrument, quote.day, 200)),
                "exchange": instrument.venue.fmp_code,
                "open": _number(quote.open),
                "previousClose": _number(quote.previous_close),
                "timestamp": quote.stamped_at,
            }
        ]

    def _average_close(self, instrument: Instrument, day: date, days: int) -> int:
        """The mean of the last days before a day, divided by later splits; of a first day, its own value."""
        bars = self._market.final_bars(instrument, day - timedelta(days=2 * days), day)
        before = [bar for bar in bars if bar.day < day][-days:] or bars
        return sum(bar.prices.close // events.divisor(bar) for bar in before) // max(len(before), 1)

    def _bars(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        """Days that are over, newest first and adjusted for splits; both ends are included."""
        final = self._market.last_final_day(instrument, call.now)
        last = min(_day(call, "to") or final, final)
        earliest = last - timedelta(days=YEARS * 365 + YEARS // 4)
        first = max(_day(call, "from") or earliest, earliest)
        return [_bar(instrument, bar) for bar in reversed(self._market.final_bars(instrument, first, last))]

    def _profile(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        quote = self._market.quote(instrument, call.now)
        market: Row = {
            "price": _number(quote.close),
            "marketCap": company.shares(for_fmp(instrument)) * quote.close // 100_000,
            "range": f"{_number(quote.year_low)}-{_number(quote.year_high)}",
            "change": _number(quote.close - quote.previous_close),
            "changePercentage": _number(
                (quote.close - quote.previous_close) * 10_000_000 // quote.previous_close
            ),
            "volume": quote.volume,
            "averageVolume": quote.average_volume,
        }
        return [{"symbol": for_fmp(instrument), **market, **company.profile(instrument)}]

    def _earnings(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        return company.earnings(for_fmp(instrument), call.now.astimezone(UTC).date())

    def _statements(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        if call.params.get("period", "annual") not in ("annual", "FY"):
            raise _invalid("period")
        return company.statements(
            for_fmp(instrument), call.now.astimezone(UTC).date(), _limit(call, USUAL_STATEMENTS)
        )

    def _dividends(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        """All that were paid, newest first, and those of the next month, which are announced."""
        today = call.now.astimezone(instrument.zone).date()
        paid = events.dividends(self._market, instrument, instrument.first_day, today + timedelta(days=30))
        shares = self._splits_until(instrument, today)
        dividends: list[Row] = []
        for payment in reversed(paid):
            later = math.prod(split.ratio for split in shares if split.day > payment.day)
            dividends.append(
                {
                    "symbol": for_fmp(instrument),
                    "date": str(payment.day),
                    "recordDate": str(payment.day),
                    "paymentDate": str(payment.day + timedelta(days=21)),
                    "declarationDate": str(payment.day - timedelta(days=30)),
                    "adjDividend": _number(divided(payment.units, later)),
                    "dividend": _number(payment.units),
                    "yield": self._yield(instrument, payment, paid),
                    "frequency": "Quarterly",
                }
            )
        return dividends

    def _yield(self, instrument: Instrument, payment: events.Payment, paid: list[events.Payment]) -> Digits:
        """What a year's payments, this one the last, are of the close before it: in percent, with many digits."""
        year = [
            earlier.units
            for earlier in paid
            if timedelta(0) <= payment.day - earlier.day < timedelta(days=365)
        ]
        close = self._market.close_before(instrument, payment.day) or payment.units
        percent = sum(year) * 10**18 // close
        return Digits(f"{percent // 10**16}.{percent % 10**16:016d}".rstrip("0").rstrip("."))

    def _splits(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        today = call.now.astimezone(instrument.zone).date()
        return [
            {
                "symbol": for_fmp(instrument),
                "date": str(split.day),
                "numerator": split.ratio,
                "denominator": 1,
                "splitType": "stock-split",
            }
            for split in reversed(self._splits_until(instrument, today))
        ]

    def _splits_until(self, instrument: Instrument, last: date) -> list[events.Split]:
        # Only recorded days have splits, and those are the first ones.
        bars = self._market.final_bars(instrument, instrument.first_day, last)
        return events.splits(self._market, instrument, [bar for bar in bars if bar.recorded is not None])


def _bar(instrument: Instrument, bar: Bar) -> Row:
    split = events.divisor(bar)
    opened, high, low, close = (divided(price, split) for price in bar.prices[:4])
    return {
        "symbol": for_fmp(instrument),
        "date": str(bar.day),
        "open": _number(opened),
        "high": _number(high),
        "low": _number(low),
        "close": _number(close),
        "volume": bar.prices.volume * split,
        "change": _number(close - opened),
        "changePercent": _number((close - opened) * 10_000_000 // opened),
        "vwap": _number((opened + high + low + close) // 4),
    }


def _gate(parameter: str) -> _Refused:
    words = f"'Special Endpoint : This value set for '{parameter}' {_UPGRADE}"
    return _Refused(402, f"Premium Query Parameter: {words}")


def _invalid(name: str) -> _Refused:
    return _Refused(400, f"Query Error: Invalid or missing query parameter - {name}")


@overload
def _limit(call: ProviderCall, usual: int) -> int: ...
@overload
def _limit(call: ProviderCall, usual: None) -> int | None: ...
def _limit(call: ProviderCall, usual: int | None) -> int | None:
    """How many rows are asked for; None for all there are."""
    given = call.params.get("limit")
    if given is None:
        return usual
    if not given.isdecimal() or not 1 <= int(given) <= MOST_ROWS:
        raise _invalid("limit")
    return int(given)


def _day(call: ProviderCall, name: str) -> date | None:
    text = call.params.get(name)
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise _invalid(name) from None


def _error(status: int, words: str) -> Reply:
    return Reply(status, json.dumps({"Error Message": words}, indent=2).encode(), CONTENT_TYPE)


def _text(rows: list[Row]) -> str:
    return "[" + ",".join(_row(row) for row in rows) + "]"


def _row(row: Row) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{_value(value)}" for name, value in row.items()) + "}"


def _value(value: object) -> str:
    return value if isinstance(value, Digits) else json.dumps(value)


def _number(units: int) -> Digits:
    return Digits(decimal_text(units).rstrip("0").rstrip("."))
