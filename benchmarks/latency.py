"""How long after it is due is a watched price stored, through real Dagster?

The pipeline is the real one: `up` with all its processes, in a home of its own, with a provider that answers after 50
ms. A price is due a minute after the last one was fetched, or when somebody begins to watch. *Cold*: nobody has watched
anything, so the sensor has to request a run first. *Warm*: a drain is at work. The viewers begin one after the other
within a minute, so the times at which prices are due are spread over the minute, too. Each viewer sends a heartbeat a
minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg

from benchmarks import crew, pipeline, provider
from benchmarks.report import Row, percentile
from benchmarks.server import BenchmarkServer, statement
from pricing_pipeline.processes.home import read_state
from pricing_pipeline.providers.configured import SANDBOX_KEY

LATENCY_MS = 50
_PAIRS_OF_A_VIEWER = 50
_COLD_PAIRS = 200
_QUIET_SECONDS = 10
"""Without any demand before a cold start: the sensor does not request another drain within ten seconds."""
_ASSETS = "{ assetNodes { assetKey { path } } }"


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of watched pairs; cold starts; seconds in which all viewers come; minutes that they then stay."""

    pairs: tuple[int, ...]
    cold_starts: int
    arrival: float
    minutes: float


FULL = Size(pairs=(200, 10_000, 50_000), cold_starts=5, arrival=60, minutes=5)
QUICK = Size(pairs=(200,), cold_starts=1, arrival=60, minutes=1.2)
TINY = Size(pairs=(20,), cold_starts=1, arrival=2, minutes=1.1)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Seconds from due to stored, cold and warm, and where they go. The benchmark's server is not used."""
    rows: list[Row] = []
    with provider.running(LATENCY_MS) as url:
        for pairs in size.pairs:
            with _pipeline(url, pairs) as connection:
                if pairs == size.pairs[0]:
                    rows += _cold(connection, size.cold_starts, min(pairs, _COLD_PAIRS))
                rows += _warm(connection, pairs, size)
    return rows


def _cold(connection: psycopg.Connection[Any], starts: int, pairs: int) -> list[Row]:
    """Somebody begins to watch pairs without a price, and no drain is at work."""
    stored: list[float] = []
    requested: list[float] = []
    started: list[float] = []
    for number in range(starts):
        pipeline.wait_until(
            lambda: bool(pipeline.value(connection, "latency.is_idle")), "the drain did not end"
        )
        time.sleep(_QUIET_SECONDS)
        symbols = [f"C{number * pairs + n}" for n in range(1, pairs + 1)]
        since = pipeline.value(connection, "latency.now")
        _watch(connection, "cold", symbols)
        known = {"symbols": symbols, "since": since}
        pipeline.wait_until(partial(_are_fetched, connection, known), "no prices came")
        ((asked, drained, seconds),) = connection.execute(statement("latency.cold"), known).fetchall()
        requested.append(asked)
        started.append(drained - asked)
        stored += seconds
        connection.execute(statement("latency.leave_all"))
    return [
        _row("cold_p50_seconds", percentile(stored, 0.5)),
        _row("cold_p95_seconds", percentile(stored, 0.95)),
        _row("cold_until_requested_seconds", percentile(requested, 0.5)),
        _row("cold_until_drained_seconds", percentile(started, 0.5)),
    ]


def _warm(connection: psycopg.Connection[Any], pairs: int, size: Size) -> list[Row]:
    """Viewers come and stay, and each price is renewed every minute."""
    with _viewers(connection, pairs, size.arrival) as (begun, failed):
        time.sleep(size.arrival + size.minutes * 60)
        ((watched, fresh),) = connection.execute(statement("latency.watched_and_fresh")).fetchall()
    if failed:
        raise crew.WorkerError(f"a viewer could not send heartbeats: {failed[0]}")
    found = connection.execute(statement("latency.warm"), {"since": begun}).fetchall()
    if watched != pairs or len(found) < pairs * max(1, int(size.minutes - 0.5)):
        raise crew.WorkerError(f"{watched} of {pairs} pairs were watched, and {len(found)} prices renewed")
    stored, queued, claimed = (sorted(column) for column in zip(*found, strict=True))
    return [
        _row(f"warm_p50_seconds@pairs={pairs}", percentile(stored, 0.5)),
        _row(f"warm_p95_seconds@pairs={pairs}", percentile(stored, 0.95)),
        _row(f"warm_p99_seconds@pairs={pairs}", percentile(stored, 0.99)),
        _row(f"warm_until_queued_p95_seconds@pairs={pairs}", percentile(queued, 0.95)),
        _row(f"warm_until_claimed_p95_seconds@pairs={pairs}", percentile(claimed, 0.95)),
        Row(f"fresh_share@pairs={pairs}", "of watched prices, at the end", fresh / watched),
    ]


def _are_fetched(connection: psycopg.Connection[Any], known: dict[str, Any]) -> bool:
    return bool(pipeline.value(connection, "latency.fetched", **known) == len(known["symbols"]))


def _row(metric: str, seconds: float) -> Row:
    return Row(metric, "s after due", seconds, lower_is_better=True)


@contextmanager
def _viewers(
    connection: psycopg.Connection[Any], pairs: int, arrival: float
) -> Iterator[tuple[datetime, list[BaseException]]]:
    """Viewers who come one after the other within `arrival` seconds, and stay until the block ends."""
    symbols = [f"S{n}" for n in range(1, pairs + 1)]
    groups = [symbols[at : at + _PAIRS_OF_A_VIEWER] for at in range(0, pairs, _PAIRS_OF_A_VIEWER)]
    is_over = threading.Event()
    failed: list[BaseException] = []

    def stay() -> None:
        began = time.monotonic()
        try:
            with psycopg.connect(
                connection.info.dsn, password=connection.info.password, autocommit=True
            ) as own:
                minute = 0
                while True:
                    for number, group in enumerate(groups):
                        within = arrival if minute == 0 else 60
                        due = began + 60 * minute + within * number / len(groups)
                        if is_over.wait(max(due - time.monotonic(), 0)):
                            return
                        _watch(own, str(number), group)
                    minute += 1
        except BaseException as error:  # whoever waits for the viewers is told
            failed.append(error)

    thread = threading.Thread(target=stay, name="viewers")
    begun = pipeline.value(connection, "latency.now")
    thread.start()
    try:
        yield begun, failed
    finally:
        is_over.set()
        thread.join()


def _watch(connection: psycopg.Connection[Any], viewer: str, symbols: Sequence[str]) -> None:
    connection.execute(statement("latency.watch"), {"viewer": viewer, "symbols": list(symbols)})


@contextmanager
def _pipeline(provider_url: str, pairs: int) -> Iterator[psycopg.Connection[Any]]:
    """A pipeline that nobody uses yet, whose only provider is at `provider_url`; gives a session of its owner."""
    settings = {
        "PRICING_SANDBOX": "false",
        "PRICING_TWELVEDATA_API_KEY": SANDBOX_KEY.get_secret_value(),
    }
    with pipeline.running(settings, "--no-demo") as started:
        started.connection.execute(statement("latency.arrange"), {"url": provider_url, "pairs": pairs})
        pipeline.wait_until(lambda: _is_loaded(started.home), "the new type was not loaded")
        yield started.connection


def _is_loaded(home: Path) -> bool:
    """Whether Dagster has the asset of the new type."""
    state = read_state(home)
    if state is None:
        return False
    answer = httpx.post(f"{state['urls']['dagster']}/graphql", json={"query": _ASSETS}, trust_env=False)
    nodes = answer.raise_for_status().json()["data"]["assetNodes"]
    return ["price_history", "minute_quote"] in [node["assetKey"]["path"] for node in nodes]
