"""D2: a worker that dies, stops or sleeps in a sync of several requests: nothing is lost, and no day is half-synced.

Whatever happens to the worker, a product's slots are those of one answer, old or new. Its task is done again, and no
minute has more requests than its limit.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import (
    MONTH,
    NOON,
    UNLIMITED,
    WEEK,
    Stored,
    database,
    load_types,
    moving,
    partner,
    sell,
    sync,
)
from pricing_pipeline_tests.support.workers import Worker
from pricing_pipeline_tests.tools.audit import audit

LEASE = 61
A_MINUTE = 8
"""How many requests the partner allows a minute. A product of three options takes four."""
TOUR = 2
"""Its product has three options."""


@pytest.fixture(autouse=True)
def noon(core: Core, clock: Clock) -> None:
    load_types(core)
    clock.set(NOON)
    clock.stop()


@pytest.fixture
def standing() -> Iterator[RunningSandbox]:
    """A sandbox for which it is always noon: its slots change only when a test says so."""
    with running_sandbox(clock=lambda: NOON, **UNLIMITED) as sandbox:
        yield sandbox


def synced_before(core: Core, standing: RunningSandbox) -> Stored:
    """What is stored of the product, all of which has changed at the partner since; it is asked for again."""
    symbols = sell(core, "octo", [TOUR])
    sync(core, standing, MONTH, symbols)
    standing.change_slots(100, seed=5)
    core.rows("UPDATE pricing.provider_limits SET units = :most WHERE provider = 'octo'", most=A_MINUTE)
    core.enqueue(WEEK, *symbols, priority=-1)
    return stored(core, standing)


def stored(core: Core, standing: RunningSandbox) -> Stored:
    return database(core, standing, [TOUR], "octo", 7)


def finish(core: Core, standing: RunningSandbox, clock: Clock) -> None:
    """An heir does what is left, and all is as if nothing had happened."""
    with refreshing(core.engine, standing.url, worker="heir") as heir, moving(clock, 2):
        work_until(heir, is_idle(core))
    clock.advance(LEASE)
    core.rows("SELECT pricing.expire_calls()")
    assert core.tasks()[-1].status == "completed"
    assert stored(core, standing).fields == partner(core, standing, "octo", [TOUR], 7)
    audit(core)
    times = [at for (at,) in core.rows("SELECT started_at FROM pricing.collector_call_log ORDER BY 1")]
    assert len(standing.calls("octo")) <= len(times), "none is made that is not logged"
    for earlier, later in zip(times, times[A_MINUTE:], strict=False):
        assert later - earlier >= timedelta(minutes=1)


@pytest.mark.parametrize("point", ["claimed", "page", "paged", "answered", "stored", "committed"])
def test_d2_a_worker_killed_in_mid_sync_leaves_whole_days_and_the_task_is_done_again(
    core: Core, clock: Clock, database_url: str, standing: RunningSandbox, point: str
) -> None:
    before = synced_before(core, standing)
    with Worker("drain", url=database_url, sandbox=standing.url, seconds=600, halt=point).start() as worker:
        worker.says("halted")
        worker.kill()
    after = stored(core, standing)
    if point == "committed":
        assert after.fields == partner(core, standing, "octo", [TOUR], 7) != before.fields
    else:
        assert after == before, "nothing of a sync that was cut is stored"
        assert core.tasks()[-1].status == "processing"
    audit(core)
    clock.advance(LEASE)
    finish(core, standing, clock)
    assert core.tasks()[-1].attempt == (1 if point == "committed" else 2)


def test_d2_a_worker_that_stops_in_mid_sync_gives_its_task_back_at_once(
    core: Core, clock: Clock, database_url: str, standing: RunningSandbox
) -> None:
    """A stop is nobody's fault: the next sync waits for nothing but the limit."""
    before = synced_before(core, standing)
    core.rows("UPDATE pricing.provider_limits SET units = 5 WHERE provider = 'octo'")
    waits = "SELECT page_until > pricing.clock() FROM pricing.provider_state WHERE provider = 'octo'"
    with Worker("drain", url=database_url, sandbox=standing.url, seconds=600).start() as worker:
        wait_until(lambda: core.one(waits))
        worker.signal(signal.SIGINT)
        wait_until(lambda: core.tasks()[-1].status == "pending")
        assert core.tasks()[-1].run_after is None
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.drains WHERE finished_at IS NULL") == 0)
    assert stored(core, standing) == before
    assert (core.tasks()[-1].attempt, core.tasks()[-1].errors[-1]["kind"]) == (0, "worker_stopped")
    assert core.one("SELECT count(*) FROM pricing.collector_call_log WHERE finished_at IS NULL") == 0
    clock.advance(LEASE)
    finish(core, standing, clock)
    assert core.tasks()[-1].attempt == 1


def test_d2_a_worker_that_slept_in_mid_sync_stores_nothing_late(
    core: Core, clock: Clock, database_url: str, standing: RunningSandbox
) -> None:
    """It sleeps through its lease between two requests, an heir syncs, and it wakes: it asks for nothing more."""
    synced_before(core, standing)
    asked = len(standing.calls("octo"))
    standing.behave("delay", provider="octo", seconds=4, count=2)
    with Worker("drain", url=database_url, sandbox=standing.url, seconds=8).start() as worker:
        wait_until(lambda: len(standing.calls("octo")) == asked + 2)
        worker.signal(signal.SIGSTOP)
        standing.behave_well()
        clock.advance(LEASE)
        finish(core, standing, clock)
        after, made = stored(core, standing), len(standing.calls("octo"))
        wait_until(lambda: all(call["status"] for call in standing.calls("octo")))
        standing.change_slots(100, seed=6)
        worker.signal(signal.SIGCONT)
        reported = worker.result()
    assert (reported["added"], reported["symbols"]) == (0, [])
    assert len(standing.calls("octo")) == made
    assert stored(core, standing) == after
    audit(core)


def test_d2_workers_killed_again_and_again_sync_every_product(
    core: Core, clock: Clock, database_url: str, standing: RunningSandbox
) -> None:
    """Two at a time, at any moment; after each, every product has the slots of one answer."""
    numbers = range(1, 7)
    symbols = sell(core, "octo", numbers)
    sync(core, standing, MONTH, symbols)
    olds = {number: database(core, standing, [number], "octo", 7).fields for number in numbers}
    standing.change_slots(100, seed=5)
    news = {number: partner(core, standing, "octo", [number], 7) for number in numbers}
    core.enqueue(WEEK, *symbols, priority=-1)
    standing.behave("delay", provider="octo", seconds=0.1)
    for turn in range(3):
        asked = len(standing.calls("octo"))
        with (
            Worker("drain", url=database_url, sandbox=standing.url, seconds=600).start() as one,
            Worker("drain", url=database_url, sandbox=standing.url, seconds=600).start() as other,
        ):
            wait_until(lambda: len(standing.calls("octo")) >= asked + 2 + turn)  # noqa: B023
            one.kill()
            other.kill()
        for number in numbers:
            fields = database(core, standing, [number], "octo", 7).fields
            assert fields in (olds[number], news[number])
        audit(core)
        clock.advance(LEASE)
    standing.behave_well()
    with refreshing(core.engine, standing.url, worker="heir") as heir, moving(clock, 2):
        work_until(heir, is_idle(core))
    assert {number: database(core, standing, [number], "octo", 7).fields for number in numbers} == news
    audit(core)
