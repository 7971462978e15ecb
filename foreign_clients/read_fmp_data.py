"""What the package `fmp-data` reads: `read_fmp_data.py BASE_URL KEY`, JSON to stdout. It adds `/stable` itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from fmp_data import ClientConfig, FMPDataClient, RateLimitConfig
from pydantic import BaseModel

base_url, key = sys.argv[1:]


def client(api_key: str) -> FMPDataClient:
    calm = RateLimitConfig(daily_limit=10_000, requests_per_second=1000, requests_per_minute=10_000)
    return FMPDataClient(config=ClientConfig(api_key=api_key, base_url=base_url, rate_limit=calm, max_retries=1))


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [plain(one) for one in value] if isinstance(value, list) else value


def refusal(ask: Callable[[], object]) -> str:
    try:
        return f"no refusal: {ask()}"
    except Exception as error:
        return type(error).__name__


with client(key) as fmp, client("wrong") as stranger:
    found = {
        "quote": plain(fmp.company.get_quote("AAPL")),
        "abroad": plain(fmp.company.get_quote("VOD.L")),
        "quotes": plain(fmp.batch.get_quotes(["AAPL", "IBM", "NOPE"])),
        "profile": plain(fmp.company.get_profile("AAPL")),
        "bars": plain(fmp.company.get_historical_prices("AAPL", from_date=date(2005, 2, 22), to_date=date(2005, 3, 4))),
        "statements": plain(fmp.fundamental.get_income_statement("IBM", limit=3)),
        "dividends": plain(fmp.company.get_dividends("IBM")),
        "splits": plain(fmp.company.get_stock_splits("AAPL")),
        "earnings": plain(fmp.company.get_earnings("IBM")),
        "search": plain(fmp.market.search_symbol("VOD")),
        "unknown": refusal(lambda: fmp.company.get_quote("NOPE")),
        "key": refusal(lambda: stranger.company.get_quote("AAPL")),
    }
print(json.dumps(found))
