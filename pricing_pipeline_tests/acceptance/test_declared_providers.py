"""F11: a copy of a declared provider, from its declaration to prices of the sandbox."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pricing_pipeline.domain.windows import Window
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.core import NAV, Core
from pricing_pipeline_tests.integration.test_declared_providers import declare
from pricing_pipeline_tests.support.declarations import (
    FUNDS,
    SHARES,
)
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")


def test_f11_a_copy_refreshes_from_the_sandbox_through_the_queue(
    core: Core, sandbox: RunningSandbox, tmp_path: Path
) -> None:
    """A worker that runs already learns of it, of its change, and asks the sandbox's dialect in its place."""
    settings = Settings(home=tmp_path, sandbox=True, sandbox_url=sandbox.url)
    done = "SELECT count(*) FROM pricing.api_call_queue_completed WHERE provider = 'funds'"
    with (
        open_clients(settings, core.engine, look_seconds=0.05) as clients,
        Refresher(core.engine, clients, worker="w") as refresher,
    ):
        declare(core, FUNDS)
        with core.owner.begin() as connection:
            provider_rules.add_route(connection, "funds", NAV, "118632", 1)
        wait_until(lambda: "funds" in clients)
        first = clients["funds"]
        core.enqueue(NAV, "118632")
        work_until(refresher, lambda: core.one(done) == 1)
        declare(core, FUNDS, ("in_flight: 4", "in_flight: 3"))
        wait_until(lambda: clients["funds"] is not first)
        declare(core, SHARES)  # which the sandbox does not know
        today = core.clock().date()
        days = Window(today - timedelta(days=400), today - timedelta(days=30))
        refresher.backfill(refresher.plan_backfill(NAV, days, ["118632"]))
        assert "shares" not in clients
    (price,) = core.rows("SELECT * FROM pricing.latest_prices WHERE symbol = '118632' AND data_type = :t", t=NAV)
    assert price.currency == "INR"
    calls = core.rows(
        "SELECT provider, units, http_status, outcome FROM pricing.collector_call_log WHERE provider = 'funds'"
    )
    assert len(calls) >= 2
    assert {(call.units, call.http_status, call.outcome) for call in calls} == {(1, 200, "ok")}
    bars = core.one("SELECT count(*) FROM pricing.price_history WHERE symbol = '118632' AND data_type = :t", t=NAV)
    assert bars > 100
    assert {call["provider"] for call in sandbox.calls("mfapi")} <= {"mfapi"}
