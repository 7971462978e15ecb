"""Dagster's storage stays small, and what the UI shows of prices stays true."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.freshness import FreshnessState
from dagster._core.storage.compute_log_manager import ComputeIOType
from dagster._core.test_utils import create_run_for_test, freeze_time
from dagster._daemon.freshness import FreshnessDaemon

from pricing_pipeline.defs import pruning
from pricing_pipeline.defs.naming import PLAIN, UNREAD_LISTS
from pricing_pipeline.defs.pruning import prune_reports, prune_runs
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import OF_OURS, OURS, Stage, a_daemon, an_instance, said
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HISTORY = dg.AssetKey(["price_history", DAILY])
DRAIN = {"pricing/drain": "true", **OF_OURS}
Status = dg.DagsterRunStatus


def in_(time: timedelta) -> datetime:
    return datetime.now(UTC) + time


def test_g5_runs_are_kept_as_long_as_somebody_may_ask_for_them(stage: Stage, core: Core) -> None:
    runs = {
        name: create_run_for_test(stage.instance, job_name="refresh", status=status, tags=tags).run_id
        for name, status, tags in (
            ("drain", Status.SUCCESS, DRAIN),
            ("cancelled drain", Status.CANCELED, DRAIN),
            ("failed drain", Status.FAILURE, DRAIN),
            ("backfill", Status.SUCCESS, OF_OURS),
            ("failed backfill", Status.FAILURE, OF_OURS),
            ("drain at work", Status.STARTED, DRAIN),
            ("drain that starts", Status.STARTING, DRAIN),
        )
    }
    kept = list(runs)

    def prune(after: timedelta) -> list[str]:
        """Names of the runs that a pruning so much later removes."""
        removed = prune_runs(stage.instance, OURS, core.engine, in_(after))
        left = {run.run_id for run in stage.instance.get_runs()}
        gone = [name for name in kept if runs[name] not in left]
        kept[:] = [name for name in kept if runs[name] in left]
        assert removed == len(gone)
        return gone

    for earlier, later, expected in (
        (5.9 * HOUR, 6.1 * HOUR, ["drain", "cancelled drain"]),
        (6.9 * DAY, 7.1 * DAY, ["failed drain"]),
        (89.9 * DAY, 90.1 * DAY, ["backfill", "failed backfill"]),
    ):
        assert prune(earlier) == []
        assert prune(later) == expected
    assert prune(1000 * DAY) == []
    assert kept == ["drain at work", "drain that starts"]


def test_g5_a_tick_removes_a_little_at_a_time(stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "RUNS_AT_ONCE", 3)
    for _ in range(3):  # of definitions that are merged with ours; they are in nobody's way
        create_run_for_test(stage.instance, job_name="report", status=Status.SUCCESS, tags=DRAIN)
    for _ in range(5):
        create_run_for_test(stage.instance, job_name="refresh", status=Status.SUCCESS, tags=DRAIN)
    assert [prune_runs(stage.instance, OURS, core.engine, in_(7 * HOUR)) for _ in range(3)] == [3, 2, 0]


def test_g5_the_sensor_says_what_it_removed(stage: Stage) -> None:
    with freeze_time(datetime.now(UTC) - 7 * HOUR):
        create_run_for_test(stage.instance, job_name="refresh", status=Status.SUCCESS, tags=DRAIN)
    left = "the storage was not made by `pricing-pipeline up`, so reports stay"
    assert stage.tick("prune_dagster").skip_message == f"removed 1 old runs; {left}"
    assert stage.tick("prune_dagster").skip_message == f"removed 0 old runs; {left}"


def test_g6_a_month_whose_last_event_goes_is_reported_again(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    old = stage.backfill(DAILY, first="2010-03-01", last="2010-05-01")
    with freeze_time(in_(50 * DAY)):
        stage.backfill(DAILY, first="2010-04-01", last="2010-04-01")
    months = {"2010-03-01", "2010-04-01", "2010-05-01"}
    core.rows("DELETE FROM pricing.price_history WHERE symbol = 'IBM' AND observed_at < '2010-04-01'")

    assert prune_runs(stage.instance, OURS, core.engine, in_(91 * DAY)) == 1
    assert stage.instance.get_run_by_id(old.run_id) is None
    assert stage.instance.get_materialized_partitions(HISTORY) == months
    events = stage.materializations("price_history", DAILY)
    # April is known from the later run. March and May come back, with what the database holds now.
    assert sorted(
        (event.partition, said(event)["dagster/partition_row_count"], said(event)["symbols"]) for event in events
    ) == [
        ("2010-03-01", 3 * 23, 3),
        ("2010-04-01", 4 * 21, 4),
        ("2010-05-01", 4 * 20, 4),
    ]
    assert said(events[-1])["dagster/row_count"] == 3 * 23 + 4 * 21 + 4 * 20, "of the whole asset"
    # They belong to no run, so no later pruning takes them.
    assert prune_runs(stage.instance, OURS, core.engine, in_(91 * DAY)) == 0
    assert prune_reports(stage.instance, OURS, in_(91 * DAY)) == 0
    assert stage.instance.get_materialized_partitions(HISTORY) == months


def test_g6_the_log_files_of_a_run_go_with_it(environment: None, core: Core, open_folder: Path) -> None:
    with an_instance(open_folder) as instance:
        run = create_run_for_test(instance, job_name="refresh", status=Status.SUCCESS, tags=DRAIN)
        manager = instance.compute_log_manager
        with manager.open_log_stream([run.run_id, "compute_logs", "abc"], ComputeIOType.STDERR) as stream:
            assert stream is not None
            stream.write("said")
        assert list(open_folder.rglob("abc.*"))
        prune_runs(instance, OURS, core.engine, in_(7 * HOUR))
        assert not list(open_folder.rglob("abc.*"))


def reports(instance: dg.DagsterInstance, *data_types: str, kind: str = "latest_price") -> None:
    for name in data_types:
        instance.report_runless_asset_event(dg.AssetMaterialization([kind, name]))


def test_g2_reports_older_than_a_day_go_and_the_newest_stays(stage: Stage) -> None:
    reports(stage.instance, QUOTE, FX, QUOTE, NAV, QUOTE)
    for month in ("2010-03-01", "2010-04-01", "2010-03-01"):
        stage.instance.report_runless_asset_event(dg.AssetMaterialization(HISTORY, partition=month))
    assert prune_reports(stage.instance, OURS, in_(23.9 * HOUR)) == 0
    assert prune_reports(stage.instance, OURS, in_(24.1 * HOUR)) == 3
    assert [len(stage.materializations("latest_price", name)) for name in (QUOTE, FX, NAV)] == [1, 1, 1]
    # Freshness is judged by what is left, and so is which months are filled.
    for name in (QUOTE, FX, NAV):
        last = stage.instance.get_latest_materialization_event(dg.AssetKey(["latest_price", name]))
        assert last is not None
    assert stage.instance.get_materialized_partitions(HISTORY) == {"2010-03-01", "2010-04-01"}
    assert prune_reports(stage.instance, OURS, in_(24.1 * HOUR)) == 0


def test_g2_what_checks_found_goes_after_a_month_but_for_the_last(stage: Stage) -> None:
    key = dg.AssetKey(["latest_price", QUOTE])
    for name in ("on_time", "outliers", "on_time"):
        stage.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(asset_key=key, check_name=name, passed=name == "outliers", metadata={})
        )

    def executions(name: str) -> int:
        storage = stage.instance.event_log_storage
        return len(storage.get_asset_check_execution_history(dg.AssetCheckKey(key, name), limit=10))

    prune_reports(stage.instance, OURS, in_(29 * DAY))
    assert (executions("on_time"), executions("outliers")) == (2, 1)
    prune_reports(stage.instance, OURS, in_(31 * DAY))
    assert (executions("on_time"), executions("outliers")) == (1, 1)


def test_g2_what_the_check_of_lists_found_goes_after_a_month_too(stage: Stage) -> None:
    """Each sync has one, whose run may be gone long before."""
    for _ in range(3):
        stage.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(asset_key=PLAIN.commodity_lists, check_name=UNREAD_LISTS, passed=True, metadata={})
        )
    assert prune_reports(stage.instance, OURS, in_(31 * DAY)) >= 2
    storage = stage.instance.event_log_storage
    key = dg.AssetCheckKey(PLAIN.commodity_lists, UNREAD_LISTS)
    assert len(storage.get_asset_check_execution_history(key, limit=10)) == 1


def test_g2_evaluations_of_freshness_go_too_and_its_state_stays(
    environment: None, core: Core, open_folder: Path
) -> None:
    key = dg.AssetKey(["freshness", QUOTE])
    now = datetime.now(UTC)
    with an_instance(open_folder) as instance, a_daemon(instance) as daemon:
        for minutes in (0, 3):
            reports(instance, QUOTE, kind="freshness")
            for seconds in (0, 70, 130):
                with freeze_time(now + timedelta(minutes=minutes, seconds=seconds)):
                    list(FreshnessDaemon().run_iteration(daemon))
        before = instance.get_freshness_state_records([key])[key].freshness_state
        assert prune_reports(instance, OURS, in_(25 * HOUR)) > 2
        assert before is FreshnessState.FAIL
        assert instance.get_freshness_state_records([key])[key].freshness_state is before
