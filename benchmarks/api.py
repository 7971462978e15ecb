"""How fast are reads of 20 prices over HTTP at 500 requests a second, twenty years of history as Arrow and in another
currency, those of fifty symbols as CSV, and a feed of 500 prices as CSV?

Ours is the product's own server in a process of its own, on a migrated database. The peers of a read use only the same
libraries: `bare_sql` reads the columns of one table and checks nothing, `constant` reads nothing at all. The peer of a
history is the bare query of the same rows; of a converted history, the same without conversion; of many histories,
COPY; and of a feed, the same prices as JSON.

Each request is sent when it is due, even if the previous one has no answer yet, and its latency counts from when it was
due, so a server that stalls cannot hide it. The generator's own delay is part of that latency, and is also shown
separately.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg
from fastapi import FastAPI, Response
from sqlalchemy import create_engine

from benchmarks import crew, history_write
from benchmarks.api_load import SYMBOLS_READ, TOKEN
from benchmarks.report import Row, percentile
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.processes.ports import require_free_port

TYPE = "equity_quote"
_HISTORY = f"/v1/history/{history_write.TYPE}/H0?from=1990-01-01&to=2030-01-01"


@dataclass(frozen=True, slots=True)
class Size:
    """Requests of each server a second, for so many seconds."""

    rounds: int
    symbols: int
    per_second: int
    seconds: float
    days: int
    histories: int
    reads: int


_DAYS = history_write.DAYS_OF_20_YEARS
FULL = Size(rounds=5, symbols=500, per_second=500, seconds=20, days=_DAYS, histories=50, reads=30)
QUICK = Size(rounds=2, symbols=500, per_second=500, seconds=4, days=_DAYS, histories=10, reads=15)
TINY = Size(rounds=1, symbols=40, per_second=50, seconds=0.4, days=60, histories=2, reads=2)


@dataclass(frozen=True, slots=True)
class Load:
    """Latency in ms (median and 99th percentile), the delay of the generator (the same), and the CPU time of each
    request in the server and in the sessions of its database."""

    half: float
    most: float
    late: float
    cpu: float
    database_cpu: float


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Reads of each server in turns, then histories."""
    url = server.migrated("api", as_superuser=True)
    engine = make_engine(url)
    with engine.begin() as owner:
        token = api_tokens.add(owner, "benchmark", [Scope.READ], None).get_secret_value()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement("history_write.instruments"), {"symbols": size.histories})
        stored = {f"H{n}": history_write.bars(f"H{n}", size.days, n) for n in range(size.histories)}
        history_write.store_all(engine, stored)
        engine.dispose()
        connection.execute(statement("api.instruments"), {"symbols": size.symbols})
        for name in ("long_ttl", "prices", "rates", "analyze"):
            connection.execute(statement(f"api.{name}"))
        loads: dict[str, list[Load]] = {}
        with _product(url) as ours, _plain(url) as plain:
            places = {
                "ours": (ours, f"/v1/prices?data_type={TYPE}&symbols="),
                "ours_all_types": (ours, "/v1/prices?symbols="),
                "bare_sql": (plain, "/bare?symbols="),
                "constant": (plain, "/constant?symbols="),
            }
            for _ in range(size.rounds):
                for name, (place, path) in places.items():
                    loads.setdefault(name, []).append(_load(connection, place, path, token, size))
            tables = [
                *_history_rows(connection, ours, token, list(stored), size),
                *_converted_rows(connection, ours, token, size),
                *_feed_rows(connection, ours, token, size),
            ]
    return [*_load_rows(loads), *tables]


def _load_rows(loads: dict[str, list[Load]]) -> list[Row]:
    units = {
        "p50_ms": ("half", "ms"),
        "p99_ms": ("most", "ms"),
        "late_ms": ("late", "ms until 99 of 100 requests were sent"),
        "cpu_ms": ("cpu", "ms of the server"),
        "database_cpu_ms": ("database_cpu", "ms of PostgreSQL"),
    }
    rows = []
    for subject, suffix in (("ours", ""), ("ours_all_types", "_all_types")):
        for metric, (field, unit) in units.items():
            figures = {name: median(getattr(load, field) for load in found) for name, found in loads.items()}
            peers = {name: figures[name] for name in ("bare_sql", "constant")}
            what = f"{unit}, for {SYMBOLS_READ} symbols"
            rows.append(Row(f"{metric}{suffix}", what, figures[subject], peers, lower_is_better=True))
    return rows


def _history_rows(
    connection: psycopg.Connection[Any], ours: _Place, token: str, symbols: list[str], size: Size
) -> list[Row]:
    """Measures many histories first, because Arrow's modules stay in the server's memory."""
    path = f"/v1/history/{history_write.TYPE}?from=1990-01-01&to=2030-01-01&format=csv&symbols={','.join(symbols)}"
    bars = len(symbols) * size.days
    before = _peak_mb(ours.process.pid)
    ways = [partial(_get, ours.port, token, path), partial(_copy, connection, symbols)]
    csv, copied = _taken(connection, ours, ways, 2 * size.rounds + 1)
    grown = _peak_mb(ours.process.pid) - before
    ways = [
        partial(_get, ours.port, token, f"{_HISTORY}&format=arrow"),
        partial(_bare, connection),
    ]
    arrow, bare = _taken(connection, ours, ways, size.reads)
    unit, what = f"bars/s, {len(symbols)} symbols as CSV", "for 20 years as Arrow"
    return [
        Row("csv_bars_per_second", unit, bars / csv.seconds, {"copy": bars / copied.seconds}),
        Row(
            "csv_cpu_us",
            "µs of the CPU for a bar, of all processes",
            1000 * csv.cpu_ms / bars,
            {"copy": 1000 * copied.cpu_ms / bars},
            lower_is_better=True,
        ),
        Row("csv_megabytes", "MB that the server grows by", grown),
        Row("arrow_ms", f"ms {what}", 1000 * arrow.seconds, {"bare_query": 1000 * bare.seconds}, lower_is_better=True),
        Row("arrow_cpu_ms", f"ms of the CPU {what}", arrow.cpu_ms, {"bare_query": bare.cpu_ms}, lower_is_better=True),
    ]


def _converted_rows(connection: psycopg.Connection[Any], ours: _Place, token: str, size: Size) -> list[Row]:
    """A history in dollars, in euros by one rate a day, and in pounds by two."""
    rows = []
    for format_ in ("json", "csv", "arrow"):
        path = f"{_HISTORY}&format={format_}"
        ways = [partial(_get, ours.port, token, path + more) for more in ("", "&currency=EUR", "&currency=GBP")]
        plain, *converted = _taken(connection, ours, ways, size.reads)
        for rates, took in zip(("one", "two"), converted, strict=True):
            unit = f"ms of the CPU for 20 years as {format_}, converted by {rates} a day"
            peers = {"plain": plain.cpu_ms}
            rows.append(Row(f"{format_}_by_{rates}_cpu_ms", unit, took.cpu_ms, peers, lower_is_better=True))
    return rows


def _feed_rows(connection: psycopg.Connection[Any], ours: _Place, token: str, size: Size) -> list[Row]:
    path = f"/v1/prices?data_type={TYPE}&symbols={','.join(f'R{n}' for n in range(size.symbols))}&format="
    ways = [partial(_get, ours.port, token, path + format_) for format_ in ("csv", "json")]
    csv, json = _taken(connection, ours, ways, size.reads)
    what = f"for {size.symbols} prices as CSV"
    return [
        Row("feed_csv_ms", f"ms {what}", 1000 * csv.seconds, {"json": 1000 * json.seconds}, lower_is_better=True),
        Row("feed_csv_cpu_ms", f"ms of the CPU {what}", csv.cpu_ms, {"json": json.cpu_ms}, lower_is_better=True),
    ]


class _Took(NamedTuple):
    """Median seconds of some rounds, and average milliseconds of CPU time."""

    seconds: float
    cpu_ms: float


def _taken(
    connection: psycopg.Connection[Any], ours: _Place, ways: Sequence[Callable[[], None]], rounds: int
) -> list[_Took]:
    """Measure the ways in turns. The CPU time is that of our server, of all sessions and of this process, the client.
    Unlike wall time, it hardly depends on what else the machine does.
    """

    def used() -> float:
        return _cpu_ms(ours.process.pid) + _cpu_ms_of_sessions(connection) + 1000 * time.process_time()

    for way in ways:  # the first one loads what the others use
        way()
    seconds: list[list[float]] = [[] for _ in ways]
    cpu = [0.0 for _ in ways]
    for _ in range(rounds):
        for place, way in enumerate(ways):
            before = used()
            seconds[place].append(_timed(way))
            cpu[place] += used() - before
    return [_Took(median(each), total / rounds) for each, total in zip(seconds, cpu, strict=True)]


@dataclass(frozen=True, slots=True)
class _Place:
    port: int
    process: subprocess.Popen[bytes]


@contextmanager
def _product(url: str) -> Iterator[_Place]:
    with tempfile.TemporaryDirectory() as home:
        port = require_free_port(0, "the API", "port")
        environment = {"PRICING_DATABASE_URL": url, "PRICING_API_PORT": str(port), "PRICING_HOME": home}
        with _running([sys.executable, "-m", "pricing_pipeline.api.server"], environment, port) as place:
            yield place


@contextmanager
def _plain(url: str) -> Iterator[_Place]:
    port = require_free_port(0, "the peers", "port")
    with _running(crew.module("api", port), {crew.DATABASE_URL: url}, port) as place:
        yield place


@contextmanager
def _running(command: list[str], environment: dict[str, str], port: int) -> Iterator[_Place]:
    with subprocess.Popen(command, env=os.environ | environment) as process:
        try:
            _wait(process, f"http://127.0.0.1:{port}/livez")
            yield _Place(port, process)
        finally:
            process.terminate()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - of ours
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server of {url} did not start") from None
            time.sleep(0.05)


def _load(connection: psycopg.Connection[Any], place: _Place, path: str, token: str, size: Size) -> Load:
    os.environ[TOKEN] = token
    command = crew.module("api_load", place.port, path, size.symbols, size.per_second, size.seconds)
    server, sessions = _cpu_ms(place.process.pid), _cpu_ms_of_sessions(connection)
    (answer,) = crew.run([command], "").answers
    server = _cpu_ms(place.process.pid) - server
    sessions = _cpu_ms_of_sessions(connection) - sessions
    times, count = answer["milliseconds"], answer["requests"]
    return Load(
        half=percentile(times, 0.5),
        most=percentile(times, 0.99),
        late=percentile(answer["late"], 0.99),
        cpu=server / count,
        database_cpu=sessions / count,
    )


_PARENT, _OWN, _OF_ENDED = 1, slice(11, 13), slice(13, 15)
"""Fields of a process: its parent; its CPU time and that of its ended children, in user and in system mode."""


def _fields(pid: int) -> list[int]:
    _, *numbers = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return [0, *map(int, numbers)]


def _cpu_ms(pid: int, times: slice = _OWN) -> float:
    """What a process has used so far."""
    return 1000 * sum(_fields(pid)[times]) / os.sysconf("SC_CLK_TCK")


def _cpu_ms_of_sessions(connection: psycopg.Connection[Any]) -> float:
    """What all sessions have used so far. Ended ones count, too: a server may open one for a few requests."""
    postmaster = _fields(connection.info.backend_pid)[_PARENT]
    sessions = connection.execute(statement("api.sessions"))
    return _cpu_ms(postmaster, _OF_ENDED) + sum(_cpu_ms(pid) for (pid,) in sessions)


def _get(port: int, token: str, path: str) -> None:
    """Read an answer and discard it."""
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - of ours
        while answer.read(1 << 18):
            pass


def _bare(connection: psycopg.Connection[Any]) -> None:
    connection.execute(statement("history_write.bare_query")).fetchall()


def _copy(connection: psycopg.Connection[Any], symbols: list[str]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement("api.copy"), {"symbols": symbols}) as copy:
        for _ in copy:
            pass


def _peak_mb(pid: int) -> float:
    """The peak memory of a process so far."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def plain_app(url: str) -> FastAPI:
    """The peers: the same libraries without our code."""
    # No more sessions than these: opening one costs more than many reads.
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(url), pool_size=8, max_overflow=0, pool_use_lifo=True
    )
    app = FastAPI()
    query = statement("api.bare")

    @app.get("/livez")
    async def is_alive() -> str:
        return "ok"

    @app.get("/constant")
    async def constant(symbols: str) -> Response:
        return Response(_CONSTANT, media_type="application/json")

    @app.get("/bare")
    def bare(symbols: str) -> list[dict[str, Any]]:
        with engine.connect() as connection:
            cursor = connection.connection.cursor()
            cursor.execute(query, {"symbols": symbols.split(","), "data_type": TYPE})
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    return app


_CONSTANT = b'{"prices": [' + b",".join([b'{"symbol": "AAPL", "price": "189.95"}'] * SYMBOLS_READ) + b"]}"


def _serve(port: int) -> None:
    import uvicorn

    app = plain_app(os.environ[crew.DATABASE_URL])
    uvicorn.run(app, port=port, http="httptools", loop="uvloop", log_level="warning", access_log=False)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
