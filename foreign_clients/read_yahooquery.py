"""What `yahooquery` reads: `read_yahooquery.py BASE_URL`, JSON to stdout. Its calls are moved."""

from __future__ import annotations

import json
import sys
from typing import Any

from curl_cffi import requests
from moved import YAHOO, move
from yahooquery import Ticker

(base_url,) = sys.argv[1:]
move(requests.Session, {YAHOO: base_url})


def bars(frame: Any) -> list[list[Any]]:
    names = ["open", "high", "low", "close", "adjclose", "volume"]
    return [[symbol, str(at), *(float(row[name]) for name in names)] for (symbol, at), row in frame.iterrows()]


history = Ticker("AAPL IBM").history(start="2005-02-22", end="2005-03-05")
found = {
    "bars": bars(history),
    "splits": {str(at): ratio for (_, at), ratio in history["splits"].items() if ratio},
    "quotes": Ticker("AAPL VOD.L EURUSD=X BTC-USD NOPE").quotes,
    "unknown": len(Ticker("NOPE").history(period="5d")),
}
print(json.dumps(found))
