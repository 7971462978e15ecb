"""What our daemon changes in Dagster's own: proved on Dagster's own, since it reaches into what is not public."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster._core.scheduler.instigation import SensorInstigatorData
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon import controller, freshness
from dagster._daemon import daemon as interval_daemons
from dagster._daemon import sensor as sensor_daemon
from dagster._daemon.backfill import execute_backfill_iteration_loop
from dagster._utils.log import get_dagster_logger

from pricing_pipeline.defs import daemon
from pricing_pipeline.defs.daemon import (
    go_on_when_the_clock_is_set_back,
    look_at_freshness_later,
    look_for_backfills_often,
    tick_the_drains_first,
    tick_when_there_is_work,
)
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.processes import process_log
from pricing_pipeline_tests.fixtures.dagster import an_instance
from pricing_pipeline_tests.support.patience import PATIENCE


class Pauses(threading.Event):
    """Notes how long it is waited for, and waits for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


def test_g6_backfills_are_looked_for_every_five_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)  # and put back at the end
    waits = []
    with (
        an_instance(tmp_path) as instance,
        create_test_daemon_workspace_context(EmptyWorkspaceTarget(), instance) as workspace,
    ):
        for quicken in (lambda: None, look_for_backfills_often):
            quicken()
            pauses = Pauses()
            loop = execute_backfill_iteration_loop(workspace, get_dagster_logger(), pauses)
            while not pauses.seconds:
                next(loop)
            loop.close()
            waits += pauses.seconds
    before, after = waits
    assert before > 5 >= after


def test_b23_what_repeats_is_told_once_in_the_log_of_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in every process of ours, by process_log."""
    started: list[None] = []

    def listens(socket: str) -> bool:
        assert started
        raise SystemExit

    monkeypatch.setattr(process_log, "start", lambda: started.append(None))
    monkeypatch.setattr(daemon, "_listens", listens)
    monkeypatch.setattr(sys, "argv", ["daemon", "/nowhere", "/nowhere"])
    monkeypatch.setenv("PRICING_CODE_SOCKET", "/nowhere")
    monkeypatch.setattr(logging.getLogger("dagster"), "propagate", True)
    with pytest.raises(SystemExit):
        daemon.main()


class Passing(threading.Event):
    """A shutdown that is waited for in no time: the clock of what waits goes on."""

    def __init__(self, work: threading.Event, work_at: float) -> None:
        super().__init__()
        self.now = 100.0
        self._work, self._work_at = work, work_at

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        if self.now >= self._work_at:
            self._work.set()
            self._work_at = float("inf")
        return self.is_set()


@pytest.mark.parametrize(("work_after", "ends_after"), [(0.3, 1.0), (7.0, 7.0), (12.0, 10.0)])
def test_g3_sensors_tick_soon_after_there_is_work_and_otherwise_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, work_after: float, ends_after: float
) -> None:
    work = threading.Event()
    shutdown = Passing(work, 100.0 + work_after)
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: shutdown.now))
    daemon._Pause(shutdown, work).wait(5.0)
    assert shutdown.now - 100 == pytest.approx(ends_after, abs=0.11)
    assert not work.is_set()


def test_g3_work_that_comes_all_the_time_causes_no_more_ticks_than_dagsters_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = threading.Event()
    shutdown = Passing(work, 100.0)
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: shutdown.now))
    pause = daemon._Pause(shutdown, work)
    for _ in range(20):
        work.set()
        pause.wait(5.0)
    assert shutdown.now - 100 >= 20 * 5 - 5


def test_g3_dagsters_own_loop_pauses_until_there_is_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(interval_daemons, "execute_sensor_iteration_loop", None)  # and put back at the end
    work, shutdown = threading.Event(), threading.Event()
    tick_when_there_is_work(work)
    work.set()
    began = time.monotonic()
    with (
        an_instance(tmp_path) as instance,
        create_test_daemon_workspace_context(EmptyWorkspaceTarget(), instance) as workspace,
        interval_daemons.SensorDaemon(settings={"use_threads": False}) as sensors,
    ):
        loop = sensors.core_loop(workspace, shutdown)
        while work.is_set():
            next(loop)
            assert time.monotonic() - began < PATIENCE
        loop.close()
    assert time.monotonic() - began >= 1


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is changed in Dagster is put back at the end."""
    monkeypatch.setattr(interval_daemons, "time", interval_daemons.time)
    monkeypatch.setattr(sensor_daemon, "get_elapsed", sensor_daemon.get_elapsed)


def last_ticked(seconds_ago: float) -> Any:
    ticked = SensorInstigatorData(last_tick_timestamp=time.time() - seconds_ago)
    return SimpleNamespace(instigator_data=ticked)


@pytest.mark.usefixtures("patched")
def test_g3_a_sensor_ticks_after_the_machines_clock_was_set_back() -> None:
    """Its last tick seems to be to come."""
    sensor: Any = SimpleNamespace(min_interval_seconds=4)
    assert sensor_daemon.is_under_min_interval(last_ticked(-3600), sensor), "left to itself it would not"
    go_on_when_the_clock_is_set_back()
    assert not sensor_daemon.is_under_min_interval(last_ticked(-3600), sensor)
    assert sensor_daemon.is_under_min_interval(last_ticked(1), sensor)
    assert not sensor_daemon.is_under_min_interval(last_ticked(5), sensor)


class _Counting(interval_daemons.IntervalDaemon):  # type: ignore[type-arg]
    """A daemon of Dagster that only counts how often its turn comes."""

    turns = 0

    @classmethod
    def daemon_type(cls) -> str:
        return "COUNTING"

    def run_iteration(self, workspace_process_context: Any) -> Iterator[None]:
        self.turns += 1
        yield None


@pytest.mark.usefixtures("patched")
def test_g3_runs_are_dequeued_after_the_machines_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on_when_the_clock_is_set_back()
    daemon = _Counting(interval_seconds=0.01)
    loop = daemon.core_loop(None, Pauses())
    while not daemon.turns:
        next(loop)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    began = time.monotonic()
    while daemon.turns < 2:
        next(loop)
        assert time.monotonic() - began < PATIENCE


def test_g3_after_a_start_the_drains_sensor_ticks_alone_and_later_first(monkeypatch: pytest.MonkeyPatch) -> None:
    sensors: Any = [SimpleNamespace(name=name) for name in ("report_prices", "refresh_watched", "note_failures")]
    monkeypatch.setattr(sensor_daemon, "shuffled_round_robin_by_key", lambda sensors, key: list(sensors))
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(daemon, "time", SimpleNamespace(monotonic=lambda: clock.now))
    tick_the_drains_first(Naming())

    def names() -> list[str]:
        ordered = sensor_daemon.shuffled_round_robin_by_key(sensors, key=lambda sensor: sensor.name)
        return [sensor.name for sensor in ordered]

    clock.now += 600  # the code server loads for so long
    assert names() == ["refresh_watched"]
    clock.now += 1
    assert names() == ["refresh_watched"]
    clock.now += 4
    assert names() == ["refresh_watched", "report_prices", "note_failures"]


def test_g3_freshness_is_looked_at_from_the_second_interval_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    def look(self: Any, workspace: Any) -> Iterator[None]:
        looks.append(workspace)
        yield

    monkeypatch.setattr(freshness.FreshnessDaemon, "run_iteration", look)
    look_at_freshness_later()
    for seen in (0, 1, 2):
        list(freshness.FreshnessDaemon().run_iteration("workspace"))  # type: ignore[arg-type]
        assert len(looks) == seen
