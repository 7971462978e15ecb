"""A day on Twelve Data's free plan, two minutes at a time: 20 watched shares, and a second user from noon on."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine

from pricing_pipeline.registry import calendars, plans
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.free_plan import symbols

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


def simulate(core: Core, clock: Clock, start: datetime, end: datetime) -> None:
    """Watchers look, due pairs are queued, and the calls that the limits allow are made."""
    for at in moments(start, end):
        clock.set(at)
        core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(20)))
        if at >= DAY + timedelta(hours=17):
            core.heartbeat("bob", *((QUOTE, symbol) for symbol in symbols(25)[10:]))
        core.enqueue_due()
        core.refresh()


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
        name, free = plans.plan_of(TWELVEDATA, "free")
        plans.use(connection, TWELVEDATA, name, free, 20)
    calendars.extend(core.engine)


@pytest.mark.usefixtures("plan")
def test_a6_a_free_plan_lasts_the_trading_day(core: Core, clock: Clock) -> None:
    simulate(core, clock, DAY, DAY + timedelta(days=1))
    calls = fetched(core)
    before = [symbol for at, symbol in calls if at < OPEN]
    during = [(at, symbol) for at, symbol in calls if OPEN <= at < LAST]
    after = [symbol for at, symbol in calls if at >= LAST]

    assert sorted(before) == symbols(20), "each first price once, and nothing more while the market is closed"
    assert 640 <= len(during) <= 700, (
        "what the session may use is used, with what the morning has left of its tenth"
    )
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
