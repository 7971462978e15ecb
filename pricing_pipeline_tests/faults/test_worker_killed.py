"""Workers that die or sleep in the middle of their work: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.workers import Worker
from pricing_pipeline_tests.tools.audit import audit

SYMBOLS = ["AAPL", "META", "GOOG", "IBM", "MSFT"]
LEASE = 61


def all_completed(core: Core) -> Callable[[], bool]:
    return lambda: set(core.statuses().values()) == {"completed"}


def finish(core: Core, sandbox: RunningSandbox) -> None:
    """Let an heir do what is left."""
    with refreshing(core.engine, sandbox.url, worker="heir") as heir:
        work_until(heir, all_completed(core))


# A quote that is good throughout is stored and committed by one statement; of bars nothing is, before their commit.
@pytest.mark.parametrize(
    ("data_type", "point"), [(QUOTE, "claimed"), (QUOTE, "answered"), (DAILY, "stored"), (QUOTE, "committed")]
)
def test_b11_a_worker_killed_at_any_point_costs_nothing(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox, data_type: str, point: str
) -> None:
    """Each price is stored once, by the worker that lived to commit it."""
    core.heartbeat("ann", *((data_type, symbol) for symbol in SYMBOLS))
    with Worker("drain", url=database_url, sandbox=sandbox.url, seconds=600, halt=point).start() as worker:
        worker.says("halted")
        worker.kill()
    is_stored = point == "committed"
    assert len(core.rows("SELECT DISTINCT symbol FROM pricing.price_history")) == (5 if is_stored else 0)
    audit(core, acknowledged=5)

    clock.advance(LEASE)
    finish(core, sandbox)
    clock.advance(1)
    core.rows("SELECT pricing.expire_calls()")
    audit(core)
    first_five = core.tasks()[:5]
    assert {(task.status, task.attempt) for task in first_five} == {("completed", 1 if is_stored else 2)}
    outcomes = Counter(row.outcome for row in core.rows("SELECT outcome FROM pricing.collector_call_log"))
    if not is_stored:
        # The lost call counts at its estimate: nobody knows whether it was made.
        assert outcomes == {"ok": 1, "unknown": 1}
        assert len(core.rows("SELECT DISTINCT symbol FROM pricing.price_history")) == 5
        assert len(sandbox.calls()) == (1 if point == "claimed" else 2)


def test_b11_a_worker_killed_in_mid_call_costs_nothing(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox
) -> None:
    """The provider hangs, so the worker dies between question and answer."""
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in SYMBOLS))
    sandbox.behave("hang", count=1)
    with Worker("drain", url=database_url, sandbox=sandbox.url, seconds=600).start() as worker:
        wait_until(lambda: len(sandbox.calls()) == 1)
        worker.kill()
    assert set(core.statuses().values()) == {"processing"}
    audit(core, acknowledged=5)
    clock.advance(LEASE)
    finish(core, sandbox)
    audit(core)
    assert {task.attempt for task in core.tasks()} == {2}
    assert len(core.rows("SELECT FROM pricing.price_history")) == 5
    assert [call["status"] for call in sandbox.calls()] == [None, 200]


def test_b11_workers_killed_again_and_again_lose_nothing(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox
) -> None:
    symbols = [f"S{number:04d}" for number in range(600)]
    core.lift_limits(batch_size=10)
    core.enqueue(QUOTE, *symbols)
    for turn in range(3):
        enough = 100 * (turn + 1)
        with Worker("drain", url=database_url, sandbox=sandbox.url, seconds=600).start() as worker:
            wait_until(lambda: list(core.statuses().values()).count("completed") >= enough)  # noqa: B023
            worker.kill()
        audit(core, acknowledged=600)
        clock.advance(LEASE)
    finish(core, sandbox)
    audit(core, acknowledged=600)
    assert Counter(core.statuses().values()) == {"completed": 600}
    stored = Counter(row.symbol for row in core.rows("SELECT symbol FROM pricing.price_history"))
    assert set(stored) == set(symbols)
    assert set(stored.values()) == {1}, "no price is doubled"


def test_b11_a_worker_that_is_interrupted_gives_its_tasks_back_before_it_ends(
    core: Core, database_url: str, sandbox: RunningSandbox
) -> None:
    """No lease has to run out: the heir has them within seconds, with all their attempts."""
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in SYMBOLS))
    sandbox.behave("hang", count=1)
    with Worker("drain", url=database_url, sandbox=sandbox.url, seconds=600).start() as worker:
        wait_until(lambda: len(sandbox.calls()) == 1)
        worker.signal(signal.SIGINT)
        wait_until(lambda: set(core.statuses().values()) == {"pending"})
        assert {task.attempt for task in core.tasks()} == {0}
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.drains WHERE finished_at IS NULL") == 0)
        finish(core, sandbox)
    assert {task.attempt for task in core.tasks()} == {1}
    assert {error["kind"] for task in core.tasks() for error in task.errors} == {"worker_stopped"}
    assert len(core.rows("SELECT FROM pricing.price_history")) == 5
    audit(core, acknowledged=5)


def test_b11_a_worker_that_slept_through_its_lease_is_refused(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox
) -> None:
    """SIGSTOP in mid-call, recovery, an heir that finishes, SIGCONT: the late answer changes nothing."""
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in SYMBOLS), (NAV, "118632"))
    sandbox.behave("delay", seconds=6, count=2)
    with Worker("drain", url=database_url, sandbox=sandbox.url, seconds=8).start() as worker:
        wait_until(lambda: len(sandbox.calls()) == 2)
        worker.signal(signal.SIGSTOP)
        clock.advance(LEASE)
        core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 600")  # nothing becomes due meanwhile
        finish(core, sandbox)
        core.refresh(MFAPI)
        before = {
            table: core.rows(f"SELECT t::text FROM pricing.{table} t ORDER BY 1")
            for table in (
                "latest_prices",
                "price_history",
                "price_revisions",
                "api_call_queue",
                "provider_state",
            )
        }
        usage = core.rows("SELECT sum(bytes) FROM pricing.api_data_usage")
        wait_until(lambda: all(call["status"] for call in sandbox.calls()))
        worker.signal(signal.SIGCONT)
        made = worker.result()
    assert (made["calls"], made["added"], made["symbols"]) == (2, 0, [])
    for table, rows in before.items():
        assert core.rows(f"SELECT t::text FROM pricing.{table} t ORDER BY 1") == rows
    assert {row.worker for row in core.rows("SELECT worker FROM pricing.api_call_queue_completed")} == {"heir"}
    assert core.rows("SELECT sum(bytes) FROM pricing.api_data_usage") == usage, "their estimate was booked before"
    audit(core)


def test_b11_a_worker_is_patient_with_its_own_slow_calls(
    core: Core, database_url: str, sandbox: RunningSandbox
) -> None:
    """A call has its deadline well within the lease, so a living worker never loses its claim."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    sandbox.behave("hang", count=1)
    with refreshing(core.engine, sandbox.url, deadline=0.4) as refresher:
        work_until(refresher, lambda: core.task("AAPL").status == "scheduled")
    task = core.task("AAPL")
    assert (task.status, task.errors[0]["kind"]) == ("scheduled", "provider_down")
    assert task.run_after - core.clock() < timedelta(seconds=6)
