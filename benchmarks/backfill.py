"""How many rows of history a second are backfilled, from an empty database to the last stored bar?

Ours is the product's backfill: planned, claimed, called, every value checked and stored with its lineage. The peers are
a dlt pipeline from the same REST provider into the same server, and a script that copies what it gets into a table
without an index and believes everything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta

import httpx
import psycopg

from benchmarks import crew, peers, provider
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.refresh.refresher import Refresher

AT_ONCE = 8
DATA_TYPE = "equity_daily"
END = date(2025, 12, 31)
_PROVIDER = "twelvedata"


@dataclass(frozen=True, slots=True)
class Size:
    """Number of rounds, of symbols, and of years of daily bars of each symbol."""

    rounds: int
    symbols: int
    years: int


FULL = Size(rounds=3, symbols=500, years=20)
QUICK = Size(rounds=1, symbols=20, years=20)
TINY = Size(rounds=1, symbols=2, years=1)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Interleaved rounds, each into a database of its own."""
    expected = size.symbols * provider.bars_between(_first(size.years), END)
    memory: list[float] = []

    def rate(way: str, command: list[str], database_url: str) -> float:
        server.checkpoint()
        work = crew.run([command], database_url)
        rows, megabytes = work.answers[0]
        if rows != expected:
            raise crew.WorkerError(f"{rows} of {expected} bars were stored by {way}")
        if way == "ours":
            memory.append(megabytes)
        return float(rows) / work.seconds

    with provider.running(latency_ms=0) as url:
        arguments = (url, size.symbols, size.years)

        def ours() -> float:
            database_url = server.migrated("backfill")
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(statement("backfill.arrange"), {"in_flight": AT_ONCE})
                connection.execute(statement("backfill.instruments"), {"symbols": size.symbols})
            return rate("ours", crew.module("backfill", "ours", *arguments), database_url)

        def unchecked() -> float:
            database_url = server.empty("scripts")
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(statement("backfill.plain_table"))
            return rate("unchecked", crew.module("backfill", "unchecked_ceiling", *arguments), database_url)

        def dlt() -> float:
            command = peers.command("dlt_backfill", *arguments, _first(size.years), END)
            return rate("dlt", command, server.empty("dlt"))

        subjects: dict[str, Callable[[], float]] = {"ours": ours, "unchecked_ceiling": unchecked}
        if peers.are_installed():
            subjects["dlt"] = dlt
        rates = medians(subjects, size.rounds)
    what = f"{size.symbols} symbols, {size.years} years of daily bars"
    return [
        Row("rows_per_second", f"rows/s, {what}", rates.pop("ours"), rates),
        Row("memory_megabytes", f"MB at most, {what}", max(memory), lower_is_better=True),
    ]


def _first(years: int) -> date:
    return END.replace(year=END.year - years) + timedelta(days=1)


def work_ours(provider_url: str, symbols: int, years: int, database_url: str) -> Callable[[], list[float]]:
    """A backfill of ours, from its plan to its last task."""
    engine = make_engine(database_url, pool_size=AT_ONCE)
    with ExitStack() as stack:
        for _ in range(AT_ONCE):
            stack.enter_context(engine.connect())
    client = ProviderClient(PROVIDERS[_PROVIDER], provider_url, SANDBOX_KEY)
    added: list[int] = []
    refresher = Refresher(
        engine,
        {_PROVIDER: client},
        worker="benchmark",
        on_report=lambda tallies: added.extend(tally.added for tally in tallies),
    )
    names = [f"S{number}" for number in range(1, symbols + 1)]

    def backfill() -> list[float]:
        refresher.backfill(refresher.plan_backfill(DATA_TYPE, Window(_first(years), END), names))
        return [sum(added), crew.megabytes()]

    return backfill


def work_unchecked_ceiling(provider_url: str, symbols: int, years: int, database_url: str) -> Callable[[], list[float]]:
    """Makes eight calls at once, and writes each answer to the table unchanged."""
    connections = [psycopg.connect(database_url, autocommit=True) for _ in range(AT_ONCE)]
    client = httpx.Client(base_url=provider_url, trust_env=False, timeout=30.0)
    days = {"start_date": _first(years).isoformat(), "end_date": END.isoformat()}

    def one(number: int) -> int:
        answer = json.loads(client.get("/time_series", params={"symbol": f"S{number}", **days}).content)
        symbol, bars = answer["meta"]["symbol"], answer["values"]
        lines = [
            f"{symbol}\t{bar['datetime']}\t{bar['open']}\t{bar['high']}\t{bar['low']}\t{bar['close']}\t{bar['volume']}\n"
            for bar in bars
        ]
        connection = connections.pop()
        with connection.cursor() as cursor, cursor.copy(statement("backfill.plain_copy").rstrip(";")) as copy:
            copy.write("".join(lines))
        connections.append(connection)
        return len(bars)

    def fetch() -> list[float]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [sum(pool.map(one, range(1, symbols + 1))), crew.megabytes()]

    return fetch


if __name__ == "__main__":
    _, way, url, count, years = sys.argv
    workers = {"ours": work_ours, "unchecked_ceiling": work_unchecked_ceiling}
    crew.serve(lambda database_url: workers[way](url, int(count), int(years), database_url))
