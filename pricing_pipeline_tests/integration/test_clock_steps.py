"""Each state that a step of the database's clock meets, by itself; test_clock_model.py has them in every order.

Invariant: after any step of the clock, work goes on within a minute, no limit is passed by more than a window, and
nothing that is young is thrown away.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline.demand import drains, freshness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, TWELVEDATA, Core, sample_template
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.patience import PATIENCE

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400
BACK = pytest.mark.parametrize("back", [HOUR, 3 * DAY, YEAR], ids=["an hour", "three days", "a year"])
SYMBOLS = [f"S{number:03d}" for number in range(40)]


def tick(core: Core) -> list[str]:
    """What a drain does each second."""
    core.enqueue_due()
    core.promote()
    ran: list[str] = core.call("SELECT pricing.run_duties()")
    return ran


def step(core: Core, clock: Clock, seconds: float) -> None:
    """The clock was right a moment ago, and now it is another; it is noticed, and a duty's ten seconds pass."""
    tick(core)
    clock.advance(seconds)
    for _ in range(2):
        tick(core)
    clock.advance(11)
    tick(core)


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


def warned(core: Core) -> list[str]:
    rows = core.rows("SELECT message FROM pricing.warnings WHERE subject = 'clock' ORDER BY warning_id")
    return [row.message for row in rows]


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
    clock.advance(62)
    assert answered(core) == 4
    assert answered(core) == 0


def test_a6_calls_of_the_time_that_comes_once_more_do_not_count_once_more(core: Core, clock: Clock) -> None:
    """A quarter of an hour of full minutes, set back by as much: in the log each minute is full already."""
    limit(core, 1)
    core.enqueue(QUOTE, *SYMBOLS)
    for _ in range(15):
        tick(core)
        assert answered(core) == 1
        clock.advance(62)
    clock.advance(-15 * 62)
    tick(core)
    for _ in range(15):
        clock.advance(62)
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


# Tasks


@BACK
def test_b11_lost_tasks_come_back_when_their_lease_would_have_run_out(
    core: Core, clock: Clock, back: int
) -> None:
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


# Demand


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
    core.rows(
        "UPDATE pricing.latest_prices SET observed_at = observed_at - make_interval(secs => :s)", s=back + 60
    )
    core.rows(
        "UPDATE pricing.price_history SET observed_at = observed_at - make_interval(secs => :s)", s=back + 60
    )
    tick(core)
    clock.advance(-back)
    with core.engine.connect() as connection:
        assert {row.data_type: row.fresh for row in freshness.measure(connection) if row.watched} == {
            QUOTE: 0,
            DAILY: 0,
        }
    assert not any(row.fresh for row in core.rows("SELECT fresh FROM pricing.price('AAPL')"))
    assert core.one("SELECT sentence FROM pricing.why_old('equity_daily', 'AAPL')").startswith(
        "last confirmed at 20"
    )
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
def test_b8_a_pair_that_is_held_off_is_asked_for_when_it_would_have_been(
    core: Core, clock: Clock, back: int
) -> None:
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
def test_b14_slots_served_while_the_clock_was_ahead_are_owed_once_more(
    core: Core, clock: Clock, ahead: int
) -> None:
    clock.set(datetime(2026, 11, 19, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.schedule_walks SET served_slot = pricing.clock()")
    clock.advance(ahead)
    serve = "SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock())"
    assert core.call(serve) is not None
    step(core, clock, -ahead)
    clock.advance(HOUR)
    assert core.call(serve) is not None


def test_b14_a_slot_of_a_clock_that_is_far_ahead_swallows_no_other(core: Core, clock: Clock) -> None:
    assert (
        core.call("SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock() + interval '3 days')")
        is not None
    )
    clock.advance(60)
    assert core.call("SELECT pricing.enqueue_scheduled('mf_nav', pricing.clock())") is not None


def test_b14_instruments_priced_while_the_clock_was_ahead_are_walked(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.instruments SET calendar = '24/7', verified_at = pricing.clock() WHERE asset_class = 'fund'"
    )
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale' WHERE data_type = 'mf_nav'"
    )
    core.rows("SELECT pricing.store_own_sessions('24/7', '2025-01-01', '2029-01-01')")
    core.enqueue(NAV, "118632")
    clock.advance(YEAR)
    core.refresh("mfapi")
    step(core, clock, -YEAR)
    clock.advance(2 * DAY)
    core.call("SELECT pricing.enqueue_scheduled('mf_nav')")
    assert "pending" in {task.status for task in core.tasks("118632")}


def test_c3_days_that_are_to_come_are_not_covered(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.history_coverage VALUES ('equity_daily', 'AAPL', '{[2020-01-01,infinity)}')"
    )
    step(core, clock, -HOUR)
    assert core.one(
        "SELECT upper(covered) = (pricing.clock() AT TIME ZONE 'UTC')::date FROM pricing.history_coverage"
    )


def test_c3_a_duty_whose_row_was_locked_during_a_step_goes_on_when_it_is_free(
    core: Core, clock: Clock
) -> None:
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
    assert not {"prune", "thin_history", "forget_views"} & set(ran)
    for _ in range(5):
        clock.advance(600)
        assert not {"prune", "thin_history", "forget_views"} & set(tick(core))
    counts = (
        "SELECT (SELECT count(*) FROM pricing.collector_call_log) + (SELECT count(*) FROM pricing.pair_views)"
        " + (SELECT count(*) FROM pricing.api_call_queue_completed)"
    )
    assert core.one(counts) == 3
    assert len(warned(core)) == 1
    assert "set it right before" in warned(core)[0]
    clock.advance(601)
    assert {"prune", "thin_history", "forget_views"} <= set(tick(core))
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


# How it is noticed


def test_b15_a_clock_that_is_set_back_is_noticed_once_and_said(core: Core, clock: Clock) -> None:
    tick(core)
    clock.advance(-HOUR)
    assert tick(core) == []
    assert len(warned(core)) == 1
    assert "set back by about 60 min" in warned(core)[0]
    for _ in range(3):
        tick(core)
    assert len(warned(core)) == 1


@pytest.mark.parametrize("seconds", [-9, -1, 0, 1, HOUR, 23 * HOUR])
def test_b15_a_clock_that_is_well_costs_nothing(core: Core, clock: Clock, seconds: int) -> None:
    core.hold("ann", (QUOTE, "AAPL"))
    core.refresh()
    tick(core)
    before = core.rows("SELECT CAST(xmin AS text), ctid FROM pricing.demand")
    clock.advance(seconds)
    core.call("SELECT pricing.run_duties()")
    assert core.rows("SELECT CAST(xmin AS text), ctid FROM pricing.demand") == before
    assert warned(core) == []


def test_b15_rows_that_somebody_holds_are_moved_as_soon_as_they_are_free(
    core: Core, clock: Clock, database_url: str
) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    clock.advance(-YEAR)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM pricing.api_call_queue_live FOR UPDATE")
        thread = threading.Thread(target=tick, args=(core,))
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert "no other session has their rows locked" in warned(core)[-1]
    tick(core)
    assert core.one(
        "SELECT lease_until <= pricing.clock() + interval '1 minute' FROM pricing.api_call_queue_live"
    )


def test_every_time_that_is_stored_is_decided_on() -> None:
    """A table's new column of times is moved with the clock, or need not be: docs/state-machine.md says which."""
    schema = (ROOT / "docs/schema.sql").read_text()
    stored: set[str] = set()
    table = ""
    for line in schema.splitlines():
        if line.startswith("CREATE "):
            table = line.split()[2].removeprefix("pricing.") if line.startswith("CREATE TABLE") else ""
        elif table and " timestamp with time zone" in line and line.startswith("    "):
            stored.add(f"{table}.{line.split()[0]}")
    page = (ROOT / "docs/state-machine.md").read_text()
    section = page.split("## When the clock is set\n")[1].split("\n## ")[0]
    decided: set[str] = set()
    for row in section.splitlines():
        if row.startswith("| `"):
            name, columns = (cell.strip() for cell in row.split("|")[1:3])
            decided |= {f"{name.strip('`')}.{column.strip().strip('`')}" for column in columns.split(",")}
    stored = {name for name in stored if not name.startswith(("api_call_queue_", "alembic"))}
    assert decided == stored


def test_b11_a_locked_row_keeps_neither_duties_nor_later_looks_from_going_on(
    core: Core, clock: Clock
) -> None:
    """The step stays noted, and is followed once, as soon as the row is free."""
    core.enqueue(QUOTE, "AAPL")
    core.claim_one()
    tick(core)
    lease = core.task("AAPL").lease_until
    with core.owner.begin() as connection:
        connection.execute(text("SELECT FROM pricing.provider_state FOR UPDATE"))
        clock.advance(-HOUR)
        core.one("SELECT pricing.run_duties()")
        for _ in range(2):
            clock.advance(11)
            assert "recover_tasks" in core.one("SELECT pricing.run_duties()")
        assert core.task("AAPL").lease_until == lease, "nothing is half moved"
    for _ in range(3):
        clock.advance(5)
        tick(core)
    moved = core.task("AAPL")
    assert moved.status == "pending" or lease - moved.lease_until < timedelta(seconds=HOUR + 60)
    clock.advance(61)
    tick(core)
    assert core.task("AAPL").status == "pending"
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE message LIKE '%was set back by about%'") == 1
