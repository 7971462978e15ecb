"""What two providers of OpenBB read: `read_openbb.py YAHOO_URL FMP_URL KEY`, JSON to stdout. Their calls are moved."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from typing import Any

import aiohttp
import yfinance
from curl_cffi import requests
from moved import YAHOO, move, moved
from openbb_fmp.models.equity_historical import FMPEquityHistoricalFetcher
from openbb_fmp.models.equity_quote import FMPEquityQuoteFetcher
from openbb_yfinance.models.equity_historical import YFinanceEquityHistoricalFetcher

yahoo_url, fmp_url, key = sys.argv[1:]
HOSTS = {YAHOO: yahoo_url, r"https://financialmodelingprep\.com": fmp_url}
move(requests.Session, HOSTS)
ask = aiohttp.ClientSession._request


async def request(self: Any, method: str, url: Any, **options: Any) -> Any:
    return await ask(self, method, moved(url, HOSTS), **options)


aiohttp.ClientSession._request = request  # type: ignore[method-assign]


async def fetched(fetcher: Any, **params: Any) -> list[dict[str, Any]]:
    rows = await fetcher.fetch_data(params, {"fmp_api_key": key})
    return [row.model_dump(mode="json", exclude_none=True) for row in rows]


async def failed(fetcher: Any, **params: Any) -> str:
    try:
        await fetched(fetcher, **params)
    except Exception as error:
        return type(error).__name__
    return ""


async def read() -> dict[str, Any]:
    span = {"start_date": "2005-02-22", "end_date": "2005-03-04"}
    return {
        "yahoo": await fetched(YFinanceEquityHistoricalFetcher, symbol="AAPL", **span),
        "fmp": await fetched(FMPEquityHistoricalFetcher, symbol="AAPL,IBM", **span),
        "quotes": await fetched(FMPEquityQuoteFetcher, symbol="AAPL,VOD.L"),
        "unknown": [
            await failed(YFinanceEquityHistoricalFetcher, symbol="NOPE", **span),
            await failed(FMPEquityHistoricalFetcher, symbol="NOPE", **span),
        ],
    }


with tempfile.TemporaryDirectory() as folder:
    yfinance.set_tz_cache_location(folder)
    print(json.dumps(asyncio.run(read())))
