"""Which parts of the pipeline are late: each is caused and ended on a real database, and none is while all is well.

Signs of life, starts and who wants something, in any order, are in deep/test_health_model.py.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from pricing_pipeline.operations import health
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import close_breaker, open_breaker
from pricing_pipeline_tests.support.working import PAIR, go_on, late, let_pass, start, words

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def working(core: Core, clock: Clock) -> Core:
    """A pipeline that has started, and works, and somebody watches."""
    start(core)
    core.heartbeat("ann", PAIR)
    go_on(core)
    let_pass(core, clock, 60)
    assert late(core) == set()
    return core


def test_b23_duties_that_stand_still_are_late_and_no_more_when_they_go_on(working: Core, clock: Clock) -> None:
    let_pass(working, clock, 539, but=["duties"])  # one of every five minutes ran a minute before they stood still
    assert late(working) == set()
    let_pass(working, clock, 61, but=["duties"])
    assert late(working) == {"duties"}, words(working)
    go_on(working)
    assert late(working) == set(), words(working)


def test_b23_one_duty_that_fails_is_late_and_is_named(working: Core, clock: Clock) -> None:
    working.rows("ALTER FUNCTION pricing.resolve_tasks() RENAME TO resolve_nothing")
    let_pass(working, clock, 601)
    assert late(working) == {"duties"}
    assert "the duty resolve_tasks has not run since" in words(working)["duties"]
    assert "function pricing.resolve_tasks() does not exist" in words(working)["duties"]
    working.rows("ALTER FUNCTION pricing.resolve_nothing() RENAME TO resolve_tasks")
    let_pass(working, clock, 61)
    assert late(working) == set()


def test_b23_a_duty_of_each_hour_has_its_hour(working: Core, clock: Clock) -> None:
    working.rows("ALTER FUNCTION pricing.warn_frozen() RENAME TO warn_of_nothing")
    ran_at = working.one("SELECT last_success_at FROM pricing.duties WHERE duty = 'warn_frozen'")
    clock.set(ran_at + timedelta(minutes=70, seconds=-1))
    assert "warn_frozen" not in words(working).get("duties", "")
    clock.advance(1)
    assert "warn_frozen" in words(working)["duties"]


def test_b23_a_slot_that_was_not_served_is_late_after_five_minutes(working: Core, clock: Clock) -> None:
    working.rows("UPDATE pricing.schedule_walks SET next_slot = pricing.clock()")
    working.rows("UPDATE pricing.schedule_walks SET served_slot = pricing.clock() - interval '1 day'")
    let_pass(working, clock, 299, but=["schedules"])
    assert late(working) == set()
    let_pass(working, clock, 1, but=["schedules"])
    assert late(working) == {"schedules"}
    assert NAV in words(working)["schedules"]
    working.enqueue_scheduled(NAV)
    assert late(working) == set()
    working.rows("UPDATE pricing.schedule_walks SET next_slot = NULL")
    let_pass(working, clock, 1, but=["schedules"])
    assert late(working) == {"schedules"}, "nobody has read it for as long"


def test_b23_due_work_of_which_nothing_is_completed_is_late(working: Core, clock: Clock) -> None:
    working.enqueue(QUOTE, "MSFT")
    let_pass(working, clock, 600, but=["queue"])
    assert "queue" not in late(working)
    let_pass(working, clock, 1, but=["queue"])
    assert "queue" in late(working)
    assert TWELVEDATA in words(working)["queue"]
    working.refresh()
    assert "queue" not in late(working)


def test_b23_a_provider_that_is_stopped_is_late_once_its_prices_are(working: Core, clock: Clock) -> None:
    open_breaker(working, clock)
    working.rows(
        "UPDATE pricing.provider_state SET breaker_until = pricing.clock() + interval '1 day' WHERE breaker = 'open'"
    )
    until_late(working, clock, "providers")
    assert late(working) == {"providers", "freshness"}
    assert f"{TWELVEDATA}: " in words(working)["providers"]
    close_breaker(working, clock)
    until_on_time(working, clock)


def test_b23_the_service_level_is_late_while_prices_are_late_for_ten_minutes(working: Core, clock: Clock) -> None:
    """A spent rate limit is not trouble of the provider: more is wanted than it allows."""
    working.rows("UPDATE pricing.provider_limits SET units = 1, window_seconds = 86400 WHERE provider = 'twelvedata'")
    began = clock.now()
    until_late(working, clock, "freshness")
    assert clock.now() - began > timedelta(minutes=10)
    assert late(working) == {"freshness"}
    assert "1 of 1 pairs" in words(working)["freshness"]
    working.rows("UPDATE pricing.provider_limits SET units = 1000 WHERE provider = 'twelvedata'")
    until_on_time(working, clock)


def until_late(core: Core, clock: Clock, part: str) -> None:
    """Let half an hour pass, or less: until a part is late."""
    for _ in range(30):
        if part in late(core):
            return
        let_pass(core, clock, 60)
    raise AssertionError(late(core))


def until_on_time(core: Core, clock: Clock) -> None:
    """The next sample, five minutes later at most, is good."""
    let_pass(core, clock, 361)
    assert late(core) == set(), words(core)


def test_b23_few_late_pairs_among_many_do_not_break_the_service_level(working: Core, clock: Clock) -> None:
    samples = (
        "INSERT INTO pricing.freshness_samples (data_type, at, watched, fresh, late)"
        " SELECT :kind, pricing.clock() - n * interval '5 minutes', 100, 0, :late FROM generate_series(0, 2) n"
    )
    working.rows("UPDATE pricing.signs_of_life SET began_at = began_at - interval '1 hour'")
    working.rows("DELETE FROM pricing.freshness_samples")
    working.rows(samples, kind=QUOTE, late=5)
    assert "freshness" not in late(working)
    working.rows("UPDATE pricing.freshness_samples SET late = 6")
    assert "freshness" in late(working)
    working.rows("UPDATE pricing.freshness_samples SET late = 0 WHERE at = pricing.clock()")
    assert "freshness" not in late(working)


DAGSTER = {"daemon", "sensor", "drain", "staleness_check", "schedules", "duties"}


def hold(core: Core) -> None:
    """Hold a pair whose first task is gone, so that nothing but the holding wants it."""
    core.hold("ann", PAIR)
    core.rows("DELETE FROM pricing.pair_requests")
    core.rows("DELETE FROM pricing.api_call_queue_live")


WANTS: dict[str, Callable[[Core], object]] = {
    "watched": lambda core: core.heartbeat("ann", PAIR),
    "held": hold,
    "queued": lambda core: core.enqueue(QUOTE, "AAPL", priority=-2),
}


@pytest.mark.parametrize("want", WANTS)
def test_b23_a_dead_daemon_is_late_from_when_something_is_wanted(core: Core, clock: Clock, want: str) -> None:
    """Nothing needs Dagster before."""
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE refresh_strategy = 'scheduled'")
    start(core)
    let_pass(core, clock, 1200, but=DAGSTER, viewers=False)
    assert late(core) == set(), words(core)
    WANTS[want](core)
    let_pass(core, clock, 119, but={*DAGSTER, "queue"}, viewers=False)
    assert late(core) == set(), words(core)
    let_pass(core, clock, 1, but={*DAGSTER, "queue"}, viewers=False)
    assert {"daemon", "sensor"} <= late(core) <= {"daemon", "sensor", "drain"}
    let_pass(core, clock, 480, but={*DAGSTER, "queue"}, viewers=False)
    assert late(core) >= {"daemon", "sensor", "staleness_check", "duties"}


def test_b23_what_has_never_run_is_late(core: Core, clock: Clock) -> None:
    start(core)
    core.heartbeat("ann", PAIR)
    clock.advance(600)
    assert late(core) == {*DAGSTER, "notifier"}, words(core)
    assert all(" yet" in said or "not be read" in said or "ever" in said for said in words(core).values())


@pytest.mark.parametrize("but", [{*DAGSTER, "notifier", "queue"}, {"drain", "queue"}])
def test_b23_a_pipeline_that_starts_again_every_100_seconds_is_late(working: Core, clock: Clock, but: set[str]) -> None:
    """If each start gave every part two minutes, no price would be new for hours, and no part would be late."""
    for restarts in range(4):
        start(working)
        assert restarts > 1 or late(working) == set(), words(working)
        let_pass(working, clock, 100, but=but)
    assert late(working) >= but - {"queue", "schedules", "duties"}, words(working)
    go_on(working)
    assert late(working) == set(), words(working)


def test_b23_a_pipeline_that_works_between_its_starts_has_its_time_after_each(working: Core, clock: Clock) -> None:
    for _ in range(2):
        start(working)
        let_pass(working, clock, 100, but={*DAGSTER, "notifier", "queue"})
        assert late(working) == set(), words(working)
        go_on(working)
        let_pass(working, clock, 100, but={*DAGSTER, "notifier", "queue"})


@pytest.mark.parametrize("seconds", [-3600, 86_400])
def test_b23_nothing_is_late_when_the_clock_is_set_and_the_pipeline_goes_on(
    working: Core, clock: Clock, seconds: int
) -> None:
    clock.advance(seconds)
    working.heartbeat("ann", PAIR)
    go_on(working)
    go_on(working)
    assert late(working) == set(), words(working)
    let_pass(working, clock, 121, but=["drain"])
    assert late(working) == {"drain"}, words(working)


def test_b23_who_watches_notices_a_step_of_the_clock_before_anything_else_does(working: Core, clock: Clock) -> None:
    watch = health.HealthWatch(working.engine)
    assert health.late(watch.measure()) == []
    clock.advance(7200)
    assert health.late(watch.measure()) == []
    clock.advance(120)
    assert late(working) >= {"daemon", "drain"}, "each part had its time"
