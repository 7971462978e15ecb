"""Commodities in Dagster: their lists are synced by its runs."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.orchestration.test_contents_shown import GOODS, kinds, terminals
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["kinds", "terminals"]


def test_c4_the_lists_of_commodities_are_an_asset_with_a_schedule(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    spec = stage.repository.asset_graph.get(dg.AssetKey("commodity_lists"))
    assert spec.parent_keys == {dg.AssetKey(["provider", "uex"])}
    assert spec.child_keys == {dg.AssetKey(["latest_price", GOODS])}, "a sync fills it, too"
    two_missed = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=4), warn_window=timedelta(hours=2))
    assert spec.freshness_policy == two_missed
    run = stage.definitions.resolve_job_def("sync_commodities").execute_in_process(instance=stage.instance)
    assert run.success
    (event,) = stage.materializations("commodity_lists")
    lists = {row["list"]: row for row in said(event)["lists"]}
    assert [row["failure"] for row in lists.values()] == ["", "", "", ""]
    terminals = core.one("SELECT count(*) FROM pricing.terminals WHERE vanished_at IS NULL")
    assert lists["terminals"]["added"] == terminals > 0
    assert said(event)["calls"] == 4
    (check,) = run.get_asset_check_evaluations()
    assert (check.check_name, check.passed, check.description) == ("unread_lists", True, "All 4 lists were read.")
    assert (
        core.one("SELECT count(*) FROM pricing.collector_call_log WHERE provider = 'uex' AND finished_at IS NOT NULL")
        == 4
    )


def test_c4_a_list_that_could_not_be_read_fails_its_check(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    """The others are stored, so the run succeeds and the asset is materialized."""
    sandbox.behave("html", provider="uex", path="terminals")
    run = stage.definitions.resolve_job_def("sync_commodities").execute_in_process(instance=stage.instance)
    assert run.success
    (check,) = run.get_asset_check_evaluations()
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert (check.description or "").startswith("1 of 4 lists could not be read. terminals: ")
    assert "could not be read" in str(check.metadata["what_to_do"].value)


def test_c4_a_sync_without_prices_fails_and_materializes_nothing(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """The other lists stay stored. A materialization would keep the asset fresh while its prices grow old."""
    sandbox.behave("html", provider="uex", path="commodities_prices_all")
    job = stage.definitions.resolve_implicit_global_asset_job_def()
    run = job.execute_in_process(
        instance=stage.instance, asset_selection=[dg.AssetKey("commodity_lists")], raise_on_error=False
    )
    assert not run.success
    assert stage.materializations("commodity_lists") == []
    (check,) = run.get_asset_check_evaluations()
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert " prices: " in (check.description or "")
    assert core.one("SELECT count(*) FROM pricing.terminals") > 0, "of the other lists"
    tags = stage.instance.get_runs()[0].tags
    assert tags["dagster/max_retries"] == "0", "the next sync asks again"
