"""What the package `fmpsdk` reads: `read_fmpsdk.py BASE_URL KEY`, JSON to stdout. Its address is a constant."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import fmpsdk.client

base_url, key = sys.argv[1:]
fmpsdk.client.BASE_URL = f"{base_url}/stable/"
fmp = fmpsdk.Client(api_key=key, max_retries=0)


def refusal(ask: Callable[[], object]) -> list[str]:
    try:
        return ["no refusal", str(ask())]
    except Exception as error:
        return [type(error).__name__, str(error)]


found = {
    "quote": fmp.quote.quote("AAPL"),
    "quotes": fmp.quote.batch_quote("AAPL,IBM,NOPE"),
    "profile": fmp.company.profile("AAPL"),
    "bars": fmp.chart.historical_price_eod_full("AAPL", from_="2005-02-22", to="2005-03-04"),
    "statements": fmp.statements.income_statement("IBM", limit=3, period="annual"),
    "dividends": fmp.calendar.dividends("IBM"),
    "splits": fmp.calendar.splits("AAPL"),
    "earnings": fmp.calendar.earnings("IBM", limit=4),
    "search": fmp.search.search_symbol("VOD"),
    "unknown": fmp.quote.quote("NOPE"),
    "endpoint": refusal(lambda: fmp.statements.income_statement("IBM", period="quarter")),
    "key": refusal(lambda: fmpsdk.Client(api_key="wrong", max_retries=0).quote.quote("AAPL")),
}
print(json.dumps(found))
