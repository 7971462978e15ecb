"""Splits and dividends are stored with revisions, and applied when prices are read, never to what is stored.

What they make of prices is told by test_adjusted_model.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Adjust, CorporateAction
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.errors import InvalidAdjustment
from pricing_pipeline.prices import actions, price_reader
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.reported_actions import (
    MARCH,
    bar,
    bring,
    closes,
    day,
    dividend,
    know_split,
    split,
    stored,
)

pytestmark = pytest.mark.usefixtures("still")


def test_f5_a_split_is_applied_when_read_and_rewrites_nothing(core: Core, clock: Clock) -> None:
    bring(core, bar(1, "400.00", volume="10"), bar(2, "404.00", volume="10"), told=[])
    before = core.rows("SELECT tableoid, ctid, xmin FROM pricing.price_history ORDER BY 1, 2")
    then = core.clock()
    assert closes(core, Adjust.SPLITS) == {1: "400.00", 2: "404.00"}
    clock.advance(86400)
    tally = bring(core, bar(3, "101.00", volume="40"), told=[split(3)])
    assert (tally.added, tally.revised, tally.quarantined) == (1, 0, 0), "a split that is told is no jump"
    after = core.rows("SELECT tableoid, ctid, xmin FROM pricing.price_history ORDER BY 1, 2")
    assert after[: len(before)] == before
    assert closes(core, Adjust.RAW) == closes(core) == {1: "400.00", 2: "404.00", 3: "101.00"}
    assert closes(core, Adjust.SPLITS) == {1: "100", 2: "101", 3: "101.00"}
    assert closes(core, Adjust.SPLITS, as_of=then) == {1: "400.00", 2: "404.00"}, "nobody knew of it then"
    with core.engine.connect() as connection:
        frame = price_reader.history(connection, "AAPL", DAILY, *MARCH, adjust=Adjust.SPLITS)
    assert list(frame["volume"]) == [40, 40, 40]
    assert set(frame["adjustment"]) == {"splits"}


@pytest.mark.parametrize(("ex_on", "first"), [(15, "98"), (16, "100.00")])
def test_f5_a_dividend_counts_where_the_close_of_the_fortnight_before_it_is_stored(
    core: Core, ex_on: int, first: str
) -> None:
    """At the end of a hole the last close may be of another year, and says nothing of what was paid."""
    bring(core, bar(1, "100.00"), bar(20, "99.00"), told=[dividend(ex_on, "2")])
    assert closes(core, Adjust.TOTAL) == {1: first, 20: "99.00"}


def test_f5_prices_divided_by_their_source_stay_comparable_over_later_splits(core: Core, clock: Clock) -> None:
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
    assert (tally.added, tally.revised, tally.quarantined, tally.failed) == (1, 0, 0, 0)
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
    assert core.one("SELECT count(*) FROM pricing.revisions") == 1
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


def test_f5_a_dividend_that_cannot_be_taken_off_is_an_error_that_says_so(core: Core) -> None:
    bring(core, bar(1, "100.00"), bar(2, "99.00"), told=[])
    with core.engine.begin() as connection:
        actions.enter(connection, "equity", dividend(2, "100"), "ann")
    bring(core, bar(1, "99.00"))
    assert closes(core, Adjust.SPLITS) == {1: "99.00", 2: "99.00"}
    with pytest.raises(InvalidAdjustment, match="payments of 2010-03-02 that are not below the last price"):
        closes(core, Adjust.TOTAL)


# One action that is told of two days


def by(core: Core, provider: str) -> None:
    """Another provider has said what is stored."""
    core.rows("UPDATE pricing.corporate_actions SET provider = :provider", provider=provider)


def test_f5_a_dividend_that_another_provider_tells_of_a_day_near_it_is_the_same(core: Core) -> None:
    """As a split is, below."""
    bring(core, bar(1, "100.00"), told=[dividend(5, "0.50")])
    by(core, "another")
    for other in (2, 8):
        bring(core, bar(1, "100.00"), told=[dividend(other, "0.50")])
        assert stored(core) == [dividend(5, "0.50")]
    assert core.rows("SELECT FROM pricing.revisions") == []


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


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    core.rows("TRUNCATE pricing.corporate_actions, pricing.revisions")
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
    """Its source says it again and has undone it: the days before it are four times too high, and are quarantined."""
    days = {1: "100.00", 2: "101.00", 3: "100.50", 5: "101.00", 8: "102.00", 9: "101.50"}
    high = [bar(on, str(Decimal(close) * 4) if on < 5 else close) for on, close in days.items()]
    bring(core, bar(9, "101.50"), told=[split(5)])
    core.rows("SELECT pricing.remove_action('equity', 'AAPL', '2010-03-05', 'split', 'ann', 'there was none')")
    tally = bring(core, *high, told=[split(5)])
    assert (tally.quarantined, sorted(closes(core)), stored(core)) == (3, [5, 8, 9], [])
    assert {row.kind for row in core.rows("SELECT kind FROM pricing.quarantined_values")} == {"split"}
