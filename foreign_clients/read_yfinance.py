"""What the package `yfinance` reads: `read_yfinance.py BASE_URL`, JSON to stdout. Its calls are moved."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import yfinance
from curl_cffi import requests
from moved import YAHOO, move

(base_url,) = sys.argv[1:]
move(requests.Session, {YAHOO: base_url})


def bars(frame: Any) -> list[list[Any]]:
    names = ["Open", "High", "Low", "Close", "Adj Close", "Volume"]
    return [[at.isoformat(), *(row[name] for name in names)] for at, row in frame.iterrows()]


def events(column: Any) -> dict[str, float]:
    return {at.isoformat(): float(value) for at, value in column.items()}


with tempfile.TemporaryDirectory() as folder:
    yfinance.set_tz_cache_location(folder)
    yfinance.config.network.retries = 0
    apple, ibm = (yfinance.Ticker(symbol) for symbol in ("AAPL", "IBM"))
    span = {"start": "2005-02-22", "end": "2005-03-05", "auto_adjust": False}
    found: dict[str, Any] = {
        "bars": bars(apple.history(**span)),
        "adjusted": apple.history(**span | {"auto_adjust": True})["Close"].tolist(),
        "splits": events(apple.splits),
        "dividends": events(ibm.dividends),
        "quotes": {
            symbol: [
                one.last_price,
                one.regular_market_previous_close,
                one.currency,
                one.timezone,
                one.quote_type,
            ]
            for symbol in ("AAPL", "VOD.L", "EURUSD=X", "BTC-USD", "BHP.AX")
            for one in [yfinance.Ticker(symbol).fast_info]
        },
        "meta": {
            name: apple.history_metadata[name]
            for name in ("symbol", "currency", "exchangeTimezoneName", "validRanges", "regularMarketPrice")
        },
        "days": [at.isoformat() for at in yfinance.Ticker("BHP.AX").history(period="5d").index],
    }
    several = {"progress": False, "threads": False, **span}
    both = yfinance.download(["AAPL", "IBM"], **several)
    found["many"] = {symbol: both["Close"][symbol].tolist() for symbol in ("AAPL", "IBM")}
    # Refused calls make it try other ways of getting cookies, so they come last.
    found["unknown"] = len(yfinance.download(["NOPE", "NOPE.L"], **several))
print(json.dumps(found))
