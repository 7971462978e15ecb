"""A provider that costs next to nothing: Twelve Data's `/quote` for any symbol, after so many milliseconds.

The sandbox makes true prices, which takes as long as refreshing them; what is measured here is the client's side.
Every answer has a new price and stamp, so that each is stored; none moves so far that it would not be believed.
Run as `python -m benchmarks.provider PORT LATENCY_MS`.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import sys
import time

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pricing_pipeline.sandbox.server import make_server

_QUOTE = (
    '{{"symbol":"{symbol}","name":"{symbol} Inc","exchange":"NASDAQ","mic_code":"XNGS","currency":"USD",'
    '"datetime":"2026-11-20","timestamp":{at},"last_quote_at":{at},"open":"{price}","high":"{price}","low":"{price}",'
    '"close":"{price}","volume":"68749754","previous_close":"173.57001","change":"1.02000","percent_change":"0.58766",'
    '"average_volume":"91331000","is_market_open":true,"fifty_two_week":{{"low":"124.17000","high":"198.23000",'
    '"low_change":"50.42000","high_change":"-23.64000","low_change_percent":"40.60562","high_change_percent":"-11.92554",'
    '"range":"124.169998 - 198.229996"}}}}'
)


def app(latency: float) -> Starlette:
    """The provider, which answers after `latency` seconds."""
    turns = itertools.count(1)

    async def quote(request: Request) -> Response:
        symbols = request.query_params["symbol"].split(",")
        price, at = f"100.{next(turns) % 100:02}000", int(time.time())
        quotes = [_QUOTE.format(symbol=symbol, at=at, price=price) for symbol in symbols]
        named = (f'"{symbol}":{one}' for symbol, one in zip(symbols, quotes, strict=True))
        body = quotes[0] if len(symbols) == 1 else f"{{{','.join(named)}}}"
        await asyncio.sleep(latency)
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/quote", quote)])


if __name__ == "__main__":
    port, latency_ms = map(int, sys.argv[1:])
    with socket.create_server(("127.0.0.1", port), backlog=128) as listener:
        make_server(app(latency_ms / 1000)).run(sockets=[listener])
