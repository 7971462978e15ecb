"""Sixty simulated days: what is kept for so long grows no further, and only histories go on.

Invariant: once calls are forgotten, after 35 days, a table has at its fullest as many rows as twelve days later, unless
it is a history that is kept for good, or kept for longer than the test runs.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import timedelta

from pricing_pipeline.demand import staleness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import is_thorough

DAYS, SETTLED = 60, 36
MINUTES = 30 if is_thorough() else 60
"""How long a step is: each has its heartbeats, refreshes and duties."""
GROWING = {
    "price_history",  # kept for good
    "price_revisions",
    "past_calls",  # as long as the price that a call has brought
    "api_data_usage",  # 400 days, by the hour
    "api_call_queue_dead",  # 90 days after somebody has resolved them
    "async_operations_dead",
    "alerts",
    "quarantined_values",
    "quarantined_bodies",
}
WATCHED = [(QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "AAPL"), (FX, "EUR/USD")]


def row_counts(core: Core) -> Counter[str]:
    """The rows of each table; those of the ring of finished tasks together, and those of a type's history too."""
    counts: Counter[str] = Counter()
    names = core.rows("SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r'")
    for (name,) in names:
        whole = re.sub("(_completed|price_history)_.*", r"\1", name)
        counts[whole] += int(core.one(f"SELECT count(*) FROM pricing.{name}"))
    return counts


def work(core: Core, dice: random.Random) -> None:
    """Due pairs are refreshed; some calls fail, and one in fifty is lost with its worker."""
    with core.engine.begin() as connection:
        task_queue.promote(connection)
        task_queue.tend_outages(connection)
        staleness.enqueue_due(connection)
    for call in core.claim(max_calls=20):
        fate = dice.random()
        if fate < 0.02:
            continue
        if fate < 0.1:
            core.fail(call, FailureKind.PROVIDER_DOWN)
            core.settle(call, outcome="failed", kind=FailureKind.PROVIDER_DOWN)
        else:
            core.finish(call, f"{dice.uniform(99, 101):.2f}", seconds_old=dice.uniform(0, 60))


def test_b9_after_sixty_days_nothing_has_grown_but_histories(core: Core, clock: Clock) -> None:
    core.lift_limits()
    clock.stop()
    dice = random.Random(38)
    core.rows("SELECT pricing.hold('holder', :types, :symbols)", types=[QUOTE], symbols=["MSFT"])
    before, after = Counter[str](), Counter[str]()
    counted = SETTLED - 1
    began = clock.now()
    while (day := (clock.now() - began) // timedelta(days=1)) < DAYS:
        if clock.now().hour >= 6:  # nobody watches at night
            core.heartbeat(f"user-{day % 7}", *dice.sample(WATCHED, 2))
        if dice.random() < 0.05:
            core.heartbeat(f"guest-{dice.randrange(10**6)}", (QUOTE, "MSFT"))
        work(core, dice)
        with core.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            staleness.run_duties(connection)
        clock.advance(60 * dice.uniform(0.5, 1.5) * MINUTES)
        if day > counted:
            fullest = before if day < (SETTLED + DAYS) // 2 else after
            fullest |= row_counts(core)
            counted = day
    nameless = core.rows(
        "SELECT h.symbol, h.call_id FROM pricing.price_history h"
        " WHERE NOT EXISTS (SELECT FROM pricing.calls c WHERE c.call_id = h.call_id)"
    )
    assert nameless == [], "each price still names the call that brought it"
    grown = {
        name: (before[name], rows)
        for name, rows in after.items()
        if name not in GROWING and rows > 1.25 * before[name] + 25
    }
    assert grown == {}
    assert after["collector_call_log"] > 1000, "work was done all the time"
    assert core.rows("SELECT duty FROM pricing.duties WHERE last_failure_at > last_success_at") == []
