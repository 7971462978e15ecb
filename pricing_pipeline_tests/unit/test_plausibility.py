"""What is believed of a value beside what is known, rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.judging.knowledge import Doubt, Known, Point, Rival
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.real_histories import NOON, bars, daily, quarantined, times


def quote(price: str, at: datetime = NOON, currency: str | None = "USD") -> Observation:
    return Observation("AAPL", at, Decimal(price), price, currency)


def believing(price: str, ago: timedelta = timedelta(minutes=1)) -> Known:
    """One value is known, so long ago."""
    return Known(currency="USD", newest_at=NOON - ago, anchors=(Point(NOON - ago, Decimal(price)),))


# Two providers


def test_f6_days_on_which_another_provider_differs_by_more_than_a_tenth_are_quarantined() -> None:
    rows = bars("IBM")[:30]
    told = {row.observed_at: Rival(row.observed_at, row.close, "yahoo") for row in rows}
    known = Known(currency="USD", others=told)
    assert not daily(known, rows).doubted
    odd, unfinished = rows[10], rows[20]
    told |= {row.observed_at: replace(told[row.observed_at], value=row.close / 2) for row in (odd, unfinished)}
    known = replace(known, provisional=frozenset({unfinished.observed_at}))
    assert quarantined(daily(known, rows)) == {odd.observed_at: Doubt.DISAGREEMENT}
    assert odd.observed_at not in {row.observed_at for row in daily(known, rows).good}
    assert not daily(replace(known, are_jumps_trusted=True), rows).doubted, "a person knows better"


# One value


def test_b18_an_expensive_share_is_a_share_like_any_other() -> None:
    assert not judge(believing("699000"), [quote("700123.45")], Fetcher.QUOTE, is_latest=True).doubted
    assert not judge(Known(), [quote("700123.45")], Fetcher.QUOTE, is_latest=True).doubted


@pytest.mark.parametrize(
    ("known", "price", "currency", "kind"),
    [
        (believing("72.50"), "72.60", "GBP", Doubt.CURRENCY),
        (believing("72.50"), "7260", "USD", Doubt.UNIT),
        (believing("7250"), "72.60", "USD", Doubt.UNIT),
        (believing("72.50"), "72600", "USD", Doubt.UNIT),
        (believing("72.50"), "3000", "USD", Doubt.JUMP),
        (believing("72.50"), "300", "USD", Doubt.JUMP),
        (believing("72.50"), "0.0001", "USD", Doubt.UNIT),
        (replace(believing("72.50"), highest=Decimal(80)), "80.01", "USD", Doubt.BOUNDS),
        (replace(believing("72.50"), lowest=Decimal(70)), "69.99", "USD", Doubt.BOUNDS),
    ],
)
def test_b18_f6_a_quote_that_cannot_be_true_is_quarantined(
    known: Known, price: str, currency: str, kind: Doubt
) -> None:
    row = quote(price, currency=currency)
    verdict = judge(known, [row], Fetcher.QUOTE, is_latest=True)
    assert (quarantined(verdict), verdict.good) == ({NOON: kind}, Rows())


@pytest.mark.parametrize("price", ["72.50", "60", "100", "36.25", "145.00", "24.50", "210"])
def test_b18_a_quote_within_three_times_the_last_is_believed(price: str) -> None:
    assert not judge(believing("72.50"), [quote(price)], Fetcher.QUOTE, is_latest=True).doubted


def test_b18_bounds_do_not_move_with_the_spelling_and_are_inclusive() -> None:
    known = replace(believing("72.50"), lowest=Decimal("72.5"), highest=Decimal("72.5"))
    assert not judge(known, [quote("72.500")], Fetcher.QUOTE, is_latest=True).doubted


def test_b18_a_source_without_a_currency_is_not_in_another_one() -> None:
    assert not judge(believing("72.50"), [quote("73", currency=None)], Fetcher.QUOTE, is_latest=True).doubted


def test_b18_a_price_may_have_gone_far_in_a_year() -> None:
    known = believing("10", timedelta(days=365))
    assert not judge(known, [quote("65")], Fetcher.QUOTE, is_latest=True).doubted


def test_b18_what_a_person_trusts_is_believed_but_for_currency_and_bounds() -> None:
    known = replace(believing("72.50"), are_jumps_trusted=True)
    assert not judge(known, [quote("7250")], Fetcher.QUOTE, is_latest=True).doubted
    assert judge(known, [quote("7250", currency="GBP")], Fetcher.QUOTE, is_latest=True).doubted


def test_b18_f6_a_day_that_comes_again_by_a_factor_is_quarantined_and_a_correction_is_not() -> None:
    day = bars("IBM")[100]
    known = Known(stored={day.observed_at: day.close})
    for factor, kind in (("2", Doubt.SPLIT), ("100", Doubt.UNIT), ("1.5", Doubt.JUMP), ("1.05", None)):
        verdict = judge(known, [times(day, Decimal(factor))], Fetcher.DAILY_BARS, is_latest=True)
        assert [doubt.kind for doubt in verdict.doubted] == ([] if kind is None else [kind])


# Repetition


def witnesses(prices: Sequence[str], apart: timedelta) -> tuple[Point, ...]:
    count = len(prices)
    return tuple(Point(NOON - apart * (count - n), Decimal(price)) for n, price in enumerate(prices))


def test_b18_quotes_that_stay_on_a_level_for_an_hour_are_believed() -> None:
    known = replace(believing("20", timedelta(hours=3)), witnesses=witnesses(["100", "101"], timedelta(minutes=31)))
    assert not judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).doubted
    known = replace(known, witnesses=witnesses(["100", "101"], timedelta(minutes=20)))
    assert judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).doubted, "not yet an hour"
    known = replace(known, witnesses=witnesses(["100", "20"], timedelta(minutes=31)))
    assert judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).doubted, "they contradict each other"


@pytest.mark.parametrize("price", ["2000", "0.2"])
def test_b18_another_unit_is_not_believed_however_often_it_comes(price: str) -> None:
    repeated = witnesses([price] * 50, timedelta(hours=1))
    known = replace(believing("20", timedelta(hours=51)), witnesses=repeated)
    assert judge(known, [quote(price)], Fetcher.QUOTE, is_latest=True).doubted


# Adjustment


def test_b18_a_history_has_one_basis() -> None:
    rows = bars("AAPL", Adjustment.SPLITS)[:5]
    known = Known(adjustment=Adjustment.RAW, newest_at=rows[-2].observed_at)
    span = judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
    assert (span.good, span.doubted, span.other_basis) == (Rows(), (), 5)
    newest = judge(known, rows, Fetcher.DAILY_BARS, is_latest=True)
    assert (list(newest.good), newest.other_basis) == (rows[-1:], 4), "no split has come after the answer's newest day"


def test_b18_a_gap_is_not_filled_with_days_of_another_basis() -> None:
    """Days between the stored ones and the answer's newest may lie before a split, and be divided by it."""
    rows = bars("AAPL", Adjustment.SPLITS)[:8]
    known = Known(adjustment=Adjustment.RAW, newest_at=rows[0].observed_at)
    verdict = judge(known, rows[::-1], Fetcher.DAILY_BARS, is_latest=True)
    assert (list(verdict.good), verdict.other_basis) == (rows[-1:], 7)
    late = Known(adjustment=Adjustment.RAW, newest_at=rows[-1].observed_at + timedelta(days=1))
    assert judge(late, rows, Fetcher.DAILY_BARS, is_latest=True).good == Rows()


def test_b18_a_reason_names_both_values_and_the_factor() -> None:
    (doubt,) = judge(believing("72.50"), [quote("7250")], Fetcher.QUOTE, is_latest=True).doubted
    assert "7250" in doubt.reason
    assert "72.5" in doubt.reason
    assert "factor of 100" in doubt.reason
