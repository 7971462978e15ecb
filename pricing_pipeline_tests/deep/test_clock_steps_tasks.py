"""After a step of the clock, tasks, drains and schedules go on, and nothing that is young is thrown away."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from pricing_pipeline.demand import drains
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.clock_steps import BACK, DAY, HOUR, YEAR, step, tick, warned

pytestmark = pytest.mark.usefixtures("still")


# Tasks


@BACK
def test_b11_lost_tasks_come_back_when_their_lease_would_have_run_out(core: Core, clock: Clock, back: int) -> None:
    core.enqueue(QUOTE, "AAPL")
    lost = core.claim_one()
    step(core, clock, -back)
    assert core.task("AAPL").status == "processing"
    for _ in range(7):
        clock.advance(10)
        tick(core)
    assert core.task("AAPL").status == "pending"
    assert core.complete(lost) == set(), "its late end is refused"
    assert core.one("SELECT count(*) FROM pricing.collector_call_log WHERE finished_at IS NULL") == 0


@BACK
def test_b11_who_is_at_work_keeps_what_he_has_claimed(core: Core, clock: Clock, back: int) -> None:
    core.enqueue(QUOTE, "AAPL")
    tick(core)
    clock.advance(-back)
    claimed_between = core.claim_one()
    tick(core)
    clock.advance(11)
    tick(core)
    assert core.complete(claimed_between) == set(claimed_between.task_ids)


@BACK
def test_b11_a_retry_comes_when_it_would_have(core: Core, clock: Clock, back: int) -> None:
    core.enqueue(QUOTE, "AAPL")
    for pause in (7, 40):
        core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
        clock.advance(pause)
        core.promote()
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    step(core, clock, -back)
    assert core.task("AAPL").status == "scheduled"
    clock.advance(140)
    tick(core)
    assert core.task("AAPL").status == "pending"


@pytest.mark.parametrize("ahead", [HOUR, 3 * DAY, YEAR])
def test_b11_a_step_forward_ends_leases_and_work_goes_on(core: Core, clock: Clock, ahead: int) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    late = core.claim_one()
    tick(core)
    clock.advance(ahead)
    for _ in range(6):
        core.heartbeat("ann", (QUOTE, "AAPL"))
        tick(core)
        clock.advance(10)
    assert core.claim_one().symbols == ["AAPL"]
    assert core.complete(late) == set()


# Drains, schedules and what is to be asked again


def test_b17_a_drain_that_died_before_the_clock_was_set_back_is_dead(core: Core, clock: Clock) -> None:
    assert core.one("SELECT pricing.begin_drain('w', 'run 1', 120)") is not None
    tick(core)
    clock.advance(-HOUR)
    tick(core)
    assert core.one("SELECT pricing.begin_drain('x', 'run 2', 120)") is None, "it may be alive"
    clock.advance(16)
    with core.engine.connect() as connection:
        assert drains.outlook(connection).drain_id is None
    begun = core.one("SELECT pricing.begin_drain('x', 'run 2', 120)")
    with core.engine.connect() as connection:
        assert drains.outlook(connection).drain_id == begun


def test_b17_a_drain_that_is_alive_hands_over_when_it_would_have(core: Core, clock: Clock) -> None:
    drain = core.one("SELECT pricing.begin_drain('w', 'run 1', 120)")
    tick(core)
    clock.advance(-3 * DAY)
    core.rows("SELECT pricing.extend_drain(:drain)", drain=drain)
    tick(core)
    with core.engine.connect() as connection:
        outlook = drains.outlook(connection)
    assert outlook.drain_id == drain
    assert outlook.drain_seconds_left == pytest.approx(120, abs=15)


@pytest.mark.parametrize("ahead", [3 * DAY, YEAR])
def test_b14_slots_served_while_the_clock_was_ahead_are_owed_once_more(core: Core, clock: Clock, ahead: int) -> None:
    clock.set(datetime(2026, 11, 19, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = pricing.clock()")
    clock.advance(ahead)
    serve = "SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock())"
    assert core.call(serve) is not None
    step(core, clock, -ahead)
    clock.advance(HOUR)
    assert core.call(serve) is not None


def test_b14_a_slot_of_a_clock_that_is_far_ahead_swallows_no_other(core: Core, clock: Clock) -> None:
    assert core.call("SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock() + interval '3 days')") is not None
    clock.advance(60)
    assert core.call("SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock())") is not None


def test_b14_instruments_priced_while_the_clock_was_ahead_are_walked(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.instruments SET calendar = '24/7', verified_at = pricing.clock() WHERE asset_class = 'fund'"
    )
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale' WHERE data_type = 'mf_nav'")
    core.rows("SELECT pricing.store_own_sessions('24/7', '2025-01-01', '2029-01-01')")
    core.enqueue(NAV, "118632")
    clock.advance(YEAR)
    core.refresh("mfapi")
    step(core, clock, -YEAR)
    clock.advance(2 * DAY)
    core.call("SELECT pricing.enqueue_scheduled('mf_nav')")
    assert "pending" in {task.status for task in core.tasks("118632")}


def test_c3_days_that_are_to_come_are_not_covered(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.history_coverage VALUES ('equity_daily', 'AAPL', '{[2020-01-01,infinity)}')")
    step(core, clock, -HOUR)
    assert core.one("SELECT upper(covered) = (pricing.clock() AT TIME ZONE 'UTC')::date FROM pricing.history_coverage")


def test_c3_a_duty_whose_row_was_locked_during_a_step_goes_on_when_it_is_free(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    with core.owner.begin() as connection:
        connection.execute(
            text("SELECT FROM pricing.duties WHERE duty IN ('recover_tasks', 'expire_calls') FOR UPDATE")
        )
        clock.advance(-3 * DAY)
        for _ in range(3):
            tick(core)
    clock.advance(61)
    assert {"recover_tasks", "expire_calls"} <= set(tick(core))
    assert core.statuses() == {"AAPL": "pending"}
    clock.advance(20)
    assert {"recover_tasks", "expire_calls"} <= set(tick(core))
    assert len(warned(core)) == 1, "and the step is followed once"


def test_c3_a_step_that_is_taken_back_before_it_was_followed_is_forgotten(core: Core, clock: Clock) -> None:
    """A pause that a provider asked for is kept, though the step could not be followed while a row was locked."""
    core.heartbeat("ann", (QUOTE, "IBM"))
    core.refresh()
    tick(core)
    core.throttle(TWELVEDATA, 1800)
    until = core.one("SELECT blocked_until FROM pricing.provider_keys")
    with core.owner.begin() as connection:
        connection.execute(text("SELECT FROM pricing.demand FOR UPDATE"))
        clock.advance(-HOUR)
        tick(core)
        clock.advance(HOUR)
        tick(core)
    clock.advance(20)
    tick(core)
    assert core.one("SELECT blocked_until FROM pricing.provider_keys") == until


# What cannot be undone


def test_b8_time_that_nobody_worked_does_not_make_a_snoozed_task_give_up(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.THROTTLED, "too fast")
    tick(core)
    clock.advance(2 * DAY)
    tick(core)
    core.call("SELECT pricing.promote_tasks()")
    core.fail(core.claim_one(), FailureKind.THROTTLED, "too fast")
    assert core.statuses() == {"AAPL": "scheduled"}


def test_b9_a_step_forward_throws_nothing_away_for_an_hour(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one())
    core.rows("INSERT INTO pricing.pair_views VALUES ('equity_quote', 'AAPL', pricing.clock())")
    tick(core)
    clock.advance(YEAR)
    ran = tick(core)
    assert "recover_tasks" in ran
    undone = {"prune", "prune_calls", "thin_history", "forget_views"}
    assert not undone & set(ran)
    for _ in range(5):
        clock.advance(600)
        assert not undone & set(tick(core))
    counts = (
        "SELECT (SELECT count(*) FROM pricing.collector_call_log) + (SELECT count(*) FROM pricing.pair_views)"
        " + (SELECT count(*) FROM pricing.api_call_queue_completed)"
    )
    assert core.one(counts) == 3
    assert len(warned(core)) == 1
    assert "set it right before" in warned(core)[0]
    clock.advance(601)
    assert undone <= set(tick(core))
    assert core.one(counts) == 0


def test_b9_a_clock_that_is_set_right_in_time_has_cost_nothing(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one())
    tick(core)
    clock.advance(YEAR)
    tick(core)
    step(core, clock, -YEAR)
    clock.advance(HOUR)
    assert {"prune", "thin_history"} <= set(tick(core))
    assert core.statuses() == {"AAPL": "completed"}
