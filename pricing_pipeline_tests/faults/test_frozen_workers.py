"""A worker that freezes at any point stops nobody, and what it finishes too late is refused."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.open_sessions import BOUND, waited
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.workers import Worker
from pricing_pipeline_tests.tools.audit import audit


@pytest.mark.parametrize(
    ("data_type", "point"), [(QUOTE, "claimed"), (QUOTE, "answered"), (DAILY, "stored"), (QUOTE, "committed")]
)
def test_fault_27_a_worker_frozen_at_any_point_stops_nobody_and_its_late_finish_is_refused(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox, data_type: str, point: str
) -> None:
    """Behind the fence it holds locks in an open transaction: the server ends its session, and its lease runs out."""
    symbols = ["AAPL", "META", "IBM"]
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 600")
    core.heartbeat("ann", *((data_type, symbol) for symbol in symbols))
    arguments: dict[str, Any] = {"url": database_url, "sandbox": sandbox.url, "halt": point, "idle": "500ms"}
    with Worker("drain", **arguments, seconds=600).start() as worker:
        worker.says("halted")
        worker.signal(signal.SIGSTOP)
        for act in (core.enqueue_due, core.promote, lambda: core.call("SELECT pricing.run_duties() IS NULL")):
            assert waited(core, act) < BOUND
        look = (data_type, "AAPL"), (data_type, "MSFT")
        assert waited(core, lambda: core.heartbeat("bob", *look)) < BOUND
        clock.advance(61)
        wait_until(
            lambda: (
                core.one(
                    "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
                    " AND datname = current_database() AND pid <> pg_backend_pid()"
                )
                == 0
            )
        )
        core.recover()
        core.call("SELECT pricing.expire_calls()")
        with refreshing(core.engine, sandbox.url, worker="heir") as heir:
            work_until(heir, lambda: set(core.statuses().values()) == {"completed"})
        stored = core.rows("SELECT t::text FROM pricing.price_history t ORDER BY 1")
        latest = core.rows("SELECT t::text FROM pricing.latest_prices t ORDER BY 1")
        worker.signal(signal.SIGCONT)
        worker.kill()
    assert core.rows("SELECT t::text FROM pricing.price_history t ORDER BY 1") == stored
    assert core.rows("SELECT t::text FROM pricing.latest_prices t ORDER BY 1") == latest
    assert {task.status for task in core.tasks()} == {"completed"}
    audit(core)
