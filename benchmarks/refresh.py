"""How many symbols a second are refreshed, from claim to stored price, at 50 ms of provider latency?

Ours is a drain: real queue, real client, strict schemas, lineage, history. The peers are what
most people would write first: a worker that makes one call for each symbol in turn, and a script that asks for a
hundred at once in ten threads, and believes everything.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import psycopg

from benchmarks import crew, provider
from benchmarks.report import Row, medians
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.refresh.refresher import Refresher

BATCH, AT_ONCE, LATENCY_MS = 100, 10, 50
_PROVIDER = "twelvedata"
_PATIENCE_SECONDS = 100


@dataclass(frozen=True, slots=True)
class Size:
    """Symbols in a round, in a round of the peer that asks for one at a time, and watched at once under a limit."""

    rounds: int
    symbols: int
    single: int
    watched: int


FULL = Size(rounds=5, symbols=30_000, single=200, watched=10_000)
QUICK = Size(rounds=3, symbols=10_000, single=40, watched=10_000)
TINY = Size(rounds=1, symbols=200, single=2, watched=200)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Interleaved rounds; each of ours refreshes the prices that the previous round stored."""
    ours, theirs = server.migrated("refresh"), server.empty("scripts")
    with psycopg.connect(ours, autocommit=True) as connection:
        connection.execute(statement("refresh.arrange"), {"batch": BATCH, "in_flight": AT_ONCE})
    with psycopg.connect(theirs, autocommit=True) as connection:
        connection.execute(statement("refresh.plain_table"))
    memory: list[float] = []

    def seconds(way: str, url: str, database_url: str, symbols: int) -> float:
        work = crew.run([crew.module("refresh", way, url, symbols)], database_url)
        stored, megabytes = work.answers[0]
        if stored != symbols:
            raise crew.WorkerError(f"{stored} of {symbols} prices were stored by {way}")
        if way == "ours":
            memory.append(megabytes)
        return work.seconds

    with provider.running(LATENCY_MS) as url:

        def rate(way: str, database_url: str, symbols: int) -> float:
            if way == "ours":
                with psycopg.connect(database_url, autocommit=True) as connection:
                    connection.execute(statement("refresh.enqueue"), {"symbols": symbols})
            server.checkpoint()
            return symbols / seconds(way, url, database_url, symbols)

        rates = medians(
            {
                "ours": lambda: rate("ours", ours, size.symbols),
                "one_call_per_symbol": lambda: rate("one_call_per_symbol", theirs, size.single),
                "unchecked_ceiling": lambda: rate("unchecked_ceiling", theirs, size.symbols),
            },
            size.rounds,
        )
        anew = server.migrated("watched")  # where no call was made in the last minute
        with psycopg.connect(anew, autocommit=True) as connection:
            connection.execute(statement("refresh.arrange"), {"batch": BATCH, "in_flight": AT_ONCE})
            connection.execute(statement("refresh.limit"), {"calls": size.watched * 3 // BATCH})
            connection.execute(statement("refresh.watch"), {"symbols": size.watched})
        server.checkpoint()
        watched = seconds("ours", url, anew, size.watched)
    allowed = f"{size.watched:,} watched symbols, {size.watched * 3 // BATCH} calls a minute allowed"
    return [
        Row("symbols_per_second", "symbols/s", rates.pop("ours"), rates),
        Row("all_watched_seconds", f"s until all are refreshed: {allowed}", watched),
        Row(
            "memory_megabytes",
            f"MB at most, {size.symbols:,} tasks wait",
            max(memory),
            lower_is_better=True,
        ),
    ]


def work_ours(provider_url: str, symbols: int, database_url: str) -> Callable[[], int]:
    """A drain of ours, until all is stored."""
    engine = make_engine(database_url, pool_size=AT_ONCE)
    client = ProviderClient(PROVIDERS[_PROVIDER], provider_url, SANDBOX_KEY)
    stored: list[int] = []
    refresher = Refresher(
        engine,
        {_PROVIDER: client},
        worker="benchmark",
        on_report=lambda tallies: stored.extend(len(tally.symbols) for tally in tallies),
        report_every=0,
    )

    ends = time.monotonic() + _PATIENCE_SECONDS

    def is_over() -> bool:
        return sum(stored) >= symbols or time.monotonic() > ends

    def drain() -> int:
        refresher._work_until(is_over)
        return sum(stored)

    return drain


def work_one_call_per_symbol(provider_url: str, symbols: int, database_url: str) -> Callable[[], int]:
    """Requests, reads and stores one symbol after the other."""
    connection = psycopg.connect(database_url, autocommit=True)
    client = httpx.Client(base_url=provider_url, trust_env=False)

    def refresh() -> int:
        for number in range(1, symbols + 1):
            quote = json.loads(client.get("/quote", params={"symbol": f"S{number}"}).content)
            row = {"symbols": [quote["symbol"]], "prices": [float(quote["close"])]}
            connection.execute(statement("refresh.plain_store"), row)
        return symbols

    return refresh


def work_unchecked_ceiling(provider_url: str, symbols: int, database_url: str) -> Callable[[], int]:
    """Requests a hundred symbols a call, ten calls at once, and stores each answer as it arrives."""
    connections = [psycopg.connect(database_url, autocommit=True) for _ in range(AT_ONCE)]
    client = httpx.Client(base_url=provider_url, trust_env=False)

    def one(first: int) -> int:
        names = [f"S{number}" for number in range(first, min(first + BATCH, symbols + 1))]
        quotes = json.loads(client.get("/quote", params={"symbol": ",".join(names)}).content)
        row = {
            "symbols": [quote["symbol"] for quote in quotes.values()],
            "prices": [float(quote["close"]) for quote in quotes.values()],
        }
        connection = connections.pop()
        connection.execute(statement("refresh.plain_store"), row)
        connections.append(connection)
        return len(quotes)

    def refresh() -> int:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return sum(pool.map(one, range(1, symbols + 1, BATCH)))

    return refresh


if __name__ == "__main__":
    _, way, url, count = sys.argv
    workers = {
        "ours": work_ours,
        "one_call_per_symbol": work_one_call_per_symbol,
        "unchecked_ceiling": work_unchecked_ceiling,
    }

    def prepared(database_url: str) -> Callable[[], list[float]]:
        work = workers[way](url, int(count), database_url)
        return lambda: [work(), crew.megabytes()]

    crew.serve(prepared)
