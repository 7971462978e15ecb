"""Financial Modeling Prep, `stable`: endpoints, plans and refusals. `fmp_company` makes up what companies report.

Charged is one call, refused ones included. Of the free plan: five symbols, no batches, five years of statements.
It has shares only. Where recordings are silent, the choice is named at its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, timedelta

from pricing_pipeline.sandbox import company_events as events
from pricing_pipeline.sandbox import fmp_company as company
from pricing_pipeline.sandbox.calls import Dialect, Invalid, ProviderCall, Refused, Reply, json_reply, listed
from pricing_pipeline.sandbox.fmp_company import Row
from pricing_pipeline.sandbox.instruments import Instrument, Kind, matching_instruments
from pricing_pipeline.sandbox.limits import Charge, Plan
from pricing_pipeline.sandbox.prices import Market, Quote
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.spellings import for_fmp, of_fmp
from pricing_pipeline.sandbox.units import divided, number

YEARS = 5
"""Years of daily bars in one answer, up to its last day."""
FREE_STATEMENTS = 5
USUAL_STATEMENTS, USUALLY_FOUND, MOST_ROWS = 5, 50, 1000

_CONTENT_TYPE = "application/json; charset=utf-8"
_HELP = "https://site.financialmodelingprep.com/"
_UPGRADE = (
    "is not available under your current subscription please visit our subscription page to upgrade your plan "
    "at https://financialmodelingprep.com/"
)


class Fmp(Dialect):
    name = "fmp"
    roots = ("stable/",)

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        per_minute, per_day = settings.fmp_calls_per_minute, settings.fmp_calls_per_day
        super().__init__(Plan(settings.key, per_minute, per_day))
        self._market = market
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

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        return listed(params.get(_asks_by(endpoint), ""))

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        return params.get("apikey") or headers.get("apikey")

    def invalid(self, name: str, given: str) -> Reply:
        return _in_words(400, f"Query Error: Invalid or missing query parameter - {name}")

    def wrong_key(self, call: ProviderCall) -> Reply:
        words = "Invalid API KEY. Please retry or visit our documentation to create one FREE"
        return _error(401, f"{words} {_HELP}developer/docs")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        words = "Limit Reach . Please upgrade your plan or visit our documentation for more details at"
        return _error(429, f"{words} {_HELP}")

    def answered(self, call: ProviderCall) -> Reply:
        if call.endpoint == "search-symbol":
            return _rows(self._search(call))
        make, most = self._makers.get(call.endpoint), _limit(call)
        if make is None:
            return replace(_rows([]), status=404)
        self._check(call)
        rows = [row for symbol in call.symbols for row in self._made(symbol, call, make)[:most]]
        return _rows(rows)

    def _check(self, call: ProviderCall) -> None:
        """Refuse a call that names no symbol, and what the free plan does not have."""
        if not call.symbols:
            raise Invalid(_asks_by(call.endpoint))
        if not self._is_free:
            return
        if call.endpoint == "batch-quote":
            raise _refused(f"Restricted Endpoint: This endpoint {_UPGRADE}")
        if call.endpoint == "income-statement" and (_limit(call) or USUAL_STATEMENTS) > FREE_STATEMENTS:
            raise _gate("limit")
        # A list of symbols is a value that the plan does not have, as is each symbol beyond its own.
        if len(call.symbols) > 1 or call.symbols[0] not in SYMBOLS:
            raise _gate("symbol")

    def _made(
        self, symbol: str, call: ProviderCall, make: Callable[[Instrument, ProviderCall], list[Row]]
    ) -> list[Row]:
        instrument = of_fmp(call.answers.get(symbol, symbol))
        if instrument is None or not self._market.is_listed(instrument, call.now):
            return []
        return [{"symbol": for_fmp(instrument), **row} for row in make(instrument, call)]

    def _search(self, call: ProviderCall) -> list[Row]:
        """Shares whose ticker or name fits, of one exchange if it is named."""
        query, exchange = call.params.get("query", "").strip(), call.params.get("exchange")
        if not query:
            raise Invalid("query")
        shares = [share for share in matching_instruments(query) if share.kind is Kind.EQUITY]
        rows: list[Row] = [
            {
                "symbol": for_fmp(share),
                "name": share.name,
                "currency": share.currency,
                "exchangeFullName": share.venue.name,
                "exchange": share.exchange,
            }
            for share in shares
            if exchange in (None, share.exchange)
        ]
        return rows[: _limit(call) or USUALLY_FOUND]

    def _quote(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        quote = self._market.quote(instrument, call.now)
        return [
            {
                "name": instrument.name,
                **_changes(instrument, quote),
                "dayLow": number(quote.low),
                "dayHigh": number(quote.high),
                "yearHigh": number(quote.year_high),
                "yearLow": number(quote.year_low),
                "exchange": instrument.exchange,
                "open": number(quote.open),
                "previousClose": number(quote.previous_close),
                "timestamp": quote.stamped_at,
            }
        ]

    def _bars(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        """Days that are over, newest first and adjusted for splits; both ends are included."""
        final = self._market.last_final_day(instrument, call.now)
        last = min(call.day("to") or final, final)
        earliest = last - timedelta(days=YEARS * 365 + YEARS // 4)
        first = max(call.day("from") or earliest, earliest)
        return [_bar(bar) for bar in reversed(self._market.final_bars(instrument, first, last))]

    def _profile(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        quote = self._market.quote(instrument, call.now)
        return [_changes(instrument, quote) | company.profile(instrument)]

    def _earnings(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        return company.earnings(for_fmp(instrument), call.now.astimezone(UTC).date())

    def _statements(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        if call.params.get("period", "annual") not in ("annual", "FY"):
            raise Invalid("period")
        today, most = call.now.astimezone(UTC).date(), _limit(call) or USUAL_STATEMENTS
        return company.statements(for_fmp(instrument), today, most)

    def _dividends(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        """All that were paid, newest first, and those of the next month, which are announced."""
        today = call.now.astimezone(instrument.zone).date()
        paid = events.dividends(self._market, instrument, instrument.first_day, today + timedelta(days=30))
        splits = events.all_splits(self._market, instrument, today)
        rows: list[Row] = []
        for payment in reversed(paid):
            later = math.prod(split.ratio for split in splits if split.day > payment.day)
            year = [one.units for one in paid if timedelta(0) <= payment.day - one.day < timedelta(days=365)]
            close = self._market.close_before(instrument, payment.day) or payment.units
            rows.append(
                {
                    "date": str(payment.day),
                    "recordDate": str(payment.day),
                    "paymentDate": str(payment.day + timedelta(days=21)),
                    "declarationDate": str(payment.day - timedelta(days=30)),
                    "adjDividend": number(divided(payment.units, later)),
                    "dividend": number(payment.units),
                    "yield": sum(year) * 100 / close,
                    "frequency": "Quarterly",
                }
            )
        return rows

    def _splits(self, instrument: Instrument, call: ProviderCall) -> list[Row]:
        today = call.now.astimezone(instrument.zone).date()
        return [
            {"date": str(one.day), "numerator": one.ratio, "denominator": 1, "splitType": "stock-split"}
            for one in reversed(events.all_splits(self._market, instrument, today))
        ]


def _asks_by(endpoint: str) -> str:
    """The parameter that names what is asked for."""
    return "symbols" if endpoint == "batch-quote" else "symbol"


def _changes(instrument: Instrument, quote: Quote) -> Row:
    """The fields that quotes and profiles share."""
    change = quote.close - quote.previous_close
    return {
        "price": number(quote.close),
        "changePercentage": number(change * 10_000_000 // quote.previous_close),
        "change": number(change),
        "volume": quote.volume,
        "marketCap": company.shares(for_fmp(instrument)) * quote.close // 100_000,
    }


def _bar(bar: Bar) -> Row:
    split = events.divisor(bar)
    opened, high, low, close = (divided(price, split) for price in bar.prices[:4])
    return {
        "date": str(bar.day),
        "open": number(opened),
        "high": number(high),
        "low": number(low),
        "close": number(close),
        "volume": bar.prices.volume * split,
    }


def _limit(call: ProviderCall) -> int | None:
    """How many rows are asked for; None if it is not said."""
    return call.whole("limit", 0, MOST_ROWS, least=1) if "limit" in call.params else None


def _in_words(status: int, words: str) -> Reply:
    return Reply(status, words.encode(), "text/plain; charset=utf-8")


def _refused(words: str) -> Refused:
    return Refused(_in_words(402, words))


def _gate(parameter: str) -> Refused:
    words = f"'Special Endpoint : This value set for '{parameter}' {_UPGRADE}"
    return _refused(f"Premium Query Parameter: {words}")


def _error(status: int, words: str) -> Reply:
    return Reply(status, json.dumps({"Error Message": words}, indent=2).encode(), _CONTENT_TYPE)


def _rows(rows: list[Row]) -> Reply:
    return replace(json_reply(rows), content_type=_CONTENT_TYPE)
