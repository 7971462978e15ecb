"""Launches whose answer comes late, on a real code server: the run goes on, and nobody is told of a failure."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.run_coordinator import SubmitRunContext
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon
from dagster._grpc.client import DagsterGrpcClient

from pricing_pipeline.defs import launcher
from pricing_pipeline.processes.probes import listens
from pricing_pipeline_tests.fixtures.dagster import ROOT
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

THEIRS = """
import pathlib, time
import dagster as dg

HERE = pathlib.Path(__file__).parent

@dg.op
def work():
    with (HERE / "begun").open("a") as begun:
        begun.write("x")
    while not (HERE / "may-end").exists():
        time.sleep(0.05)

@dg.job(executor_def=dg.in_process_executor)
def drain():
    work()

defs = dg.Definitions(jobs=[drain])
"""
FAILED = {dg.DagsterEventType.RUN_FAILURE, dg.DagsterEventType.STEP_FAILURE}


class Launches:
    """A queue with the launcher of dagster.yaml, a code server, and one run of it that ends when it may."""

    def __init__(self, instance: dg.DagsterInstance, workspace: WorkspaceProcessContext, folder: Path) -> None:
        self.instance, self._workspace, self._folder = instance, workspace, folder
        self._queue = QueuedRunCoordinatorDaemon(interval_seconds=0)
        self._ahead = 0.0
        request = workspace.create_request_context()
        (repository,) = request.get_code_location("theirs").get_repositories().values()
        job = repository.get_full_job("drain")
        run = create_run_for_test(
            instance,
            job_name="drain",
            remote_job_origin=job.get_remote_origin(),
            job_code_origin=job.get_python_origin(),
        )
        self.run_id = instance.run_coordinator.submit_run(SubmitRunContext(run, request)).run_id

    def look(self) -> None:
        """Let the queue look, later than it wants to wait for a code server."""
        self._ahead += 60
        list(self._queue.run_iteration(self._workspace, fixed_iteration_time=time.time() + self._ahead))

    @property
    def status(self) -> dg.DagsterRunStatus:
        run = self.instance.get_run_by_id(self.run_id)
        assert run is not None
        return run.status

    def wait_for(self, status: dg.DagsterRunStatus) -> None:
        wait_until(lambda: self.status is status or self.status is dg.DagsterRunStatus.FAILURE)
        assert self.status is status

    def end(self) -> None:
        """Let the run end, and see that it did so once, and well."""
        time.sleep(3)  # the code server looks for processes that have ended
        (self._folder / "may-end").touch()
        self.wait_for(dg.DagsterRunStatus.SUCCESS)
        assert (self._folder / "begun").read_text() == "x"
        assert list(self.instance.get_records_for_run(self.run_id, of_type=FAILED).records) == []


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launches]:
    code, socket = tmp_path / "theirs.py", tmp_path / "code.sock"
    code.write_text(THEIRS)
    config = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    monkeypatch.setattr(launcher, "_ASKED_EVERY_SECONDS", 0.1)
    overrides = {name: config[name] for name in ("run_coordinator", "run_launcher", "run_monitoring")}
    with (
        PlainProcesses(tmp_path) as processes,
        dg.DagsterInstance.local_temp(
            str(tmp_path), overrides=overrides | {"telemetry": {"enabled": False}}
        ) as instance,
    ):
        command = [Path(sys.executable).parent / "dagster", "code-server", "start", "-f", code, "-s", socket]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        processes.start("code-server", [str(part) for part in command], environment, tmp_path)
        wait_until(lambda: listens(str(socket)))
        target = GrpcServerTarget(host="localhost", port=None, socket=str(socket), location_name="theirs")
        with create_test_daemon_workspace_context(target, instance) as workspace:
            yield Launches(instance, workspace, tmp_path)


class TooLate(Exception):
    """What a client of a code server sees when an answer does not come in time."""

    def code(self) -> Any:
        return SimpleNamespace(name="DEADLINE_EXCEEDED")


@contextmanager
def late_answers() -> Iterator[None]:
    """The code server starts what it is to start, and its answers come too late."""
    start_run = DagsterGrpcClient.start_run

    def late(*asked: Any) -> str:
        Thread(target=start_run, args=asked).start()
        raise DagsterUserCodeUnreachableError("too late") from TooLate()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DagsterGrpcClient, "start_run", late)
        yield


def test_g3_a_run_whose_launch_is_answered_late_is_launched_once(launches: Launches) -> None:
    with late_answers():
        launches.look()
    launches.wait_for(dg.DagsterRunStatus.STARTED)
    launches.look()
    launches.end()


def test_g3_a_launch_that_is_repeated_ends_in_silence_while_the_run_goes_on(launches: Launches) -> None:
    """The queue may have put a run back that has begun meanwhile."""
    launches.look()
    launches.wait_for(dg.DagsterRunStatus.STARTED)
    run = launches.instance.get_run_by_id(launches.run_id)
    assert run is not None
    launches.instance.report_dagster_event(dg.DagsterEvent.job_enqueue(run), run.run_id)
    assert launches.status is dg.DagsterRunStatus.QUEUED
    launches.look()
    assert launches.status is dg.DagsterRunStatus.STARTED, "what starts for two minutes would count as lost"
    launches.end()
