"""Slots from the partners of the sandbox in drains to their end: storms, limits, lost pages and bad answers (D1-D4)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_slots_end_to_end import noon, sandbox, types
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import (
    MONTH,
    NOON,
    TODAY,
    UNLIMITED,
    WEEK,
    all_versions,
    database,
    moving,
    partner,
    sell,
    sync,
)
from pricing_pipeline_tests.tools.audit import audit

__all__ = ["noon", "sandbox", "types"]


@pytest.fixture
def standing() -> Iterator[RunningSandbox]:
    """A sandbox for which it is always noon: while the tests move the database's clock, its slots stay as they are."""
    with running_sandbox(clock=lambda: NOON, **UNLIMITED) as sandbox:
        yield sandbox


@pytest.mark.parametrize(("provider", "number", "hour"), [("octo", 4, 20), ("headout", 7, 3)])
def test_d1_the_first_slots_of_today_are_those_of_the_day_where_the_product_is(
    core: Core, sandbox: RunningSandbox, clock: Clock, provider: str, number: int, hour: int
) -> None:
    """Its zone is not known before the call, and its day may be another one than in UTC."""
    clock.set(NOON.replace(hour=hour))
    symbols = sell(core, provider, [number])
    sync(core, sandbox, TODAY, symbols)
    stored = database(core, sandbox, [number], provider, 1).fields
    assert stored == partner(core, sandbox, provider, [number], 1)
    assert stored


def test_d2_a_storm_of_refusals_loses_nothing(core: Core, standing: RunningSandbox, clock: Clock) -> None:
    """Half of all requests are refused for a while, in the middle of calls, too; each costs its key a pause."""
    provider, numbers = "headout", range(1, 5)
    symbols = sell(core, provider, numbers)
    core.enqueue(WEEK, *symbols, priority=-1)
    standing.behave("throttle", provider=provider, retry_after="2", probability=0.5, seed=3, count=5)
    with refreshing(core.engine, standing.url) as refresher, moving(clock, 5):
        work_until(refresher, lambda: set(core.statuses().values()) == {"completed"})
    assert [call["status"] for call in standing.calls(provider)].count(429) == 5
    assert database(core, standing, numbers, provider, 7).fields == partner(core, standing, provider, numbers, 7)
    audit(core)


def test_d3_so_many_requests_a_minute_whatever_is_queued(core: Core, sandbox: RunningSandbox, clock: Clock) -> None:
    """No minute has an eleventh where ten are allowed, and each minute is used.

    When a request was allowed decides, not when it arrived: the clock leaps by more than the limits' margin, and it may
    leap while a request is on its way.
    """
    numbers = range(1, 9)
    symbols = sell(core, "octo", numbers)
    core.rows("UPDATE pricing.provider_limits SET units = 10 WHERE provider = 'octo'")
    core.enqueue(TODAY, *symbols, priority=-1)
    with refreshing(core.engine, sandbox.url) as refresher, moving(clock, 2):
        work_until(refresher, is_idle(core))
    allowed = core.rows("SELECT started_at FROM pricing.collector_call_log ORDER BY started_at")
    times = [moment for (moment,) in allowed]
    assert len(times) == len(sandbox.calls("octo")) >= 2 * len(symbols)
    assert all(later - earlier >= timedelta(minutes=1) for earlier, later in zip(times, times[10:], strict=False))
    minutes = (times[-1] - times[0]) / timedelta(minutes=1)
    assert len(times) / 10 - 1 <= minutes <= len(times) / 10 + 1
    assert database(core, sandbox, numbers, "octo", 1).fields
    assert set(core.statuses().values()) == {"completed"}


def test_d2_a_product_that_is_gone_fails_alone_and_keeps_what_was_believed(core: Core, sandbox: RunningSandbox) -> None:
    symbols = sell(core, "octo", [1, 2])
    sync(core, sandbox, WEEK, symbols)
    before = database(core, sandbox, [1, 2], "octo", 7)
    sandbox.change_tour(2, is_gone=True)
    sandbox.change_slots(20, seed=1)
    sync(core, sandbox, WEEK, symbols)
    statuses = {task.symbol: (task.status, task.failure_kind) for task in core.tasks()}
    assert statuses == {"OCT-1001": ("completed", None), "OCT-1002": ("failed", "unknown_symbol")}
    sandbox.sandbox.tours.reset()
    sandbox.change_slots(20, seed=1)
    assert database(core, sandbox, [1], "octo", 7).fields == partner(core, sandbox, "octo", [1], 7)
    gone = {key: row for key, row in before.fields.items() if key[1] == "OCT-1002"}
    assert database(core, sandbox, [2], "octo", 7).fields == gone
    assert core.rows("SELECT symbol FROM pricing.products WHERE NOT is_listed") == [("OCT-1002",)]
    assert not core.one("SELECT bool_or(a.sellable) FROM pricing.availability('OCT-1002') a"), (
        "none of its slots can be booked"
    )


def test_d4_a_page_that_is_missing_in_the_middle_stores_nothing_and_is_asked_for_again(
    core: Core, standing: RunningSandbox, clock: Clock
) -> None:
    symbols = sell(core, "headout", [3])
    sync(core, standing, MONTH, symbols)
    before = all_versions(core)
    standing.change_slots(30, seed=1)
    standing.behave("lost_rows", provider="headout", path="inventory", count=1)
    core.enqueue(MONTH, *symbols)
    with refreshing(core.engine, standing.url) as refresher:
        work_until(refresher, lambda: bool(core.tasks("5003")[-1].errors))
        assert all_versions(core) == before, "nothing of the torn answer is stored"
        with moving(clock, 5):
            work_until(refresher, lambda: core.tasks("5003")[-1].status == "completed")
    assert database(core, standing, [3], "headout", 30).fields == partner(core, standing, "headout", [3], 30)


def test_d2_bad_answers_of_any_kind_store_nothing_and_end_with_them(
    core: Core, standing: RunningSandbox, clock: Clock
) -> None:
    symbols = sell(core, "octo", [1]) + sell(core, "headout", [1])
    faults: list[dict[str, object]] = [
        {"kind": "status", "status": 503},
        {"kind": "html"},
        {"kind": "truncate"},
        {"kind": "cut"},
        {"kind": "price", "value": "-1.0"},
        {"kind": "currency", "value": "XXZ", "provider": "octo"},
    ]
    core.enqueue(TODAY, *symbols)
    with refreshing(core.engine, standing.url) as refresher:
        for fault in faults[:3]:
            standing.behave(**fault)
        work_until(refresher, lambda: all(task.attempt >= 1 and task.errors for task in core.tasks()))
        assert core.one("SELECT count(*) FROM pricing.slots") == 0
        standing.behave_well()
        for fault in faults[3:]:
            standing.behave(**fault, count=1)
        with moving(clock, 5):
            work_until(refresher, lambda: set(core.statuses().values()) == {"completed"})
    for provider in ("octo", "headout"):
        assert database(core, standing, [1], provider, 1).fields == partner(core, standing, provider, [1], 1)
