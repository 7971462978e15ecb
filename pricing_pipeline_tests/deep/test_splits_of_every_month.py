"""Thirteen real years with a split put into every month of them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.judging.knowledge import Known
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline_tests.support.real_histories import bars, daily, times


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("ratio", [1.25, 1.4, 1.5, 2.0, 3.0])
def test_f5_no_true_day_around_a_split_that_was_applied_is_quarantined(symbol: str, ratio: float) -> None:
    """A split in any month of thirteen real years makes no price move of these years doubtful, not even a crash."""
    rows = bars(symbol, Adjustment.SPLITS)
    by = Decimal(str(ratio))
    after = [replace(row, adjustment=Adjustment.RAW) for row in rows]
    before = [replace(times(row, by), volume=(row.volume or 0) / by) for row in after]
    for first in range(0, len(rows), 21):
        ex_on = rows[first].observed_at.date()
        undone = before[max(0, first - 60) : first] + after[first : first + 60]
        known = Known(splits=((ex_on, ratio),), are_splits_reported=True)
        assert daily(known, undone).doubted == (), (symbol, ratio, ex_on)
