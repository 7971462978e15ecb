"""A rate that a source gives the other way round is quarantined, and no true move of a rate is (F6, F11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.judging.knowledge import Doubt, Known, Point, Verdict
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.real_histories import NOON

MIDNIGHT = NOON.replace(hour=0)


def known(rate: float, ago: timedelta = timedelta(days=1), *, is_rate: bool = True) -> Known:
    """A rate that is stored, so long ago."""
    at = MIDNIGHT - ago
    return Known(
        currency="USD",
        newest_at=at,
        anchors=(Point(at, Decimal(f"{rate:.6f}")),),
        is_rate=is_rate,
        has_splits=False,
    )


def days(rates: list[float], first: datetime = MIDNIGHT) -> Rows:
    return Rows(
        Observation("EUR/USD", first + timedelta(days=n), Decimal(f"{rate:.6f}"), f"{rate:.6f}", "USD")
        for n, rate in enumerate(rates)
    )


def judged(about: Known, rows: Rows, fetcher: Fetcher = Fetcher.DAILY_BARS) -> Verdict:
    return judge(about, rows, fetcher, is_latest=True)


@pytest.mark.parametrize("fetcher", [Fetcher.QUOTE, Fetcher.DAILY_BARS, Fetcher.NAV])
@given(rate=st.floats(1.07, 1e4), is_turned=st.booleans(), step=st.floats(0.985, 1.015))
def test_f6_a_rate_the_other_way_round_is_quarantined(
    fetcher: Fetcher, rate: float, is_turned: bool, step: float
) -> None:
    """Invariant: whatever the rate, beside the stored one its inverse is never believed, and it itself always is."""
    stored, wrong = (1 / rate, rate * step) if is_turned else (rate, 1 / rate * step)
    about = known(stored)
    (doubt,) = judged(about, days([wrong]), fetcher).doubted
    assert doubt.kind is Doubt.UNIT
    assert "as if the rate the other way round" in doubt.reason
    assert not judged(about, days([stored * step]), fetcher).doubted


def test_f6_a_whole_span_the_other_way_round_is_quarantined_and_never_confirms_itself() -> None:
    wrong = [1 / (1.08 + n / 1000) for n in range(30)]
    verdict = judged(known(1.08), days(wrong))
    assert {doubt.kind for doubt in verdict.doubted} == {Doubt.UNIT}
    assert not verdict.good
    mixed = [1.08, 1.081, 1 / 1.082, 1.083]
    verdict = judged(known(1.08), days(mixed))
    assert [f"{doubt.observation.close:f}" for doubt in verdict.doubted] == [f"{1 / 1.082:.6f}"]
    assert len(verdict.good) == 3


def test_f6_only_rates_of_currencies_have_an_inverse() -> None:
    share = known(1.08, is_rate=False)
    assert not judged(share, days([1 / 1.08])).doubted
    trusted = replace(known(1.08), are_jumps_trusted=True)
    assert not judged(trusted, days([1 / 1.08])).doubted


TRUE_MOVES = [
    ("the franc in January 2015", 1.2010, [0.9816, 1.0096, 0.9943]),
    ("the euro in November 2022, after a week without values", 0.9750, [1.0350]),
    ("sterling in June 2016", 1.4879, [1.3679, 1.3226]),
    ("the lira in August 2018", 0.1852, [0.1555, 0.1455]),
]


@pytest.mark.parametrize(("name", "before", "rates"), TRUE_MOVES, ids=[name for name, *_ in TRUE_MOVES])
def test_f6_true_moves_of_rates_are_no_inverses(name: str, before: float, rates: list[float]) -> None:
    ago = timedelta(days=8 if "week" in name else 1)
    doubts = judged(known(before, ago), days(rates)).doubted
    assert not [doubt for doubt in doubts if doubt.kind is Doubt.UNIT]


@given(
    rates=st.lists(st.floats(0.98, 1.02), min_size=1, max_size=300),
    start=st.floats(0.2, 5),
    ago=st.integers(1, 2000),
)
def test_f6_no_walk_of_a_rate_is_taken_for_an_inverse(rates: list[float], start: float, ago: int) -> None:
    """Not while it passes 1, nor beside a rate of years ago."""
    walk = [start]
    for step in rates:
        walk.append(walk[-1] * step)
    verdict = judged(known(walk[0], timedelta(days=1)), days(walk))
    assert not verdict.doubted
    # The past of a stored rate: none of its days is near enough in time to be an inverse of it.
    past = days(walk, MIDNIGHT - timedelta(days=len(walk) + ago))
    doubts = judged(known(walk[-1]), past).doubted
    assert not [doubt for doubt in doubts if doubt.kind is Doubt.UNIT]


@given(rates=st.lists(st.sampled_from([1.08, 1 / 1.08, 1.09, 1 / 1.09]), min_size=1, max_size=8))
def test_f6_bars_in_columns_are_judged_alike(rates: list[float]) -> None:
    """The quick check of columns never calls bars calm that the rules doubt."""
    closes = np.array([round(rate * 1_000_000) for rate in rates])
    first = MIDNIGHT.toordinal()
    columns = Bars(
        "EUR/USD",
        "USD",
        Adjustment.RAW,
        np.arange(first, first + len(closes)),
        6,
        (closes, closes, closes, closes),
        np.zeros_like(closes),
        [f"{rate:.6f}" for rate in rates],
    )
    for about in (known(1.08), replace(known(1.08), anchors=())):
        doubted = {doubt.observation.observed_at for doubt in judged(about, days(rates)).doubted}
        assert {doubt.observation.observed_at for doubt in judge_columns(about, columns).doubted} == doubted


def judge_columns(about: Known, columns: Bars) -> Verdict:
    return judge(about, columns, Fetcher.DAILY_BARS, is_latest=True)
