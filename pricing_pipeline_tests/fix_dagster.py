"""Our definitions in this process, as a code location has them, on the database of one test.

Nothing is replaced: the environment says where database and sandbox are, as it does for `up`'s children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.test_utils import create_run_for_test, create_test_daemon_workspace_context
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from sqlalchemy import make_url

import pricing_pipeline
from pricing_pipeline.definitions import definitions
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.ours import LABEL, Ours
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.processes.dagster_home import write
from pricing_pipeline_tests.fix_core import DAILY, FX, NAV, QUOTE
from pricing_pipeline_tests.fix_database import TestServer

_QUIET = {"loggers": {"console": {"config": {"log_level": "ERROR"}}}}
RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


ROOT = Path(pricing_pipeline.__file__).parents[1]

OURS = Ours(LABEL, (DAILY, QUOTE, FX, NAV))
OF_OURS = {REPOSITORY_LABEL_TAG: LABEL}
"""The tag of a run that was launched from our code location."""


def ignore_what_dagster_deprecates(items: list[pytest.Item], folder: Path) -> None:
    """Let the tests in `folder` use Dagster, which uses what it calls deprecated; what we use of it stays an error."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:dagster"))


class Stage:
    """A code location that has just been loaded, and the instance its runs and ticks are kept in."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.reload()

    def reload(self) -> None:
        """Load the definitions anew from the registry."""
        with newly_loading():
            self.definitions: dg.Definitions = definitions()
        self.repository = self.definitions.get_repository_def()

    def spec(self, *path: str) -> dg.AssetSpec:
        """The asset of this key, as a graph shows it."""
        (spec,) = [
            spec for spec in self.definitions.resolve_all_asset_specs() if spec.key == dg.AssetKey(path)
        ]
        return spec

    def stored(self, data_type: str) -> dg.AssetKey:
        """The asset that runs materialize of a data type."""
        (key,) = (
            key for key in self.repository.asset_graph.materializable_asset_keys if key.path[-1] == data_type
        )
        return key

    def tick(self, sensor: str, cursor: str | None = None) -> SensorExecutionData:
        """Evaluate a sensor as the daemon has it evaluated; nothing of its outcome is carried out."""
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            repository_def=self.repository,
            sensor_name=sensor,
            resources={"database": self.repository.get_top_level_resources()["database"]},
        )
        with context:
            return self.repository.get_sensor_def(sensor).evaluate_tick(context)

    def slot(self, schedule: str, at: datetime) -> ScheduleExecutionData:
        """Evaluate a schedule for one of its slots, likewise. The instance has to keep its runs on a disk."""
        context = dg.build_schedule_context(
            instance=self.instance,
            scheduled_execution_time=at,
            repository_def=self.repository,
            resources={"database": self.repository.get_top_level_resources()["database"]},
        )
        with context:
            return self.repository.get_schedule_def(schedule).evaluate_tick(context)

    def drain(
        self, *data_types: str, partition: str | None, tags: dict[str, str] | None = None, **options: Any
    ) -> dg.ExecuteInProcessResult:
        """Run the refresh job for these types, as the sensor requests it."""
        return self.definitions.resolve_job_def("refresh").execute_in_process(
            instance=self.instance,
            run_config=_QUIET,
            partition_key=partition,
            asset_selection=[self.stored(name) for name in data_types],
            tags={**self.drain_tags(), **(tags or {})},
            **options,
        )

    def drain_tags(self) -> dict[str, str]:
        """The tags with which sensor and schedules ask for a drain."""
        return drain_tags(self.instance, PricingDatabase().engine)

    def backfill(
        self,
        *data_types: str,
        first: str | None = None,
        last: str | None = None,
        tags: dict[str, str] | None = None,
        raise_on_error: bool = True,
        job: str | None = None,
        config: dict[str, Any] | None = None,
        **options: Any,
    ) -> dg.ExecuteInProcessResult:
        """Run what the UI launches for a range of months, or without any: of Dagster's own job, or of the one named."""
        months = {RANGE_START: first, RANGE_END: last} if first and last else {}
        chosen = (
            self.definitions.resolve_job_def(job)
            if job
            else self.definitions.resolve_implicit_global_asset_job_def()
        )
        return chosen.execute_in_process(
            instance=self.instance,
            run_config={**_QUIET, "ops": {"refresh_prices": {"config": config or {}}}},
            asset_selection=[self.stored(name) for name in data_types],
            tags={**months, **OF_OURS, **(tags or {})},
            raise_on_error=raise_on_error,
            **options,
        )

    def materializations(self, *path: str) -> list[dg.AssetMaterialization]:
        """The asset's materializations, oldest first."""
        found = self.instance.fetch_materializations(dg.AssetKey(path), limit=10_000, ascending=True)
        return [record.asset_materialization for record in found.records if record.asset_materialization]

    def observations(self, *path: str) -> list[dg.AssetObservation]:
        """The asset's observations, oldest first."""
        found = self.instance.fetch_observations(dg.AssetKey(path), limit=10_000, ascending=True)
        entries = [record.event_log_entry for record in found.records]
        return [entry.asset_observation for entry in entries if entry.asset_observation]


def newly_loading() -> AbstractContextManager[DefinitionsLoadContext]:
    """Load as a new process does: Dagster remembers in each how its definitions were loaded."""
    return DefinitionsLoadContext.scoped(DefinitionsLoadContext(DefinitionsLoadType.INITIALIZATION))


def said(event: dg.AssetMaterialization | dg.AssetObservation) -> dict[str, Any]:
    """The metadata of an event as plain values, its tables as lists of their rows."""
    return {name: plain(value) for name, value in event.metadata.items()}


def plain(value: dg.MetadataValue[Any]) -> Any:
    """What a metadata value holds; of a table its rows."""
    if isinstance(value, dg.TableMetadataValue):
        return [dict(record.data) for record in value.records]
    return value.value


def an_instance(folder: Path) -> dg.DagsterInstance:
    """An instance that other threads and processes can share, which queues runs and starts none."""
    return dg.DagsterInstance.local_temp(
        str(folder),
        overrides={
            "run_coordinator": {
                "module": "dagster.core.run_coordinator",
                "class": "QueuedRunCoordinator",
            },
            "telemetry": {"enabled": False},
        },
    )


_ORIGIN = InProcessCodeLocationOrigin(
    LoadableTargetOrigin(module_name="pricing_pipeline.definitions", attribute="definitions"),
    location_name="pricing_pipeline",
)
_EVENTS = {
    dg.DagsterRunStatus.QUEUED: dg.DagsterEventType.PIPELINE_ENQUEUED,
    dg.DagsterRunStatus.STARTING: dg.DagsterEventType.PIPELINE_STARTING,
    dg.DagsterRunStatus.STARTED: dg.DagsterEventType.PIPELINE_START,
    dg.DagsterRunStatus.SUCCESS: dg.DagsterEventType.PIPELINE_SUCCESS,
    dg.DagsterRunStatus.FAILURE: dg.DagsterEventType.PIPELINE_FAILURE,
}


def a_run(
    instance: dg.DagsterInstance,
    status: dg.DagsterRunStatus,
    tags: Mapping[str, str] | None = None,
    job: str = "refresh",
    location: str = "pricing_pipeline",
) -> dg.DagsterRun:
    """A run of a job of our code location, or another, that has come as far as `status`; nothing carries it out."""
    origin = InProcessCodeLocationOrigin(_ORIGIN.loadable_target_origin, location_name=location)
    run = create_run_for_test(
        instance,
        job_name=job,
        status=dg.DagsterRunStatus.NOT_STARTED,
        tags=tags,
        remote_job_origin=RemoteRepositoryOrigin(origin, "__repository__").get_job_origin(job),
    )
    return run if status is run.status else move(instance, run, status)


def move(instance: dg.DagsterInstance, run: dg.DagsterRun, status: dg.DagsterRunStatus) -> dg.DagsterRun:
    """Have a run come as far as `status`, as Dagster's processes tell it."""
    instance.report_dagster_event(dg.DagsterEvent(_EVENTS[status].value, "refresh"), run.run_id)
    moved = instance.get_run_by_id(run.run_id)
    assert moved is not None
    assert moved.status is status
    return moved


@contextmanager
def a_daemon(instance: dg.DagsterInstance) -> Iterator[WorkspaceProcessContext]:
    """What Dagster's daemons work with, our definitions loaded in this process."""
    with (
        newly_loading(),
        create_test_daemon_workspace_context(InProcessWorkspaceLoadTarget(_ORIGIN), instance) as context,
    ):
        yield context


@pytest.fixture
def environment(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `up` tells its children, but for the sandbox; where none runs, nobody answers."""
    monkeypatch.setenv("PRICING_HOME", str(tmp_path))
    monkeypatch.setenv("PRICING_DATABASE_URL", database_url)
    monkeypatch.setenv("PRICING_SANDBOX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PRICING_MAX_DRAIN_SECONDS", "5")
    monkeypatch.delenv("PRICING_CODE_SOCKET", raising=False)
    yield
    PricingDatabase().engine.dispose()


@pytest.fixture
def dagster_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DAGSTER_HOME as `up` makes it. Nothing listens where its variables point."""
    home = tmp_path / "dagster"
    write(home, ROOT)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("PRICING_DAGSTER_URL", "postgresql+psycopg2://nobody:none@127.0.0.1:9/dagster")
    monkeypatch.setenv("PRICING_CODE_SOCKET", "/nowhere/code.sock")
    return home


@pytest.fixture
def dagster_url(dagster_home: Path, server: TestServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database for the instance of DAGSTER_HOME."""
    name = f"dagster_test_{uuid4().hex[:12]}"
    server.create(name, "template1")
    url = make_url(server.url_of_owner(name)).set(drivername="postgresql+psycopg2")
    monkeypatch.setenv("PRICING_DAGSTER_URL", url.render_as_string(hide_password=False))
    yield url.render_as_string(hide_password=False)
    server.drop(name)


@pytest.fixture
def stage(
    environment: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """The definitions on an instance in memory. A test that has a sandbox is connected to it."""
    if "sandbox" in request.fixturenames:
        monkeypatch.setenv("PRICING_SANDBOX_URL", request.getfixturevalue("sandbox").url)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Stage(instance)
