"""Runs and ticks of ours that fail are noted in the pricing database, where the notifier finds them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.test_utils import create_run_for_test, freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.error import SerializableErrorInfo

from pricing_pipeline.defs import failures_sensor
from pricing_pipeline.defs.ours import CUT_OFF
from pricing_pipeline.operations import alerts
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.dagster import OF_OURS, Stage, a_daemon, a_run, an_instance, move

FAILURE, STARTED, SUCCESS = (
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.SUCCESS,
)
NOTED = "SELECT kind, name, run_id, reason FROM pricing.dagster_failures ORDER BY 1, 2"


class Looking:
    """The sensor, as it looks again and again."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.instance, self.cursor = stage, stage.instance, stage.tick("note_failures").cursor

    def tick(self) -> None:
        self.cursor = self.stage.tick("note_failures", self.cursor).cursor


@pytest.fixture
def looking(stage: Stage) -> Looking:
    return Looking(stage)


class Daemon:
    """Dagster's sensor daemon, with the time in its hands."""

    def __init__(self, instance: dg.DagsterInstance, workspace: WorkspaceProcessContext) -> None:
        self.instance, self._workspace, self._now = instance, workspace, time.time()
        self.tick()

    def tick(self) -> None:
        self._now += 31
        with freeze_time(self._now):
            list(execute_sensor_iteration(self._workspace, logging.getLogger("daemon"), None, None))


@pytest.fixture
def daemon(environment: None, core: Core, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that ticks the one sensor this is about."""
    with an_instance(tmp_path) as instance, a_daemon(instance, "note_failures") as workspace:
        yield Daemon(instance, workspace)


def noted(core: Core) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in core.rows(NOTED)]


def fail(instance: dg.DagsterInstance, run: dg.DagsterRun, why: str) -> None:
    instance.report_run_failed(run, why)


def test_g5_b21_a_failed_run_is_an_alert_until_a_later_one_succeeds(looking: Looking, core: Core) -> None:
    run = a_run(looking.instance, STARTED)
    fail(looking.instance, run, "no room at postgresql://ann:s/ec@ret@db/x?password=secret&a=b\nmore")
    looking.tick()
    reason = "no room at postgresql://ann:***@db/x?password=***&a=b"
    assert noted(core) == [("run", "refresh", run.run_id, reason)]
    core.call("SELECT pricing.run_duties()")
    alerts.look(core.engine)
    (raised,) = core.rows("SELECT subject, says FROM pricing.alerts WHERE rule = 'run_fails'")
    assert raised.subject == "refresh"
    assert raised.says.startswith(f"Run {run.run_id} of refresh failed at ")
    looking.tick()
    assert len(noted(core)) == 1
    (warned,) = core.rows("SELECT source, subject, message FROM pricing.warnings WHERE source = 'run'")
    assert tuple(warned) == ("run", "refresh", f"run {run.run_id}: {reason}"), "once"
    a_run(looking.instance, SUCCESS, job="check_prices")
    looking.tick()
    assert len(noted(core)) == 1, "a run of another job says nothing about it"
    a_run(looking.instance, SUCCESS)
    looking.tick()
    assert noted(core) == []


def test_b21_the_newest_run_of_a_job_decides_in_whatever_order_they_are_seen(looking: Looking, core: Core) -> None:
    fail(looking.instance, a_run(looking.instance, STARTED), "odd")
    a_run(looking.instance, SUCCESS)
    looking.tick()
    assert noted(core) == []
    a_run(looking.instance, SUCCESS)
    last = a_run(looking.instance, STARTED)
    fail(looking.instance, last, "odd")
    looking.tick()
    assert [row[2] for row in noted(core)] == [last.run_id]
    a_run(looking.instance, SUCCESS)
    looking.tick()
    looking.instance.add_run_tags(last.run_id, {"looked": "at"})
    looking.tick()
    assert noted(core) == []


def test_b21_a_tag_on_an_old_run_does_not_bring_its_failure_back(stage: Stage, core: Core) -> None:
    with freeze_time(time.time() - 3600):
        old = create_run_for_test(stage.instance, job_name="refresh", tags=OF_OURS)
        fail(stage.instance, move(stage.instance, old, STARTED), "odd")
    tick = stage.tick("note_failures")
    stage.instance.add_run_tags(old.run_id, {"looked": "at"})
    record = stage.instance.get_run_record_by_id(old.run_id)
    assert record is not None
    assert record.update_timestamp.timestamp() - (record.end_time or 0) > 3500, "it is updated, and old"
    stage.tick("note_failures", tick.cursor)
    assert noted(core) == []


def test_b21_backfills_are_told_apart_by_their_assets(looking: Looking, core: Core) -> None:
    def backfill(*data_types: str) -> dg.DagsterRun:
        keys = frozenset(dg.AssetKey(["price_history", name]) for name in data_types)
        run = create_run_for_test(looking.instance, job_name="__ASSET_JOB", asset_selection=keys, tags=OF_OURS)
        return move(looking.instance, run, STARTED)

    fail(looking.instance, backfill(DAILY), "the quota is used up")
    move(looking.instance, backfill("mf_nav"), SUCCESS)
    looking.tick()
    ((_, name, _, reason),) = noted(core)
    assert (name, reason) == (f"price_history/{DAILY}", "the quota is used up")
    move(looking.instance, backfill(DAILY), SUCCESS)
    looking.tick()
    assert noted(core) == []


def test_b21_g7_runs_of_others_are_none_of_our_business(looking: Looking, core: Core) -> None:
    theirs = frozenset({dg.AssetKey(["price_history", "theirs"])})
    strange = [
        a_run(looking.instance, STARTED, location="theirs"),
        a_run(looking.instance, STARTED, job="report"),  # merged with ours into one code location
        create_run_for_test(looking.instance, job_name="__ASSET_JOB", asset_selection=theirs, tags=OF_OURS),
        create_run_for_test(looking.instance, job_name="refresh"),  # by a script
    ]
    for run in strange:
        fail(looking.instance, run, "none of our business")
    looking.tick()
    assert noted(core) == []
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'run'") == 0


def test_b21_a_backfill_that_a_stop_cut_off_is_no_alert(looking: Looking, core: Core) -> None:
    """Drains take its tasks up: nobody need do anything. It is a warning, as before."""
    fail(looking.instance, a_run(looking.instance, STARTED), CUT_OFF)
    looking.tick()
    assert noted(core) == []
    assert core.one("SELECT message LIKE '%' || :why FROM pricing.warnings WHERE source = 'run'", why=CUT_OFF)


def test_b21_a_clock_that_is_set_back_blinds_nobody(stage: Stage, core: Core) -> None:
    ahead = json.dumps({"until": time.time() + 86400, "runs": {}})
    tick = stage.tick("note_failures", ahead)
    run = move(stage.instance, create_run_for_test(stage.instance, job_name="refresh", tags=OF_OURS), STARTED)
    fail(stage.instance, run, "odd")
    stage.tick("note_failures", tick.cursor)
    assert [row[2] for row in noted(core)] == [run.run_id]


def test_b21_more_runs_than_one_look_takes_are_noted_by_the_next(
    stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when somebody tags them all meanwhile, which updates them."""
    monkeypatch.setattr(failures_sensor, "_PAGE", 2)
    tick = stage.tick("note_failures")
    runs = [
        move(stage.instance, create_run_for_test(stage.instance, job_name="refresh", tags=OF_OURS), STARTED)
        for _ in range(5)
    ]
    for run in runs:
        fail(stage.instance, run, "odd")
    for looks, last in ((1, runs[1]), (1, runs[3]), (2, runs[4])):
        for _ in range(looks):
            tick = stage.tick("note_failures", tick.cursor)
        assert [row[2] for row in noted(core)] == [last.run_id]
    for run in runs:
        stage.instance.add_run_tags(run.run_id, {"looked": "at"})
    newest = move(stage.instance, create_run_for_test(stage.instance, job_name="refresh", tags=OF_OURS), STARTED)
    move(stage.instance, newest, SUCCESS)
    for _ in range(4):
        tick = stage.tick("note_failures", tick.cursor)
    assert noted(core) == []


def test_b21_a_step_that_fails_is_named_by_the_error_that_began_it(stage: Stage, core: Core) -> None:
    before = stage.tick("note_failures")
    core.rows("ALTER FUNCTION pricing.begin_drain(text, text, integer, timestamptz, integer) RENAME TO begin_nothing")
    run = stage.backfill(DAILY, raise_on_error=False)
    assert not run.success
    stage.tick("note_failures", before.cursor)
    ((_, name, run_id, reason),) = noted(core)
    assert (name, run_id) == (f"price_history/{DAILY}", run.run_id)
    assert "Error occurred while executing" not in reason


def test_b21_what_cannot_be_written_is_written_at_the_next_look(daemon: Daemon, core: Core) -> None:
    fail(daemon.instance, a_run(daemon.instance, STARTED), "odd")
    core.rows("ALTER TABLE pricing.dagster_failures RENAME TO away")
    daemon.tick()
    core.rows("ALTER TABLE pricing.away RENAME TO dagster_failures")
    assert noted(core) == []
    daemon.tick()
    assert [row[1] for row in noted(core)] == ["refresh"]


def fail_tick(
    instance: dg.DagsterInstance,
    name: str,
    location: str,
    status: InstigatorStatus,
    kind: InstigatorType = InstigatorType.SENSOR,
) -> None:
    """The last tick of a sensor of a code location failed, and then it was left on or switched off."""
    target = LoadableTargetOrigin(module_name="pricing_pipeline.definitions", attribute="definitions")
    origin = RemoteRepositoryOrigin(
        InProcessCodeLocationOrigin(target, location_name=location), "__repository__"
    ).get_instigator_origin(name)
    states = {state.instigator_origin_id: state for state in instance.all_instigator_state()}
    if origin.get_id() in states:
        state = states[origin.get_id()].with_status(status)
        if isinstance(state.instigator_data, SensorInstigatorData):
            data = state.instigator_data._replace(last_tick_success_timestamp=None, last_tick_timestamp=time.time())
            state = state.with_data(data)  # it is not due again
        instance.update_instigator_state(state)
    else:
        slots = ScheduleInstigatorData("17 * * * *") if kind is InstigatorType.SCHEDULE else None
        state = InstigatorState(origin, kind, status, slots)
        instance.add_instigator_state(state)
    instance.create_tick(
        TickData(
            instigator_origin_id=origin.get_id(),
            instigator_name=name,
            instigator_type=kind,
            status=TickStatus.FAILURE,
            timestamp=time.time() + 100,
            selector_id=state.selector_id,
            error=SerializableErrorInfo("odd", [], None),
        )
    )


def test_b21_g7_only_sensors_and_schedules_of_ours_that_are_switched_on_count(daemon: Daemon, core: Core) -> None:
    on, off = InstigatorStatus.RUNNING, InstigatorStatus.STOPPED
    fail_tick(daemon.instance, "report_sources", "pricing_pipeline", off)
    fail_tick(daemon.instance, "prune_dagster", "theirs", on)
    fail_tick(daemon.instance, "report", "pricing_pipeline", on)  # merged with ours
    daemon.tick()
    assert noted(core) == []
    fail_tick(daemon.instance, "prune_dagster", "pricing_pipeline", on)
    fail_tick(daemon.instance, "check_prices", "pricing_pipeline", on, InstigatorType.SCHEDULE)
    daemon.tick()
    assert noted(core) == [("tick", "check_prices", None, "odd"), ("tick", "prune_dagster", None, "odd")]


def test_b21_looks_without_a_change_write_nothing(stage: Stage, core: Core) -> None:
    tick = stage.tick("note_failures")
    for _ in range(3):
        tick = stage.tick("note_failures", tick.cursor)
        assert tick.asset_events == []
    assert tick.skip_message == "runs that ended: 0, failed: 0; failing sensors and schedules: 0"
    assert core.one("SELECT count(*) FROM pricing.dagster_failures") == 0
