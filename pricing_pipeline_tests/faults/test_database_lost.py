"""Sessions that are cut off, and a server that dies, under load: the work goes on by itself."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from pricing_pipeline import sample
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import driver_rows, make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

SYMBOLS = [f"S{number:04d}" for number in range(400)]
COMPLETED = "SELECT count(*) FROM pricing.api_call_queue_completed"
PENDING = "SELECT count(*) FROM pricing.api_call_queue_live WHERE status = 'pending'"


def each_price_is_stored_once(core: Core) -> None:
    assert Counter(core.statuses().values()) == {"completed": len(SYMBOLS)}
    stored = Counter(row.symbol for row in core.rows("SELECT symbol FROM pricing.price_history"))
    assert set(stored) == set(SYMBOLS)
    assert set(stored.values()) == {1}
    audit(core, acknowledged=len(SYMBOLS))


@pytest.mark.own_database  # sessions of a lent one are kept
def test_an_idle_session_that_was_cut_off_goes_unnoticed(core: Core, database_url: str) -> None:
    """A pool's sessions are tried before they are used; a server that was restarted must cost no error."""
    with psycopg.connect(database_url, autocommit=True) as killer:
        for _ in range(3):
            assert core.call("SELECT 1") == 1
            cut = killer.execute(
                "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity"
                " WHERE application_name = 'pricing-pipeline' AND datname = current_database()"
            ).fetchone()
            assert cut == (1,)


def test_b8_a_session_that_shares_the_checks_may_be_cut_off(
    core: Core, refresher: Refresher, caplog: pytest.LogCaptureFixture
) -> None:
    """Its part of a check is done by the next one, and the drain does not even pause."""
    cut: set[int] = set()

    def is_noticed() -> bool:
        shared = refresher._second._connection
        if shared is not None and not cut:
            cut.add(driver_rows(shared, "SELECT pg_backend_pid()", {})[0][0])
            core.call("SELECT pg_terminate_backend(:pid, 60000)", pid=min(cut))
        return "the second session of the staleness check" in caplog.text

    work_until(refresher, is_noticed)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, lambda: core.statuses() == {"AAPL": "completed"})
    assert "trying again" not in caplog.text


def test_b11_sessions_cut_off_at_random_cost_nothing(
    core: Core, clock: Clock, connection: Connection[Any], database_url: str, sandbox: RunningSandbox
) -> None:
    core.lift_limits(batch_size=4)
    core.enqueue(QUOTE, *SYMBOLS)
    enough = threading.Event()
    cut = 0

    def count(query: str) -> int:
        # In a session of its own, which nobody cuts off.
        row = connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def terminate() -> None:
        nonlocal cut
        dice = random.Random(3)
        with psycopg.connect(database_url, autocommit=True) as killer:
            # On a busy machine, too, work is done between two cuts. Else the pauses between attempts only grow.
            while not enough.wait(dice.uniform(0.2, 1.0)):
                victims = killer.execute(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'pricing-pipeline'"
                    " AND datname = current_database() AND usename = current_user"
                ).fetchall()
                if victims:
                    killer.execute("SELECT pg_terminate_backend(%s)", [dice.choice(victims)[0]])
                    cut += 1

    killing = threading.Thread(target=terminate)
    killing.start()
    try:
        with refreshing(core.engine, sandbox.url) as refresher:
            work_until(refresher, lambda: cut >= 10 and count(COMPLETED) >= 40)
            enough.set()
            work_until(refresher, lambda: count(PENDING) == 0)
            clock.advance(61)
            work_until(refresher, lambda: count(COMPLETED) == len(SYMBOLS))
    finally:
        enough.set()
        killing.join()
    core.rows("SELECT pricing.expire_calls()")
    each_price_is_stored_once(core)


def test_b11_a_server_that_dies_under_load_loses_nothing(open_folder: Path, sandbox: RunningSandbox) -> None:
    """Every write that was acknowledged is there again, and a drain outlives the outage."""
    server = EmbeddedServer(open_folder)
    with server:
        url = server.url("pricing")
        upgrade(url)
        assert sample.load(url)
        engine, owner = make_engine(server.url("pricing", "worker")), make_engine(url)
        try:
            core = Core(engine, owner)
            core.lift_limits(batch_size=4)
            core.enqueue(QUOTE, *SYMBOLS)
            acknowledged: list[int] = []

            def watch(is_enough: Callable[[int], bool]) -> Callable[[], bool]:
                def look() -> bool:
                    acknowledged.append(core.one(COMPLETED))
                    return is_enough(acknowledged[-1])

                return look

            with refreshing(engine, sandbox.url) as refresher:
                stopped = threading.Event()
                worker = threading.Thread(target=work_until, args=(refresher, stopped.is_set))
                worker.start()
                while not watch(lambda done: done >= 60)():
                    time.sleep(0.02)
                server.stop("immediate")
                server.start()
                assert core.one(COMPLETED) >= acknowledged[-1], "what was seen as done is still done"
                assert len(core.tasks()) == len(SYMBOLS)
                wait_until(lambda: core.one(PENDING) == 0)
                stopped.set()
                worker.join(PATIENCE)
                assert not worker.is_alive()
                with Clock(url) as clock:
                    clock.advance(61)
                work_until(refresher, watch(lambda done: done == len(SYMBOLS)))
            core.rows("SELECT pricing.expire_calls()")
            each_price_is_stored_once(core)
        finally:
            engine.dispose()
            owner.dispose()
