"""How many sessions the API and a drain open at most, however much is asked at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from pricing_pipeline.api.server import make_api_engine
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.refresh.refresher import SESSIONS
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, symbols
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.integration.test_connection_budget import BUDGET
from pricing_pipeline_tests.support.api_server import running_api
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.sessions import at_once


@pytest.fixture
def most_seen(server: TestServer, database_url: str) -> Callable[[], int]:
    """Asks how many sessions the worker has open in this test's database now."""
    there = make_url(server.admin_url).set(database="postgres").render_as_string(hide_password=False)

    def count() -> int:
        with psycopg.connect(there, autocommit=True) as admin:
            found = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE usename = 'pricing_worker' AND datname = %s",
                [make_url(database_url).database],
            ).fetchone()
        return int(found[0]) if found else 0

    return count


@contextmanager
def watching(count: Callable[[], int]) -> Iterator[list[int]]:
    """Look again and again, in a thread of its own."""
    seen, stop = [0], threading.Event()

    def look() -> None:
        while not stop.wait(0.01):
            seen.append(count())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


@pytest.mark.own_sessions
def test_a_drain_opens_no_more_than_its_budget(
    core: Core, database_url: str, sandbox: RunningSandbox, most_seen: Callable[[], int]
) -> None:
    core.lift_limits(batch_size=2)
    core.enqueue(QUOTE, *symbols(80))
    core.engine.dispose()
    engine = make_engine(database_url, pool_size=SESSIONS)
    with watching(most_seen) as seen, refreshing(engine, sandbox.url) as refresher:
        left = "SELECT count(*) FROM pricing.api_call_queue_live"
        work_until(refresher, lambda: core.one(left) == 0)
    engine.dispose()
    assert 4 <= max(seen) <= BUDGET["a run, and the code server"]


@pytest.mark.own_sessions
def test_the_api_opens_no_more_than_its_budget(
    core: Core, database_url: str, owner_engine: Engine, most_seen: Callable[[], int]
) -> None:
    engine = make_api_engine(database_url)
    with running_api(engine, owner_engine) as api:
        callers = [api.caller(Scope.READ, Scope.WATCH, user=f"user {number}") for number in range(24)]

        def ask(number: int) -> None:
            for symbol in symbols(2):
                callers[number].post("heartbeat", {"pairs": [{"data_type": QUOTE, "symbol": symbol}]})
                callers[number].get("prices", symbols=symbol)
                callers[number].get("instruments")

        with watching(most_seen) as seen:
            assert at_once(24, ask) == []
    engine.dispose()
    assert 4 <= max(seen) <= BUDGET["api"]
