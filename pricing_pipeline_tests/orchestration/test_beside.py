"""What the daemon of `up` serves of code locations beside ours: those of its workspace, and nothing of others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.execution.backfill import PartitionBackfill
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    InProcessCodeLocationOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    InstigatorType,
    SensorInstigatorData,
)
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget

from pricing_pipeline.defs.daemon import prepare, served
from pricing_pipeline.defs.ours import Beside, leave_others_alone
from pricing_pipeline_tests.fixtures.dagster import a_run, an_instance

THEIRS = """
import dagster as dg

parts = dg.StaticPartitionsDefinition(["a", "b"])

@dg.asset(partitions_def=parts)
def parted(): ...

@dg.repository
def other_name():
    return [parted]
"""
Status = dg.DagsterRunStatus


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with an_instance(tmp_path) as instance:
        yield instance


@pytest.fixture
def workspace(instance: dg.DagsterInstance, tmp_path: Path) -> Iterator[WorkspaceProcessContext]:
    (tmp_path / "theirs.py").write_text(THEIRS)
    code = LoadableTargetOrigin(python_file=str(tmp_path / "theirs.py"))
    target = InProcessWorkspaceLoadTarget(InProcessCodeLocationOrigin(code, location_name="theirs"))
    with create_test_daemon_workspace_context(target, instance) as workspace:
        yield workspace


def origin(location: str) -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(module_name=location, attribute="definitions")
    return RemoteRepositoryOrigin(InProcessCodeLocationOrigin(target, location_name=location), "__repository__")


def test_g7_runs_of_the_workspace_are_seen_whatever_their_repository_is_named(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext
) -> None:
    for location in ("pricing_pipeline", "theirs", "strange"):
        a_run(instance, Status.QUEUED, location=location)
    named = RemoteRepositoryOrigin(origin("theirs").code_location_origin, "other_name")
    create_run_for_test(instance, job_name="x", remote_job_origin=named.get_job_origin("x"))
    beside = Beside({"theirs"})
    leave_others_alone(instance, tuple, beside=beside)
    assert labels_of(instance) == {"__repository__@pricing_pipeline", "__repository__@theirs"}
    beside.look_at(workspace)
    assert labels_of(instance) == {
        "__repository__@pricing_pipeline",
        "__repository__@theirs",
        "other_name@theirs",
    }


def labels_of(instance: dg.DagsterInstance) -> set[str]:
    return {
        run.remote_job_origin.repository_origin.get_label()
        for run in instance.get_runs()
        if run.remote_job_origin is not None
    }


def test_g7_states_of_the_workspace_are_seen_and_those_of_others_are_not(
    instance: dg.DagsterInstance,
) -> None:
    for location in ("pricing_pipeline", "theirs", "strange"):
        named = origin(location).get_instigator_origin("sensing")
        data = SensorInstigatorData(last_tick_timestamp=time.time())
        state = InstigatorState(named, InstigatorType.SENSOR, InstigatorStatus.RUNNING, data)
        instance.add_instigator_state(state)
    leave_others_alone(instance, tuple, beside=Beside({"theirs"}))
    seen = {
        state.origin.repository_origin.code_location_origin.location_name for state in instance.all_instigator_state()
    }
    assert seen == {"pricing_pipeline", "theirs"}


def test_g6_g7_a_backfill_of_their_assets_is_served_and_one_of_unknown_assets_waits(
    instance: dg.DagsterInstance, workspace: WorkspaceProcessContext
) -> None:
    parts = dg.StaticPartitionsDefinition(["a", "b"])
    for key in ("parted", "unknown"):
        graph = dg.Definitions(assets=[dg.AssetSpec(key, partitions_def=parts)]).resolve_asset_graph()
        instance.add_backfill(
            PartitionBackfill.from_asset_partitions(
                backfill_id=key,
                asset_graph=graph,
                partition_names=["a", "b"],
                asset_selection=[dg.AssetKey(key)],
                backfill_timestamp=time.time(),
                tags={},
                dynamic_partitions_store=instance,
                all_partitions=False,
                title=None,
                description=None,
                run_config=None,
            )
        )
    beside = Beside({"theirs"})
    leave_others_alone(instance, tuple, beside=beside)
    assert instance.get_backfills() == [], "nothing is known of a location that has not loaded"
    beside.look_at(workspace)
    assert [backfill.backfill_id for backfill in instance.get_backfills()] == ["parted"]


def test_g7_a_start_fails_runs_of_others_that_its_last_stop_ended_and_no_more(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code server of a location that runs elsewhere goes on, and so do its runs."""
    entries = [
        {"socket": {"env": "PRICING_CODE_SOCKET"}, "location_name": "pricing_pipeline"},
        {"socket": "/home/code-1.sock", "location_name": "theirs"},
        {"host": "elsewhere", "port": 1, "location_name": "far"},
    ]
    (tmp_path / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": e} for e in entries]}))
    sockets = served(tmp_path / "workspace.yaml")
    assert sockets == {"pricing_pipeline": None, "theirs": "/home/code-1.sock", "far": None}
    runs = {}
    for name, where in (
        ("theirs", {"socket": "/home/code-1.sock"}),
        ("far", {"port": 1}),
        ("odd", {"socket": "/x"}),
    ):
        server = GrpcServerCodeLocationOrigin(host="localhost", location_name=name, **where)  # type: ignore[arg-type]
        job = RemoteRepositoryOrigin(server, "__repository__").get_job_origin("x")
        runs[name] = create_run_for_test(instance, job_name="x", status=Status.STARTED, remote_job_origin=job).run_id
    monkeypatch.setenv("PRICING_CODE_SOCKET", "/home/code.sock")
    monkeypatch.setattr(dg.DagsterInstance, "get", lambda: instance)
    monkeypatch.setattr(type(instance), "__exit__", lambda *_: None)
    prepare(sockets.values())
    failed = {run.run_id for run in instance.get_runs(dg.RunsFilter(statuses=[Status.FAILURE]))}
    assert failed == {runs["theirs"]}
