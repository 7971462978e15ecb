"""A provider that uses almost no CPU: Twelve Data's `/quote` and `/time_series` for any symbol, with a given latency.

The sandbox computes plausible prices, which takes as long as refreshing them; here only the client's side is measured.
Every quote has a new price and stamp, so that each is stored; none moves so far that it would not be believed. Bars are
those of every Monday to Friday, rendered once for each span of days.
Run as `python -m benchmarks.provider PORT LATENCY_MS`.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks import crew
from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline.sandbox.server import make_server

_QUOTE = (
    '{{"symbol":"{symbol}","name":"{symbol} Inc","exchange":"NASDAQ","mic_code":"XNGS","currency":"USD",'
    '"datetime":"2026-11-20","timestamp":{at},"last_quote_at":{at},"open":"{price}","high":"{price}","low":"{price}",'
    '"close":"{price}","volume":"68749754","previous_close":"173.57001","change":"1.02000","percent_change":"0.58766",'
    '"average_volume":"91331000","is_market_open":true,"fifty_two_week":{{"low":"124.17000","high":"198.23000",'
    '"low_change":"50.42000","high_change":"-23.64000","low_change_percent":"40.60562","high_change_percent":"-11.92554",'
    '"range":"124.169998 - 198.229996"}}}}'
)


_SERIES = (
    '{"meta":{"symbol":"@","interval":"1day","currency":"USD","exchange_timezone":"America/New_York","exchange":"NASDAQ",'
    '"mic_code":"XNGS","type":"Common Stock"},"values":['
)
_BAR = '{{"datetime":"{day}","open":"{open}","high":"{high}","low":"{low}","close":"{close}","volume":"{volume}"}}'


@contextmanager
def running(latency_ms: int) -> Iterator[str]:
    """The provider as a process of its own; gives its URL."""
    port = require_free_port(0, "the provider", "port")
    command = [sys.executable, "-m", "benchmarks.provider", str(port), str(latency_ms)]
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    with subprocess.Popen(command) as process:
        try:
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise crew.WorkerError("the provider did not start")
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/quote?symbol=A", timeout=1.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def bars_between(first: date, last: date) -> int:
    """How many bars a symbol has between two days, both included."""
    return sum(1 for _ in _trading_days(first, last))


def _trading_days(first: date, last: date) -> Iterator[date]:
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return (day for day in days if day.weekday() < 5)


@cache
def _bars(first: str, last: str) -> str:
    bars = []
    for day in _trading_days(date.fromisoformat(first), date.fromisoformat(last)):
        cents = 10000 + day.toordinal() * 37 % 400
        prices = {"open": cents, "high": cents + 120, "low": cents - 110, "close": cents + 35}
        texts = {name: f"{value // 100}.{value % 100:02}000" for name, value in prices.items()}
        bars.append(_BAR.format(day=day, volume=60_000_000 + day.toordinal() * 7919 % 9_000_000, **texts))
    return ",".join(bars)


def _together(answers: dict[str, str]) -> str:
    """A single answer as it is; several as members of an object, by symbol."""
    if len(answers) == 1:
        return next(iter(answers.values()))
    members = (f'"{symbol}":{answer}' for symbol, answer in answers.items())
    return f"{{{','.join(members)}}}"


def app(latency: float) -> Starlette:
    """The provider, which answers after `latency` seconds."""
    turns = itertools.count(1)

    async def quote(request: Request) -> Response:
        symbols = request.query_params["symbol"].split(",")
        price, at = f"100.{next(turns) % 100:02}000", int(time.time())
        body = _together({symbol: _QUOTE.format(symbol=symbol, at=at, price=price) for symbol in symbols})
        await asyncio.sleep(latency)
        return Response(body, media_type="application/json")

    async def time_series(request: Request) -> Response:
        asked = request.query_params
        bars = _bars(asked["start_date"], asked["end_date"])
        symbols = asked["symbol"].split(",")
        body = _together({symbol: f'{_SERIES.replace("@", symbol)}{bars}],"status":"ok"}}' for symbol in symbols})
        await asyncio.sleep(latency)
        return Response(body, media_type="application/json")

    return Starlette(routes=[Route("/quote", quote), Route("/time_series", time_series)])


if __name__ == "__main__":
    port, latency_ms = map(int, sys.argv[1:])
    with socket.create_server(("127.0.0.1", port), backlog=128) as listener:
        make_server(app(latency_ms / 1000)).run(sockets=[listener])
