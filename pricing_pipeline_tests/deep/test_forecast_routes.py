"""F2 where a route has several providers, and where what stretched a pair has ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.stretching import ahead, allow, measure_size, stretch, why

AAPL = (QUOTE, "AAPL")
pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def other(core: Core) -> None:
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('other', 'https://other.example')")
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
        " VALUES ('other', 'quote', 1, 1)"
    )


def add_route(core: Core, symbol: str | None = None) -> None:
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
        " VALUES ('equity_quote', :symbol, 'other', 9)",
        symbol=symbol,
    )


def needed(core: Core) -> dict[str, tuple[int, float]]:
    rows = core.rows("SELECT provider, pairs, watched_bytes FROM pricing.needs() WHERE pairs > 0")
    return {row.provider: (row.pairs, row.watched_bytes) for row in rows}


def refuse(core: Core, *names: str, provider: str = TWELVEDATA) -> None:
    core.rows(
        "INSERT INTO pricing.route_refusals (data_type, symbol, provider, kind, reason, refused_until)"
        " SELECT 'equity_quote', s, :provider, 'unknown_symbol', 'odd', pricing.clock() + interval '7 days'"
        " FROM unnest(CAST(:names AS text[])) AS s",
        names=list(names),
        provider=provider,
    )


# Who is asked now


def test_f2_two_providers_of_a_route_serve_a_month_at_three_times_their_quota(core: Core, clock: Clock) -> None:
    """Each has a third of what is needed. While one has no room, the other serves all."""
    need = 10 * 60 * 1000
    core.heartbeat("ann", *((QUOTE, name) for name in symbols(10)))
    core.lift_limits()
    core.refresh()
    measure_size(core)
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 1000")
    core.rows("DELETE FROM pricing.api_data_usage")
    add_route(core)
    for provider in (TWELVEDATA, "other"):
        allow(core, need * 720 // 3, provider)
    still = 0
    for _ in range(360):
        core.one("SELECT pricing.watch_providers()")
        core.one("SELECT pricing.stretch_ttls()")
        factor = core.one("SELECT (pricing.stretch_of('equity_quote', 'S0001', pricing.clock()))[1]")
        asked, room = core.rows(
            "SELECT r.provider, pricing.quota_for(c.quota_bytes, 1) - pricing.bytes_used(c.provider, pricing.clock())"
            " FROM pricing.route('equity_quote', 'S0001') r JOIN pricing.data_collectors c USING (provider)"
        )[0]
        come = int(min(2 * need / factor, max(room, 0)))
        still += come < need / 16
        core.rows(
            "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES (:asked, pricing.clock(), :come)",
            asked=asked,
            come=come,
        )
        clock.advance(7200)
        core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = pricing.clock()")
    assert still == 0


def test_f2_what_the_first_provider_is_spared_counts_for_the_second(core: Core) -> None:
    core.heartbeat("ann", *((QUOTE, name) for name in symbols(3)))
    add_route(core)
    assert needed(core).keys() == {TWELVEDATA}
    refuse(core, "S0001")
    assert {provider: pairs for provider, (pairs, _) in needed(core).items()} == {TWELVEDATA: 2, "other": 1}
    core.rows("UPDATE pricing.provider_state SET trouble = 'its quota is spent' WHERE provider = 'twelvedata'")
    assert {provider: pairs for provider, (pairs, _) in needed(core).items()} == {"other": 3}


@pytest.mark.parametrize("symbol", [None, "IBM"])
def test_f2_a_provider_that_has_refused_a_pair_does_not_end_its_stretch(core: Core, symbol: str | None) -> None:
    """Nor one that only the rules of another symbol name."""
    add_route(core, symbol)
    stretch(core, 4)
    if symbol is None:
        refuse(core, "AAPL", provider="other")
    assert core.rows(
        "SELECT (pricing.stretch_of('equity_quote', s, pricing.clock()))[1] FROM unnest('{AAPL,IBM}'::text[]) AS s"
    ) == [(4,), (1,)]
    core.heartbeat("ann", AAPL, (QUOTE, "IBM"))
    core.refresh()
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    core.rows("UPDATE pricing.latest_prices SET fetched_at = pricing.clock() - interval '2 minutes'")
    core.enqueue_due()
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == {"IBM"}


def test_f2_symbols_that_nobody_knows_are_no_need(core: Core) -> None:
    """They are asked for once a day. Who watches many of them does not slow down all others."""
    measure_size(core)
    core.lift_limits()
    core.heartbeat("ann", *((QUOTE, name) for name in symbols(2)))
    core.refresh()
    before = ahead(core).watched_bytes
    core.heartbeat("eve", *((QUOTE, name) for name in symbols(50, "X")))
    core.enqueue_due()
    assert ahead(core).watched_bytes > 20 * before
    while calls := core.claim(max_calls=10):
        for call in calls:
            core.fail(call, FailureKind.UNKNOWN_SYMBOL)
            core.settle(call, outcome="failed", kind=FailureKind.UNKNOWN_SYMBOL)
    assert ahead(core).watched_bytes == before
    core.rows("UPDATE pricing.demand SET owed_since = pricing.clock() WHERE symbol ~ '^X'")
    assert ahead(core).watched_bytes > 20 * before, "after trouble they are asked for at their TTL again"


# What stretched a pair has ended


def minutes_until_queued(core: Core, clock: Clock, most: int) -> int:
    """The minute in which the pair is queued, while duties and checks run each minute."""
    for minute in range(most):
        core.heartbeat("ann", AAPL)
        core.call("SELECT pricing.run_duties()")
        if core.enqueue_due():
            return minute
        clock.advance(60)
    return most


@pytest.fixture
def stretched(core: Core, clock: Clock) -> None:
    """A quote with a TTL of an hour, whose provider would need more than 16 times its quota."""
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 60 WHERE data_type = 'equity_quote'")
    core.heartbeat("ann", AAPL)
    core.refresh()
    measure_size(core)
    allow(core, 100_000)
    core.use_quota(50_000)
    stretch(core, 16)
    assert minutes_until_queued(core, clock, 70) == 70
    assert why(core).state == "stretched"


def end_by_a_route(core: Core, clock: Clock) -> None:
    add_route(core)


def end_by_a_route_of_the_symbol(core: Core, clock: Clock) -> None:
    add_route(core, "AAPL")


def end_by_another_provider(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_routing SET provider = 'other'"
        " WHERE data_type = 'equity_quote' AND provider = 'twelvedata'"
    )


def end_by_more_quota(core: Core, clock: Clock) -> None:
    allow(core, 10**12)


def end_while_the_pair_is_locked(core: Core, clock: Clock) -> None:
    allow(core, 10**12)
    clock.advance(301)
    with core.owner.begin() as connection:
        connection.exec_driver_sql("SELECT FROM pricing.demand FOR NO KEY UPDATE")
        core.call("SELECT pricing.run_duties()")


@pytest.mark.usefixtures("stretched")
@pytest.mark.parametrize(
    "end",
    [
        end_by_a_route,
        end_by_a_route_of_the_symbol,
        end_by_another_provider,
        end_by_more_quota,
        end_while_the_pair_is_locked,
    ],
)
def test_f2_what_waits_is_asked_for_within_minutes_of_the_end_of_its_cause(
    core: Core, clock: Clock, end: Callable[[Core, Clock], None]
) -> None:
    end(core, clock)
    assert minutes_until_queued(core, clock, 20) < 7


@pytest.mark.usefixtures("stretched")
def test_f2_what_is_rightly_stretched_is_not_judged_again_and_again(core: Core) -> None:
    before = core.rows("SELECT xmin FROM pricing.demand")
    assert core.call("SELECT pricing.reconcile_demand()") == 0
    assert core.rows("SELECT xmin FROM pricing.demand") == before


@pytest.mark.usefixtures("stretched")
def test_f2_trouble_of_the_other_provider_ends(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET trouble = 'odd', breaker = 'open', breaker_openings = 3,"
        " breaker_since = pricing.clock(), breaker_until = pricing.clock() + interval '2 h', breaker_reason = 'odd'"
        " WHERE provider = 'other'"
    )
    add_route(core)
    assert minutes_until_queued(core, clock, 10) == 10
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'closed', breaker_openings = 0, breaker_reason = NULL,"
        " breaker_since = NULL, breaker_until = NULL WHERE provider = 'other'"
    )
    assert minutes_until_queued(core, clock, 20) < 7
