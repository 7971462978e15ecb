"""A dividend that cannot be true is quarantined, and bars are not stored as traded where a split was left out."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import (
    Adjust,
    CorporateAction,
    Dividend,
)
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.reported_actions import (
    bar,
    bring,
    closes,
    dividend,
    know_split,
    restatements,
    split,
    stored,
)

pytestmark = pytest.mark.usefixtures("still")


@pytest.mark.parametrize("cash", ["20.01", "1000000000000000"])
def test_f5_a_dividend_of_more_than_a_fifth_of_its_price_is_quarantined_and_never_entered(
    core: Core, cash: str
) -> None:
    """Beside prices of the same answer, and beside stored ones; another dividend of the answer is entered."""
    told = [dividend(2, cash), dividend(3, "0.5")]
    tally = bring(core, bar(1, "100.00"), bar(2, "99.00"), bar(3, "98.00"), told=told)
    assert (tally.quarantined, stored(core)) == (1, [dividend(3, "0.5")])
    (row,) = core.rows("SELECT kind, value, reason, observed_at::date AS day FROM pricing.quarantined_values")
    assert (row.kind, row.value, row.day) == ("refused", cash, told[0].ex_on)
    assert "is more than a fifth of the last price before it, 100.00 on 2010-03-01" in row.reason
    assert f"action add AAPL 2010-03-02 --dividend {cash}" in row.reason
    assert closes(core, Adjust.TOTAL), "histories are read all the same"
    core.rows("DELETE FROM pricing.api_call_queue_live")
    bring(core, bar(1, "100.00"), told=told)
    assert stored(core) == [dividend(3, "0.5")]
    assert core.one("SELECT times FROM pricing.quarantined_values") == 2


def test_f5_a_dividend_of_100_times_the_last_ones_is_quarantined(core: Core) -> None:
    """Pence that are told as pounds, beside dividends of the same answer, and beside stored ones."""
    usual = [dividend(1, "0.02"), dividend(2, "0.019"), dividend(3, "2.01"), dividend(4, "0.02")]
    tally = bring(core, bar(1, "100.00"), bar(2, "100.00"), bar(3, "100.00"), bar(4, "100.00"), told=usual)
    assert (tally.quarantined, len(stored(core))) == (1, 3)
    reason = core.one("SELECT reason FROM pricing.quarantined_values")
    assert "more than 100 times each of the last ones before it, which were up to 0.02. If it is true" in reason
    bring(core, bar(5, "100.00"), told=[dividend(5, "2"), dividend(8, "2.5")])
    assert stored(core)[0] == dividend(8, "2.5"), "100 times is not more; then it is one of the last ones"


def test_f5_what_no_price_is_known_to_judge_by_is_quarantined_when_no_share_pays_it(core: Core) -> None:
    bring(core, bar(20, "100.00"), told=[dividend(1, "1000000000"), dividend(2, "250")])
    assert stored(core) == [dividend(2, "250")]
    (reason,) = core.rows("SELECT reason FROM pricing.quarantined_values")
    assert "no price before it is known" in reason.reason


def test_f5_yfinance_a_missing_split_is_quarantined_and_nothing_is_repaired(core: Core) -> None:
    """Its events name every split, so a step of a split's size that stays is one that it forgot."""
    past = [bar(on, price) for on, price in ((1, "400.00"), (2, "404.00"), (3, "402.00"), (4, "405.00"))]
    after = [bar(on, price) for on, price in ((5, "101.00"), (8, "102.00"), (9, "101.50"), (10, "101.00"))]
    tally = bring(core, *past, *after, told=[])
    assert tally.quarantined == 4
    assert {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")} == {"split"}
    assert set(closes(core)) in ({1, 2, 3, 4}, {5, 8, 9, 10})
    assert core.rows("SELECT FROM pricing.corporate_action_pairs") == [], "nor is it known that there was none"


DIVIDED = {1: "100.00", 2: "101.00", 3: "100.50", 5: "101.00", 8: "102.00"}
"""Prices around a split of 4:1 on the 5th, divided by it."""


@pytest.mark.parametrize("told", [[], [Dividend("AAPL", date(2010, 3, 3), Decimal("0.20"), "USD")]])
def test_f5_bars_divided_by_a_known_split_that_the_answer_leaves_out_are_not_stored_as_raw(
    core: Core, told: list[CorporateAction]
) -> None:
    """Yahoo leaves `events` out where there were none; a split that is known proves that there was one."""
    know_split(core, 5)
    tally = bring(core, *(bar(on, close) for on, close in DIVIDED.items()), told=told)
    assert core.one("SELECT count(*) FROM pricing.corporate_actions WHERE kind = 'dividend'") == 0
    assert (closes(core), tally.quarantined) == ({5: "101.00", 8: "102.00"}, 3)
    (reason,) = {row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values")}
    assert "before the split of 2010-03-05 (4 new shares for an old one)" in reason
    assert [(row.kind, row.ratio) for row in restatements(core)] == [("split", 4)], "it is asked for again"
    named = [bar(on, str(Decimal(close) * 4) if on < 5 else close) for on, close in DIVIDED.items()]
    bring(core, *named, told=[split(5)])
    assert closes(core)[3] == "402.00", "named, it is undone and stored"


def test_f5_where_the_step_of_an_unnamed_split_shows_its_days_are_as_traded(core: Core) -> None:
    know_split(core, 5)
    traded = {on: str(Decimal(close) * 4) if on < 5 else close for on, close in DIVIDED.items()}
    tally = bring(core, *(bar(on, close) for on, close in traded.items()), told=[])
    assert (tally.quarantined, len(closes(core))) == (0, 5)


def test_f5_days_that_do_not_reach_an_unnamed_split_are_of_no_known_basis(core: Core) -> None:
    know_split(core, 25)
    tally = bring(core, *(bar(on, close) for on, close in DIVIDED.items()), told=[])
    assert (closes(core), tally.failed) == ({}, 1)
    assert core.tasks("AAPL")[-1].failure_kind in (None, "implausible")


def test_f5_what_is_stored_tells_whether_an_unnamed_split_was_divided_by(core: Core) -> None:
    """The stored days divided by it confirm what is stored; the stored days as they are show that it was not."""
    traded = {on: str(Decimal(close) * 4) if on < 5 else close for on, close in DIVIDED.items()}
    bring(core, *(bar(on, close) for on, close in traded.items()), told=[split(5)])
    before = closes(core)
    tally = bring(core, *(bar(on, close) for on, close in DIVIDED.items()), told=[])
    assert (tally.quarantined, tally.revised, closes(core)) == (0, 0, before)
    tally = bring(core, *(bar(on, traded[on]) for on in (1, 2, 3)), told=[])
    assert (tally.quarantined, tally.failed, closes(core)) == (0, 0, before)


@pytest.mark.parametrize("on", [2, 9])
def test_f5_the_same_split_some_days_off_is_named(core: Core, on: int) -> None:
    know_split(core, 5)
    traded = {day_: str(Decimal(close) * 4) if day_ < on else close for day_, close in DIVIDED.items()}
    bring(core, *(bar(day_, close) for day_, close in traded.items()), told=[split(on)])
    reasons = {row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values")}
    assert not any("does not name" in reason for reason in reasons)


def test_f5_a_split_that_is_told_but_was_not_applied_is_quarantined(core: Core) -> None:
    """Undone although it was never done, the older prices stand four times too high."""
    past = [bar(on, price) for on, price in ((1, "1600.00"), (2, "1616.00"), (3, "1608.00"))]
    after = [bar(on, price) for on, price in ((5, "101.00"), (8, "102.00"), (9, "101.50"), (10, "101.00"))]
    tally = bring(core, *past, *after, told=[split(5)])
    assert tally.quarantined == 3
    assert stored(core) == [], "nor is the split believed"


def test_a_quote_needs_no_history(core: Core, clock: Clock) -> None:
    """A latest bar beside a known split is compared as of today's shares."""
    clock.set(datetime.fromisoformat("2010-03-03T22:00:00+00:00"))
    bring(core, bar(1, "400.00"), bar(2, "404.00"), told=[])
    bring(core, bar(3, "101.00"), told=[split(3)], latest=True)
    clock.advance(timedelta(days=1).total_seconds())
    tally = bring(core, bar(4, "102.00"), latest=True)
    assert (tally.quarantined, tally.added) == (0, 1)
