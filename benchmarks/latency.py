"""How long after it is due is a watched price stored, through real Dagster?

The pipeline is the real one: `up` with all its processes, in a home of its own, with a provider that answers after 50
ms. A price is due a minute after the last one was fetched, or when somebody begins to watch. *Cold*: nobody has watched
anything, so the sensor must first request a run. *Warm*: a drain is at work. The viewers begin one after the other
within a minute, so due times are spread over the minute, too. Each viewer sends a heartbeat a
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
from statistics import mean
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
"""Seconds without demand before a cold start, because the sensor requests no second drain within ten seconds."""
_ASSETS = "{ assetNodes { assetKey { path } } }"
_RUN_EVENTS = """query ($run: ID!) { runOrError(runId: $run) { ... on Run {
  eventConnection { events { __typename ... on MessageEvent { timestamp } } } } } }"""
_LAUNCHED, _EXECUTING = "RunStartingEvent", "RunStartEvent"


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of watched pairs; cold starts; seconds until all viewers have come; minutes that they stay."""

    pairs: tuple[int, ...]
    cold_starts: int
    arrival: float
    minutes: float


FULL = Size(pairs=(200, 10_000, 50_000), cold_starts=5, arrival=60, minutes=5)
QUICK = Size(pairs=(200,), cold_starts=1, arrival=60, minutes=1.2)
TINY = Size(pairs=(20,), cold_starts=1, arrival=2, minutes=1.1)


def measure(server: BenchmarkServer, size: Size) -> list[Row]:
    """Seconds from due to stored, cold and warm, and how long each step takes. The benchmark's server is not used."""
    rows: list[Row] = []
    with provider.running(LATENCY_MS) as url:
        for pairs in size.pairs:
            with _pipeline(url, pairs) as started:
                if pairs == size.pairs[0]:
                    rows += _cold(started, size.cold_starts, min(pairs, _COLD_PAIRS))
                rows += _warm(started.connection, pairs, size)
    return rows


def _cold(started: pipeline.Pipeline, starts: int, pairs: int) -> list[Row]:
    """Somebody begins to watch pairs without a price, and no drain is at work."""
    connection = started.connection
    stored: list[float] = []
    steps: list[dict[str, float]] = []
    for number in range(starts):
        pipeline.wait_until(lambda: bool(pipeline.value(connection, "latency.is_idle")), "the drain did not end")
        time.sleep(_QUIET_SECONDS)
        symbols = [f"C{number * pairs + n}" for n in range(1, pairs + 1)]
        since = pipeline.value(connection, "latency.now")
        _watch(connection, "cold", symbols)
        known = {"symbols": symbols, "since": since}
        pipeline.wait_until(partial(_are_fetched, connection, known), "no prices came")
        ((run_id, requested, drained, claimed, seconds),) = connection.execute(
            statement("latency.cold"), known
        ).fetchall()
        launched, executing = (
            at - since.timestamp() for at in _event_times(started.home, run_id, _LAUNCHED, _EXECUTING)
        )
        steps.append(
            {
                "requested": requested,
                "launched": launched,
                "executing": executing,
                "drained": drained,
                "claimed": claimed,
                "stored": mean(seconds),
            }
        )
        stored += seconds
        connection.execute(statement("latency.leave_all"))
    return [
        _row("cold_p50_seconds", percentile(stored, 0.5)),
        _row("cold_p95_seconds", percentile(stored, 0.95)),
        *(_row(f"cold_until_{step}_seconds", mean(start[step] for start in steps)) for step in steps[0]),
    ]


def _event_times(home: Path, run_id: str, *kinds: str) -> list[float]:
    """When the first event of each kind of a Dagster run was, in Unix seconds."""
    events = _ask_dagster(home, _RUN_EVENTS, run=run_id)["runOrError"]["eventConnection"]["events"]
    return [min(float(event["timestamp"]) for event in events if event["__typename"] == kind) / 1000 for kind in kinds]


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
        *(
            _row(f"warm_until_{step}_seconds@pairs={pairs}", mean(seconds))
            for step, seconds in (("queued", queued), ("claimed", claimed), ("stored", stored))
        ),
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
            with psycopg.connect(connection.info.dsn, password=connection.info.password, autocommit=True) as own:
                minute = 0
                while True:
                    for number, group in enumerate(groups):
                        within = arrival if minute == 0 else 60
                        due = began + 60 * minute + within * number / len(groups)
                        if is_over.wait(max(due - time.monotonic(), 0)):
                            return
                        _watch(own, str(number), group)
                    minute += 1
        except BaseException as error:  # raised again for the thread that waits for the viewers
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
def _pipeline(provider_url: str, pairs: int) -> Iterator[pipeline.Pipeline]:
    """A pipeline that nobody uses yet, whose only provider is at `provider_url`."""
    settings = {
        "PRICING_SANDBOX": "false",
        "PRICING_TWELVEDATA_API_KEY": SANDBOX_KEY.get_secret_value(),
    }
    with pipeline.running(settings, "--no-demo") as started:
        started.connection.execute(statement("latency.arrange"), {"url": provider_url, "pairs": pairs})
        pipeline.wait_until(lambda: _is_loaded(started.home), "the new type was not loaded")
        yield started


def _is_loaded(home: Path) -> bool:
    """Whether Dagster has the asset of the new type."""
    if read_state(home) is None:
        return False
    nodes = _ask_dagster(home, _ASSETS)["assetNodes"]
    return ["price_history", "minute_quote"] in [node["assetKey"]["path"] for node in nodes]


def _ask_dagster(home: Path, query: str, **variables: str) -> dict[str, Any]:
    state = read_state(home)
    if state is None:
        raise crew.WorkerError("the pipeline has ended")
    content = {"query": query, "variables": variables}
    answer = httpx.post(f"{state['urls']['dagster']}/graphql", json=content, trust_env=False)
    data: dict[str, Any] = answer.raise_for_status().json()["data"]
    return data
