"""Checks after the backfills of the tour."""

from __future__ import annotations

from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.orchestration.test_checks import NAMES, facts
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox


def test_g2_the_backfill_of_the_tour_turns_no_check_red(
    stage: Stage, core: Core, sandbox: RunningSandbox, clock: Clock
) -> None:
    """README: watch, then backfill years that are long past. Nobody asked for what is between."""
    core.rows("UPDATE pricing.instruments SET calendar = NULL WHERE asset_class <> 'equity'")  # each takes seconds
    calendars.extend(core.engine)
    # The sandbox trades on holidays, too: two symbols show that such a day is a session.
    core.heartbeat("ann", (DAILY, "AAPL"), (DAILY, "MSFT"), (QUOTE, "AAPL"))
    assert stage.drain().success
    assert stage.backfill(DAILY, first="2012-12-01", last="2013-06-01").success
    core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = last_seen_at + interval '1 hour'")
    clock.advance(3600)
    core.heartbeat("ann", (DAILY, "AAPL"), (DAILY, "MSFT"))
    run = stage.definitions.resolve_job_def("check_prices").execute_in_process(instance=stage.instance)
    found = [check for check in run.get_asset_check_evaluations() if check.asset_key.path[1] == DAILY]
    assert {check.check_name: check.passed for check in found} == dict.fromkeys(NAMES, True)
    gaps = facts(next(check for check in found if check.check_name == "gaps"))
    assert (gaps["missing"], gaps["symbols"]) == (0, 2)
    assert gaps["expected"] > 0
