"""B14: schedules whose providers come and go, against a plain model: each slot is served once, as soon as it can be.

Single cases are in integration/test_scarce_room.py.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_scarce_room import YAHOO, backlog, by_yahoo, funds, live, small, waiting
from pricing_pipeline_tests.support.examples import examples

__all__ = ["small"]
pytestmark = pytest.mark.usefixtures("still")


def fetch(core: Core, *symbols: str) -> None:
    """What waits is answered, but for the price itself: a provider that says that it has none has answered, too."""
    core.rows(
        "INSERT INTO pricing.empty_answers (data_type, symbol, fetched_at)"
        " SELECT 'mf_nav', unnest(CAST(:symbols AS text[])), pricing.clock()"
        " ON CONFLICT (data_type, symbol) DO UPDATE SET fetched_at = excluded.fetched_at",
        symbols=list(symbols),
    )
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = ANY (:symbols)", symbols=list(symbols))


def may_be_asked(provider: str, stopped: dict[str, str]) -> bool:
    """Of a fund of yahoo, mfapi is the next provider: it is asked where yahoo is switched off."""
    if provider == YAHOO and stopped.get(YAHOO) == "off":
        provider = MFAPI
    return provider not in stopped


@given(
    routes=st.lists(st.sampled_from([MFAPI, YAHOO]), min_size=1, max_size=12),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["slot", "check", "full", "spent", "off", "free", "answer"]),
            st.sampled_from([MFAPI, YAHOO]),
        ),
        max_size=14,
    ),
)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b14_each_fund_is_asked_for_once_by_its_last_slot_as_soon_as_its_provider_can(
    core: Core, clock: Clock, routes: list[str], steps: list[tuple[str, str]]
) -> None:
    """Model: a slot owes each fund one answer, however many slots came before; who can be asked is asked within some
    checks, whatever stops the other provider; who cannot is counted, and nothing dies."""
    core.rows(
        "TRUNCATE pricing.api_call_queue, pricing.demand, pricing.pair_requests, pricing.empty_answers,"
        " pricing.provider_keys CASCADE; DELETE FROM pricing.provider_routing WHERE symbol IS NOT NULL"
    )
    core.rows(
        "UPDATE pricing.schedule_walks SET served_slot = '2000-01-01', walk_slot = NULL, walk_after = '',"
        " lap_start = '', wrapped = false"
    )
    core.rows("UPDATE pricing.data_collectors SET is_active = true")
    for provider in (MFAPI, YAHOO):
        core.use_quota(0, provider)
    symbols = funds(core, len(routes))
    provider_of = dict(zip(symbols, routes, strict=True))
    by_yahoo(core, [symbol for symbol in symbols if provider_of[symbol] == YAHOO])
    owed: set[str] = set()
    stopped: dict[str, str] = {}
    asked: Counter[str] = Counter()

    def free(provider: str) -> None:
        stopped.pop(provider, None)
        core.rows(
            "DELETE FROM pricing.api_call_queue_live WHERE data_type = 'equity_quote' AND provider = :p",
            p=provider,
        )
        core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = :p", p=provider)
        core.use_quota(0, provider)

    def answer() -> None:
        done = [symbol for symbol in live(core) if symbol in provider_of and provider_of[symbol] not in stopped]
        asked.update(done)
        fetch(core, *done)
        assert set(done) <= owed, "nothing is asked for that is not owed"
        owed.difference_update(done)

    for step, provider in [*steps, ("free", MFAPI), ("free", YAHOO)]:
        clock.advance(1)
        if step == "slot":
            core.enqueue_scheduled(NAV)
            owed.update(symbols)
        elif step == "free":
            free(provider)
        elif step == "answer":
            answer()
        elif step != "check":
            free(provider)
            stopped[provider] = step
            if step == "full":
                backlog(core, provider, 1000)
            elif step == "spent":
                core.use_quota(91_000, provider)
            else:
                core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = :p", p=provider)
        for _ in range(3):
            clock.advance(61)
            core.enqueue_due()
        queued = {symbol for symbol in live(core) if symbol in provider_of}
        able = {symbol for symbol in owed if may_be_asked(provider_of[symbol], stopped)}
        assert able <= queued, "who can be asked is asked"
        assert queued <= owed
        left = len(owed - queued)
        assert (waiting(core).get(NAV, 0) >= left) if left else True, "what waits is counted"
        assert core.one("SELECT count(*) FROM pricing.api_call_queue_dead") == 0
    answer()
    assert not owed, "no slot is lost"
