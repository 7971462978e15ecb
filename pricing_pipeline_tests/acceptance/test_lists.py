"""F1, B8: a provider's list of all latest prices, drained from the sandbox to the end."""

from __future__ import annotations

import pytest

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import NAV, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_lists import alone, codes, lift, paths
from pricing_pipeline_tests.support.refreshing import is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

LIST = "/mf/latest"


def again(core: Core, clock: Clock) -> None:
    """What failed is tried once more."""
    clock.advance(145)
    core.promote()


def test_f1_many_watched_navs_are_one_call_and_what_the_list_lacks_is_asked_for_alone(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    lift(core, batch_from=40)
    listed, lacking = codes(40), codes(2, first=200_000)
    core.heartbeat("ann", *((NAV, code) for code in listed + lacking))
    work_until(refresher, is_idle(core))
    assert paths(sandbox) == [LIST]
    assert core.one("SELECT count(*) FROM pricing.latest_prices WHERE data_type = 'mf_nav'") == 40
    failed = core.rows("SELECT symbol, failure_kind, errors FROM pricing.api_call_queue WHERE status = 'scheduled'")
    assert sorted(task.symbol for task in failed) == lacking
    assert {task.errors[0]["kind"] for task in failed} == {"schema_drift"}
    assert "asked for alone next" in failed[0].errors[0]["message"]

    again(core, clock)
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)[1:]) == alone(lacking)
    assert set(core.statuses().values()) == {"completed"}
    single = core.rows(
        "SELECT p.symbol, p.amount, p.scale, p.observed_at FROM pricing.latest_prices p WHERE p.symbol = '118032'"
    )
    core.enqueue(NAV, "118032")
    work_until(refresher, is_idle(core))
    assert paths(sandbox)[-1] == "/mf/118032/latest"
    assert single == core.rows(
        "SELECT p.symbol, p.amount, p.scale, p.observed_at FROM pricing.latest_prices p WHERE p.symbol = '118032'"
    ), "the list and the scheme's own answer say the same"
    audit(core)


@pytest.mark.parametrize(
    "fault", [{"kind": "status", "status": 500}, {"kind": "truncate"}, {"kind": "status", "status": 404}]
)
def test_b8_a_list_that_does_not_load_stops_nobody(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher, fault: dict[str, object]
) -> None:
    lift(core, batch_from=6)
    sandbox.behave(path="mf/latest", **fault)  # type: ignore[arg-type]
    core.enqueue(NAV, *codes(6))
    work_until(refresher, is_idle(core))
    assert paths(sandbox) == [LIST]
    assert set(core.statuses().values()) == {"scheduled"}
    again(core, clock)
    core.enqueue(NAV, *codes(2, first=119_000))
    work_until(refresher, is_idle(core))
    assert sorted(paths(sandbox)[1:]) == alone(codes(6) + codes(2, first=119_000))
    assert set(core.statuses().values()) == {"completed"}
    audit(core)
