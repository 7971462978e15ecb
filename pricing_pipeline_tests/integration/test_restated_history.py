"""A past that comes by one ratio is restated and fetched again; other changes are corrections and leave revisions."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.reported_actions import (
    bar,
    bring,
    closes,
    day,
    restatements,
    stored,
)

pytestmark = pytest.mark.usefixtures("still")


PAST = {1: "400.00", 2: "404.00", 3: "402.00", 4: "410.00", 5: "408.00"}


@pytest.mark.parametrize(("ratio", "kind"), [("4", "split"), ("1.0083", "dividend")])
def test_f5_a_past_that_comes_by_one_ratio_is_recorded_and_fetched_again_once(
    core: Core, clock: Clock, ratio: str, kind: str
) -> None:
    bring(core, *(bar(on, close) for on, close in PAST.items()))
    again = [bar(on, str(round(Decimal(close) / (Decimal(ratio) if on < 5 else 1), 2))) for on, close in PAST.items()]
    bring(core, *again)
    assert closes(core) == PAST, "nothing is rewritten"
    assert core.rows("SELECT FROM pricing.price_revisions") == []
    assert {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")} == {kind}
    (one,) = restatements(core)
    assert (one.kind, one.days, one.first_on, one.last_on, one.times) == (kind, 4, day(1), day(4), 1)
    assert abs(one.ratio / Decimal(ratio) - 1) < Decimal("0.0001")
    core.rows("DELETE FROM pricing.api_call_queue_live")
    assert core.call("SELECT pricing.refetch_history()") == 1
    asked = [task for task in core.tasks("AAPL") if task.status == "pending"]
    assert min(task.first_day for task in asked) == day(1), "all that is stored"
    assert {task.priority for task in asked} == {-2}, "below live work"
    assert restatements(core)[0].backfill_id is not None
    core.rows("DELETE FROM pricing.api_call_queue_live")
    bring(core, *again)
    assert core.call("SELECT pricing.refetch_history()") == 0
    assert [row.times for row in restatements(core)] == [2]


def test_f5_scattered_changes_are_corrections_and_leave_revisions(core: Core) -> None:
    bring(core, *(bar(on, close) for on, close in PAST.items()))
    tally = bring(core, *(bar(on, close) for on, close in (PAST | {2: "405.00", 4: "409.00"}).items()))
    assert (tally.revised, tally.quarantined) == (2, 0)
    (one,) = restatements(core)
    assert (one.kind, one.ratio, one.days, one.first_on, one.last_on) == (
        "scattered",
        None,
        2,
        day(2),
        day(4),
    )
    assert one.largest == Decimal("0.002475")
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 2
    assert core.call("SELECT pricing.refetch_history()") == 0


def test_f5_a_bar_of_a_day_that_is_not_over_is_asked_for_until_it_is_final(core: Core, clock: Clock) -> None:
    clock.set(datetime.fromisoformat("2010-03-03T20:00:00+00:00"))
    bring(core, bar(2, "100.00"), bar(3, "101.00"), latest=True)
    open_bars = "SELECT (observed_at AT TIME ZONE 'UTC')::date AS day, asked FROM pricing.provisional_bars"
    assert [tuple(row) for row in core.rows(open_bars)] == [(day(3), 0)]
    bring(core, bar(3, "102.50"), latest=True)
    assert restatements(core) == [], "it was to change"
    assert core.call("SELECT pricing.refetch_history()") == 0
    clock.set(datetime.fromisoformat("2010-03-04T02:30:00+00:00"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    for asked in (1, 2):
        assert core.call("SELECT pricing.refetch_history()") == 1
        (task,) = [task for task in core.tasks("AAPL") if task.status == "pending"]
        assert (task.first_day, task.last_day) == (day(3), day(3))
        assert [tuple(row) for row in core.rows(open_bars)] == [(day(3), asked)]
        assert core.call("SELECT pricing.refetch_history()") == 0, "its turn comes again later"
        core.rows("DELETE FROM pricing.api_call_queue_live")
        clock.advance(3600)
    bring(core, bar(3, "102.50"))
    assert core.rows(open_bars) == [], "the same once more, after its day, makes it final"


@pytest.mark.parametrize("factor", ["100", "0.01"])
def test_f5_yfinance_days_a_hundred_times_too_high_or_low_are_quarantined(core: Core, factor: str) -> None:
    """Single days in pence among pounds, and the newest ones; what is good is stored, nothing is mended."""
    good = {on: str(100 + on) for on in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12)}
    bad = {on: str(Decimal(good[on]) * Decimal(factor)) for on in (4, 11, 12)}
    tally = bring(core, *(bar(on, close) for on, close in (good | bad).items()), told=[])
    assert tally.quarantined == 3
    assert set(closes(core)) == set(good) - set(bad)
    rows = core.rows("SELECT kind, value FROM pricing.quarantined_values ORDER BY observed_at")
    assert [Decimal(row.value) for row in rows] == [Decimal(bad[on]) for on in (4, 11, 12)]
    assert {row.kind for row in rows} <= {"unit", "spike"}


def test_f5_yfinance_a_missing_dividend_shows_when_its_source_takes_it_off(core: Core) -> None:
    """The event is missing, the past comes 0.8 % lower: found by its one ratio, and not taken for corrections."""
    bring(core, *(bar(on, close) for on, close in PAST.items()), told=[])
    lower = {on: str(round(Decimal(close) / Decimal("1.008"), 2)) for on, close in PAST.items() if on < 5}
    tally = bring(core, *(bar(on, close) for on, close in (PAST | lower).items()), told=[])
    assert (tally.revised, tally.quarantined) == (0, 4)
    assert [row.kind for row in restatements(core)] == ["dividend"]
    assert stored(core) == [], "and no dividend is made up"
