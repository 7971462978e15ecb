"""A7: what a broker's file says is held is fetched from the sandbox, to the end."""

from __future__ import annotations

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_holding_imports import held, imported, type_of_coins
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["type_of_coins"]


def test_a7_what_is_imported_is_fresh_soon_and_no_call_is_refused(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    imported(cli, "portfolio_performance.csv", "--yes")
    wanted = held(core)
    assert len(wanted) == 30
    core.lift_limits()

    def is_fresh() -> bool:
        prices = core.rows("SELECT data_type, symbol FROM pricing.latest_prices")
        return {(row.data_type, row.symbol) for row in prices} >= wanted

    work_until(refresher, is_fresh)
    assert core.rows("SELECT outcome, count(*) FROM pricing.collector_call_log WHERE outcome <> 'ok' GROUP BY 1") == []
