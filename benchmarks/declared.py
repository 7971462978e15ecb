"""How fast the compiled declaration reads 10,000 days of JSON and of CSV, beside the coded parser of Twelve Data.

CPU time of one thread: other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from benchmarks.report import Row
from benchmarks.server import BenchmarkServer
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Question
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.twelvedata import TwelveData

TINY, QUICK, FULL = (100, 1), (10_000, 20), (10_000, 100)
"""Number of days, and how often they are read."""

_NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
_FILE = """
name: declared
base_url: https://declared.example.com
limits: {{minute: {{units: 1, seconds: 60}}}}
symbols: {{equity: {{}}}}
fetchers:
  daily_bars:
    max_window_days: 50000
    span:
      path: /{{symbol}}
      query: {{from: "{{start}}", to: "{{end}}"}}
      answer:
        {rows}
        time: {{path: datetime, format: iso_date}}
        close: close
        open: open
        high: high
        low: low
        volume: volume
        currency: {currency}
"""
_NAMES = ("datetime", "open", "high", "low", "close", "volume")


def measure(_: BenchmarkServer, size: tuple[int, int]) -> list[Row]:
    """Rows a second of CPU time, as JSON and as CSV."""
    days, times = size
    first = _NOW.date() - timedelta(days=days)
    window = Window(first, _NOW.date() - timedelta(days=1))
    rows = [_row(first + timedelta(days=n), n) for n in range(days)]
    json_body, csv_body = _json(rows), _csv(rows)
    in_json = _declared('rows: values\n        expect: {meta.symbol: "{symbol}"}', "{answer: meta.currency}")
    in_csv = _declared("body: {format: csv}", "{code: USD}")
    coded = TwelveData()

    def rate(read: Callable[[], Answer]) -> float:
        if len(read().observations) != days:
            raise AssertionError("the body was not read")
        best = min(_seconds(read) for _ in range(times))
        return days / best

    response = Response(200, {}, json_body, len(json_body))
    peer = rate(lambda: coded.parse(Question(Fetcher.DAILY_BARS, ["AAPL"], window, _NOW), response))
    return [
        Row("json_rows_per_second", "rows/s", rate(lambda: _read(in_json, json_body, window)), {"coded": peer}),
        Row("csv_rows_per_second", "rows/s", rate(lambda: _read(in_csv, csv_body, window)), {"coded": peer}),
    ]


def _seconds(read: Callable[[], Answer]) -> float:
    began = time.thread_time()
    read()
    return time.thread_time() - began


def _declared(rows: str, currency: str) -> DeclaredProvider:
    return DeclaredProvider(read_text(_FILE.format(rows=rows, currency=currency), "declared.yaml"))


def _read(provider: DeclaredProvider, body: bytes, window: Window) -> Answer:
    asked = provider.ask(Question(Fetcher.DAILY_BARS, ["AAPL"], window, _NOW))
    next(asked)
    try:
        asked.send(Response(200, {}, body, len(body)))
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    raise AssertionError("it asks for more")


def _row(day: date, number: int) -> tuple[str, ...]:
    price = 100 + number % 97
    return (
        str(day),
        f"{price}.10000",
        f"{price + 2}.50000",
        f"{price - 2}.25000",
        f"{price}.75000",
        str(10**7 + number),
    )


def _json(rows: list[tuple[str, ...]]) -> bytes:
    bars = ",".join(
        "{" + ",".join(f'"{name}":"{cell}"' for name, cell in zip(_NAMES, row, strict=True)) + "}" for row in rows
    )
    meta = '{"symbol":"AAPL","interval":"1day","currency":"USD","exchange":"NASDAQ"}'
    return f'{{"meta":{meta},"values":[{bars}],"status":"ok"}}'.encode()


def _csv(rows: list[tuple[str, ...]]) -> bytes:
    return "".join(f"{','.join(row)}\n" for row in [_NAMES, *rows]).encode()
