"""After a step of the clock, limits, quota and pauses of providers last as long as they would have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.clock_steps import BACK, DAY, HOUR, SYMBOLS, step, tick, warned

pytestmark = pytest.mark.usefixtures("still")


def limit(core: Core, units: int, seconds: int | None = 60) -> None:
    core.lift_limits(batch_size=1)
    core.rows("DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_limits VALUES ('twelvedata', 'one', :units, :seconds,"
        " CASE WHEN CAST(:seconds AS integer) IS NULL THEN 'UTC' END)",
        units=units,
        seconds=seconds,
    )


def answered(core: Core, max_calls: int = 10) -> int:
    """Claim what may be claimed, and finish it; returns how many calls."""
    calls = core.claim(max_calls=max_calls)
    for call in calls:
        core.complete(call)
        core.settle(call)
    return len(calls)


# Limits


@BACK
def test_a6_a_limit_that_was_used_up_is_free_a_minute_after_the_clock_was_set_back(
    core: Core, clock: Clock, back: int
) -> None:
    limit(core, 4)
    core.enqueue(QUOTE, *SYMBOLS)
    tick(core)
    assert (answered(core), answered(core)) == (4, 0)
    clock.advance(-back)
    tick(core)
    assert answered(core) == 0, "what counted goes on counting"
    clock.advance(66)
    assert answered(core) == 4
    assert answered(core) == 0


@BACK
def test_a6_a_clock_that_was_ahead_for_a_few_calls_keeps_nobody_waiting(core: Core, clock: Clock, back: int) -> None:
    """No duty has run meanwhile: only the calls have seen that time."""
    limit(core, 4)
    core.enqueue(QUOTE, *SYMBOLS)
    tick(core)
    clock.advance(back)
    assert answered(core) == 4
    clock.advance(-back)
    tick(core)
    clock.advance(66)
    tick(core)
    assert answered(core) == 4


@pytest.mark.parametrize("back", [12.345679, 30, 59.9, 61])
def test_b17_a_step_that_calls_have_seen_is_followed_once(core: Core, clock: Clock, back: float) -> None:
    """The time of a call is not moved if it comes within a minute, and must not tell of the step again."""
    limit(core, 4)
    core.enqueue(QUOTE, *SYMBOLS)
    tick(core)
    clock.advance(7)
    assert answered(core) == 4
    clock.advance(-back)
    for _ in range(8):
        tick(core)
        clock.advance(10)
    assert len(warned(core)) == 1
    assert answered(core) == 4


def test_a6_calls_of_the_time_that_comes_once_more_do_not_count_once_more(core: Core, clock: Clock) -> None:
    """A quarter of an hour of full minutes, set back by as much: in the log each minute is full already."""
    limit(core, 1)
    core.enqueue(QUOTE, *SYMBOLS)
    for _ in range(15):
        tick(core)
        assert answered(core) == 1
        clock.advance(66)
    clock.advance(-15 * 66)
    tick(core)
    for _ in range(15):
        clock.advance(66)
        tick(core)
        assert answered(core) == 1


def test_a6_a_day_whose_calls_no_longer_counted_is_not_full_again(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 10, 23, 30, tzinfo=UTC))
    limit(core, 4, seconds=None)
    core.enqueue(QUOTE, *SYMBOLS)
    tick(core)
    assert (answered(core), answered(core)) == (4, 0)
    clock.advance(HOUR)
    tick(core)
    assert answered(core, 1) == 1, "it is a new day"
    step(core, clock, -HOUR)
    assert answered(core) == 3, "the call of this day counts on, those of the last one do not count again"


def test_a6_hours_of_the_quota_that_come_once_more_are_booked_once(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.complete(call := core.claim_one())
    core.settle(call, wire_bytes=1000)
    step(core, clock, -3 * DAY)
    used = "SELECT pricing.bytes_used('twelvedata', pricing.clock())"
    assert core.one(used) == 1000
    assert core.one("SELECT max(hour) <= pricing.clock() FROM pricing.api_data_usage")
    clock.advance(31 * DAY)
    assert core.one(used) == 0, "and go when thirty days have passed, not when that hour's have"


@BACK
def test_b17_the_delay_between_calls_lasts_no_longer(core: Core, clock: Clock, back: int) -> None:
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 5000")
    core.enqueue(QUOTE, *SYMBOLS)
    assert answered(core) == 1
    step(core, clock, -back)
    assert answered(core) == 1


# Pauses of providers


@BACK
def test_b16_an_open_breaker_has_its_probe_when_it_would_have(core: Core, clock: Clock, back: int) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.one("SELECT pricing.open_breaker('twelvedata', 'it is down')::text")
    tick(core)
    clock.advance(-back)
    tick(core)
    assert core.claim() == []
    clock.advance(61)
    assert core.claim_one().symbols == ["AAPL"]


def test_b16_what_failed_in_the_time_that_comes_once_more_opens_no_breaker(core: Core, clock: Clock) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, *SYMBOLS)
    tick(core)
    clock.advance(HOUR)
    for _ in range(9):
        call = core.claim_one()
        core.fail(call, FailureKind.PROVIDER_DOWN)
        core.settle(call, outcome="failed", kind=FailureKind.PROVIDER_DOWN)
    clock.advance(11 * 60)  # too long ago for the breaker
    step(core, clock, -HOUR)
    clock.advance(50 * 60)  # the hour of those failures is there once more
    tick(core)
    call = core.claim_one()
    core.fail(call, FailureKind.PROVIDER_DOWN)
    core.settle(call, outcome="failed", kind=FailureKind.PROVIDER_DOWN)
    assert core.allowance().breaker == "closed"


@BACK
def test_b17_a_refused_key_is_free_when_it_would_have_been(core: Core, clock: Clock, back: int) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.throttle(TWELVEDATA, 300)
    step(core, clock, -back)
    assert core.claim() == []
    clock.advance(300)
    tick(core)
    assert core.claim_one().symbols == ["AAPL"]
