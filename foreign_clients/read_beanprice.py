"""What the source of Yahoo in `beanprice` reads: `read_beanprice.py BASE_URL`, JSON to stdout. Its calls are moved."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from beanprice.sources.yahoo import Source
from curl_cffi import requests
from moved import YAHOO, move

(base_url,) = sys.argv[1:]
move(requests.Session, {YAHOO: base_url})


def told(one: Any) -> list[str]:
    return [str(one.price), one.time.isoformat(), str(one.quote_currency)]


source = Source()
first, last = datetime(2005, 2, 22, tzinfo=UTC), datetime(2005, 3, 5, tzinfo=UTC)
try:
    unknown = str(source.get_latest_price("NOPE"))
except ValueError as error:
    unknown = str(error)
found = {
    "latest": {symbol: told(source.get_latest_price(symbol)) for symbol in ("AAPL", "VOD.L", "EURUSD=X", "BTC-USD")},
    "before": told(source.get_historical_price("IBM", last)),
    "daily": [told(one) for one in source.get_daily_prices("AAPL", first, last)],
    "unknown": unknown,
}
print(json.dumps(found))
