"""What `yahooquery` reads: `read_yahooquery.py BASE_URL`, JSON to stdout. A session of its own kind moves its calls."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from curl_cffi import requests
from yahooquery import Ticker

(base_url,) = sys.argv[1:]


class Moved(requests.Session):
    """A session that asks BASE_URL for what is meant for a host of Yahoo."""

    def request(self, method: str, url: str, *args: Any, **options: Any) -> Any:
        moved, count = re.subn(r"^https://[a-z0-9.]+\.yahoo\.com", base_url, url)
        if not count:
            raise ValueError(f"{url} is not Yahoo's")
        return super().request(method, moved, *args, **options)


def bars(frame: Any) -> list[list[Any]]:
    names = ["open", "high", "low", "close", "adjclose", "volume"]
    return [
        [symbol, str(at), *(float(row[name]) for name in names)] for (symbol, at), row in frame.iterrows()
    ]


def asked(symbols: str) -> Any:
    return Ticker(symbols, session=Moved(impersonate="chrome"))


history = asked("AAPL IBM").history(start="2005-02-22", end="2005-03-05")
found = {
    "bars": bars(history),
    "splits": {str(at): ratio for (_, at), ratio in history["splits"].items() if ratio},
    "quotes": asked("AAPL VOD.L EURUSD=X BTC-USD NOPE").quotes,
    "unknown": len(asked("NOPE").history(period="5d")),
}
print(json.dumps(found))
