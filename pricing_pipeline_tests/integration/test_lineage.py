"""G5, F3: the run and the call behind a price stay findable as long as the price."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

DAY = 86_400
UNTRACED = (
    "SELECT count(*) FROM (SELECT call_id FROM pricing.latest_prices"
    " UNION ALL SELECT call_id FROM pricing.price_history UNION ALL SELECT call_id FROM pricing.price_revisions) p"
    " WHERE (SELECT count(*) FROM pricing.calls c WHERE c.call_id = p.call_id AND c.provider IS NOT NULL) <> 1"
)


def prune(core: Core) -> None:
    core.call("SELECT pricing.prune()")


def test_g5_a_call_that_has_left_the_log_is_still_told_with_its_run(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    call = core.claim_one()
    core.rows("UPDATE pricing.collector_call_log SET run_id = 'the run'")
    core.finish(call)
    told = "SELECT * FROM pricing.calls"
    (before,) = core.rows(told)
    clock.advance(36 * DAY)
    prune(core)
    assert core.one("SELECT count(*) FROM pricing.collector_call_log") == 0
    assert core.rows(told) == [before]
    assert (before.run_id, before.symbols, before.http_status, before.wire_bytes) == ("the run", 2, 200, 600)


def test_g5_a_call_that_brought_nothing_leaves_no_record(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    core.fail(call, FailureKind.PROVIDER_DOWN)
    core.settle(call, 100, "failed", kind=FailureKind.PROVIDER_DOWN)
    clock.advance(36 * DAY)
    prune(core)
    assert core.rows("SELECT * FROM pricing.calls") == []


def test_g5_a_call_whose_worker_was_lost_after_it_had_stored_parts_is_kept(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.finish(core.claim_one())
    core.rows("UPDATE pricing.collector_call_log SET outcome = 'unknown'")
    clock.advance(36 * DAY)
    prune(core)
    assert core.one(UNTRACED) == 0


def fail_on(core: Core, **sqlstates: str) -> None:
    """Let the database refuse latest prices of some symbols, each with its own SQLSTATE."""
    refused = " ".join(
        f"IF NEW.symbol = '{symbol}' THEN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END IF;"
        for symbol, state in sqlstates.items()
    )
    core.rows(
        f"CREATE FUNCTION pricing.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {refused} RETURN NEW; END $$"
    )
    core.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON pricing.latest_prices FOR EACH ROW EXECUTE FUNCTION pricing.refuse()"
    )


def answered(core: Core, *symbols: str) -> Tally:
    core.lift_limits()
    core.enqueue(QUOTE, *symbols)
    call = core.claim_one()
    answer = Answer(observations=Rows([observation(symbol, "5.00", core.clock()) for symbol in call.symbols]))
    return settle_answer(core.engine, call, Fetched(answer, http_status=200, wire_bytes=600))


def test_f3_a_call_of_which_parts_are_stored_before_one_fails_is_kept(core: Core, clock: Clock) -> None:
    """GOOG is refused, so parts are stored. MSFT is the victim of a deadlock each time: it costs the others nothing."""
    fail_on(core, GOOG="23514", MSFT="40P01")
    tally = answered(core, "AAPL", "GOOG", "IBM", "MSFT")
    assert (tally.added, tally.failed, tally.wire_bytes) == (2, 1, 600)
    assert tally.symbols == {"AAPL", "IBM"}
    assert core.statuses() == {
        "AAPL": "completed",
        "GOOG": "scheduled",
        "IBM": "completed",
        "MSFT": "scheduled",
    }
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "ok"
    assert core.one("SELECT bytes FROM pricing.api_data_usage") == 600
    clock.advance(36 * DAY)
    prune(core)
    assert core.one("SELECT count(*) FROM pricing.collector_call_log") == 0
    assert core.one(UNTRACED) == 0
    assert core.latest("AAPL") is not None


def test_f3_a_call_of_which_nothing_could_be_stored_has_failed(core: Core) -> None:
    fail_on(core, AAPL="40001")
    tally = answered(core, "AAPL")
    assert (tally.added, tally.failed, tally.wire_bytes) == (0, 0, 600)
    assert core.statuses() == {"AAPL": "pending"}
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "failed"


@given(steps=st.lists(st.sampled_from(["fetch", "fail", "wait", "wait long", "prune"]), max_size=15))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_f3_every_price_names_exactly_one_call_that_is_known(core: Core, clock: Clock, steps: list[str]) -> None:
    """Invariant: whatever is pruned and whenever, each stored price, old or new, has its one call with its run."""
    core.rows("TRUNCATE pricing.api_call_queue")
    for number, step in enumerate(steps):
        clock.advance(1)
        if step in ("fetch", "fail"):
            core.enqueue(QUOTE, "AAPL")
            calls = core.claim()
            for call in calls:
                if step == "fetch":
                    core.finish(call, f"{100 + number}.00")
                else:
                    core.fail(call, FailureKind.UNKNOWN_SYMBOL)
                    core.settle(call, 100, "failed", kind=FailureKind.UNKNOWN_SYMBOL)
        elif step == "prune":
            prune(core)
        else:
            clock.advance(DAY if step == "wait" else 20 * DAY)
        assert core.one(UNTRACED) == 0
