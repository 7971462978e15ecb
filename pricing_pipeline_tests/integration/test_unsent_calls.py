"""A call that could not be sent costs nothing: no name, no server. One that may have arrived stays charged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

UNITS = "SELECT sum(units) FROM pricing.collector_call_log"
BOOKED = "SELECT coalesce(sum(units), 0) FROM pricing.api_data_usage"


def no_name(host: str, port: int) -> Sequence[str]:
    raise OSError("Name or service not known")


def fail_once(core: Core, url: str, client: Callable[..., ProviderClient] = ProviderClient) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    with refreshing(core.engine, url, client=client) as refresher:
        work_until(
            refresher,
            lambda: core.one("SELECT count(*) FROM pricing.collector_call_log WHERE outcome = 'failed'") > 0,
        )


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("is_counted", [False, True])
def test_f1_a_call_that_could_not_be_sent_gives_its_units_back(core: Core, is_counted: bool) -> None:
    before = core.allowance().units_left
    core.enqueue(QUOTE, "AAPL", "IBM")
    if is_counted:  # a later claim goes on from a count that has this call in it
        call = core.claim_one()
        core.rows(
            "SELECT pricing.count_units(:provider, pricing.clock() + interval '1 second')",
            provider=TWELVEDATA,
        )
        assert core.allowance().units_left == before - 2
        core.call("SELECT pricing.settle_unsent(:id, 'no name')", id=call.id)
    else:
        fail_once(core, f"http://127.0.0.1:{require_free_port(0, 'nothing', 'the port')}")
    assert core.allowance().units_left == before
    assert (core.one(UNITS), core.one(BOOKED)) == (0, 0)
    (call_row,) = core.rows("SELECT outcome, failure_kind, wire_bytes FROM pricing.collector_call_log")
    assert tuple(call_row) == ("failed", "provider_down", 0)


@pytest.mark.usefixtures("still")
def test_f1_a_name_without_an_address_costs_nothing(core: Core) -> None:
    def client(provider: Any, url: str, *arguments: Any, **more: Any) -> ProviderClient:
        return ProviderClient(provider, "https://prices.example", *arguments, resolve=no_name, **more)

    fail_once(core, "", client)
    assert core.one(UNITS) == 0


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("fault", [{"kind": "status", "status": 500}, {"kind": "cut"}])
def test_f1_a_call_that_may_have_arrived_stays_charged(
    core: Core, sandbox: RunningSandbox, fault: dict[str, Any]
) -> None:
    sandbox.behave(**fault)
    fail_once(core, sandbox.url)
    assert core.one(UNITS) >= 2
    assert core.one(BOOKED) == core.one(UNITS)


@pytest.mark.usefixtures("still")
def test_b16_a_worker_that_calls_nothing_sent_soon_has_an_open_breaker(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 0")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(QUOTE, *symbols(60))
    claimed = 0
    for _ in range(60):
        for call in core.claim(max_calls=1):
            claimed += 1
            core.call("SELECT pricing.settle_unsent(:id, 'a lie')", id=call.id)
    assert claimed == 10
    assert core.one("SELECT breaker FROM pricing.provider_state WHERE provider = 'twelvedata'") == "open"


@pytest.mark.usefixtures("still")
def test_b10_a_settled_call_gives_nothing_back(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    core.call("SELECT pricing.settle_call(:id, 'ok', 200, 100)", id=call.id)
    assert core.one(f"SELECT pricing.settle_unsent({call.id}, 'late')") is False
    assert core.one(UNITS) == 1
