"""F5: a split that is larger than any other is a person's decision; once one has made it, nothing more is needed."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import DAILY, Core, a_call, windowed
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.yahoo_answers import NOW, chart, parse

pytestmark = pytest.mark.usefixtures("still")

DAYS = [day for n in range(46) if (day := date(2026, 10, 5) + timedelta(days=n)).weekday() < 5]
SPLIT = date(2026, 11, 2)
"""One new share for 2,500 old ones, of a price of 0.02."""
AS_TRADED = {day: Decimal("0.02") if day < SPLIT else Decimal("50.00") for day in DAYS}
YAHOO = dict.fromkeys(DAYS, 50.0)
"""Prices of today's shares."""


@pytest.fixture(autouse=True)
def _now(core: Core, clock: Clock, still: None) -> None:
    clock.set(NOW)
    core.lift_limits()


def bring(core: Core, prices: dict[date, float], ratio: tuple[float, float] | None) -> None:
    """A backfill of these days, by an answer of Yahoo that tells this split."""
    first, last = min(prices), max(prices)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(DAILY, "AAPL", days=(first, last))
    call = windowed(a_call(core.claim_one()), first, last)
    splits = [(f"{SPLIT}T09:30", *ratio)] if ratio else None
    body = chart({f"{day}T09:30": close for day, close in prices.items()}, splits=splits)
    answer = parse(body, window=Window(first, last))
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 4, body=b"{}"))


def stored(core: Core) -> dict[date, Decimal]:
    return {row.observed_at.date(): row.close for row in core.history("AAPL", DAILY, DAYS[0], DAYS[-1])}


def since(core: Core) -> None:
    """What was traded of late is stored as traded: the workers watched since the split."""
    bring(core, {day: close for day, close in YAHOO.items() if day >= SPLIT}, None)


def enter(core: Core, new: int, old: int) -> None:
    core.rows(
        "SELECT pricing.enter_action('equity', 'AAPL', :day, 'split', :new, :old, NULL, NULL, 'ann')",
        day=SPLIT,
        new=new,
        old=old,
    )
    reviews.judge_anew(core.engine)


def test_f5_a_person_confirms_a_split_of_2500_to_1_and_nothing_more_is_needed(core: Core) -> None:
    """Its backfill stayed misconfigured for good."""
    since(core)
    bring(core, YAHOO, (1, 2500))
    assert min(stored(core)) == SPLIT
    (failure,) = core.rows("SELECT failure_kind, errors -> -1 ->> 'message' AS said FROM pricing.api_call_queue_dead")
    assert failure.failure_kind == "misconfigured"
    assert "if it is true, enter it: pricing-pipeline action add AAPL 2026-11-02 --split 1:2500" in failure.said
    assert "asked for again" in failure.said
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.call("SELECT pricing.refetch_history()")
    core.rows("DELETE FROM pricing.api_call_queue_live")
    enter(core, 1, 2500)
    assert core.call("SELECT pricing.refetch_history()") == 1, "it is asked for by itself"
    bring(core, YAHOO, (1, 2500))
    assert stored(core) == AS_TRADED
    assert {row.adjustment for row in core.history("AAPL", DAILY, DAYS[0], DAYS[-1])} == {"raw"}
    core.call("SELECT pricing.close_believed()")
    assert core.rows("SELECT reason FROM pricing.quarantined_values WHERE status = 'quarantined'") == []


@pytest.mark.parametrize("entered", [None, (1, 2400), (2500, 1)])
def test_f5_a_split_that_nobody_has_confirmed_undoes_nothing(core: Core, entered: tuple[int, int] | None) -> None:
    since(core)
    if entered is not None:
        enter(core, *entered)
    bring(core, YAHOO, (1, 2500))
    assert min(stored(core)) == SPLIT
    assert core.one("SELECT count(*) FROM pricing.corporate_actions WHERE old_shares = 2500") == 0


def test_f5_a_history_that_came_divided_by_it_is_as_traded_once_it_is_entered(core: Core) -> None:
    """It went on as divided, for good."""
    bring(core, YAHOO, (1, 2500))
    assert set(stored(core).values()) == {Decimal(50)}
    enter(core, 1, 2500)
    bring(core, YAHOO, (1, 2500))
    assert stored(core) == AS_TRADED
    assert {row.adjustment for row in core.history("AAPL", DAILY, DAYS[0], DAYS[-1])} == {"raw"}
