"""The asset check of latest prices: are viewers served on time?"""

from __future__ import annotations

from typing import Any

import dagster as dg

from pricing_pipeline_tests.fix_core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fix_dagster import Stage
from pricing_pipeline_tests.fix_database import Clock


def evaluated(stage: Stage) -> dict[str, dg.AssetCheckEvaluation]:
    run = stage.definitions.resolve_job_def("check_prices").execute_in_process(instance=stage.instance)
    assert run.success
    return {check.asset_key.path[1]: check for check in run.get_asset_check_evaluations()}


def facts(check: dg.AssetCheckEvaluation) -> dict[str, Any]:
    return {name: value.value for name, value in check.metadata.items()}


def test_g2_a_check_for_each_type_fails_where_viewers_wait_too_long(
    stage: Stage, core: Core, clock: Clock
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (FX, "EUR/USD"))
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = 'IBM'")
    clock.advance(31)
    checks = evaluated(stage)
    assert set(checks) == {DAILY, QUOTE, FX, NAV}
    assert {name: check.passed for name, check in checks.items()} == {
        DAILY: True,
        QUOTE: False,
        FX: True,
        NAV: True,
    }
    assert all(check.severity is dg.AssetCheckSeverity.WARN for check in checks.values())
    assert str(checks[QUOTE].description).startswith("2 of 2 watched prices are late.")
    assert checks[FX].description == "1 watched price, none late."
    assert checks[NAV].description == "Nobody watches this type."
    told = facts(checks[QUOTE])
    assert {name: told[name] for name in ("watched", "fresh", "late")} == {
        "watched": 2,
        "fresh": 0,
        "late": 2,
    }
    assert "| AAPL | nothing was ever fetched: it waits since" in told["why_late"], "F4"
    assert "why_late" not in facts(checks[FX])


def test_g2_checks_belong_to_latest_prices_only(stage: Stage) -> None:
    graph = stage.definitions.resolve_asset_graph()
    assert {key.asset_key.path[0] for key in graph.asset_check_keys} == {"latest_price"}
    assert {key.name for key in graph.asset_check_keys} == {"on_time"}
    assert len(graph.asset_check_keys) == 4
