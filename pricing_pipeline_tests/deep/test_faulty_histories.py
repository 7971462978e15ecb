"""Faults put into real histories at random: another unit, and splits that were not applied."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.judging.knowledge import Known, Point
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline_tests.support.real_histories import SCHEMES, bars, daily, navs, quarantined, stretch, times


@pytest.mark.parametrize("symbol", ["AAPL", "IBM"])
@pytest.mark.parametrize("factor", ["100", "0.01", "1000", "0.001", "10000"])
def test_b18_f6_another_unit_is_quarantined_wherever_it_comes(symbol: str, factor: str) -> None:
    """A day, a week, or all days from one on; the days between are stored."""
    draw = random.Random(f"{symbol} {factor}")
    for length in (1, 2, 5, 9, 400) * 4:
        rows = stretch(bars(symbol), draw, 600 + 5 * length)
        start = draw.randrange(30, len(rows) - length)
        wrong = {row.observed_at for row in rows[start : start + length]}
        mixed = [times(row, Decimal(factor)) if row.observed_at in wrong else row for row in rows]
        verdict = daily(Known(), mixed)
        assert set(quarantined(verdict)) == wrong
        assert len(verdict.good) == len(rows) - length


@pytest.mark.parametrize("code", SCHEMES)
def test_b18_f6_a_nav_in_another_unit_is_quarantined_wherever_it_comes(code: str) -> None:
    rows, draw = navs(code), random.Random(code)
    usual = set(quarantined(judge(Known(), rows, Fetcher.NAV, is_latest=False)))
    for length in (1, 3, 300) * 4:
        start = draw.randrange(30, len(rows) - length)
        wrong = {row.observed_at for row in rows[start : start + length]}
        mixed = [times(row, Decimal(100)) if row.observed_at in wrong else row for row in rows]
        assert set(quarantined(judge(Known(), mixed, Fetcher.NAV, is_latest=False))) - usual == wrong - usual


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("factor", [2, 3, 4, 7, 10])
def test_b18_f6_a_split_that_was_not_applied_is_quarantined(symbol: str, factor: int) -> None:
    """From some day back, adjusted prices are too high by a whole factor. The newest days are right.

    A split on a day on which the price itself moved by a tenth is no whole factor any more.
    """
    draw = random.Random(f"{symbol} {factor}")
    for _ in range(5):
        rows = stretch(bars(symbol, Adjustment.SPLITS), draw)
        split = draw.choice(
            [n for n in range(10, len(rows) - 30) if abs(rows[n].close / rows[n - 1].close - 1) < Decimal("0.08")]
        )
        mixed = [times(row, Decimal(factor)) if n < split else row for n, row in enumerate(rows)]
        newest = rows[-1]
        known = Known(anchors=(Point(newest.observed_at, newest.close),), adjustment=Adjustment.SPLITS)
        verdict = daily(known, mixed)
        assert set(quarantined(verdict)) == {row.observed_at for row in rows[:split]}
