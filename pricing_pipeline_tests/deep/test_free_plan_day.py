"""A day on Twelve Data's free plan, two minutes at a time: 20 watched shares, and a second user from noon on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from sqlalchemy import Engine

from pricing_pipeline.domain.calls import Call, Response
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Question
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.settling import settle_answer, settle_failure
from pricing_pipeline.registry import plans
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.free_plan import free_plan, symbols
from pricing_pipeline_tests.support.sandbox_server import Asked
from pricing_pipeline_tests.support.trading_days import store_weekdays

DAY = datetime(2026, 3, 10, tzinfo=UTC)
"""A Tuesday of New York's summer time."""
OPEN, CLOSE = DAY + timedelta(hours=13.5), DAY + timedelta(hours=20)
LAST = CLOSE + timedelta(minutes=15)
"""From here on the closing price is there."""

pytestmark = pytest.mark.usefixtures("still")


def moments(start: datetime, end: datetime) -> list[datetime]:
    """Every second minute around the session, else each quarter of an hour."""
    at, found = start, []
    while at < end:
        found.append(at)
        is_busy = OPEN - timedelta(minutes=5) <= at < LAST + timedelta(minutes=30)
        at += timedelta(minutes=2 if is_busy else 15)
    return found


def simulate(
    core: Core,
    clock: Clock,
    start: datetime,
    end: datetime,
    refresh: Callable[[datetime], object] | None = None,
) -> None:
    """Watchers look, due pairs are queued, and the calls that the limits allow are made."""
    for at in moments(start, end):
        clock.set(at)
        core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(20)))
        if at >= DAY + timedelta(hours=17):
            core.heartbeat("bob", *((QUOTE, symbol) for symbol in symbols(25)[10:]))
        core.promote()
        core.enqueue_due()
        if refresh is None:
            core.refresh()
        else:
            refresh(at)


def fetched(core: Core) -> list[tuple[datetime, str]]:
    rows = core.rows(
        "SELECT c.started_at, s.symbol FROM pricing.collector_call_log c"
        " CROSS JOIN unnest(c.symbols) AS s (symbol) ORDER BY 1"
    )
    return [(row.started_at, row.symbol) for row in rows]


@pytest.fixture
def plan(core: Core, clock: Clock, owner_engine: Engine) -> None:
    clock.set(DAY)
    with owner_engine.begin() as connection:
        name, free = plans.plan_of(connection, TWELVEDATA, "free")
        plans.use(connection, TWELVEDATA, name, free, 20)
    store_weekdays(core, "XNYS", "2026-03-02", "2026-03-20", ("13:30", "20:00"))


@pytest.mark.usefixtures("plan")
def test_a6_a_free_plan_lasts_the_trading_day(core: Core, clock: Clock) -> None:
    simulate(core, clock, DAY, DAY + timedelta(days=1))
    calls = fetched(core)
    before = [symbol for at, symbol in calls if at < OPEN]
    during = [(at, symbol) for at, symbol in calls if OPEN <= at < LAST]
    after = [symbol for at, symbol in calls if at >= LAST]

    assert sorted(before) == symbols(20), "each first price once, and nothing more while the market is closed"
    assert 640 <= len(during) <= 700, "what the session may use is used, with what the morning has left of its tenth"
    assert sorted(after) == symbols(25), "the closing prices come out of what was kept for them"
    assert len(calls) <= 800

    minutes = Counter(at for at, _ in during)
    assert max(minutes.values()) <= 8
    halves = [sum(at < OPEN + (LAST - OPEN) / 2 for at, _ in during), len(during)]
    assert 0.4 <= halves[0] / halves[1] <= 0.6, "as much in the first half of the session as in the second"
    turns = Counter(symbol for _, symbol in during)
    assert min(turns[symbol] for symbol in symbols(20)) >= 15, "each is served in turn"
    assert min(turns[symbol] for symbol in symbols(25)[20:]) >= 8, "also what is watched from noon on"


@pytest.mark.usefixtures("plan")
def test_a6_a_sunday_costs_the_first_prices_alone(core: Core, clock: Clock) -> None:
    sunday = DAY - timedelta(days=2)
    simulate(core, clock, sunday, sunday + timedelta(days=1))
    assert sorted(symbol for _, symbol in fetched(core)) == symbols(20)


TWO = DAY + timedelta(hours=14)


class Lowering:
    """Twelve Data with a plan of its own, which from two o'clock on allows fewer credits a minute."""

    def __init__(self, core: Core, *, minute: int, later: int) -> None:
        self._core = core
        self._later = later
        self._asked = Asked(DAY, credits_per_minute=minute, credits_per_day=800)
        self.claimed: list[datetime] = []
        self.refused: list[datetime] = []
        """When the calls were claimed that it refused."""

    def refresh(self, at: datetime) -> None:
        self._asked.now = at
        if at >= TWO:
            self._asked.sandbox.providers[TWELVEDATA].plan.per_minute = self._later
        while calls := self._core.claim():
            for call in calls:
                self._make(call, at)

    def _make(self, call: Call, at: datetime) -> None:
        self.claimed += [at] * len(call.symbols)
        reply = self._asked.twelvedata("quote", symbol=",".join(call.symbols))
        headers = {name.lower(): value for name, value in reply.headers.items()}
        response = Response(reply.status, headers, reply.body, len(reply.body))
        try:
            answer = PROVIDERS[TWELVEDATA].parse(Question(call.fetcher, call.symbols, None, at), response)
        except ProviderError as error:
            assert reply.status == 429
            self.refused.append(at)
            settle_failure(self._core.engine, call, error)
        else:
            settle_answer(self._core.engine, call, Fetched(answer, 200, len(reply.body), headers=headers))


def longest_pause(claimed: list[datetime]) -> timedelta:
    """Between two claims from the lower limit on until the market closes."""
    return max(later - earlier for earlier, later in pairwise(at for at in claimed if TWO <= at < LAST))


@pytest.mark.usefixtures("plan")
def test_a6_a_plan_that_is_lowered_at_two_costs_one_refused_call(core: Core, clock: Clock) -> None:
    provider = Lowering(core, minute=8, later=4)
    simulate(core, clock, DAY, DAY + timedelta(days=1), provider.refresh)
    assert len(provider.refused) <= 1, "the one that shows the new limit"
    assert all(at >= TWO for at in provider.refused)
    afterwards = Counter(at for at in provider.claimed if at > TWO + timedelta(minutes=2))
    assert max(afterwards.values()) == 4
    assert longest_pause(provider.claimed) <= timedelta(minutes=6), (
        "nothing stands still: 20 prices take ten minutes, and 13 minutes later they are fetched again"
    )
    assert 630 <= len([at for at in provider.claimed if OPEN <= at < LAST]) <= 700, (
        "the day's units are spent all the same"
    )
    (told,) = core.rows("SELECT units, shown_units, correction FROM pricing.limits_shown()")
    assert (told.units, told.shown_units) == (8, 4)
    assert told.correction == ("pricing-pipeline provider use twelvedata --plan free --symbols 20 --minute 4 --day 800")


def test_a6_a_limit_that_is_written_too_high_costs_no_calls_after_the_first_hint(core: Core, clock: Clock) -> None:
    """102 credits a minute are written down, and the plan has 8, later 4."""
    clock.set(DAY)
    free_plan(core)
    core.rows("UPDATE pricing.provider_limits SET units = 102 WHERE name = 'minute'")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 15 WHERE data_type = 'equity_quote'")
    store_weekdays(core, "XNYS", "2026-03-02", "2026-03-20", ("13:30", "20:00"))
    provider = Lowering(core, minute=8, later=4)
    simulate(core, clock, DAY, DAY + timedelta(days=1), provider.refresh)
    assert len(provider.refused) <= 2, "the first call, and the one that shows the limit from two o'clock on"
    assert all(at == DAY or at >= TWO for at in provider.refused)
    assert longest_pause(provider.claimed) <= timedelta(minutes=4), "nothing stands still"
    turns = Counter(symbol for at, symbol in fetched(core) if OPEN <= at < LAST)
    assert min(turns[symbol] for symbol in symbols(20)) >= 15
