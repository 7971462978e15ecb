"""A storage that several projects share, with the daemons of all of them."""

import logging
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, ScheduleInstigatorData
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.test_utils import create_run_for_test
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon
from dagster._scheduler.scheduler import launch_scheduled_runs
from dagster_postgres import DagsterPostgresStorage
from psycopg import sql

from pricing_pipeline.db.dagster_storage import claim_if_new
from pricing_pipeline.defs.daemon import prepare
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.ours import leave_others_alone, made_here
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.snapshot import last_good, take
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, a_run
from pricing_pipeline_tests.orchestration.test_shared_instance import DRAIN, Status, launched, shared
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["shared"]

OF_THEIRS = {REPOSITORY_LABEL_TAG: "__repository__@theirs"}

MONTHS = ("2010-03-01", "2010-04-01")

PROFILE = "company_profile"
Tables = dict[str, Counter[str]]

# Keys, job and check have the names of ours; the partitions do not.
_regions = dg.StaticPartitionsDefinition([*MONTHS, "emea"])


@dg.asset(key=["price_history", DAILY], partitions_def=_regions)
def their_history() -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(metadata={"whose": "theirs"})


@dg.asset(key=["latest_price", QUOTE])
def their_price() -> None:
    pass


@dg.asset_check(asset=their_price, name="on_time")
def their_check() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


THEIRS = dg.Definitions(
    assets=[their_history, their_price],
    asset_checks=[their_check],
    jobs=[
        dg.define_asset_job("refresh", selection=[their_history]),
        dg.define_asset_job("check_prices", selection=dg.AssetSelection.assets(their_price)),
    ],
)


def tables(url: str) -> Tables:
    """Every row of every table as text."""
    with psycopg.connect(url.replace("+psycopg2", "")) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            name: Counter(
                row for (row,) in connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name)))
            )
            for (name,) in names
        }


def age(url: str) -> None:
    """Let all that was said so far be a hundred days old."""
    with psycopg.connect(url.replace("+psycopg2", "")) as connection:
        for table, column in (
            ("runs", "create_timestamp"),
            ("event_logs", "timestamp"),
            ("asset_check_executions", "create_timestamp"),
        ):
            statement = "UPDATE {} SET {} = {} - interval '100 days'"
            names = map(sql.Identifier, (table, column, column))
            connection.execute(sql.SQL(statement).format(*names))


def location_of(run: dg.DagsterRun) -> str | None:
    return run.remote_job_origin.location_name if run.remote_job_origin else None


def live_strangely(instance: dg.DagsterInstance) -> None:
    """All that a stranger's code location may do in an instance."""
    for partition in _regions.get_partition_keys():
        done = THEIRS.resolve_job_def("refresh").execute_in_process(
            instance=instance, partition_key=partition, tags={**OF_THEIRS, **DRAIN}
        )
        assert done.success
    for _ in range(2):
        assert THEIRS.resolve_job_def("check_prices").execute_in_process(instance=instance, tags=OF_THEIRS).success
        key = dg.AssetKey(["latest_price", QUOTE])
        instance.report_runless_asset_event(dg.AssetMaterialization(key))
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(asset_key=key, check_name="on_time", passed=False, metadata={})
        )
    for status in (
        Status.QUEUED,
        Status.STARTING,
        Status.STARTED,
        Status.CANCELING,
        Status.SUCCESS,
        Status.FAILURE,
    ):
        launched(instance, "theirs", "refresh", status)
        # Definitions of theirs that are merged with ours into one code location.
        launched(instance, "pricing_pipeline", "report", status, tags=DRAIN)
        other = frozenset({dg.AssetKey(["price_history", "theirs"])})
        launched(instance, "pricing_pipeline", "__ASSET_JOB", status, asset_selection=other)
    create_run_for_test(instance, job_name="refresh", status=Status.SUCCESS, tags=DRAIN)  # by a script of theirs
    instance.add_backfill(
        PartitionBackfill(
            backfill_id="theirs",
            status=BulkActionStatus.REQUESTED,
            from_failure=False,
            tags={},
            backfill_timestamp=time.time(),
            asset_selection=[dg.AssetKey("theirs")],
            partition_names=["emea"],
            partition_set_origin=None,
            last_submitted_partition_name=None,
            reexecution_steps=None,
        )
    )


def test_g7_after_our_upkeep_nothing_of_a_stranger_has_changed_by_a_byte(
    shared: dg.DagsterInstance,
    dagster_home: Path,
    dagster_url: str,
    core: Core,
    sandbox: RunningSandbox,
    stage: Stage,
) -> None:
    assert not claim_if_new(dagster_home, dagster_url, is_embedded=False)
    stage.instance = shared
    ours = [
        stage.backfill(DAILY, first=MONTHS[0], last=MONTHS[1]).run_id,
        *(
            launched(shared, "pricing_pipeline", job, status, tags=tags)
            for job, status, tags in (
                ("refresh", Status.SUCCESS, DRAIN),
                ("refresh", Status.FAILURE, DRAIN),
                ("check_prices", Status.SUCCESS, {}),
            )
        ),
    ]
    live_strangely(shared)
    age(dagster_url)
    before = tables(dagster_url)

    prepare()
    said = stage.tick("prune_dagster").skip_message
    after = tables(dagster_url)
    assert said == "removed 4 old runs; the storage was not made by `pricing-pipeline up`, so reports stay"
    assert {run.run_id for run in shared.get_runs()}.isdisjoint(ours)
    for name, rows in before.items():
        assert not after[name] - rows, f"{name}: nothing is added"
        gone = rows - after[name]
        strange = [row for row in gone if not any(run_id in row for run_id in ours)]
        # Tags of our events name no run; they go with their events.
        assert not strange or name == "asset_event_tags", f"{name}: {strange}"
    assert "theirs" in str(after["bulk_actions"])

    # A daemon of ours there sees nothing of theirs, neither what is queued nor what hangs.
    queued = launched(shared, "pricing_pipeline", "refresh", Status.QUEUED)
    leave_others_alone(shared, lambda: take(load_settings()).data_types)
    wanted = dg.RunsFilter(statuses=[Status.QUEUED])
    seen = {run.run_id for run in shared.get_runs(wanted)}
    assert queued in seen
    assert {*shared.get_run_ids(filters=wanted)} == seen
    assert {location_of(run) for run in shared.get_runs()} == {"pricing_pipeline"}
    assert {location_of(record.dagster_run) for record in shared.get_run_records()} == {"pricing_pipeline"}
    assert shared.get_backfills() == []


def test_g7_a_storage_that_up_has_made_is_known_again_and_no_other_is(
    dagster_home: Path, dagster_url: str, core: Core, stage: Stage
) -> None:
    # A first start that is cut off before it has made a table is made again.
    assert claim_if_new(dagster_home, dagster_url, is_embedded=False)
    assert claim_if_new(dagster_home, dagster_url, is_embedded=False)
    prepare()
    assert claim_if_new(dagster_home, dagster_url, is_embedded=False)
    with dg.DagsterInstance.get() as instance:
        assert made_here(instance)
        stage.instance = instance
        live_strangely(instance)
        cut_off = launched(instance, "pricing_pipeline", "refresh", Status.STARTED)
        before = {run.run_id: run.status for run in instance.get_runs() if location_of(run) == "theirs"}
        prepare()
        after = {run.run_id: run.status for run in instance.get_runs()}
        assert after[cut_off] is Status.FAILURE
        assert after | before == after, "runs of other code locations go on"
        assert str(stage.tick("prune_dagster").skip_message).endswith("old reports")
    # Another home, and another database behind the same folder.
    other = dagster_home.parent / "other"
    other.mkdir()
    assert not claim_if_new(other, dagster_url, is_embedded=False)
    assert claim_if_new(other, dagster_url, is_embedded=True)


def test_g7_a_strangers_asset_backfill_is_not_ours_however_its_keys_are_named(
    shared: dg.DagsterInstance, stage: Stage, core: Core
) -> None:
    """A backfill of assets names no code location. Ours are of our very keys, by months."""
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, PROFILE, fetcher="profile", ttl_minutes=1440)
    stage.reload()
    daily, document = dg.AssetKey(["price_history", DAILY]), dg.AssetKey(["document", PROFILE])
    months = dg.MonthlyPartitionsDefinition("2010-01-01")
    beside = dg.AssetSpec(["price_history", "theirs"], partitions_def=months)
    theirs = THEIRS.resolve_asset_graph()
    mixed = dg.Definitions(assets=[asset_of(beside), asset_of(dg.AssetSpec(daily, partitions_def=months))])
    ours = stage.repository.asset_graph
    for name, graph, keys in (
        ("ours", ours, [daily]),
        ("ours of documents", ours, [document]),
        ("ours of both", ours, [daily, document]),
        ("theirs of the same key", theirs, [daily]),
        ("theirs of a key like ours", mixed.resolve_asset_graph(), [beside.key]),
        ("theirs beside a key of ours", mixed.resolve_asset_graph(), [beside.key, daily]),
    ):
        launch(shared, name, graph, keys)
    before = {backfill.backfill_id: backfill for backfill in shared.get_backfills()}
    assert len(before) == 6
    leave_others_alone(shared, lambda: last_good(load_settings()).data_types)
    seen = {backfill.backfill_id for backfill in shared.get_backfills()}
    assert seen == {"ours", "ours of documents", "ours of both"}


def asset_of(spec: dg.AssetSpec) -> dg.AssetsDefinition:
    @dg.multi_asset(specs=[spec], name=spec.key.to_python_identifier())
    def asset() -> None: ...

    return asset


def launch(instance: dg.DagsterInstance, name: str, graph: Any, keys: list[dg.AssetKey]) -> None:
    """Ask for a backfill of assets as the UI does."""
    instance.add_backfill(
        PartitionBackfill.from_asset_partitions(
            backfill_id=name,
            asset_graph=graph,
            partition_names=list(MONTHS) if any(graph.get(key).is_partitioned for key in keys) else None,
            asset_selection=keys,
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=instance,
            all_partitions=not any(graph.get(key).is_partitioned for key in keys),
            title=None,
            description=None,
            run_config=None,
        )
    )


def test_g7_our_scheduler_leaves_the_states_of_others_schedules(
    shared: dg.DagsterInstance, environment: None, core: Core
) -> None:
    """Their slots that pass while their own daemon is away are caught up from what the state remembers."""
    origin = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(module_name="theirs", attribute="definitions"), location_name="theirs"
    )
    theirs = InstigatorState(
        RemoteRepositoryOrigin(origin, "__repository__").get_instigator_origin("yearly"),
        InstigatorType.SCHEDULE,
        InstigatorStatus.DECLARED_IN_CODE,
        ScheduleInstigatorData("0 0 1 1 *", time.time()),
    )
    shared.add_instigator_state(theirs)
    everything = shared.all_instigator_state
    leave_others_alone(shared, tuple)
    with a_daemon(shared) as workspace:
        list(launch_scheduled_runs(workspace, logging.getLogger(), datetime.now(UTC), iteration_times={}))
    names = {state.instigator_name for state in everything(instigator_type=InstigatorType.SCHEDULE)}
    assert names == {"yearly", "mf_nav_schedule", "check_prices"}


@pytest.mark.parametrize(("limit", "is_ours"), [(-1, True), (-1, False), (1, True)])
def test_g7_drains_go_ahead_only_where_nobody_waits_for_a_place(
    limit: int, is_ours: bool, dagster_home: Path, dagster_url: str, environment: None, core: Core
) -> None:
    """Each asks for its successor before it ends, so at a limit of one nobody else would ever have a turn."""
    config = dagster_home / "dagster.yaml"
    config.write_text(
        config.read_text()
        .replace("max_concurrent_runs: -1", f"max_concurrent_runs: {limit}")
        .replace("dequeue_use_threads: true", "dequeue_use_threads: false")  # which launch in no order
        + "\nrun_launcher:\n  module: dagster._core.test_utils\n  class: MockedRunLauncher\n"
    )
    if is_ours:
        assert claim_if_new(dagster_home, dagster_url, is_embedded=False)
    DagsterPostgresStorage(dagster_url, should_autocreate_tables=True)
    with dg.DagsterInstance.get() as instance:
        nightly = a_run(instance, Status.QUEUED)
        drain = a_run(instance, Status.QUEUED, drain_tags(instance, PricingDatabase()))
        with a_daemon(instance) as workspace:
            list(QueuedRunCoordinatorDaemon(interval_seconds=2).run_iteration(workspace))
        launched_first = instance.run_launcher.queue()[0].run_id  # type: ignore[attr-defined]
    assert launched_first == (drain if limit == -1 and is_ours else nightly).run_id
