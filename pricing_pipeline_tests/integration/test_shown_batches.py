"""A6: how many symbols a provider has shown to take in a call is remembered, kept to, and forgotten."""

from __future__ import annotations

from datetime import date

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PlanRestricted, ProviderError, RequestRefused
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import running_sandbox

pytestmark = pytest.mark.usefixtures("still")

FMP = "fmp"


@pytest.fixture
def roomy(core: Core) -> Core:
    """Calls of 40 symbols, and 500 symbols that wait."""
    core.lift_limits(batch_size=40)
    core.enqueue(QUOTE, *symbols(500))
    return core


def refuse(core: Core, most: int | None, kind: type[ProviderError] = RequestRefused) -> int:
    """A call is refused as a whole; returns how many symbols it had."""
    call = core.claim_one()
    error = kind("413: too large", http_status=413)
    error.most_symbols = most
    settle_failure(core.engine, call, error)
    return len(call.tasks)


def sizes(core: Core) -> list[int]:
    return [len(call.tasks) for call in core.claim(max_calls=3)]


def test_a6_the_next_calls_are_halved_down_to_one(roomy: Core) -> None:
    asked = [refuse(roomy, most) for most in (20, 10, 5, 2, 1)]
    assert asked == [40, 20, 10, 5, 2]
    assert sizes(roomy) == [1, 1, 1]
    assert refuse(roomy, 1) == 1, "one symbol is the least"


def test_a6_a_refusal_for_another_reason_shrinks_no_other_call(roomy: Core) -> None:
    """One symbol may have spoiled it: its tasks alone are asked for in smaller calls."""
    assert refuse(roomy, None) == 40
    assert sizes(roomy) == [40, 40, 40]


def test_a6_of_calls_that_were_under_way_the_smallest_counts(roomy: Core) -> None:
    first, second = roomy.claim(max_calls=2)
    for call, most in ((first, 5), (second, 20)):
        error = RequestRefused("413")
        error.most_symbols = most
        settle_failure(roomy.engine, call, error)
    assert sizes(roomy) == [5, 5, 5]


@pytest.mark.parametrize("most", [0, 40])
def test_a6_a_size_that_cannot_be_shown_changes_nothing(roomy: Core, most: int) -> None:
    refuse(roomy, most)
    assert sizes(roomy) == [40, 40, 40]


def test_a6_latest_values_and_days_have_sizes_of_their_own(roomy: Core) -> None:
    refuse(roomy, 3)
    roomy.rows("DELETE FROM pricing.api_call_queue_live")
    roomy.rows("UPDATE pricing.provider_capabilities SET window_days_per_call = 100000")
    roomy.rows("INSERT INTO pricing.shown_batches VALUES ('twelvedata', 'daily_bars', false, 1, pricing.clock())")
    roomy.enqueue(DAILY, *symbols(60), days=(date(2026, 1, 1), date(2026, 1, 31)))
    assert sizes(roomy)[0] > 3


def test_a6_a_shown_size_is_forgotten_after_a_day(roomy: Core, clock: Clock) -> None:
    refuse(roomy, 5)
    clock.advance(24 * 3600 - 1)
    assert sizes(roomy) == [5, 5, 5]
    clock.advance(2)
    assert sizes(roomy) == [40, 40, 40]
    refuse(roomy, 30)
    assert sizes(roomy) == [30, 30, 30], "what is forgotten does not come back"


def test_a6_who_writes_a_batch_is_believed_at_once(roomy: Core) -> None:
    refuse(roomy, 5)
    roomy.rows("UPDATE pricing.provider_capabilities SET batch_size = 40 WHERE provider = 'twelvedata'")
    assert sizes(roomy) == [40, 40, 40]


def test_a6_a_late_worker_shows_nothing(roomy: Core) -> None:
    call = roomy.claim_one()
    roomy.return_tasks(call)
    error = RequestRefused("413")
    error.most_symbols = 5
    settle_failure(roomy.engine, call, error)
    assert sizes(roomy) == [40, 40, 40]


def test_a6_people_see_it(roomy: Core) -> None:
    refuse(roomy, 5)
    (told,) = roomy.rows("SELECT subject, message FROM pricing.warnings WHERE source = 'store_shown_batch'")
    assert told.subject == TWELVEDATA
    assert "for 40 symbols as too many. Calls of quote ask for 5 at most for a day" in told.message


# Through the real client


def test_b29_a_plan_without_batches_is_asked_for_one_symbol_at_a_time(core: Core, clock: Clock) -> None:
    """FMP's free plan, with batches written down: one refused call, and every quote comes."""
    core.rows("UPDATE pricing.provider_routing SET provider = 'fmp' WHERE data_type = :name", name=QUOTE)
    core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'fmp'")
    known = ("AAPL", "MSFT", "IBM")
    core.enqueue(QUOTE, *known)
    with running_sandbox(fmp_plan="free") as sandbox, refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, is_idle(core))
        assert [len(call["symbols"]) for call in sandbox.calls(FMP)] == [3]
        clock.advance(3600)
        core.promote()
        work_until(refresher, is_idle(core))
        assert [len(call["symbols"]) for call in sandbox.calls(FMP)] == [3, 1, 1, 1]
        core.enqueue(QUOTE, "TSLA", "AMZN", "NVDA")
        work_until(refresher, is_idle(core))
        assert [len(call["symbols"]) for call in sandbox.calls(FMP)][4:] == [1, 1, 1]
    assert core.rows("SELECT FROM pricing.api_call_queue_dead WHERE failure_kind = 'endpoint_restricted'") == []


@pytest.mark.parametrize("status", [413, 414])
def test_a6_a_request_that_is_too_large_shows_half_its_size(core: Core, status: int) -> None:
    with (
        running_sandbox() as sandbox,
        refreshing(core.engine, sandbox.url) as refresher,
    ):
        client: ProviderClient = refresher._clients[TWELVEDATA]
        sandbox.behave(kind="status", status=status)
        for asked, most in ((7, 3), (1, None)):
            with pytest.raises(ProviderError) as caught:
                client.fetch(Fetcher.QUOTE, symbols(asked))
            assert not isinstance(caught.value, PlanRestricted)
            assert caught.value.most_symbols == most
