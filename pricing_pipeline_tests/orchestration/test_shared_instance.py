"""An instance that others share: after all our upkeep, nothing of theirs has changed by a byte."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    InProcessCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.test_utils import create_run_for_test
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_postgres import DagsterPostgresStorage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.db.dagster_storage import name_of_home, settle
from pricing_pipeline.defs.daemon import prepare
from pricing_pipeline.defs.pruning import prune_runs
from pricing_pipeline.errors import SettingsError
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import OURS, Stage, an_empty_instance, an_instance
from pricing_pipeline_tests.support.examples import is_thorough

DRAIN = {"pricing/drain": "true"}
Status = dg.DagsterRunStatus


def launched(instance: dg.DagsterInstance, location: str, job: str, status: Status, **options: Any) -> str:
    """A run of a job of a code location, as the UI launches one; its id."""
    target = LoadableTargetOrigin(module_name=location, attribute="definitions")
    origin = InProcessCodeLocationOrigin(target, location_name=location)
    job_origin = RemoteJobOrigin(RemoteRepositoryOrigin(origin, "__repository__"), job)
    run = create_run_for_test(instance, job_name=job, status=status, remote_job_origin=job_origin, **options)
    return run.run_id


@pytest.fixture
def shared(dagster_home: Path, dagster_url: str) -> Iterator[dg.DagsterInstance]:
    """The instance of dagster.yaml on a storage that a stranger has made."""
    DagsterPostgresStorage(dagster_url, should_autocreate_tables=True)
    with dg.DagsterInstance.get() as instance:
        yield instance


def test_g7_in_a_shared_storage_a_start_fails_what_was_cut_off_of_its_own_home(
    shared: dg.DagsterInstance,
) -> None:
    """It would take a place in our run queue for ever. Another home may serve the same code there, and is at work."""
    runs = {}
    for socket in ("/nowhere/code.sock", "/elsewhere/code.sock"):
        origin = GrpcServerCodeLocationOrigin(host="localhost", socket=socket, location_name="pricing_pipeline")
        job_origin = RemoteJobOrigin(RemoteRepositoryOrigin(origin, "__repository__"), "refresh")
        run = create_run_for_test(shared, job_name="refresh", status=Status.STARTED, remote_job_origin=job_origin)
        runs[socket] = run.run_id
    launched(shared, "theirs", "refresh", Status.STARTED)
    prepare()
    failed = {run.run_id for run in shared.get_runs(dg.RunsFilter(statuses=[Status.FAILURE]))}
    assert failed == {runs["/nowhere/code.sock"]}


def test_g7_b17_a_drain_of_others_keeps_none_of_ours_away(stage: Stage, core: Core, tmp_path: Path) -> None:
    """Of a stranger, of another database, and of the same one in a code location whose daemon is away."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    with an_instance(tmp_path) as instance:
        stage.instance = instance
        ours = stage.drain_tags()
        for location, tags in (
            ("theirs", DRAIN),
            ("pricing_pipeline", DRAIN),
            ("pricing_pipeline", {**ours, "pricing/database": "1/2"}),
        ):
            launched(instance, location, "refresh", Status.QUEUED, tags=tags)
        launched(instance, "theirs", "refresh", Status.QUEUED, tags=ours)
        assert stage.tick("refresh_watched").run_requests
        launched(instance, "pricing_pipeline", "refresh", Status.QUEUED, tags=ours)
        assert stage.tick("refresh_watched").skip_message == "a drain is queued or starting"


def test_g7_a_storage_has_one_home_of_ours_at_most(
    shared: dg.DagsterInstance, dagster_url: str, database_url: str, tmp_path: Path
) -> None:
    mine, others = (name_of_home(tmp_path / name, database_url, is_embedded=True) for name in ("mine", "others"))
    for _ in range(2):
        settle(dagster_url, mine, is_owner=False)
    with pytest.raises(SettingsError, match=f"the runs of another home, .*{tmp_path}/mine; this"):
        settle(dagster_url, others, is_owner=False)
    settle(dagster_url, mine, is_owner=False)
    # One that was moved together with the server in it goes on; anyone who was a guest there is a stranger then.
    settle(dagster_url, others, is_owner=True)
    with pytest.raises(SettingsError):
        settle(dagster_url, mine, is_owner=False)


def test_g7_a_home_is_known_by_its_database_and_where_that_is_embedded_by_its_folder(
    database_url: str, dagster_url: str, tmp_path: Path
) -> None:
    def name(folder: str, url: str, *, is_embedded: bool) -> str:
        return name_of_home(tmp_path / folder, url, is_embedded=is_embedded)

    assert name("a", database_url, is_embedded=False) == name("b", database_url, is_embedded=False)
    assert name("a", database_url, is_embedded=True) != name("b", database_url, is_embedded=True)
    assert name("a", database_url, is_embedded=False) != name("a", dagster_url, is_embedded=False)


def test_g7_a_storage_without_tables_is_nobodys_yet(dagster_url: str) -> None:
    for home in ("one", "another"):
        settle(dagster_url, home, is_owner=False)


@settings(
    max_examples=20 if is_thorough() else 4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["pricing_pipeline", "theirs"]),
            st.sampled_from([{}, DRAIN]),
            st.sampled_from(["refresh", "check_prices", "report", "__ASSET_JOB"]),
            st.sampled_from([None, frozenset({dg.AssetKey(["price_history", DAILY])}), frozenset({dg.AssetKey("x")})]),
            st.sampled_from([Status.QUEUED, Status.STARTED, Status.SUCCESS, Status.CANCELED, Status.FAILURE]),
        ),
        max_size=12,
    )
)
def test_g7_whatever_runs_there_are_only_ours_that_have_ended_go(stage: Stage, core: Core, runs: list[Any]) -> None:
    instance = an_empty_instance()
    kept = set()
    for location, drain, job, selection, status in runs:
        run_id = launched(instance, location, job, status, tags=drain, asset_selection=selection)
        is_ours = location == "pricing_pipeline" and (
            job in ("refresh", "check_prices") or selection == {dg.AssetKey(["price_history", DAILY])}
        )
        if not is_ours or status in (Status.QUEUED, Status.STARTED):
            kept.add(run_id)
    prune_runs(instance, OURS, core.engine, datetime.now(UTC) + timedelta(days=91))
    assert {run.run_id for run in instance.get_runs()} == kept
