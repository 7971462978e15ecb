"""The sensor that turns what people watch into runs, and only as many as are needed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.scheduler.instigation import InstigatorState, TickStatus
from dagster._core.test_utils import freeze_time
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.log import get_dagster_logger
from sqlalchemy.exc import DBAPIError

from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, a_run, an_instance, move
from pricing_pipeline_tests.fixtures.database import Clock

SENSOR = "refresh_watched"

pytestmark = pytest.mark.usefixtures("still", "unscheduled")


def requested(tick: SensorExecutionData) -> dg.RunRequest:
    assert tick.run_requests, tick.skip_message
    (request,) = tick.run_requests
    return request


def begin_drain(core: Core, seconds: int = 120) -> str:
    return str(core.one("SELECT pricing.begin_drain('another', NULL, :seconds)", seconds=seconds))


def test_g3_nothing_runs_while_nobody_watches(stage: Stage, core: Core) -> None:
    tick = stage.tick(SENSOR)
    assert not tick.run_requests
    assert tick.skip_message == "nobody watches anything and nothing is queued"
    assert core.tasks() == []


def test_g3_a_subscription_leads_to_a_drain(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), became_due_at = NULL")
    request = requested(stage.tick(SENSOR))
    assert (request.asset_selection, request.partition_key) == (None, None)
    assert request.tags["pricing/drain"] == "true"
    # The queue has what is due, most viewers first.
    assert {task.symbol: task.priority for task in core.tasks()} == {"AAPL": 2, "EUR/USD": 1}


def test_g3_what_is_held_leads_to_a_drain_too(stage: Stage, core: Core, clock: Clock) -> None:
    core.hold("ann", (QUOTE, "AAPL"))
    requested(stage.tick(SENSOR))
    core.refresh()
    clock.advance(3600)
    assert stage.tick(SENSOR).skip_message == (
        "nobody watches anything and nothing is queued; held pairs are fresh enough"
    )
    core.read("AAPL")
    core.refresh()
    clock.advance(86_400)
    # Older than the background TTL, and read within 48 hours: the tick itself queues it.
    requested(stage.tick(SENSOR))
    assert core.tasks("AAPL")[-1].priority == 0


def test_g3_a_drain_that_hangs_is_ended_by_run_monitoring(
    stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_MAX_DRAIN_SECONDS", "300")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert requested(stage.tick(SENSOR)).tags["dagster/max_runtime"] == "480"


def test_g3_work_left_in_the_queue_is_reason_enough(stage: Stage, core: Core) -> None:
    core.enqueue(DAILY, "IBM", priority=-2, days=(date(2010, 1, 1), date(2010, 1, 31)))
    core.enqueue(NAV, "118632", priority=-1)
    requested(stage.tick(SENSOR))


@pytest.mark.parametrize("status", ["QUEUED", "STARTED"])
def test_g3_b17_a_drain_that_is_queued_or_starting_needs_no_other(
    stage: Stage, core: Core, clock: Clock, status: str
) -> None:
    """However long it waits for its turn."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    first = stage.tick(SENSOR)
    run = a_run(stage.instance, dg.DagsterRunStatus[status], requested(first).tags)
    clock.advance(3600)
    patient = stage.tick(SENSOR, first.cursor)
    assert (patient.run_requests, patient.skip_message) == ([], "a drain is queued or starting")
    assert len(core.tasks()) == 1
    # It never came.
    stage.instance.report_run_failed(run)
    assert requested(stage.tick(SENSOR, first.cursor)).run_key != requested(first).run_key


def test_g3_b17_a_run_that_has_begun_nothing_for_long_keeps_no_drain_away(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    with freeze_time(time.time() - 31):
        a_run(stage.instance, dg.DagsterRunStatus.STARTED, stage.drain_tags())
    requested(stage.tick(SENSOR))


def test_g3_a_clock_that_was_set_back_keeps_no_drain_from_starting(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    cursor = stage.tick(SENSOR).cursor
    clock.advance(-3600)
    assert requested(stage.tick(SENSOR, cursor=cursor))


def test_g3_b17_a_drain_at_work_needs_no_other(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    begin_drain(core)
    skip = stage.tick(SENSOR).skip_message
    assert skip in {"a drain is at work for another 120 s", "a drain is at work for another 119 s"}


def test_b16_a_skip_reason_says_which_provider_is_left_alone(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    begin_drain(core)
    core.rows("SELECT pricing.open_breaker('twelvedata', '10 of 12 calls failed')")
    core.rows("SELECT pricing.throttle('mfapi', 'default', interval '40 seconds', 'too fast')")
    skip = str(stage.tick(SENSOR).skip_message)
    assert "a drain is at work" in skip
    assert "; twelvedata: the breaker of twelvedata is open since " in skip
    assert "; mfapi: mfapi has refused calls for speed (too fast) and is left alone until " in skip


def test_g3_b17_an_ending_drain_hands_over_to_one_successor(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    drain = begin_drain(core)
    clock.advance(103)
    core.rows("SELECT pricing.extend_drain(CAST(:drain AS uuid))", drain=drain)
    assert "at work" in str(stage.tick(SENSOR).skip_message)
    clock.advance(2)
    handed_over = stage.tick(SENSOR)
    a_run(stage.instance, dg.DagsterRunStatus.QUEUED, requested(handed_over).tags)
    clock.advance(5)
    again = stage.tick(SENSOR, handed_over.cursor)
    assert (again.run_requests, again.skip_message) == ([], "a drain is queued or starting")
    # The successor begins beside the ending drain, and counts from then on.
    (run,) = stage.instance.get_runs()
    move(stage.instance, run, dg.DagsterRunStatus.STARTED)
    core.rows("SELECT pricing.begin_drain('another', :run, 120)", run=run.run_id)
    assert "at work for another 1" in str(stage.tick(SENSOR, handed_over.cursor).skip_message)


def test_g3_b17_a_dead_drain_is_replaced_when_its_lease_is_out(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    first = stage.tick(SENSOR)
    clock.advance(1)
    begin_drain(core)
    clock.advance(14)
    assert "at work" in str(stage.tick(SENSOR, first.cursor).skip_message)
    clock.advance(2)
    requested(stage.tick(SENSOR, first.cursor))


def test_g3_a_drain_that_came_and_went_makes_nobody_wait(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    first = stage.tick(SENSOR)
    clock.advance(1)
    drain = begin_drain(core)
    core.rows("SELECT pricing.end_drain(CAST(:drain AS uuid))", drain=drain)
    # A drain that fails as it begins must not be launched with every tick, either.
    clock.advance(5)
    assert stage.tick(SENSOR, first.cursor).skip_message == (
        "a drain was requested a moment ago, and has ended or failed"
    )
    clock.advance(6)
    requested(stage.tick(SENSOR, first.cursor))


def test_g3_the_tick_recovers_what_a_lost_worker_owned(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.claim_one()
    clock.advance(61)
    requested(stage.tick(SENSOR))
    assert core.statuses() == {"AAPL": "pending"}


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("sensor", [SENSOR, "report_prices", "follow_registry"])
def test_g3_g2_b1_a_cursor_that_cannot_be_read_counts_as_none_and_is_told_of(
    stage: Stage, core: Core, capfd: pytest.CaptureFixture[str], sensor: str
) -> None:
    """Anybody who sees a sensor in the UI may set its cursor, and the sensor would fail at each tick from then on."""
    for junk in (
        "soon",
        '{"at": "x"}',
        '{"at": {"equity_quote": null}, "late": [[]]}',
        '{"version": 1e400, "at": [1]}',
    ):
        core.heartbeat("ann", (QUOTE, "AAPL"))
        core.rows("UPDATE pricing.registry_state SET version = version + 1")
        assert stage.tick(sensor, junk).skip_message == stage.tick(sensor).skip_message
        assert f"the cursor {junk} cannot be read, so this tick starts over" in capfd.readouterr().err


def test_g3_two_sensors_at_once_queue_nothing_twice(stage: Stage, core: Core) -> None:
    pairs = [(QUOTE, f"S{number:03}") for number in range(30)]
    core.heartbeat("ann", *pairs)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), became_due_at = NULL")
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: stage.tick(SENSOR, '{"at": 7.0}'), range(2))
    assert sorted(task.symbol for task in core.tasks()) == [symbol for _, symbol in pairs]
    # On the same state they ask for the same run, of which Dagster launches one.
    assert requested(one).run_key == requested(other).run_key


def state_of(instance: dg.DagsterInstance) -> InstigatorState:
    (state,) = [state for state in instance.all_instigator_state() if state.name == SENSOR]
    return state


def test_g3_two_daemons_that_read_the_same_cursor_launch_one_run(
    environment: None, core: Core, clock: Clock, open_folder: Path
) -> None:
    """The second reads its state before the first has written it, and finds the first's run."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    logger = get_dagster_logger("daemon")
    with (
        an_instance(open_folder) as instance,
        a_daemon(instance, SENSOR) as one,
        a_daemon(instance, SENSOR) as other,
    ):
        list(execute_sensor_iteration(one, logger, None, None))
        (first,) = instance.get_runs()
        assert (first.status, first.tags["pricing/drain"]) == (dg.DagsterRunStatus.QUEUED, "true")

        instance.report_run_failed(first)
        clock.advance(31)
        with freeze_time(time.time() + 31):
            before = state_of(instance)
            list(execute_sensor_iteration(one, logger, None, None))
            assert len(instance.get_runs()) == 2
            instance.update_instigator_state(before)
            list(execute_sensor_iteration(other, logger, None, None))
        assert len(instance.get_runs()) == 2
        (skipped,) = instance.get_ticks(before.instigator_origin_id, before.selector_id, statuses=[TickStatus.SKIPPED])
        assert skipped.skip_reason == "a drain is queued or starting"


def test_f7_trading_days_are_written_by_a_sensor_that_lets_the_first_prices_pass(stage: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET calendar = NULL WHERE asset_class <> 'fx'")  # no exchange, no library
    sessions = "SELECT count(*) FROM pricing.calendar_sessions WHERE calendar = 'FX'"
    first = stage.tick("extend_calendars")
    assert (first.skip_message, core.one(sessions)) == ("calendars are checked from the next tick on", 0)
    assert first.cursor is not None
    second = stage.tick("extend_calendars", first.cursor)
    assert second.skip_message == "wrote the sessions of FX"
    assert core.one(sessions) > 7000
    third = stage.tick("extend_calendars", second.cursor)
    assert third.skip_message == "every calendar in use is known far enough"
    sensor = stage.repository.get_sensor_def("extend_calendars")
    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_b22_b23_ticks_are_noted_and_those_that_fail_only_begin(stage: Stage, core: Core, clock: Clock) -> None:
    def signs() -> dict[str, tuple[int, bool]]:
        rows = core.rows(
            "SELECT part, times, coalesce(ended_at = began_at, false) AS is_done FROM pricing.signs_of_life"
            " WHERE part IN ('refresh_watched', 'report_prices')"
        )
        return {row.part: (row.times, row.is_done) for row in rows}

    stage.tick(SENSOR)
    stage.tick("report_prices")
    assert signs() == {SENSOR: (1, True), "report_prices": (1, True)}
    core.rows("ALTER FUNCTION pricing.enqueue_due(integer) RENAME TO enqueue_nothing")
    clock.advance(5)
    with pytest.raises(DBAPIError):
        stage.tick(SENSOR)
    assert signs() == {SENSOR: (1, False), "report_prices": (1, True)}
