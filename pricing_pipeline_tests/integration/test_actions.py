"""Splits and dividends: stored with revisions, applied when prices are read, and never to what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import (
    Adjust,
    Adjustment,
    Answer,
    CorporateAction,
    Dividend,
    Observation,
    Split,
)
from pricing_pipeline.errors import InvalidAdjustment
from pricing_pipeline.prices import actions, price_reader
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation, sample_template
from pricing_pipeline_tests.fixtures.database import Clock

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

MARCH = (date(2010, 3, 1), date(2010, 3, 31))


def day(number: int) -> date:
    return date(2010, 3, number)


def split(on: int, new: str = "4", old: str = "1") -> Split:
    return Split("AAPL", day(on), Decimal(new), Decimal(old))


def dividend(on: int, cash: str, currency: str | None = "USD") -> Dividend:
    return Dividend("AAPL", day(on), Decimal(cash), currency)


def bar(on: int, close: str, adjustment: Adjustment = Adjustment.RAW, **more: Any) -> Observation:
    return replace(observation("AAPL", close, midnight(day(on)), **more), adjustment=adjustment)


def bring(
    core: Core, *bars: Observation, told: Sequence[CorporateAction] | None = None, latest: bool = False
) -> Tally:
    """Settle a call that brought these bars, and the actions since the month's first day if any are told."""
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", days=None if latest else MARCH)
    call = core.claim_one()
    since = {} if told is None else {"AAPL": day(1)}
    answer = Answer(observations=bars, actions=tuple(told or ()), actions_since=since)
    return settling.settle_answer(core.engine, call, Fetched(answer, 200, 100, body=b"{}"))


def closes(core: Core, adjust: Adjust | None = None, as_of: datetime | None = None) -> dict[int, str]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, *MARCH, as_of=as_of, adjust=adjust)
    return {one.observed_at.day: format(one.close, "f") for one in found}


def stored(core: Core, as_of: datetime | None = None) -> list[CorporateAction]:
    with core.engine.connect() as connection:
        return [one.action for one in actions.read(connection, "equity", "AAPL", as_of)]


def test_f5_a_split_is_applied_when_read_and_rewrites_nothing(core: Core, clock: Clock) -> None:
    bring(core, bar(1, "400.00", volume="10"), bar(2, "404.00", volume="10"), told=[])
    before = core.rows("SELECT tableoid, ctid, xmin FROM pricing.price_history ORDER BY 1, 2")
    then = core.clock()
    assert closes(core, Adjust.SPLITS) == {1: "400.00", 2: "404.00"}
    clock.advance(86400)
    tally = bring(core, bar(3, "101.00", volume="40"), told=[split(3)])
    assert (tally.added, tally.revised, tally.held) == (1, 0, 0), "a split that is told is no jump"
    after = core.rows("SELECT tableoid, ctid, xmin FROM pricing.price_history ORDER BY 1, 2")
    assert after[: len(before)] == before
    assert closes(core, Adjust.RAW) == closes(core) == {1: "400.00", 2: "404.00", 3: "101.00"}
    assert closes(core, Adjust.SPLITS) == {1: "100", 2: "101", 3: "101.00"}
    assert closes(core, Adjust.SPLITS, as_of=then) == {1: "400.00", 2: "404.00"}, "nobody knew of it then"
    with core.engine.connect() as connection:
        frame = price_reader.history(connection, "AAPL", DAILY, *MARCH, adjust=Adjust.SPLITS)
    assert list(frame["volume"]) == [40, 40, 40]
    assert set(frame["adjustment"]) == {"splits"}


def test_f5_total_return_leaves_out_what_dividends_paid(core: Core) -> None:
    """(100 - 2) / 100 of the first day, and the split on top: the growth of who reinvests is 98 -> 99 -> 49.5 x 2."""
    bring(
        core,
        *(bar(1, "100.00"), bar(2, "99.00"), bar(3, "49.50"), bar(4, "49.00")),
        told=[dividend(2, "2"), split(3, "2"), dividend(4, "0.5")],
    )
    assert closes(core, Adjust.SPLITS) == {1: "50", 2: "49.5", 3: "49.50", 4: "49.00"}
    last = (Decimal("49.50") - Decimal("0.5")) / Decimal("49.50")
    found = {on: Decimal(close) for on, close in closes(core, Adjust.TOTAL).items()}
    assert found[4] == Decimal("49.00")
    assert found[3] == round(Decimal("49.50") * last, 10)
    assert found[2] == round(Decimal("49.50") * last, 10)
    assert found[1] == round(50 * last * Decimal("0.98"), 10)


@pytest.mark.parametrize(("ex_on", "first"), [(15, "98"), (16, "100.00")])
def test_f5_a_dividend_counts_where_the_close_of_the_fortnight_before_it_is_stored(
    core: Core, ex_on: int, first: str
) -> None:
    """At the end of a hole the last close may be of another year, and says nothing of what was paid."""
    bring(core, bar(1, "100.00"), bar(20, "99.00"), told=[dividend(ex_on, "2")])
    assert closes(core, Adjust.TOTAL) == {1: first, 20: "99.00"}


def test_f5_a_split_and_a_dividend_of_one_day(core: Core) -> None:
    """The dividend is for new shares, the last close before it is of old ones: 1 of 100 / 2."""
    bring(core, bar(1, "100.00"), bar(2, "49.00"), told=[split(2, "2"), dividend(2, "1")])
    assert closes(core, Adjust.TOTAL) == {1: "49", 2: "49.00"}


def test_f5_prices_divided_by_their_source_stay_comparable_over_later_splits(
    core: Core, clock: Clock
) -> None:
    """A source that divides by every split since sends its whole past anew. Known splits make that no revision."""
    clock.set(datetime.fromisoformat("2010-03-05T12:00:00+00:00"))
    adjusted = Adjustment.SPLITS
    bring(core, *(bar(on, price, adjusted) for on, price in ((1, "400.00"), (2, "404.00"), (3, "408.00"))))
    clock.advance(7 * 86400)
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', '2010-03-10', 'split', 3, 1, 'a person', 0, pricing.clock())"
    )
    again = [bar(on, price, adjusted) for on, price in ((1, "133.33"), (2, "134.67"), (3, "136.00"))]
    tally = bring(core, *again, bar(10, "137.00", adjusted))
    assert (tally.added, tally.revised, tally.held, tally.failed) == (1, 0, 0, 0)
    assert core.rows("SELECT FROM pricing.price_revisions") == []
    assert closes(core, Adjust.RAW) == {1: "400.00", 2: "404.00", 3: "408.00", 10: "137.00"}
    assert closes(core, Adjust.SPLITS) == {1: "133.3333333333", 2: "134.6666666667", 3: "136", 10: "137.00"}
    tally = bring(core, *again)
    assert (tally.failed, tally.symbols) == (0, {"AAPL"}), "what is confirmed is served"


def test_f5_actions_have_revisions_and_are_never_withdrawn(core: Core, clock: Clock) -> None:
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.5"), split(2, "3", "2")])
    then = core.clock()
    versions = "SELECT ctid, xmin FROM pricing.corporate_actions ORDER BY 1"
    before = core.rows(versions)
    clock.advance(60)
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.50"), split(2, "6", "4")])
    assert core.rows(versions) == before, "the same again writes nothing"
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.55")])
    assert stored(core) == [split(2, "3", "2"), dividend(1, "0.55")]
    assert stored(core, then) == [split(2, "3", "2"), dividend(1, "0.5")]
    assert core.one("SELECT count(*) FROM pricing.corporate_action_revisions") == 1
    core.rows("UPDATE pricing.corporate_actions SET provider = 'another'")
    bring(core, bar(1, "100.00"), told=[dividend(1, "0.6")])
    assert stored(core)[1] == dividend(1, "0.55"), "who said it first may correct it"


def test_f5_it_is_known_of_which_days_actions_were_told(core: Core) -> None:
    assert core.rows("SELECT FROM pricing.corporate_action_pairs") == []
    bring(core, bar(1, "100.00"))
    assert core.rows("SELECT FROM pricing.corporate_action_pairs") == []
    bring(core, bar(1, "100.00"), told=[])
    assert core.one(
        "SELECT covered @> pricing.clock()::date AND covered @> date '2010-03-01' FROM pricing.corporate_action_pairs"
    )


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (dividend(2, "1", "EUR"), "is in EUR, its prices are in USD"),
        (dividend(2, "99.50"), "not below the last price"),
    ],
)
def test_f5_a_dividend_that_cannot_be_taken_off_is_an_error_that_says_so(
    core: Core, told: Dividend, said: str
) -> None:
    bring(core, bar(1, "100.00"), bar(2, "99.00"), told=[])
    with core.engine.begin() as connection:
        actions.enter(connection, "equity", told, "ann")
    bring(core, bar(1, "99.00"))
    assert closes(core, Adjust.SPLITS) == {1: "99.00", 2: "99.00"}
    with pytest.raises(InvalidAdjustment, match=said):
        closes(core, Adjust.TOTAL)


@pytest.mark.parametrize("cash", ["20.01", "101.5", "1000000000000000"])
def test_f5_a_dividend_of_more_than_a_fifth_of_its_price_is_held_and_never_entered(
    core: Core, cash: str
) -> None:
    """Beside prices of the same answer, and beside stored ones; another dividend of the answer is entered."""
    told = [dividend(2, cash), dividend(3, "0.5")]
    tally = bring(core, bar(1, "100.00"), bar(2, "99.00"), bar(3, "98.00"), told=told)
    assert (tally.held, stored(core)) == (1, [dividend(3, "0.5")])
    (held,) = core.rows(
        "SELECT kind, value, reason, observed_at::date AS day FROM pricing.quarantined_values"
    )
    assert (held.kind, held.value, held.day) == ("refused", cash, told[0].ex_on)
    assert "is more than a fifth of the last price before it, 100.00 on 2010-03-01" in held.reason
    assert f"action add AAPL 2010-03-02 --dividend {cash}" in held.reason
    assert closes(core, Adjust.TOTAL), "histories are read all the same"
    core.rows("DELETE FROM pricing.api_call_queue_live")
    bring(core, bar(1, "100.00"), told=told)
    assert stored(core) == [dividend(3, "0.5")]
    assert core.one("SELECT times FROM pricing.quarantined_values") == 2


def test_f5_a_dividend_of_100_times_the_last_ones_is_held(core: Core) -> None:
    """Pence that are told as pounds, beside dividends of the same answer, and beside stored ones."""
    usual = [dividend(1, "0.02"), dividend(2, "0.019"), dividend(3, "2.01"), dividend(4, "0.02")]
    tally = bring(core, bar(1, "100.00"), bar(2, "100.00"), bar(3, "100.00"), bar(4, "100.00"), told=usual)
    assert (tally.held, len(stored(core))) == (1, 3)
    reason = core.one("SELECT reason FROM pricing.quarantined_values")
    assert (
        "more than 100 times each of the last ones before it, which were up to 0.02. If it is true" in reason
    )
    bring(core, bar(5, "100.00"), told=[dividend(5, "2"), dividend(8, "2.5")])
    assert stored(core)[0] == dividend(8, "2.5"), "100 times is not more; then it is one of the last ones"


def test_f5_what_no_price_is_known_to_judge_by_is_held_when_no_share_pays_it(core: Core) -> None:
    bring(core, bar(20, "100.00"), told=[dividend(1, "1000000000"), dividend(2, "250")])
    assert stored(core) == [dividend(2, "250")]
    (reason,) = core.rows("SELECT reason FROM pricing.quarantined_values")
    assert "no price before it is known" in reason.reason


def test_f5_yfinance_a_missing_split_is_held_and_nothing_is_repaired(core: Core) -> None:
    """Its events name every split, so a step of a split's size that stays is one that it forgot."""
    past = [bar(on, price) for on, price in ((1, "400.00"), (2, "404.00"), (3, "402.00"), (4, "405.00"))]
    after = [bar(on, price) for on, price in ((5, "101.00"), (8, "102.00"), (9, "101.50"), (10, "101.00"))]
    tally = bring(core, *past, *after, told=[])
    assert tally.held == 4
    assert {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")} == {"split"}
    assert set(closes(core)) in ({1, 2, 3, 4}, {5, 8, 9, 10})
    assert core.rows("SELECT FROM pricing.corporate_action_pairs") == [], (
        "nor is it known that there was none"
    )


def know_split(core: Core, on: int, new: int = 4) -> None:
    """Somebody has told a split, before the answer that does not name it."""
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', :on, 'split', :new, 1, 'another', 0, pricing.clock())",
        on=day(on),
        new=new,
    )


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
    assert (closes(core), tally.held) == ({5: "101.00", 8: "102.00"}, 3)
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
    assert (tally.held, len(closes(core))) == (0, 5)


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
    assert (tally.held, tally.revised, closes(core)) == (0, 0, before)
    tally = bring(core, *(bar(on, traded[on]) for on in (1, 2, 3)), told=[])
    assert (tally.held, tally.failed, closes(core)) == (0, 0, before)


@pytest.mark.parametrize("on", [2, 9])
def test_f5_the_same_split_some_days_off_is_named(core: Core, on: int) -> None:
    know_split(core, 5)
    traded = {day_: str(Decimal(close) * 4) if day_ < on else close for day_, close in DIVIDED.items()}
    bring(core, *(bar(day_, close) for day_, close in traded.items()), told=[split(on)])
    reasons = {row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values")}
    assert not any("does not name" in reason for reason in reasons)


def test_f5_a_split_that_is_told_but_was_not_applied_is_held(core: Core) -> None:
    """Undone although it was never done, the older prices stand four times too high."""
    past = [bar(on, price) for on, price in ((1, "1600.00"), (2, "1616.00"), (3, "1608.00"))]
    after = [bar(on, price) for on, price in ((5, "101.00"), (8, "102.00"), (9, "101.50"), (10, "101.00"))]
    tally = bring(core, *past, *after, told=[split(5)])
    assert tally.held == 3
    assert stored(core) == [], "nor is the split believed"


def test_a_quote_needs_no_history(core: Core, clock: Clock) -> None:
    """A latest bar beside a known split is compared as of today's shares."""
    clock.set(datetime.fromisoformat("2010-03-03T22:00:00+00:00"))
    bring(core, bar(1, "400.00"), bar(2, "404.00"), told=[])
    bring(core, bar(3, "101.00"), told=[split(3)], latest=True)
    clock.advance(timedelta(days=1).total_seconds())
    tally = bring(core, bar(4, "102.00"), latest=True)
    assert (tally.held, tally.added) == (0, 1)


def restatements(core: Core) -> list[Any]:
    return list(core.rows("SELECT * FROM pricing.restatements ORDER BY restatement_id"))


PAST = {1: "400.00", 2: "404.00", 3: "402.00", 4: "410.00", 5: "408.00"}


@pytest.mark.parametrize(("ratio", "kind"), [("4", "split"), ("1.25", "split"), ("1.0083", "dividend")])
def test_f5_a_past_that_comes_by_one_ratio_is_recorded_and_fetched_again_once(
    core: Core, clock: Clock, ratio: str, kind: str
) -> None:
    bring(core, *(bar(on, close) for on, close in PAST.items()))
    again = [
        bar(on, str(round(Decimal(close) / (Decimal(ratio) if on < 5 else 1), 2)))
        for on, close in PAST.items()
    ]
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
    assert (tally.revised, tally.held) == (2, 0)
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
def test_f5_yfinance_days_a_hundred_times_too_high_or_low_are_held(core: Core, factor: str) -> None:
    """Single days in pence among pounds, and the newest ones; what is good is stored, nothing is mended."""
    good = {on: str(100 + on) for on in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12)}
    bad = {on: str(Decimal(good[on]) * Decimal(factor)) for on in (4, 11, 12)}
    tally = bring(core, *(bar(on, close) for on, close in (good | bad).items()), told=[])
    assert tally.held == 3
    assert set(closes(core)) == set(good) - set(bad)
    held = core.rows("SELECT kind, value FROM pricing.quarantined_values ORDER BY observed_at")
    assert [Decimal(row.value) for row in held] == [Decimal(bad[on]) for on in (4, 11, 12)]
    assert {row.kind for row in held} <= {"unit", "spike"}


def test_f5_yfinance_missing_rows_are_gaps_and_nothing_fills_them(core: Core) -> None:
    """The source answers for a month and leaves out two days of it: told as gaps, by day, and not filled forward."""
    days = [on for on in range(1, 32) if day(on).weekday() < 5]
    core.call(
        "SELECT pricing.store_sessions('XNYS', :first, :last, :days, :opens, :closes)",
        first=day(1),
        last=day(31),
        days=[day(on) for on in days],
        opens=[midnight(day(on)) + timedelta(hours=14) for on in days],
        closes=[midnight(day(on)) + timedelta(hours=21) for on in days],
    )
    there = [on for on in days if on not in (10, 11)]
    bring(core, *(bar(on, str(100 + on)) for on in there), told=[])
    assert sorted(closes(core)) == there
    gaps = core.rows(
        "SELECT first_day, last_day, sessions, kind FROM pricing.gaps(:t, 'AAPL', :a, :b)",
        t=DAILY,
        a=day(1),
        b=day(31),
    )
    assert [tuple(gap) for gap in gaps] == [(day(10), day(11), 2, "provider_has_none")]


def test_f5_yfinance_a_missing_dividend_shows_when_its_source_takes_it_off(core: Core) -> None:
    """The event is missing, the past comes 0.8 % lower: found by its one ratio, and not taken for corrections."""
    bring(core, *(bar(on, close) for on, close in PAST.items()), told=[])
    lower = {on: str(round(Decimal(close) / Decimal("1.008"), 2)) for on, close in PAST.items() if on < 5}
    tally = bring(core, *(bar(on, close) for on, close in (PAST | lower).items()), told=[])
    assert (tally.revised, tally.held) == (0, 4)
    assert [row.kind for row in restatements(core)] == ["dividend"]
    assert stored(core) == [], "and no dividend is made up"


# One action that is told of two days


def by(core: Core, provider: str) -> None:
    """Another provider has said what is stored."""
    core.rows("UPDATE pricing.corporate_actions SET provider = :provider", provider=provider)


@pytest.mark.parametrize("one", [split, lambda on: dividend(on, "0.50")])
@pytest.mark.parametrize("other", [2, 8])
def test_f5_what_another_provider_says_of_a_day_near_it_is_the_same_action(
    core: Core, one: Callable[[int], CorporateAction], other: int
) -> None:
    bring(core, bar(1, "100.00"), told=[one(5)])
    by(core, "another")
    bring(core, bar(1, "100.00"), told=[one(other)])
    assert stored(core) == [one(5)]
    assert core.rows("SELECT FROM pricing.corporate_action_revisions") == []


def test_f5_what_is_named_beside_each_other_is_not_one(core: Core) -> None:
    """A dividend of each week, told by two providers; and splits of other ratios."""
    told = [dividend(5, "0.50"), dividend(10, "0.50"), split(11, "2"), split(12, "3")]
    bring(core, bar(1, "100.00"), told=told[::2])
    by(core, "another")
    bring(core, bar(1, "100.00"), told=told)
    assert stored(core) == [split(12, "3"), split(11, "2"), dividend(10, "0.50"), dividend(5, "0.50")]


@pytest.mark.parametrize("one", [split, lambda on: dividend(on, "0.50")])
def test_f5_what_its_provider_moves_to_another_day_leaves_a_revision(
    core: Core, clock: Clock, one: Callable[[int], CorporateAction]
) -> None:
    bring(core, bar(1, "100.00"), told=[one(7)])
    then = core.clock()
    clock.advance(60)
    bring(core, bar(1, "100.00"), told=[one(8)])
    assert (stored(core), stored(core, then)) == ([one(8)], [one(7)])
    versions = "SELECT ctid, xmin FROM pricing.corporate_actions"
    before = core.rows(versions)
    bring(core, bar(1, "100.00"), told=[one(8)])
    assert core.rows(versions) == before, "the same again writes nothing"
    clock.advance(60)
    bring(core, bar(1, "100.00"), told=[one(7)])
    assert stored(core) == [one(7)], "it may move back"


def test_f5_an_answer_that_does_not_reach_the_old_day_moves_no_split(core: Core) -> None:
    """It cannot tell that it is gone: the split is known already. Nor is one of a person moved."""
    bring(core, bar(1, "100.00"), told=[split(1)])
    bring(core, bar(1, "100.00"), told=[split(4)])
    assert stored(core) == [split(1)]
    core.rows("DELETE FROM pricing.corporate_actions")
    know_split(core, 5)
    by(core, "by hand")
    bring(core, bar(1, "100.00"), told=[split(8)])
    assert stored(core) == [split(5)]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(
        st.tuples(st.sampled_from(["yahoo", "fmp"]), st.integers(2, 8)),
        min_size=1,
        max_size=6,
    )
)
def test_f5_a_split_is_counted_once_whoever_tells_it_of_whichever_day(
    core: Core, clock: Clock, answers: list[tuple[str, int]]
) -> None:
    """Invariant: of one ratio, one split of a week is believed. Its first provider says its day, and may move it."""
    core.rows("TRUNCATE pricing.corporate_actions, pricing.corporate_action_revisions")
    for provider, on in answers:
        clock.advance(60)
        said = [{"symbol": "AAPL", "ex_on": str(day(on)), "kind": "split", "new_shares": 4, "old_shares": 1}]
        core.rows(
            "SELECT pricing.merge_actions(:type, :provider, 1, CAST(:said AS jsonb), '{AAPL}', '{2010-03-01}')",
            type=DAILY,
            provider=provider,
            said=json.dumps(said),
        )
    first = answers[0][0]
    assert stored(core) == [split([on for provider, on in answers if provider == first][-1])]


# What a person has refuted


def test_f5_a_split_that_a_person_refuted_does_not_explain_its_own_step(core: Core) -> None:
    """Its source says it again and has undone it: the days before it are four times too high, and are held."""
    days = {1: "100.00", 2: "101.00", 3: "100.50", 5: "101.00", 8: "102.00", 9: "101.50"}
    high = [bar(on, str(Decimal(close) * 4) if on < 5 else close) for on, close in days.items()]
    bring(core, bar(9, "101.50"), told=[split(5)])
    core.rows(
        "SELECT pricing.remove_action('equity', 'AAPL', '2010-03-05', 'split', 'ann', 'there was none')"
    )
    tally = bring(core, *high, told=[split(5)])
    assert (tally.held, sorted(closes(core)), stored(core)) == (3, [5, 8, 9], [])
    assert {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")} == {"split"}
