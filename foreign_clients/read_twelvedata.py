"""What the provider's own client, `twelvedata`, reads: `read_twelvedata.py BASE_URL KEY`, JSON to stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from twelvedata import TDClient

base_url, key = sys.argv[1:]
client = TDClient(apikey=key, base_url=base_url)
SPAN = {"interval": "1day", "start_date": "2005-02-22", "end_date": "2005-03-04", "order": "asc"}


def refusal(ask: Callable[[], object]) -> list[str]:
    try:
        ask()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return []


WEEKEND = SPAN | {"start_date": "2005-02-26", "end_date": "2005-02-27"}
found: dict[str, Any] = {
    "quote": client.quote(symbol="AAPL").as_json(),
    "abroad": client.quote(symbol="VOD", exchange="LSE").as_json(),
    "quotes": client.quote(symbol=["AAPL", "IBM", "VOD:LSE", "NOPE"]).as_json(),
    "prices": client.price(symbol="AAPL,MSFT").as_json(),
    "series": client.time_series(symbol="AAPL", **SPAN).as_json(),
    "raw": client.time_series(symbol="AAPL", adjust="none", **SPAN).as_json(),
    "many": client.time_series(symbol="AAPL,IBM", **SPAN).as_json(),
    "frame": client.time_series(symbol="IBM", **SPAN).as_pandas()["close"].tolist(),
    "search": client.symbol_search(symbol="vodafone").as_json(),
    "unknown": refusal(lambda: client.time_series(symbol="NOPE", **SPAN).as_json()),
    "spelling": refusal(lambda: client.quote(symbol="EURUSD").as_json()),
    "weekend": refusal(
        lambda: client.time_series(
            symbol="AAPL", **SPAN | {"start_date": "2005-02-26", "end_date": "2005-02-27"}
        ).as_json()
    ),
    "key": refusal(lambda: TDClient(apikey="wrong", base_url=base_url).quote(symbol="AAPL").as_json()),
}
print(json.dumps(found))
