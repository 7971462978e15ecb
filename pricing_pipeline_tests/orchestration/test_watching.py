"""What the daemon of `up` sees of Dagster that does not work, on its own code location and instance."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import (
    InProcessWorkspaceLoadTarget,
)
from dagster._daemon.sensor import execute_sensor_iteration

from pricing_pipeline import definitions
from pricing_pipeline.defs import watching
from pricing_pipeline.defs.watching import LocationWatch
from pricing_pipeline.operations import dagster_failures, health
from pricing_pipeline.operations.dagster_failures import Kind
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.dagster import ORIGIN, a_daemon, an_instance, newly_loading

ONLY = "extend_calendars"
"""The sensor that is switched on here: it needs least."""


class Watched:
    """A watch whose time the test has in its hands, and the daemon that it watches."""

    def __init__(self, workspace: WorkspaceProcessContext, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
        self._workspace, self._core = workspace, core
        self._ahead = 0.0
        monkeypatch.setattr(watching, "time", self)
        self.watch = LocationWatch(workspace)

    def time(self) -> float:
        return time.time() + self._ahead

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def look(self, seconds: float = 0) -> dict[str, str]:
        """Look after so many seconds more; returns what is noted of sensors."""
        self._ahead += seconds
        self.watch.look(self._core.engine)
        with self._core.engine.connect() as connection:
            return dagster_failures.noted(connection, Kind.SENSOR)

    def locations(self) -> dict[str, str]:
        """What is noted of code locations."""
        with self._core.engine.connect() as connection:
            return dagster_failures.noted(connection, Kind.LOCATION)

    def tick(self) -> None:
        list(execute_sensor_iteration(self._workspace, logging.getLogger("daemon"), None, None))


@pytest.fixture
def instance(environment: None, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with an_instance(tmp_path) as instance:
        yield instance


@pytest.fixture
def watched(instance: dg.DagsterInstance, core: Core, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    with a_daemon(instance, ONLY) as workspace:
        yield Watched(workspace, core, monkeypatch)


def test_b23_a_sensor_that_never_ticks_is_noted_after_its_time_until_it_ticks(watched: Watched) -> None:
    """All others are switched off by a person, and not expected to tick."""
    assert watched.look() == {}
    assert watched.look(19) == {}
    noted = watched.look(2)
    assert list(noted) == [ONLY]
    assert noted[ONLY].startswith("has not ticked since the code location was loaded")
    watched.tick()
    assert watched.look() == {}
    assert watched.look(3600) == {}


def test_b23_a_sensor_that_fails_from_its_first_tick_on_is_noted_with_the_first_line(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched.look() == {}

    def fail(*_: object) -> None:
        raise RuntimeError("odd\nwith password=canary")

    monkeypatch.setattr(dg.SensorDefinition, "evaluate_tick", fail)
    watched.tick()
    (reason,) = watched.look().values()
    assert reason.startswith("fails: ")
    assert "odd" in reason
    assert "canary" not in reason


def test_b23_a_sensor_that_worked_before_it_was_loaded_anew_may_fail_once(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("odd")

    watched.tick()
    began = datetime.now(UTC)
    assert watched.look(100) == {}  # of a daemon that has just started
    monkeypatch.setattr(dg.SensorDefinition, "evaluate_tick", fail)
    with freeze_time(began + timedelta(seconds=400)):
        watched.tick()
    assert watched.look(350) == {}
    with freeze_time(began + timedelta(seconds=800)):
        watched.tick()
    assert list(watched.look(400)) == [ONLY]


def test_b23_a_clock_that_is_set_gives_each_sensor_its_time_anew(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watched.look() == {}
    # The wall clock alone: the machine has slept, or its clock was set.
    before = watched.monotonic
    ahead = before()
    monkeypatch.setattr(watched, "monotonic", lambda: ahead)
    assert watched.look(3600) == {}


@pytest.mark.filterwarnings("ignore:Error loading repository location:UserWarning")
def test_b23_a_code_location_that_does_not_load_is_noted_with_the_first_line_of_its_cause(
    instance: dg.DagsterInstance, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Conflicting definitions\nand more")

    monkeypatch.setattr(definitions, "build_defs", fail)
    with (
        newly_loading(),
        create_test_daemon_workspace_context(InProcessWorkspaceLoadTarget(ORIGIN), instance) as workspace,
    ):
        watched = Watched(workspace, core, monkeypatch)
        assert watched.look() == {}
        with core.engine.connect() as connection:
            (part,) = [one for one in health.measure(connection) if one.part == "code_location"]
        assert part.is_late
        assert str(part.says).endswith("nothing is refreshed: RuntimeError: Conflicting definitions")
        # Whatever forgets it, as a start does, it is noted again.
        core.rows("DELETE FROM pricing.dagster_failures")
        watched.look(5)
        assert core.one("SELECT kind FROM pricing.dagster_failures") == "location"


@pytest.mark.filterwarnings("ignore:Error loading repository location:UserWarning")
def test_b23_nobody_is_told_of_a_code_location_of_others_that_does_not_load(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "theirs.py").write_text("raise RuntimeError")
    code = LoadableTargetOrigin(python_file=str(tmp_path / "theirs.py"))
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(code, location_name="theirs"))
    with create_test_daemon_workspace_context(target, instance) as workspace:
        assert LocationWatch(workspace).failing()[Kind.LOCATION].keys() == {"theirs"}
        assert LocationWatch(workspace, {"theirs"}).failing() == {Kind.LOCATION: {}, Kind.SENSOR: {}}
