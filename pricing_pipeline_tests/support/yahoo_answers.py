"""Answers as Yahoo Finance sends them, made for a test, and what is read of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.yahoo import Yahoo

PROVIDER = Yahoo()
CALM = {"2026-11-18T09:30": 10, "2026-11-19T09:30": 11}
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
NEW_YORK, SYDNEY = ZoneInfo("America/New_York"), ZoneInfo("Australia/Sydney")


def stamp(text: str, zone: ZoneInfo = NEW_YORK) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


def meta(symbol: str = "AAPL", **changes: Any) -> dict[str, Any]:
    """A share that was last traded on Thursday at the closing bell; Friday's session has not begun."""
    full = {
        "currency": "USD",
        "symbol": symbol,
        "instrumentType": "EQUITY",
        "regularMarketTime": stamp("2026-11-19T16:00:01"),
        "exchangeTimezoneName": "America/New_York",
        "regularMarketPrice": 244.87,
        "priceHint": 2,
        "currentTradingPeriod": {"regular": {"start": stamp("2026-11-20T09:30"), "end": stamp("2026-11-20T16:00")}},
        "dataGranularity": "1d",
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


def chart(
    closes: dict[str, Any],
    zone: ZoneInfo = NEW_YORK,
    splits: Any = None,
    dividends: Any = None,
    gains: Any = None,
    **changes: Any,
) -> dict[str, Any]:
    """Bars by their opening time. A payment is its day and cash, and its currency if the event names one."""
    values = list(closes.values())
    series = {
        "meta": meta(**changes),
        "timestamp": [stamp(at, zone) for at in closes],
        "indicators": {
            "quote": [dict.fromkeys(("open", "high", "low", "close"), values) | {"volume": [400] * len(values)}]
        },
    }
    events: dict[str, Any] = {}
    if splits is not None:
        events["splits"] = {
            str(stamp(day)): {"date": stamp(day), "numerator": new, "denominator": old} for day, new, old in splits
        }
    for name, payments in (("dividends", dividends), ("capitalGains", gains)):
        if payments is not None:
            events[name] = {
                str(stamp(day) + n): {"date": stamp(day), "amount": cash} | dict.fromkeys(["currency"], *named)
                if named
                else {"date": stamp(day), "amount": cash}
                for n, (day, cash, *named) in enumerate(payments)
            }
    if events:
        series["events"] = events
    return {"chart": {"result": [series], "error": None}}


def parse(
    body: object,
    symbols: tuple[str, ...] = ("AAPL",),
    fetcher: Fetcher = Fetcher.DAILY_BARS,
    window: Window | None = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = PROVIDER.parse(Question(fetcher, symbols, window, NOW), Response(status, headers or {}, raw, len(raw)))
    return check_answer("yahoo", symbols, answer)


def closes(answer: Answer) -> dict[str, str]:
    return {str(one.observed_at.date()): str(one.close) for one in answer.observations}


def kinds(answer: Answer) -> dict[str, FailureKind]:
    return {one.symbol: one.kind for one in answer.failures}
