"""Who is asked for a pair: by rule, by override, and by which provider can serve now; with the reason on the task."""

from __future__ import annotations

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

SECOND, THIRD = "second", "third"


@pytest.fixture(autouse=True)
def three_providers(core: Core) -> None:
    """Quotes and bars come from twelvedata, else from second, else from third."""
    for provider in (SECOND, THIRD):
        core.rows(
            "INSERT INTO pricing.data_collectors (provider, base_url) VALUES (:provider, 'http://127.0.0.1:1')",
            provider=provider,
        )
        core.rows(
            "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call, max_window_days)"
            " VALUES (:provider, 'quote', 10, 1, 1), (:provider, 'daily_bars', 10, 1, 20)",
            provider=provider,
        )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES"
        " ('equity_quote', 'second', 2), ('equity_quote', 'third', 3), ('equity_daily', 'second', 2)"
    )


def kinds(core: Core, symbol: str) -> list[tuple[str, str]]:
    return [(entry["kind"], entry["message"]) for entry in core.tasks(symbol)[-1].errors]


def in_trouble(core: Core, provider: str, trouble: str | None) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET trouble = :trouble WHERE provider = :provider",
        provider=provider,
        trouble=trouble,
    )


@pytest.mark.parametrize("kind", [FailureKind.UNKNOWN_SYMBOL, FailureKind.PLAN_RESTRICTED])
def test_a5_what_one_provider_does_not_serve_the_next_is_asked_for(core: Core, kind: FailureKind) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), kind, "not with this key")
    task = core.task("AAPL")
    assert (task.status, task.provider, task.attempt) == ("pending", SECOND, 0)
    assert kinds(core, "AAPL") == [(kind, "not with this key")]
    core.fail(core.claim_one(SECOND), kind, "nor here")
    assert core.task("AAPL").provider == THIRD
    core.fail(core.claim_one(THIRD), kind, "nor here")
    assert (core.task("AAPL").status, core.task("AAPL").failure_kind) == ("failed", kind)
    assert len(core.task("AAPL").errors) == 3
    audit(core)


def test_a5_a_refusal_is_remembered_for_a_week_and_told_on_each_task(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    first = core.claim_one()
    only = [task.id for task in first.tasks if task.symbol == "AAPL"]
    core.call(
        "SELECT pricing.fail_tasks(CAST(:ids AS bigint[]), :token, 'plan_restricted', 'pay more', true)",
        ids=only,
        token=first.claim_token,
    )
    core.finish(core.claim_one(SECOND))
    core.complete(first)
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert {task.symbol: task.provider for task in core.tasks() if task.status == "pending"} == {
        "AAPL": SECOND,
        "IBM": TWELVEDATA,
    }
    assert kinds(core, "AAPL") == [("passed_over", "twelvedata was passed over: plan_restricted: pay more")]
    assert kinds(core, "IBM") == []
    core.rows("DELETE FROM pricing.api_call_queue_live")
    clock.advance(7 * 86_400 + 1)
    core.enqueue(QUOTE, "AAPL")
    assert core.tasks("AAPL")[-1].provider == TWELVEDATA


def test_a5_without_another_provider_a_refusal_is_final_and_leaves_no_trace(core: Core) -> None:
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    assert core.task("AAPL").status == "failed"
    assert core.rows("SELECT FROM pricing.route_refusals") == []


def test_a5_a_symbols_own_rules_come_first_and_the_types_stand_in(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider) VALUES ('equity_quote', 'IBM', 'third')"
    )
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert {task.symbol: task.provider for task in core.tasks()} == {"AAPL": TWELVEDATA, "IBM": THIRD}
    in_trouble(core, THIRD, "its quota of bytes is spent")
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert {task.provider for task in core.tasks()} == {TWELVEDATA}
    assert kinds(core, "IBM") == [("passed_over", "third was passed over: its quota of bytes is spent")]


def test_a5_what_waits_goes_where_the_route_says_now(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    core.enqueue(QUOTE, "MSFT")
    assert core.statuses() == {"AAPL": "scheduled", "IBM": "scheduled", "MSFT": "pending"}
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'equity_quote' AND provider = 'twelvedata'")
    assert {(task.provider, task.status) for task in core.tasks()} == {(SECOND, "pending")}
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'second'")
    assert {task.provider for task in core.tasks()} == {THIRD}
    assert kinds(core, "MSFT") == [("passed_over", "second was passed over: it is switched off")]
    core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'second'")
    assert {task.provider for task in core.tasks()} == {SECOND}


def test_a5_a_call_in_work_stays_with_its_provider(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'equity_quote' AND provider = 'twelvedata'")
    assert core.task("AAPL").provider == TWELVEDATA
    core.finish(call)
    assert core.task("AAPL").status == "completed"


def test_a5_b16_a_provider_whose_breaker_stays_open_is_stood_in_for_until_it_closes(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    for openings, provider in ((2, TWELVEDATA), (3, SECOND)):
        core.rows(
            "UPDATE pricing.provider_state SET breaker = 'open', breaker_openings = :openings,"
            " breaker_reason = 'timeouts', breaker_until = pricing.clock() + interval '4 minutes'"
            " WHERE provider = 'twelvedata'",
            openings=openings,
        )
        core.one("SELECT pricing.watch_providers()")
        core.call("SELECT pricing.reroute_waiting()")
        assert core.task("AAPL").provider == provider
    assert kinds(core, "AAPL") == [("passed_over", "twelvedata was passed over: its breaker is open: timeouts")]
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'closed', breaker_openings = 0, breaker_until = NULL"
        " WHERE provider = 'twelvedata'"
    )
    core.one("SELECT pricing.watch_providers()")
    core.call("SELECT pricing.reroute_waiting()")
    assert core.task("AAPL").provider == TWELVEDATA


def test_a5_b10_a_spent_quota_is_a_trouble(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
        " SELECT provider, date_trunc('hour', pricing.clock()), quota_bytes FROM pricing.data_collectors"
        " WHERE provider = 'twelvedata'"
    )
    assert core.one("SELECT pricing.watch_providers()") == 1
    core.enqueue(QUOTE, "AAPL")
    assert core.task("AAPL").provider == SECOND
    assert "its quota of bytes is spent" in kinds(core, "AAPL")[0][1]


def test_a5_keys_that_are_refused_again_and_again_are_a_trouble(core: Core) -> None:
    for _ in range(3):
        assert core.one("SELECT pricing.watch_providers()") == 0
        core.throttle(TWELVEDATA, 60)
    assert core.one("SELECT pricing.watch_providers()") == 1
    core.enqueue(QUOTE, "AAPL")
    assert core.task("AAPL").provider == SECOND


def test_a5_when_all_are_in_trouble_the_first_is_asked(core: Core) -> None:
    for provider in (TWELVEDATA, SECOND, THIRD):
        in_trouble(core, provider, "its quota of bytes is spent")
    core.enqueue(QUOTE, "AAPL")
    assert core.task("AAPL").provider == TWELVEDATA


def test_a5_spans_of_a_backfill_fit_every_provider_that_may_be_asked(core: Core) -> None:
    core.call("SELECT count(*) FROM pricing.plan_backfill('equity_daily', '2010-03-01', '2010-03-31', ARRAY['AAPL'])")
    spans = [(task.last_day - task.first_day).days + 1 for task in core.tasks("AAPL")]
    assert (sorted(spans), {task.provider for task in core.tasks()}) == ([11, 20], {TWELVEDATA})


def test_a8_a_retry_by_hand_asks_the_first_provider_again(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    for provider in (TWELVEDATA, SECOND, THIRD):
        core.fail(core.claim_one(provider), FailureKind.UNKNOWN_SYMBOL)
    (outcome,) = core.rows(
        "SELECT outcome FROM pricing.retry_tasks(ARRAY[(SELECT max(id) FROM pricing.api_call_queue)])"
    )
    assert (outcome.outcome, core.task("AAPL").provider) == ("retried", TWELVEDATA)


def test_a10_the_price_of_a_provider_that_was_switched_off_is_marked(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one())
    assert core.latest("AAPL").provider_active  # type: ignore[union-attr]
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    found = core.latest("AAPL")
    assert found is not None
    assert (found.provider, found.provider_active) == (TWELVEDATA, False)
    assert core.one("SELECT provider_active FROM pricing.price('AAPL')") is False
