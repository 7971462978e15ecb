"""F6: what a second provider says about a held value, asked within its limits and never stored as a price."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pricing_pipeline import settling
from pricing_pipeline.domain import Answer
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline_tests.audit import audit
from pricing_pipeline_tests.fix_cli import CommandLine
from pricing_pipeline_tests.fix_core import QUOTE, Core, observation, sample_template
from pricing_pipeline_tests.sandbox_server import RunningSandbox

template = sample_template
pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def value_id(core: Core) -> str:
    """A quote of AAPL that is held, with Yahoo as the next provider of its route."""
    core.lift_limits()
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)"
    )
    for price in ("72.50", "7250"):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(QUOTE, "AAPL")
        row = observation("AAPL", price, core.clock() - timedelta(seconds=1))
        settling.settle_answer(
            core.engine, core.claim_one(), Fetched(Answer(observations=(row,)), 200, 4, body=b"x")
        )
    return str(core.one("SELECT value_id FROM pricing.quarantined_values"))


def test_f6_a_second_provider_is_asked_and_its_word_kept(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    assert cli("quarantine", "show", value_id, "--json").json["opinions"] == []
    told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
    (opinion,) = told["opinions"]
    assert (told["not_asked"], opinion["provider"], opinion["failure"]) == (None, "yahoo", None)
    assert float(opinion["value"]) > 0
    assert opinion["currency"] == "USD"
    assert f"yahoo says:   {opinion['value']} USD, of " in cli("quarantine", "show", value_id).stdout
    (call,) = core.rows(
        "SELECT outcome, units, wire_bytes FROM pricing.collector_call_log WHERE provider = 'yahoo'"
    )
    assert (call.outcome, call.units) == ("ok", 1)
    assert call.wire_bytes > 0
    assert core.one("SELECT calls FROM pricing.api_data_usage WHERE provider = 'yahoo'") == 1
    assert str(core.latest("AAPL").price) == "72.50", "no opinion is a price"  # type: ignore[union-attr]
    audit(core)


def test_f6_nobody_is_asked_past_a_limit_or_without_a_route(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    def refused() -> str:
        told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
        assert told["opinions"] == []
        return str(told["not_asked"])

    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100 WHERE provider = 'yahoo'")
    assert "the quota of yahoo is spent" in refused()
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    core.call("SELECT pricing.open_breaker('yahoo', '10 of 10 calls failed')")
    assert "the breaker of yahoo is open" in refused()
    core.rows("UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL")
    core.rows("UPDATE pricing.provider_limits SET units = 1")
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at)"
        " VALUES ('yahoo', 'equity_quote', '{IBM}', '-infinity', 'infinity', 1, 1, 'w', pricing.clock())"
    )
    assert "the rate limit of yahoo is used up" in refused()
    core.rows("DELETE FROM pricing.provider_routing WHERE provider = 'yahoo'")
    assert "no other provider than twelvedata is routed to equity_quote" in refused()
    assert core.one("SELECT count(*) FROM pricing.second_opinions") == 0


def test_f6_a_provider_that_refuses_is_paused_as_by_any_call(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    sandbox.behave("throttle", retry_after="90")
    (opinion,) = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json[
        "opinions"
    ]
    assert opinion["value"] is None
    assert "429" in opinion["failure"]
    assert core.one(
        "SELECT blocked_until > pricing.clock() FROM pricing.provider_keys WHERE provider = 'yahoo'"
    )
    told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
    assert "yahoo has refused calls for speed" in told["not_asked"]
