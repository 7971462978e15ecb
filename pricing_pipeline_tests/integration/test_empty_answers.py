"""B4: every valid answer, empty ones too, advances `fetched_at`; also where no price is stored yet."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")

MINUTE = 60


def answer(core: Core, price: str | None = None) -> int:
    """Let every waiting call be answered, validly: with nothing, or with a price. Returns how many calls that were."""
    calls = core.claim(max_calls=10)
    for call in calls:
        at = core.clock() - timedelta(seconds=1)
        brought = (
            Answer(empty=frozenset(call.symbols))
            if price is None
            else Answer(observations=Rows(observation(symbol, price, at) for symbol in call.symbols))
        )
        settling.settle_answer(core.engine, call, Fetched(brought, 200, 4, body=b"[]"))
    return len(calls)


def why(core: Core, data_type: str = QUOTE) -> freshness.Why:
    with core.engine.begin() as connection:
        (found,) = freshness.why(connection, "AAPL", data_type)
    return found


@pytest.fixture
def only_quotes(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type <> 'equity_quote'")
    core.lift_limits()


@pytest.mark.usefixtures("only_quotes")
def test_b4_four_reads_of_what_its_provider_has_not_are_one_call(core: Core, clock: Clock) -> None:
    calls = 0
    for _ in range(4):
        core.read("AAPL")
        calls += answer(core)
        clock.advance(10)
    assert calls == 1
    found = why(core)
    assert found.state == "provider_has_none"
    assert found.sentence.startswith("last confirmed 40 s ago: its provider answered that it has no price of AAPL")
    assert found.fetched_at is not None
    clock.advance(30)
    assert (core.read("AAPL").requested, answer(core)) == (1, 1), "its TTL is over"
    assert core.one("SELECT count(*) FROM pricing.empty_answers") == 1
    audit(core)


@pytest.mark.usefixtures("only_quotes")
def test_b4_what_is_watched_is_fresh_for_a_ttl_and_asked_for_again_then(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert answer(core) == 1
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["fresh"]
    clock.advance(30)
    core.enqueue_due()
    assert answer(core) == 0
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    core.enqueue_due()
    assert answer(core) == 0, "looked at early, it is judged by the answer"
    clock.advance(31)
    core.enqueue_due()
    assert answer(core) == 1


def test_b4_a_market_that_is_followed_is_asked_once(core: Core) -> None:
    core.lift_limits()
    for _ in range(3):
        core.read("AAPL")
        answer(core)
    assert core.one("SELECT count(*) FROM pricing.collector_call_log WHERE data_type = :t", t=DAILY) == 1
    assert why(core, DAILY).state == "provider_has_none"


def test_g6_an_empty_answer_covers_its_days_too(core: Core) -> None:
    """The provider has said that there is nothing; asking again would cost the same answer."""
    core.enqueue(DAILY, "AAPL", days=(date(2010, 1, 1), date(2010, 1, 31)))
    assert answer(core) == 1
    assert core.one("SELECT covered::text FROM pricing.history_coverage") == "{[2010-01-01,2010-02-01)}"


def test_b4_the_command_line_says_that_the_provider_has_none(cli: CommandLine, core: Core) -> None:
    core.lift_limits()
    core.read("AAPL")
    answer(core)
    assert "its provider answered that it has no price of AAPL" in cli("price", "why", "AAPL").stdout


@pytest.mark.usefixtures("only_quotes")
def test_b4_a_pair_is_asked_once_per_ttl_whatever_it_is_answered(core: Core, clock: Clock) -> None:
    """Invariant: a read queues a call if, and only if, the last valid answer, of whatever kind, is a TTL old."""
    answers = st.sampled_from([None, "100.00"])

    @settings(max_examples=examples(25), deadline=None)
    @given(st.lists(st.tuples(st.integers(1, 90), answers), min_size=1, max_size=8))
    def asked(steps: list[tuple[int, Any]]) -> None:
        for table in ("latest_prices", "empty_answers", "price_history"):
            core.rows(f"DELETE FROM pricing.{table}")
        answered = None
        for seconds, price in steps:
            clock.advance(seconds)
            core.read("AAPL")
            is_due = answered is None or core.clock() - answered >= timedelta(seconds=MINUTE)
            assert answer(core, price) == is_due
            if is_due:
                answered = core.clock()
            stored = core.one("SELECT fetched_at FROM pricing.latest_answers WHERE data_type = 'equity_quote'")
            assert stored == answered

    asked()
