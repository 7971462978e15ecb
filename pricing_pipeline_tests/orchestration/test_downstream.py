"""What a Dagster user builds on our assets: each condition fires when prices come, and no drain holds it back."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, move
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

HISTORY = dg.AssetKey(["price_history", QUOTE])


def this_month() -> str:
    return datetime.now(UTC).strftime("%Y-%m-01")


def evaluated(
    stage: Stage, *assets: dg.AssetsDefinition, before: dg.EvaluateAutomationConditionsResult | None = None
) -> dg.EvaluateAutomationConditionsResult:
    """A tick of Dagster's automation, in which assets stand beside ours."""
    return dg.evaluate_automation_conditions(
        dg.Definitions.merge(stage.definitions, dg.Definitions(assets=assets)),
        stage.instance,
        asset_selection=dg.AssetSelection.assets(*(asset.key for asset in assets)),
        cursor=before.cursor if before else None,
    )


def theirs(
    name: str, mapping: dg.PartitionMapping | None = None, months: dg.PartitionsDefinition | None = None
) -> dg.AssetsDefinition:
    """An asset of somebody else's that is made from our history."""

    @dg.asset(
        name=name,
        deps=[dg.AssetDep(HISTORY, partition_mapping=mapping) if mapping else dg.AssetDep(HISTORY)],
        partitions_def=months,
        automation_condition=dg.AutomationCondition.eager(),
    )
    def made() -> None: ...

    return made


def test_g8_an_asset_is_wanted_when_a_price_has_come(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    """Its type had months since 2000, most of which it could never fill: so one without months was never wanted."""
    months = stage.spec(*HISTORY.path).partitions_def
    by_month = theirs("by_month", dg.TimeWindowPartitionMapping(), months)
    assets = [theirs("whole"), theirs("last", dg.LastPartitionMapping()), by_month]
    before = evaluated(stage, *assets)
    assert before.total_requested == 0
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert stage.drain().success
    stage.tick("report_prices")
    assert stage.instance.get_materialized_partitions(HISTORY) == {this_month()}
    after = evaluated(stage, *assets, before=before)
    assert after.total_requested == len(assets)
    assert after.get_requested_partitions(by_month.key) == {this_month()}
    assert evaluated(stage, *assets, before=after).total_requested == 0, "nothing new has come"


@pytest.mark.parametrize("is_drain", [True, False])
def test_g8_a_drain_under_way_holds_no_downstream_asset_back(stage: Stage, is_drain: bool) -> None:
    """`eager` waits for a run that selects an asset above and has not yet told of it. A backfill is such a run."""
    asset = theirs("whole")
    before = evaluated(stage, asset)
    stage.instance.report_runless_asset_event(dg.AssetMaterialization(HISTORY, partition=this_month()))
    if is_drain:
        job, keys, tags = stage.definitions.resolve_job_def("refresh"), None, stage.drain_tags()
    else:
        job, keys = stage.definitions.resolve_implicit_global_asset_job_def(), {HISTORY}
        tags = {"dagster/partition": this_month()}
    run = stage.instance.create_run_for_job(
        job.get_subset(asset_selection=keys) if keys else job, tags=tags, asset_selection=keys
    )
    move(stage.instance, run, dg.DagsterRunStatus.STARTED)
    assert evaluated(stage, asset, before=before).total_requested == is_drain
