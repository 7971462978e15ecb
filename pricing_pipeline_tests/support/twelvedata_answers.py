"""Answers as Twelve Data sends them, made for a test, and what is read of them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.twelvedata import TwelveData

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
PROVIDER = TwelveData()
QUOTE, BARS = Fetcher.QUOTE, Fetcher.DAILY_BARS


def parse(
    body: object,
    symbols: list[str],
    fetcher: Fetcher = Fetcher.QUOTE,
    window: Window | None = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Response(status, headers or {}, raw, len(raw))
    answer = PROVIDER.parse(Question(fetcher, symbols, window, NOW), response)
    return check_answer("twelvedata", symbols, answer)


def bar(day: str = "2026-11-19", **changes: Any) -> dict[str, Any]:
    return {
        "datetime": day,
        "open": "10.00000",
        "high": "12.00000",
        "low": "9.50000",
        "close": "11.12340",
        "volume": "100",
    } | changes


def series(*bars: dict[str, Any], symbol: str = "AAPL", **meta: Any) -> dict[str, Any]:
    full = {"symbol": symbol, "interval": "1day", "currency": "USD", "exchange": "NASDAQ", **meta}
    return {
        "meta": {name: value for name, value in full.items() if value is not ...},
        "values": list(bars),
        "status": "ok",
    }


NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 30))
