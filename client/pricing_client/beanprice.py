"""A price source for beancount's `bean-price`, which a commodity names in its metadata.

For instance `price: "USD:pricing_client.beanprice/equity_daily:AAPL"`: a data type and a symbol. The variables
PRICES_URL (default http://127.0.0.1:8000) and PRICES_TOKEN say where prices are and who asks.
"""

from __future__ import annotations

import os
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from beanprice.source import SourcePrice

from pricing_client.client import PricingClient
from pricing_client.prices import Bar, Price

_DAYS_BACK = 14
"""How old the last value before a day may be: markets close for a week at most."""


class Source:
    """Reads stored prices. A price that is missing is asked for, and is there at the next run."""

    def get_latest_price(self, ticker: str) -> SourcePrice | None:
        """Return the latest price, dated by its trading day, or None if no price is stored yet."""
        data_type, symbol = _pair(ticker)
        with _client() as client:
            prices = client.prices((data_type, symbol)).prices
        return _priced(prices[0], prices[0].price) if prices else None

    def get_historical_price(self, ticker: str, time: datetime) -> SourcePrice | None:
        """The last price on or before the day of a time in the machine's zone, as traded; None if none is stored."""
        until = time.astimezone().date()
        series = self._series(ticker, until - timedelta(days=_DAYS_BACK), until)
        return series[-1] if series else None

    def get_prices_series(self, ticker: str, time_begin: datetime, time_end: datetime) -> list[SourcePrice] | None:
        """All prices between the days of two times, oldest first."""
        return self._series(ticker, time_begin.astimezone().date(), time_end.astimezone().date())

    def _series(self, ticker: str, first: date, last: date) -> list[SourcePrice]:
        data_type, symbol = _pair(ticker)
        with _client() as client:
            bars = client.history(data_type, symbol, first, last, adjust="raw")
        return [_priced(bar, bar.close) for bar in bars if bar.close is not None]


def _client() -> PricingClient:
    url = os.environ.get("PRICES_URL", "http://127.0.0.1:8000")
    token = os.environ.get("PRICES_TOKEN")
    if not token:
        raise ValueError("PRICES_TOKEN is not set. `pricing-pipeline token add` makes a token that may read.")
    return PricingClient(url, token)


def _pair(ticker: str) -> tuple[str, str]:
    data_type, _, symbol = ticker.partition(":")
    if not symbol:
        raise ValueError(f"the ticker {ticker!r} names no data type. Write it like equity_daily:AAPL")
    return data_type, symbol


def _priced(one: Price | Bar, price: Decimal) -> SourcePrice:
    """A price at noon of its trading day, or at its own time if it has none."""
    return SourcePrice(price, _noon(one.date) if one.date else one.observed_at, one.currency)


def _noon(day: date) -> datetime:
    """`bean-price` dates a price by the machine's zone, so only a time in this zone keeps the trading day."""
    return datetime.combine(day, time(12)).astimezone()
