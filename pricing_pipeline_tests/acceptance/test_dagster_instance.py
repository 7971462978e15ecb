"""The instance of `up` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.test_utils import create_run_for_test

from pricing_pipeline.db.dagster_storage import claim_if_new
from pricing_pipeline.defs.daemon import prepare
from pricing_pipeline.defs.pruning import prune_reports, prune_runs
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import OF_OURS, OURS, Stage, said
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox


@pytest.fixture
def on_postgresql(dagster_home: Path, dagster_url: str) -> Iterator[dg.DagsterInstance]:
    """The instance of dagster.yaml on a database of its own, made ready as `up` and its daemon do it."""
    assert claim_if_new(dagster_home, dagster_url, is_embedded=False)
    prepare()
    with dg.DagsterInstance.get() as instance:
        yield instance


def test_g7_g6_the_instance_on_postgresql(
    on_postgresql: dg.DagsterInstance, core: Core, sandbox: RunningSandbox, stage: Stage
) -> None:
    """What dagster.yaml means to Dagster, and whatever of ours depends on its storage."""
    instance = on_postgresql
    assert not instance.telemetry_enabled
    assert not instance.nux_enabled
    assert instance.freshness_enabled
    assert "ASSET" not in instance.get_required_daemon_types()  # that of automation, which nothing here has
    assert instance.run_monitoring_enabled
    assert not instance.run_retries_enabled
    assert isinstance(instance.event_log_storage, SqlEventLogStorage)
    kept = instance.get_tick_retention_settings(InstigatorType.SENSOR)
    assert kept[TickStatus.SKIPPED] == 1

    # A stop cut runs off; at the next start they count as failed and take no place in the run queue.
    cut_off = create_run_for_test(instance, job_name="refresh", status=dg.DagsterRunStatus.STARTED, tags=OF_OURS)
    prepare()
    run = instance.get_run_by_id(cut_off.run_id)
    assert run is not None
    assert run.status is dg.DagsterRunStatus.FAILURE

    # Events of a real backfill, and their pruning.
    stage.instance = instance
    backfill = stage.backfill(DAILY, first="2010-03-01", last="2010-04-01")
    for _ in range(3):
        instance.report_runless_asset_event(dg.AssetMaterialization(["latest_price", QUOTE]))
    later = datetime.now(UTC) + timedelta(days=91)
    assert prune_runs(instance, OURS, core.engine, later) == 2
    assert prune_reports(instance, OURS, later) == 2
    assert instance.get_run_by_id(backfill.run_id) is None
    events = stage.materializations("price_history", DAILY)
    assert {event.partition: said(event)["dagster/partition_row_count"] for event in events} == {
        "2010-03-01": 4 * 23,
        "2010-04-01": 4 * 21,
    }
    assert len(stage.materializations("latest_price", QUOTE)) == 1
