"""A good answer of every provider for every fetcher, as a function of the values it is to hold.

The contract that all providers keep (unit/test_provider_contract.py) runs over these: a new provider adds its
samples here, and has the contract tested. How a dialect writes an answer is all that stands here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
"""A Friday. The samples' days lie in the two weeks before it."""
WINDOW = Window(date(2026, 11, 9), date(2026, 11, 19))
OF_QUOTES = int(NOW.timestamp()) - 60
"""When the samples' quotes were made: epoch seconds."""


@dataclass(frozen=True)
class Value:
    """One price of one symbol on one day. Anything may stand for a price, a currency or a stamp: see `literal`."""

    symbol: str
    day: date = date(2026, 11, 18)
    close: Any = "10.25"
    high: Any = "11.5"
    low: Any = "9.5"
    currency: Any = "USD"
    stamp: Any = OF_QUOTES


@dataclass(frozen=True)
class Sample:
    """One provider's answer to one question. `body` gets the symbols asked for and the values to answer with."""

    provider: str
    fetcher: Fetcher
    symbols: tuple[str, ...]
    """Three that it accepts."""
    strangers: tuple[str, ...]
    """Some that it does not."""
    body: Callable[[Sequence[str], Sequence[Value]], object]
    currency: str | None = "USD"
    """What its values are in; None where it does not say."""
    names_currency: bool = False
    """Its answers say what the prices are in."""
    says_range: bool = False
    """Its answers have a high and a low beside each price."""
    writes_text: bool = False
    """Its prices are JSON strings, never numbers."""
    names_symbol: bool = True
    """Its answers say whom they are about. Those of slots do not."""
    before: Callable[[Sequence[str], Sequence[Value]], object] | None = None
    """What a call asks for before this, and is answered."""
    is_latest: bool = False
    """Its daily values are asked for without a span: the latest of each symbol."""
    is_keyed_by_day: bool = False
    """Its days are the keys of an object, which has each of them once."""
    encode: Callable[[object], bytes] = lambda body: encoded(body)
    """How a body becomes bytes, where it is not JSON."""
    is_csv: bool = False
    """A part of its body is a body, too: no line knows how many there are."""
    is_positional: bool = False
    """Its values have no names, only an order."""
    keeps_text: bool = True
    """Its prices are written as they are stored."""
    also_prices: frozenset[str] = frozenset()
    """What is a price to it, and to no other, as `str` writes it."""

    @property
    def is_daily(self) -> bool:
        return self.fetcher in (Fetcher.DAILY_BARS, Fetcher.NAV) and not self.is_latest

    @property
    def window(self) -> Window | None:
        return WINDOW if self.is_daily or self.fetcher is Fetcher.SLOTS else None

    def first_bodies(self, asked: Sequence[str]) -> list[bytes]:
        return [] if self.before is None else [encoded(self.before(asked, ()))]

    def encoded(self, asked: Sequence[str], values: Sequence[Value]) -> bytes:
        return self.encode(self.body(asked, values))


def literal(text: str) -> str:
    """Text that stands in the JSON as it is, without quotes: NaN, 1e400."""
    return f"@@{text}@@"


def encoded(body: object) -> bytes:
    return re.sub(r'"@@(.*?)@@"', r"\1", json.dumps(body)).encode()


def number(value: object) -> object:
    """A price as a JSON number, where a dialect does not write it as text."""
    is_plain = isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value)
    return literal(str(value)) if is_plain else value


def epoch(day: date, hour: int) -> int:
    return int(datetime.combine(day, time(hour, 30), UTC).timestamp())


def _by_symbol(values: Sequence[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(value.symbol, []).append(value)
    return found


def _twelvedata(
    member: Callable[[str, list[Value]], object],
) -> Callable[[Sequence[str], Sequence[Value]], object]:
    def body(asked: Sequence[str], values: Sequence[Value]) -> object:
        members = {symbol: member(symbol, found) for symbol, found in _by_symbol(values).items()}
        return members if len(asked) > 1 else next(iter(members.values()), {})

    return body


def _twelvedata_quote(symbol: str, values: list[Value]) -> object:
    value = values[-1]
    return {
        "symbol": symbol,
        "exchange": "NASDAQ",
        "currency": value.currency,
        "datetime": str(NOW.date()),
        "timestamp": value.stamp,
        "open": "10.00000",
        "high": value.high,
        "low": value.low,
        "close": value.close,
    }


def _twelvedata_series(symbol: str, values: list[Value]) -> object:
    rows = [
        {
            "datetime": str(one.day),
            "open": None if one.close is None else "10.00000",
            "high": one.high,
            "low": one.low,
            "close": one.close,
            "volume": "100",
        }
        for one in values
    ]
    meta = {"symbol": symbol, "interval": "1day", "currency": values[-1].currency, "exchange": "NASDAQ"}
    return {"meta": meta, "values": rows, "status": "ok"}


def _mfapi(asked: Sequence[str], values: Sequence[Value]) -> object:
    symbol = values[-1].symbol if values else asked[0]
    return {
        "meta": {"scheme_code": literal(symbol), "scheme_name": "A fund", "fund_house": "A house"},
        "data": [{"date": f"{one.day:%d-%m-%Y}", "nav": one.close} for one in values],
        "status": "SUCCESS",
    }


def _mfapi_latest(asked: Sequence[str], values: Sequence[Value]) -> object:
    if len(asked) == 1:
        return _mfapi(asked, values)
    return [
        {
            "schemeCode": literal(one.symbol),
            "schemeName": "A fund",
            "nav": one.close,
            "date": f"{one.day:%d-%m-%Y}",
        }
        for one in values
    ]


def _yahoo_series(symbol: str, values: list[Value]) -> dict[str, object]:
    columns = {name: [number(getattr(one, name)) for one in values] for name in ("high", "low", "close")}
    today = NOW.date()
    opens = [None if one.close is None else 10 for one in values]
    return {
        "meta": {
            "currency": values[-1].currency,
            "symbol": symbol,
            "instrumentType": "EQUITY",
            "regularMarketTime": values[-1].stamp,
            "exchangeTimezoneName": "America/New_York",
            "regularMarketPrice": number(values[-1].close),
            "currentTradingPeriod": {"regular": {"start": epoch(today, 14), "end": epoch(today, 20)}},
            "dataGranularity": "1d",
        },
        "timestamp": [epoch(one.day, 14) for one in values],
        "indicators": {
            "quote": [columns | {"open": opens, "volume": [100] * len(values)}],
        },
    }


def _yahoo(asked: Sequence[str], values: Sequence[Value]) -> object:
    found = {symbol: _yahoo_series(symbol, of_it) for symbol, of_it in _by_symbol(values).items()}
    if len(asked) == 1:
        return {"chart": {"result": list(found.values()), "error": None}}
    members = [{"symbol": symbol, "response": [series]} for symbol, series in found.items()]
    return {"spark": {"result": members, "error": None}}


def _fmp_quote(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "symbol": one.symbol,
            "price": number(one.close),
            "dayLow": number(one.low),
            "dayHigh": number(one.high),
            "exchange": "NASDAQ",
            "timestamp": one.stamp,
        }
        for one in values
    ]


def _fmp_bars(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "symbol": one.symbol,
            "date": str(one.day),
            "open": None if one.close is None else 10,
            "high": number(one.high),
            "low": number(one.low),
            "close": number(one.close),
            "volume": 100,
        }
        for one in values
    ]


def _fmp_profile(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {"symbol": one.symbol, "companyName": "A company", "currency": "USD", "exchange": "NASDAQ"} for one in values
    ]


def _fmp_earnings(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "symbol": one.symbol,
            "date": str(one.day),
            "epsActual": 1.85,
            "epsEstimated": 1.77,
            "revenueActual": 102466000000,
            "revenueEstimated": None,
            "lastUpdated": "2026-11-01",
        }
        for one in values
    ]


def _fmp_income(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "symbol": one.symbol,
            "date": "2025-09-27",
            "reportedCurrency": "USD",
            "fiscalYear": "2025",
            "period": "FY",
            "revenue": 416161000000,
            "costOfRevenue": 220960000000,
            "grossProfit": 195201000000,
            "netIncome": 112010000000,
            "eps": 7.49,
        }
        for one in values
    ]


def _fmp_dividends(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [
        {
            "symbol": one.symbol,
            "date": "2025-08-11",
            "recordDate": "2025-08-11",
            "paymentDate": "2025-08-14",
            "declarationDate": "2025-07-31",
            "adjDividend": 0.26,
            "dividend": 0.26,
            "frequency": "Quarterly",
        }
        for one in values
    ]


def _fmp_splits(asked: Sequence[str], values: Sequence[Value]) -> object:
    return [{"symbol": one.symbol, "date": "2020-08-31", "numerator": 4, "denominator": 1} for one in values]


def _octo_product(asked: Sequence[str], values: Sequence[Value]) -> object:
    symbol = values[-1].symbol if values else asked[0]
    units = [
        {
            "id": "adult",
            "internalName": "Adult",
            "type": "ADULT",
            "restrictions": {"minAge": 13, "maxAge": 99, "paxCount": 1},
        }
    ]
    options = [{"id": "DEFAULT", "default": True, "internalName": "A tour", "units": units}]
    return {"id": symbol, "internalName": "A tour", "timeZone": "Europe/London", "options": options}


def _octo_slots(asked: Sequence[str], values: Sequence[Value]) -> object:
    prices = {"original": 1100, "retail": 1025, "net": 900, "currency": "GBP", "currencyPrecision": 2}
    return [
        {
            "id": f"{one.day}T09:00:00+00:00",
            "localDateTimeStart": f"{one.day}T09:00:00+00:00",
            "localDateTimeEnd": f"{one.day}T11:00:00+00:00",
            "utcCutoffAt": f"{one.day}T08:00:00Z",
            "allDay": False,
            "available": True,
            "status": "AVAILABLE",
            "vacancies": 7,
            "capacity": 10,
            "maxUnits": None,
            "unitPricing": [{"unitId": "adult", **prices, "includedTaxes": []}],
        }
        for one in values
    ]


def _headout_product(asked: Sequence[str], values: Sequence[Value]) -> object:
    symbol = values[-1].symbol if values else asked[0]
    city = {"name": "London", "code": "LONDON"}
    return {"id": literal(symbol), "name": "A tour", "city": city, "variants": [{"id": 17, "name": None}]}


def _headout_slots(asked: Sequence[str], values: Sequence[Value]) -> object:
    person = {"type": "ADULT", "name": "Adult", "ageFrom": 13, "ageTo": None}
    items = [
        {
            "id": str(1000 + number),
            "startDateTime": f"{one.day}T09:00:00",
            "endDateTime": f"{one.day}T11:00:00",
            "availability": "LIMITED",
            "remaining": 7,
            "pricing": {
                "persons": [{**person, "price": literal("10.25"), "originalPrice": 11}],
                "groups": [],
            },
        }
        for number, one in enumerate(values)
    ]
    return {"items": items, "nextUrl": None, "prevUrl": None, "total": len(items), "nextOffset": None}


_PRODUCTS, _NO_PRODUCTS = (
    ("OCT-1001", "OCT-1002", "6b903d44-dc24"),
    ("", " ", "..", "A/B", "A B", "A\n", "\u00c4", "A" * 65),
)
_TERMINALS, _NO_TERMINALS = ("12", "89", "75"), ("", "AAPL", "0", "1/../2", "-1", "1,2", "1" * 10)
_NUMBERS, _NO_NUMBERS = ("5001", "5002", "512"), ("", "OCT-1001", "-1", "1/2", "\u0661", "1" * 19)


def _uex(asked: Sequence[str], values: Sequence[Value]) -> object:
    rows = [
        {
            "id_terminal": literal(one.symbol),
            "id_commodity": 33,
            "commodity_name": "Gold",
            "commodity_code": "GOLD",
            "terminal_name": f"Terminal {one.symbol}",
            "price_buy": 0,
            "price_sell": 6173,
            "scu_buy": 0,
            "scu_sell": 1206,
            "status_sell": 4,
            "game_version": "4.1",
            "date_modified": OF_QUOTES,
        }
        for one in values
    ]
    return {"status": "ok", "http_code": 200, "message": "", "data": rows}


def _declared_quotes(asked: Sequence[str], values: Sequence[Value]) -> object:
    rows = [
        {
            "ticker": one.symbol,
            "last": number(one.close),
            "high": number(one.high),
            "low": number(one.low),
            "currency": one.currency,
            "at": one.stamp,
        }
        for one in values
    ]
    return {"quotes": rows}


def _declared_bars(asked: Sequence[str], values: Sequence[Value]) -> object:
    bars = [
        {
            "day": str(one.day),
            "open": None if one.close is None else 10,
            "high": number(one.high),
            "low": number(one.low),
            "close": number(one.close),
            "volume": 100,
        }
        for one in values
    ]
    last = values[-1] if values else Value(asked[0])
    return {"ticker": last.symbol, "currency": last.currency, "bars": bars}


def _frankfurter_span(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, _, quote = (values[-1].symbol if values else asked[0]).partition("/")
    days = sorted(str(one.day) for one in values) or [""]
    rates = {str(one.day): {quote: number(one.close)} for one in values}
    return {
        "amount": literal("1.0"),
        "base": base,
        "start_date": days[0],
        "end_date": days[-1],
        "rates": rates,
    }


def _frankfurter_latest(asked: Sequence[str], values: Sequence[Value]) -> object:
    base, _, quote = (values[-1].symbol if values else asked[0]).partition("/")
    return {
        "amount": literal("1.0"),
        "base": base,
        "date": str(values[-1].day),
        "rates": {quote: number(values[-1].close)},
    }


_SHARES = ("AAPL", "IBM", "MSFT")
_NO_SHARES = ("", " ", "A B", "A,B", "A\nB", "Ä", "A" * 65, "AAPL\0")
_SCHEMES = ("118632", "119551", "125497")
_NO_SCHEMES = ("", "AAPL", "0", "1/../2", "-1")
_PAIRS = ("EUR/USD", "GBP/USD", "CHF/USD")
_NO_PAIRS = ("", "EURUSD", "EUR/US", "eur/usd", "EUR/USD\n", "EUR/../USD", "EUR/USD/CHF")
SAMPLES = (
    Sample(
        "twelvedata",
        Fetcher.QUOTE,
        _SHARES,
        _NO_SHARES,
        _twelvedata(_twelvedata_quote),
        names_currency=True,
        says_range=True,
    ),
    Sample(
        *("twelvedata", Fetcher.DAILY_BARS, _SHARES, _NO_SHARES, _twelvedata(_twelvedata_series)),
        names_currency=True,
        says_range=True,
    ),
    Sample(
        *("mfapi", Fetcher.NAV, _SCHEMES, _NO_SCHEMES, _mfapi),
        currency="INR",
        writes_text=True,
    ),
    Sample(
        *("mfapi", Fetcher.NAV, _SCHEMES, _NO_SCHEMES, _mfapi_latest),
        currency="INR",
        writes_text=True,
        is_latest=True,
    ),
    Sample("yahoo", Fetcher.QUOTE, _SHARES, (*_NO_SHARES, "..", "A/B"), _yahoo, names_currency=True),
    Sample(
        "yahoo",
        Fetcher.DAILY_BARS,
        _SHARES,
        (*_NO_SHARES, "..", "A/B"),
        _yahoo,
        names_currency=True,
        says_range=True,
    ),
    Sample("fmp", Fetcher.QUOTE, _SHARES, _NO_SHARES, _fmp_quote, says_range=True),
    Sample("fmp", Fetcher.DAILY_BARS, _SHARES, _NO_SHARES, _fmp_bars, currency=None, says_range=True),
    Sample("fmp", Fetcher.PROFILE, _SHARES, _NO_SHARES, _fmp_profile),
    Sample("fmp", Fetcher.EARNINGS, _SHARES, _NO_SHARES, _fmp_earnings),
    Sample("fmp", Fetcher.INCOME_STATEMENT, _SHARES, _NO_SHARES, _fmp_income),
    Sample("fmp", Fetcher.DIVIDENDS, _SHARES, _NO_SHARES, _fmp_dividends),
    Sample("fmp", Fetcher.SPLITS, _SHARES, _NO_SHARES, _fmp_splits),
    Sample("octo", Fetcher.PRODUCT, _PRODUCTS, _NO_PRODUCTS, _octo_product),
    Sample(
        *("octo", Fetcher.SLOTS, _PRODUCTS, _NO_PRODUCTS, _octo_slots),
        names_symbol=False,
        before=_octo_product,
    ),
    Sample("headout", Fetcher.PRODUCT, _NUMBERS, _NO_NUMBERS, _headout_product),
    Sample(
        *("headout", Fetcher.SLOTS, _NUMBERS, _NO_NUMBERS, _headout_slots),
        names_symbol=False,
        before=_headout_product,
    ),
    Sample("uex", Fetcher.TERMINAL_PRICES, _TERMINALS, _NO_TERMINALS, _uex, currency=None),
    Sample(
        *("funds", Fetcher.NAV, _SCHEMES, _NO_SCHEMES, _mfapi),
        currency="INR",
        writes_text=True,
    ),
    Sample(
        *("funds", Fetcher.NAV, _SCHEMES, _NO_SCHEMES, _mfapi_latest),
        currency="INR",
        writes_text=True,
        is_latest=True,
    ),
    Sample(
        "shares",
        Fetcher.QUOTE,
        _SHARES,
        (*_NO_SHARES, ".."),
        _declared_quotes,
        names_currency=True,
        says_range=True,
    ),
    Sample(
        "shares",
        Fetcher.DAILY_BARS,
        _SHARES,
        (*_NO_SHARES, ".."),
        _declared_bars,
        names_currency=True,
        says_range=True,
    ),
    Sample("example_pages", Fetcher.DAILY_BARS, _SHARES, (*_NO_SHARES, ".."), _declared_bars, says_range=True),
    Sample("frankfurter", Fetcher.DAILY_BARS, _PAIRS, _NO_PAIRS, _frankfurter_span, is_keyed_by_day=True),
    Sample("frankfurter", Fetcher.DAILY_BARS, _PAIRS, _NO_PAIRS, _frankfurter_latest, is_latest=True),
)
