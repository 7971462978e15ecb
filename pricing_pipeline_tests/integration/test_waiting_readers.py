"""A10, B10: a read of a stale price leads to a fetch, or is told why not; no quota forgets it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

AAPL, IBM, EURO, FUND = (QUOTE, "AAPL"), (QUOTE, "IBM"), (FX, "EUR/USD"), (NAV, "120503")
PAIRS = (AAPL, IBM, EURO, FUND)
Pair = tuple[str, str]


@pytest.fixture(autouse=True)
def small(core: Core, clock: Clock, still: None) -> None:
    """A quota of 100,000 bytes, of which a price takes 1,000."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.lift_limits()
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 1000")
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fund', '120503') ON CONFLICT DO NOTHING")


def read(core: Core, pair: Pair) -> int:
    data_type, symbol = pair
    requested: int = core.one(
        "SELECT pricing.request_prices(ARRAY[:data_type], ARRAY[:symbol])", data_type=data_type, symbol=symbol
    )
    return requested


def live(core: Core) -> set[Pair]:
    return {
        (row.data_type, row.symbol) for row in core.rows("SELECT data_type, symbol FROM pricing.api_call_queue_live")
    }


def why(core: Core, pair: Pair) -> str:
    state: str = core.one("SELECT state FROM pricing.why_old(:data_type, :symbol)", data_type=pair[0], symbol=pair[1])
    return state


def work(core: Core, clock: Clock) -> None:
    """A minute of a worker's checks and clean-ups."""
    for _ in range(2):
        clock.advance(31)
        core.enqueue_due()
        core.clean()


@pytest.mark.parametrize("own_route", [False, True], ids=["one route", "a route of its own"])
def test_b10_a_read_that_the_quota_refused_is_served_when_there_is_room(
    core: Core, clock: Clock, own_route: bool
) -> None:
    """It was forgotten within a minute, and `why` said that nobody wants it."""
    if own_route:
        core.rows(
            "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
            " VALUES ('equity_quote', 'AAPL', 'twelvedata', 1)"
        )
    core.use_quota(95_000)
    assert read(core, AAPL) == 0
    for _ in range(5):
        work(core, clock)
        assert why(core, AAPL) == "quota_spent"
    assert core.rows("SELECT pairs FROM pricing.unqueued_pairs()") == [(1,)]
    core.use_quota(0)
    work(core, clock)
    assert live(core) == {AAPL}
    core.refresh()
    clock.advance(600)
    work(core, clock)
    assert live(core) == set(), "one read is one fetch"


def test_a10_a_read_of_what_another_session_has_locked_is_served_after_it(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.unsubscribe("ann", AAPL)
    clock.advance(59)
    with core.engine.connect() as other:
        clock.advance(3)
        other.execute(text("SELECT FROM pricing.demand FOR UPDATE"))
        assert read(core, AAPL) == 0
    assert core.enqueue_due() == 1
    assert live(core) == {AAPL}


@pytest.mark.parametrize("asks", ["request_prices(", "request_reads('bob', "])
def test_a10_a_read_of_what_others_have_queued_outlasts_them(core: Core, clock: Clock, asks: str) -> None:
    """The task was cancelled when its last viewer left, and the read with it."""
    core.heartbeat("ann", AAPL)
    core.rows(f"SELECT pricing.{asks}'{{equity_quote}}', '{{AAPL}}')")
    core.enqueue_due()
    core.unsubscribe("ann", AAPL)
    work(core, clock)
    work(core, clock)
    assert live(core) == {AAPL}
    core.refresh()
    clock.advance(600)
    work(core, clock)
    assert live(core) == set()


def test_a10_a_read_that_failed_for_good_is_told_so_and_not_repeated(core: Core, clock: Clock) -> None:
    read(core, AAPL)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    assert why(core, AAPL) == "unknown_symbol"
    for _ in range(3):
        clock.advance(86_400)
        work(core, clock)
    assert live(core) == set()


@given(
    own_route=st.booleans(),
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["read", "read", "client", "watch", "leave", "pause"]), st.sampled_from(PAIRS)),
            st.tuples(st.sampled_from(["spent", "free"]), st.sampled_from([TWELVEDATA, MFAPI])),
            st.tuples(st.sampled_from(["answer", "night", "work"]), st.none()),
        ),
        max_size=16,
    ),
)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a10_no_read_is_forgotten(core: Core, clock: Clock, own_route: bool, steps: list[tuple[str, object]]) -> None:
    """Model: a read of what is stale is owed an answer until one has come. All the while a task of it is live or `why`
    names what stands in its way; when nothing does, it is queued within a minute."""
    core.rows(
        "TRUNCATE pricing.api_call_queue, pricing.demand, pricing.pair_requests, pricing.latest_prices,"
        " pricing.active_subscriptions, pricing.provider_keys, pricing.user_allowances CASCADE;"
        " DELETE FROM pricing.provider_routing WHERE symbol IS NOT NULL;"
        " UPDATE pricing.instruments SET update_mode = 'api'"
    )
    if own_route:
        core.rows(
            "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
            " VALUES ('equity_quote', 'IBM', 'twelvedata', 1)"
        )
    owed: set[Pair] = set()
    spent: set[str] = set()
    paused: set[str] = set()
    for provider in (TWELVEDATA, MFAPI):
        core.use_quota(0, provider)

    def is_stale(pair: Pair) -> bool:
        stale: bool = core.one("SELECT pricing.is_pair_stale(:kind, :symbol)", kind=pair[0], symbol=pair[1])
        return stale

    for step, about in [*steps, ("free", TWELVEDATA), ("free", MFAPI), ("work", None)]:
        match step, about:
            case "read" | "client", (str() as kind, str() as symbol):
                if symbol not in paused and is_stale((kind, symbol)):
                    owed.add((kind, symbol))
                if step == "read":
                    read(core, (kind, symbol))
                else:
                    core.rows("SELECT pricing.request_reads('ann', ARRAY[:k], ARRAY[:s])", k=kind, s=symbol)
                    core.enqueue_due()
            case "watch", (str() as kind, str() as symbol):
                core.heartbeat("bob", (kind, symbol))
            case "leave", (str() as kind, str() as symbol):
                core.unsubscribe("bob", (kind, symbol))
            case "pause", (str(), str() as symbol):
                paused ^= {symbol}
                core.pause(symbol, paused=symbol in paused)
            case "spent", str() as provider:
                spent.add(provider)
                core.use_quota(95_000, provider)
            case "free", str() as provider:
                spent.discard(provider)
                core.use_quota(0, provider)
            case "answer", _:
                owed -= {pair for pair in live(core) if pair[1] not in paused}
                for provider in (TWELVEDATA, MFAPI):
                    core.use_quota(0, provider)
                core.refresh(TWELVEDATA)
                core.refresh(MFAPI)
                for provider in spent:
                    core.use_quota(95_000, provider)
            case "night", _:
                clock.advance(86_400)
                for provider in spent:
                    core.use_quota(95_000, provider)
        core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = pricing.clock()")
        work(core, clock)
        queued = live(core)
        for pair in owed - queued:
            in_the_way = {"paused"} if pair[1] in paused else {"quota_spent"}
            assert why(core, pair) in in_the_way, (pair, queued)
            assert pair[1] in paused or (MFAPI if pair == FUND else TWELVEDATA) in spent
