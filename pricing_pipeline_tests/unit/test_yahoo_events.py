"""Splits and dividends of Yahoo Finance: undone, kept, or dropped, and what they say of a history's basis (B18, F5)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import CapitalGain, Dividend, FailureKind, SpinOff, Split
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    SchemaDrift,
)
from pricing_pipeline.providers.splits import Splits
from pricing_pipeline_tests.support.yahoo_answers import (
    CALM,
    NEW_YORK,
    chart,
    closes,
    kinds,
    parse,
    stamp,
)

# --- splits -------------------------------------------------------------------------------------


def test_b18_splits_on_the_way_to_the_present_are_undone() -> None:
    """499.23 at 4 for 1 is 124.8075: rounded to cents before the split is undone, it would miss the price."""
    days = {
        "2026-11-16T09:30": 124.80750274658203,
        "2026-11-17T09:30": 129.0399932861328,
        "2026-11-19T09:30": 130.5,
    }
    answer = parse(chart(days, splits=[("2026-11-17T09:30", 4, 1)]))
    assert closes(answer) == {"2026-11-16": "499.23", "2026-11-17": "129.04", "2026-11-19": "130.5"}
    assert [one.volume for one in answer.observations] == [100, 400, 400]
    assert {one.adjustment for one in answer.observations} == {Adjustment.RAW}


def test_splits_multiply_and_may_be_fractions_or_go_backwards() -> None:
    days = {"2026-11-16T09:30": 10.008230209350586, "2026-11-19T09:30": 11.0}
    splits = [("2026-11-17T09:30", 21, 20), ("2026-11-18T09:30", 1, 8), ("2026-11-19T09:30", 1.0125, 1)]
    assert closes(parse(chart(days, splits=splits)))["2026-11-16"] == "1.33"  # 10 * 1.05 / 8 * 1.0125 = 1.32890625


@pytest.mark.parametrize(
    "changes",
    [{"regularMarketTime": stamp("2026-11-19T16:00:01")}, {"regularMarketTime": stamp("2020-01-02T16:00")}],
)
def test_b18_bars_that_do_not_reach_the_present_say_that_they_are_adjusted(changes: dict[str, Any]) -> None:
    body = chart({"2026-09-01T09:30": 124.8075}, splits=[("2026-09-02T09:30", 4, 1)], **changes)
    (bar,) = parse(body).observations
    assert (bar.adjustment, str(bar.close)) == (Adjustment.SPLITS, "124.8075")


@given(
    gone=st.integers(0, 5000),
    stale=st.integers(0, 5000),
    behind=st.integers(0, 400),
)
def test_f5_the_basis_of_a_share_that_trades_no_more_never_turns(gone: int, stale: int, behind: int) -> None:
    """Invariant: an answer that ends with the bar of the newest trade is as traded, however long ago that was.

    An answer until now without a later bar is complete: the company was delisted. An answer that ends before its
    newest trade, by more than a weekend, may miss splits, and says so.
    """
    session = datetime(2026, 11, 20, 9, 30, tzinfo=NEW_YORK)
    last = session - timedelta(days=1 + gone)
    newest = last + timedelta(days=behind)
    first = last - timedelta(days=1 + stale)
    answer = parse(
        chart(
            {day.strftime("%Y-%m-%dT%H:%M"): 1.5 for day in (first, last)},
            regularMarketTime=int(newest.timestamp()) + 3600,
        )
    )
    is_whole = behind == 0 or (behind <= 4 and gone < 14)
    assert {one.adjustment for one in answer.observations} == {Adjustment.RAW if is_whole else Adjustment.SPLITS}
    assert bool(answer.actions_since) == is_whole


ADJUSTED = {"2026-11-17T09:30": 150.25, "2026-11-18T09:30": 149.5, "2026-11-19T09:30": 151.0}


def with_adjusted(body: dict[str, Any], column: Any) -> dict[str, Any]:
    body["chart"]["result"][0]["indicators"]["adjclose"] = column
    return body


@pytest.mark.parametrize("events", [..., {}, {"splits": {}, "dividends": {}}])
def test_f5_a_list_of_events_that_is_missing_beside_adjusted_closes_is_not_believed(events: Any) -> None:
    """Something was taken off, and the answer does not say what: nobody knows by what its prices are divided."""
    column = [{"adjclose": [149.75, 149.0, 151.0]}]
    body = with_adjusted(chart(ADJUSTED), column)
    if events is not ...:
        body["chart"]["result"][0]["events"] = events
    answer = parse(body)
    assert kinds(answer) == {"AAPL": FailureKind.IMPLAUSIBLE}
    assert "its list of events is missing" in answer.failures[0].message
    assert not answer.actions_since
    whole = with_adjusted(chart(ADJUSTED, dividends=[("2026-11-19T09:30", 0.5)]), column)
    assert len(parse(whole).observations) == 3, "named, it is what was taken off"


@pytest.mark.parametrize(
    "column",
    [
        [{"adjclose": [150.25000305, None, 151.0]}],
        [{"adjclose": ["150.25", True, {}]}],
        [{"adjclose": "none"}],
        [{}],
        [],
        None,
        7,
    ],
)
def test_f5_no_event_and_nothing_taken_off_is_a_quiet_share(column: Any) -> None:
    answer = parse(with_adjusted(chart(ADJUSTED), column))
    assert len(answer.observations) == 3
    assert answer.actions_since == {"AAPL": date(2026, 11, 17)}


def test_f5_what_a_fund_pays_out_of_gains_is_no_event() -> None:
    body = with_adjusted(chart(ADJUSTED, instrumentType="ETF"), [{"adjclose": [149.75, 149.0, 151.0]}])
    assert len(parse(body).observations) == 3


def test_what_has_no_splits_is_as_traded_wherever_the_answer_ends() -> None:
    body = chart({"2026-09-01T00:00": 1.1220825910568237}, instrumentType="CURRENCY")
    answer = parse(body)
    (bar,) = answer.observations
    assert (bar.adjustment, str(bar.close)) == (Adjustment.RAW, "1.1220826")
    assert answer.unsplit == {"AAPL"}
    assert parse(chart({"2026-09-01T00:00": 1.12})).unsplit == frozenset()


def test_f5_splits_and_dividends_come_along_as_they_were_on_their_day() -> None:
    """Yahoo divides dividends by later splits, too: 0.094643 is 2.65, a 28th of it, cut to six places."""
    days = {f"2026-11-{day}T09:30": 1.5 for day in (16, 17, 18, 19)}
    answer = parse(
        chart(
            days,
            splits=[("2026-11-17T09:30", 7, 1), ("2026-11-18T09:30", 4, 1)],
            dividends=[("2026-11-16T09:30", 0.094643), ("2026-11-19T09:30", 0.5), ("2026-11-19T09:30", 0.25)],
        )
    )
    assert answer.actions == (
        Split("AAPL", date(2026, 11, 17), Decimal(7), Decimal(1)),
        Split("AAPL", date(2026, 11, 18), Decimal(4), Decimal(1)),
        Dividend("AAPL", date(2026, 11, 16), Decimal("2.65"), "USD"),
        Dividend("AAPL", date(2026, 11, 19), Decimal("0.5"), "USD"),
        Dividend("AAPL", date(2026, 11, 19), Decimal("0.25"), "USD"),
    )
    assert answer.actions_since == {"AAPL": date(2026, 11, 16)}


def test_f5_dividends_in_hundredths_are_of_the_major_unit() -> None:
    days = {f"2026-11-{day}T09:30": 150 for day in (18, 19)}
    answer = parse(chart(days, currency="GBp", dividends=[("2026-11-19T09:30", 1.5)]))
    assert answer.actions == (Dividend("AAPL", date(2026, 11, 19), Decimal("0.015"), "GBP"),)


@pytest.mark.parametrize(
    ("prices", "paid", "believed"),
    [
        ("GBp", [(0.10, "USD")], [("0.1", "USD")]),
        ("GBp", [(1.5, "GBp"), (0.02, "GBP")], [("0.015", "GBP"), ("0.02", "GBP")]),
        ("USD", [(3.7, "CHF")], [("3.7", "CHF")]),
        ("CAD", [(0.9425,), (0.67, "USD")], [("0.9425", "CAD"), ("0.67", "USD")]),
        ("ZAc", [(250.0,), (2.5, "ZAR")], [("2.5", "ZAR")]),  # the same amount twice
    ],
)
def test_f5_each_payment_has_the_currency_that_its_event_names(
    prices: str, paid: list[tuple[Any, ...]], believed: list[tuple[str, str]]
) -> None:
    """An event's own currency is the major unit beside prices in pence, and two currencies are never added."""
    told = [("2026-11-19T09:30", *payment) for payment in paid]
    days = {f"2026-11-{day}T09:30": 150 for day in (18, 19)}
    answer = parse(chart(days, currency=prices, dividends=told))
    assert answer.actions == tuple(
        Dividend("AAPL", date(2026, 11, 19), Decimal(cash), currency) for cash, currency in believed
    )


def test_f5_a_payment_in_no_known_currency_costs_itself_alone() -> None:
    told = [("2026-11-19T09:30", 1.5, "GBPX"), ("2026-11-19T09:30", 0.5)]
    answer = parse(chart({"2026-11-18T09:30": 10, "2026-11-19T09:30": 10}, dividends=told))
    assert [one.amount for one in answer.actions if isinstance(one, Dividend)] == [Decimal("0.5")]
    assert "'GBPX' is neither" in answer.rejected[0].reason


def test_f5_capital_gains_are_asked_for_and_are_actions_of_their_own() -> None:
    """Divided by later splits like dividends, and in the currency that they name."""
    days = {f"2026-11-{day}T09:30": 50 for day in (17, 18, 19)}
    answer = parse(
        chart(
            days,
            instrumentType="MUTUALFUND",
            splits=[("2026-11-19T09:30", 2, 1)],
            dividends=[("2026-11-18T09:30", 0.5)],
            gains=[("2026-11-18T09:30", 2.0), ("2026-11-19T09:30", 3.7, "CHF")],
        )
    )
    assert set(answer.actions[1:]) == {
        Dividend("AAPL", date(2026, 11, 18), Decimal(1), "USD"),
        CapitalGain("AAPL", date(2026, 11, 18), Decimal(4), "USD"),
        CapitalGain("AAPL", date(2026, 11, 19), Decimal("3.7"), "CHF"),
    }
    assert answer.gains_reported == {"AAPL"}


@pytest.mark.parametrize("ratio", [(1.253, 1), (10000, 9607), (1998, 1000), (1046, 1000)])
def test_f5_a_spin_off_that_is_told_as_a_split_divides_prices_and_no_volume(ratio: tuple[Any, Any]) -> None:
    new, old = (Decimal(str(part)) for part in ratio)
    days = {"2026-11-17T09:30": float(100 * old / new), "2026-11-19T09:30": 100.0}
    answer = parse(chart(days, splits=[("2026-11-18T09:30", *ratio)]))
    assert answer.actions == (SpinOff("AAPL", date(2026, 11, 18), new, old),)
    assert [round(bar.close, 2) for bar in answer.observations] == [100, 100]
    assert [bar.volume for bar in answer.observations] == [400, 400]


@pytest.mark.parametrize(
    "ratio",
    [
        (4, 1),
        (3, 2),
        (103, 100),
        (1, 10),
        (56, 45),
        (1333, 1000),
        (100, 125.3),
    ],
)
def test_f5_a_ratio_by_which_companies_split_is_a_split(ratio: tuple[Any, Any]) -> None:
    answer = parse(chart(CALM, splits=[("2026-11-19T09:30", *ratio)]))
    assert [type(action) for action in answer.actions] == [Split]


def test_f5_of_an_answer_that_ends_in_the_past_no_action_is_believed() -> None:
    days = {"2026-09-16T09:30": 1.5, "2026-09-17T09:30": 1.5}
    answer = parse(chart(days, dividends=[("2026-09-17T09:30", 0.5)]))
    assert (answer.actions, answer.actions_since) == ((), {})


def test_f5_a_dividend_that_is_none_costs_nothing_else() -> None:
    days = {f"2026-11-{day}T09:30": 1.5 for day in (18, 19)}
    answer = parse(chart(days, dividends=[("2026-11-18T09:30", -1), ("2026-11-19T09:30", 0.5)]))
    assert [action.ex_on for action in answer.actions] == [date(2026, 11, 19)]
    assert "dividend of 2026-11-18" in answer.rejected[0].reason
    assert len(answer.observations) == 2


BEFORE_AND_AFTER = {"2026-11-16T09:30": 124.8075, "2026-11-19T09:30": 1.5}


@pytest.mark.parametrize(
    "ratio",
    [
        (1, 0),
        ("Infinity", 1),
        (True, 2),
        (-4, 1),
        (10**12, 1),
        (1, 1001),
        (4, None),
        ([], {}),
    ],
)
def test_b18_a_split_that_cannot_be_true_costs_itself_alone(ratio: tuple[Any, Any]) -> None:
    """Bars before it stay as the source has divided them, and say so: nothing that is called raw is guessed."""
    body = chart(BEFORE_AND_AFTER, splits=[("2026-11-17T09:30", *ratio)], dividends=[("2026-11-19T09:30", 0.5)])
    answer = parse(body)
    assert closes(answer) == {"2026-11-16": "124.8075", "2026-11-19": "1.5"}
    assert {one.adjustment for one in answer.observations} == {Adjustment.SPLITS}
    assert (answer.actions, answer.actions_since) == ((), {})
    (rejected,) = answer.rejected
    assert rejected.observed_at == datetime(2026, 11, 17, tzinfo=UTC)
    assert rejected.reason.startswith("the split of 2026-11-17: ")
    since = parse(body, window=Window(date(2026, 11, 17), date(2026, 11, 19)))
    assert [(str(one.close), one.adjustment) for one in since.observations] == [("1.5", Adjustment.RAW)]


WEEK = ["2026-11-0" + day for day in "23456"] + ["2026-11-09", "2026-11-1" + "0"]


@given(
    first=st.sampled_from(WEEK),
    other=st.sampled_from(WEEK),
    ratio=st.sampled_from([(2, 1), (4, 1), (3, 2), (1, 10)]),
    other_ratio=st.sampled_from([(2, 1), (4, 2), (3, 2), (1, 10)]),
)
def test_b18_a_split_is_never_applied_twice(
    first: str, other: str, ratio: tuple[int, int], other_ratio: tuple[int, int]
) -> None:
    """Invariant: of two splits that may be one, neither is applied or told. Two of other ratios and days both are.

    They may be one on one day, or with one ratio within a week. Bars since then are as traded all the same.
    """
    body = chart({"2026-10-30T09:30": 100, "2026-11-19T09:30": 100}, splits=[], dividends=[])
    body["chart"]["result"][0]["events"]["splits"] = {
        name: {"date": stamp(f"{day}T09:30"), "numerator": told[0], "denominator": told[1]}
        for name, day, told in (("a", first, ratio), ("b", other, other_ratio))
    }
    answer = parse(body)
    before, since = answer.observations
    size, other_size = Decimal(ratio[0]) / ratio[1], Decimal(other_ratio[0]) / other_ratio[1]
    apart = abs(date.fromisoformat(first) - date.fromisoformat(other))
    if first == other or (size == other_size and apart <= timedelta(days=7)):
        assert (before.close, before.adjustment) == (100, Adjustment.SPLITS)
        assert (answer.actions, answer.actions_since) == ((), {})
        assert {one.reason.split(": ")[1].split(",")[0] for one in answer.rejected} == {"it is reported twice"}
        (series,) = body["chart"]["result"]
        events, (series,) = series["events"], chart({"2026-11-19T09:30": 100})["chart"]["result"]
        later = parse({"chart": {"result": [series | {"events": events}], "error": None}})
        assert {row.adjustment for row in later.observations} == {Adjustment.RAW}
    else:
        assert (before.close, before.adjustment) == (100 * size * other_size, Adjustment.RAW)
        assert (len(answer.actions), answer.rejected) == (2, ())
    assert since.close == 100


@pytest.mark.parametrize("day", ["2026-11-21T09:30", "2027-03-01T09:30", "9000-03-01T09:30"])
def test_b18_an_event_that_is_to_come_costs_itself_alone(day: str) -> None:
    """A split or dividend that is announced divides nothing yet, and its day may move: it is counted and not told."""
    told = [("2026-11-17T09:30", 4, 1), (day, 2, 1)]
    answer = parse(chart(BEFORE_AND_AFTER, splits=told, dividends=[("2026-11-19T09:30", 0.5), (day, 1)]))
    assert [(row.close, row.adjustment) for row in answer.observations] == [
        (Decimal("499.23"), Adjustment.RAW),
        (Decimal("1.5"), Adjustment.RAW),
    ]
    assert [one.ex_on for one in answer.actions] == [date(2026, 11, 17), date(2026, 11, 19)]
    assert list(answer.actions_since) == ["AAPL"]
    assert len(answer.rejected) == 2
    assert all("it is in the future" in one.reason for one in answer.rejected)


def test_b18_an_event_of_today_has_come() -> None:
    answer = parse(chart(BEFORE_AND_AFTER, splits=[("2026-11-20T09:30", 4, 1)]))
    assert (len(answer.actions), answer.rejected) == (1, ())


def test_b18_more_splits_than_any_company_has_are_drift() -> None:
    body = chart(BEFORE_AND_AFTER, splits=[])
    body["chart"]["result"][0]["events"]["splits"] = {
        str(number): {
            "date": stamp("2026-11-17T09:30") - number * 86_400 * 9,
            "numerator": 2,
            "denominator": 1,
        }
        for number in range(201)
    }
    with pytest.raises(SchemaDrift, match="201 splits of AAPL"):
        parse(body)


@given(
    splits=st.lists(
        st.tuples(st.integers(0, 4000), st.integers(1, 30), st.integers(1, 30)),
        max_size=30,
        unique_by=lambda s: s[0],
    ),
    days=st.lists(st.integers(-10, 4010), max_size=20),
)
def test_f5_the_ratio_of_a_day_is_that_of_all_later_splits(splits: list[tuple[int, int, int]], days: list[int]) -> None:
    """Computed once for all days, it is the product that each day's own look at every split gives.

    Every second one here is a spin-off: it divides prices, and leaves volumes as they are.
    """
    first = date(2010, 1, 1)
    told = [
        (SpinOff if number % 2 else Split)("AAPL", first + timedelta(days=at), Decimal(new), Decimal(old))
        for number, (at, new, old) in enumerate(splits)
    ]
    ratios = Splits(told)
    for at in days:
        day = first + timedelta(days=at)
        for (new, old), counted in ((ratios.of_prices(day), splits), (ratios.of_volumes(day), splits[::2])):
            assert new == prod(split[1] for split in counted if split[0] > at)
            assert old == prod(split[2] for split in counted if split[0] > at)


@pytest.mark.parametrize("event", [None, {}, {"date": 0}, {"date": 10**17}])
@pytest.mark.parametrize("kind", ["splits", "dividends"])
def test_b18_an_event_of_another_form_costs_itself_alone(kind: str, event: Any) -> None:
    body = chart(BEFORE_AND_AFTER, splits=[], dividends=[("2026-11-19T09:30", 0.5)])
    whole = {"numerator": 4, "denominator": 1, "amount": 0.25}
    told = whole | event if isinstance(event, dict) and event else event
    body["chart"]["result"][0]["events"][kind]["odd"] = told
    answer = parse(body)
    assert len(answer.observations) == 2
    assert [one.reason.split(":")[0] for one in answer.rejected] == [f"the {kind[:-1]} of an unknown day"]
    assert "_" not in answer.rejected[0].reason, "no name of ours"
    if kind == "dividends":
        assert [action.ex_on for action in answer.actions] == [date(2026, 11, 19)]


def test_f5_a_dividend_that_is_told_twice_counts_once() -> None:
    twice = chart(CALM, dividends=[("2026-11-18T09:30", 0.5), ("2026-11-18T09:30", 0.5)])
    assert [one.amount for one in parse(twice).actions if isinstance(one, Dividend)] == [Decimal("0.5")]
    two = chart(CALM, dividends=[("2026-11-18T09:30", 0.5), ("2026-11-18T09:30", 2)])
    assert [one.amount for one in parse(two).actions if isinstance(one, Dividend)] == [
        Decimal("0.5"),
        Decimal("2"),
    ], "two payments of one day stay two"
