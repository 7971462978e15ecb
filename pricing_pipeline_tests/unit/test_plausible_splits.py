"""Days around a split are believed where it was applied as it is named, and quarantined where it was not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Doubt, Known
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.real_histories import daily, quarantined


@given(
    shares=st.sampled_from([2, 3, 4, 5, 10, 0.1]),
    steps=st.lists(st.integers(-20, 20), min_size=6, max_size=30),
    split_at=st.integers(1, 25),
    cut=st.integers(1, 30),
    is_divided=st.booleans(),
    is_stored=st.booleans(),
)
def test_f5_nothing_divided_by_a_split_that_is_not_named_is_believed_as_traded(
    shares: float, steps: list[int], split_at: int, cut: int, is_divided: bool, is_stored: bool
) -> None:
    """Invariant: what is believed of an answer that leaves out a known split is the price as traded, to the digit.

    Where its days show which it is, they are believed or known already; else none before the split is.
    """
    split_at = min(split_at, len(steps) - 1)
    ex_on, ratio = date(2026, 3, 2) + timedelta(days=split_at), Decimal(str(shares))
    todays = [Decimal(10000 + sum(steps[: number + 1])) / 100 for number in range(len(steps))]
    at = [datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days=number) for number in range(len(steps))]
    traded = {day: price * ratio if day.date() < ex_on else price for day, price in zip(at, todays, strict=True)}
    sent = dict(zip(at, todays, strict=True)) if is_divided else traded
    rows = [Observation("AAPL", day, sent[day], "", "USD") for day in at[:cut]]
    known = Known(
        splits=((ex_on, float(shares)),),
        unnamed=((ex_on, float(shares)),),
        are_splits_reported=True,
        stored=dict(list(traded.items())[:1]) if is_stored else {},
    )
    verdict = judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
    assert all(row.close == traded[row.observed_at] for row in verdict.good)
    is_seen = cut > split_at or (is_stored and not is_divided)
    believed = {row.observed_at for row in [*verdict.good, *verdict.confirmed]}
    if not is_divided and is_seen:
        assert believed == set(at[:cut])
    if not is_seen and not is_stored:
        assert not believed
    assert believed >= {day for day in at[:cut] if day.date() >= ex_on}


RATIOS = ((2, 1), (3, 1), (4, 1), (3, 2), (7, 5), (5, 4), (13, 1), (1, 4), (1, 10), (11, 25))


@given(
    ratio=st.sampled_from(RATIOS),
    steps=st.lists(st.integers(-20, 20), min_size=30, max_size=60),
    split_at=st.integers(10, 20),
    told_late=st.integers(-5, 5),
    is_volume_divided=st.booleans(),
    is_applied=st.booleans(),
)
def test_f5_a_known_split_is_applied_to_each_day_that_is_believed(
    ratio: tuple[int, int],
    steps: list[int],
    split_at: int,
    told_late: int,
    is_volume_divided: bool,
    is_applied: bool,
) -> None:
    """Invariant: whatever a known split is, and whatever is traded, no day that misses it is believed.

    A source tells it, some days off, and did not divide its prices, so that they stand too high once it is undone; with
    volumes of either basis. Where it was applied, all days are believed.
    """
    shares = Decimal(ratio[0]) / ratio[1]
    first = datetime(2026, 3, 2, tzinfo=UTC)
    at = [first + timedelta(days=number) for number in range(len(steps))]
    is_small = shares < Decimal("1.3")  # such a step is looked for on the split's own day alone
    told_on = (at[split_at] + timedelta(days=0 if is_applied or is_small else told_late)).date()
    rows = []
    for number, (day, step) in enumerate(zip(at, steps, strict=True)):
        undone = shares if day.date() < told_on else Decimal(1)
        missed = shares if number < split_at and not is_applied else Decimal(1)
        close = Decimal(10000 + step) / 100 * undone * missed
        volume = Decimal(10**6 + step * 10**4) / (missed if is_volume_divided else 1) / undone
        rows.append(Observation("AAPL", day, close, "", "USD", volume=volume))
    known = Known(splits=((told_on, float(shares)),), are_splits_reported=True)
    verdict = daily(known, rows)
    good = {row.observed_at for row in verdict.good}
    if is_applied:
        assert good == set(at)
    else:
        missing = set(at[:split_at])
        assert not good & missing
        assert good >= {day for day in at[split_at:] if day.date() >= told_on}


JAPAN = (
    *((20205, 1224400), (20175, 1003800), (20155, 1392300), (19900, 1401300), (20610, 1748300)),
    *((20430, 1096000), (20885, 1792300), (20960, 1191900), (20710, 901100), (4206, 6514500)),
    *((4161, 5535200), (4275, 9608400), (4182, 7076800), (4155, 6780600), (4088, 6063700)),
)
"""Closes and volumes of 4063.T around its split of 5:1 as Yahoo sent them: divided on the last day before it alone."""


def test_f5_yfinance_a_split_of_tokyo_that_was_applied_to_one_day_is_quarantined() -> None:
    """ranaroussi/yfinance, tests/data/4063-T-1d-bad-stock-split.csv: five times the usual volume was no crash."""
    rows = sent(JAPAN, date(2023, 3, 30), 10, Decimal(5))
    known = Known(splits=((date(2023, 3, 30), 5.0),), are_splits_reported=True)
    assert set(quarantined(daily(known, rows))) == {row.observed_at for row in rows[:9]}
    assert set(quarantined(daily(known, rows)).values()) == {Doubt.SPLIT}


def test_f5_yfinance_a_consolidation_of_sydney_that_was_not_applied_is_quarantined() -> None:
    """ranaroussi/yfinance, tests/data/DEX-AX-1d-bad-stock-split.csv: 0.4406:1, of a share that nobody trades."""
    rows = sent([("0.053", 0)] * 15 + [("0.12029", 0)] * 8, date(2023, 5, 30), 21, Decimal("0.4406"))
    known = Known(splits=((date(2023, 5, 30), 0.4406),), are_splits_reported=True)
    assert set(quarantined(daily(known, rows))) == {row.observed_at for row in rows[:15]}


def sent(lines: Sequence[tuple[object, int]], ex_on: date, before: int, shares: Decimal) -> list[Observation]:
    """Daily closes and volumes as a chart has them, with the split undone of the first so many."""
    first = datetime(ex_on.year, ex_on.month, ex_on.day, tzinfo=UTC) - timedelta(days=before)
    return [
        Observation(
            "AAPL",
            first + timedelta(days=number),
            Decimal(str(close)) * (shares if number < before else 1),
            str(close),
            "USD",
            volume=Decimal(volume) / (shares if number < before else 1),
        )
        for number, (close, volume) in enumerate(lines)
    ]
