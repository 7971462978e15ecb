"""After a step of the clock, prices keep their age, and viewers are served as before."""

from __future__ import annotations

import pytest

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.clock_steps import BACK, DAY, HOUR, step, tick

pytestmark = pytest.mark.usefixtures("still")


def test_g2_a_price_keeps_its_age_when_its_hour_comes_again(core: Core, clock: Clock) -> None:
    """It counted as new when the clock came to the time at which it was fetched once more."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    tick(core)
    step(core, clock, -HOUR)
    clock.advance(HOUR - 30)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.enqueue_due()
    clock.advance(31)
    with core.engine.connect() as connection:
        (row,) = freshness.measure(connection, [QUOTE])
    assert (row.fresh, row.is_calm) == (0, False)


@BACK
def test_g2_prices_of_the_time_that_comes_once_more_are_not_fresh(
    core: Core, clock: Clock, cli: CommandLine, back: int
) -> None:
    pairs = ((QUOTE, "AAPL"), (DAILY, "AAPL"))
    core.heartbeat("ann", *pairs)
    core.refresh()
    # The source's clock was right all the time.
    core.rows("UPDATE pricing.latest_prices SET observed_at = observed_at - make_interval(secs => :s)", s=back + 60)
    core.rows("UPDATE pricing.price_history SET observed_at = observed_at - make_interval(secs => :s)", s=back + 60)
    tick(core)
    clock.advance(-back)
    with core.engine.connect() as connection:
        assert {row.data_type: row.fresh for row in freshness.measure(connection) if row.watched} == {
            QUOTE: 0,
            DAILY: 0,
        }
    assert not any(row.fresh for row in core.rows("SELECT fresh FROM pricing.price('AAPL')"))
    assert core.one("SELECT sentence FROM pricing.why_old('equity_daily', 'AAPL')").startswith("last confirmed at 20")
    core.rows("DELETE FROM pricing.api_call_queue")  # what the read has queued
    core.rows("UPDATE pricing.demand SET became_due_at = NULL")
    for _ in range(2):
        tick(core)
    assert {task.data_type for task in core.tasks() if task.status == "pending"} == {QUOTE, DAILY}
    core.refresh()
    with core.engine.connect() as connection:
        assert {row.data_type: row.fresh for row in freshness.measure(connection) if row.watched} == {
            QUOTE: 1,
            DAILY: 1,
        }
    assert "clock was set back" in cli("status").stdout


@BACK
def test_b8_a_pair_that_backs_off_is_asked_for_when_it_would_have_been(core: Core, clock: Clock, back: int) -> None:
    core.heartbeat("ann", (QUOTE, "NOPE"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    step(core, clock, -back)
    assert core.statuses() == {"NOPE": "failed"}
    for _ in range(13):
        clock.advance(280)
        core.heartbeat("ann", (QUOTE, "NOPE"))
        tick(core)
    assert "pending" in {task.status for task in core.tasks()}


@BACK
def test_b7_who_has_left_does_not_watch_until_that_time_comes(core: Core, clock: Clock, back: int) -> None:
    clock.advance(back)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    step(core, clock, -back)
    for _ in range(12):
        core.heartbeat("bob", (QUOTE, "AAPL"))
        clock.advance(30)
        tick(core)
    assert [row.user_id for row in core.rows("SELECT user_id FROM pricing.active_subscriptions")] == ["bob"]


def test_b7_a_clock_that_was_set_back_shuts_nobody_out(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.user_caps SET new_pairs_per_minute = 60")
    core.heartbeat("ann", *((QUOTE, f"S{number}") for number in range(60)))
    step(core, clock, -HOUR)
    assert core.heartbeat("ann", *((QUOTE, f"T{number}") for number in range(10))) == 10


@BACK
def test_b8_a_clock_that_is_set_back_hides_nothing_from_checks(core: Core, clock: Clock, back: int) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    clock.advance(DAY)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    tick(core)
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = 'IBM'")
    step(core, clock, -back)
    clock.advance(61)
    tick(core)
    tick(core)
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == {"AAPL", "IBM"}
