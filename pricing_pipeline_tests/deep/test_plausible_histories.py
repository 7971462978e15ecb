"""Of thirteen real years no true day is refused."""

from __future__ import annotations

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.judging.knowledge import Doubt, Known, Verdict
from pricing_pipeline.sandbox.recorded import SYMBOLS
from pricing_pipeline_tests.support.real_histories import bars, daily, quarantined
from pricing_pipeline_tests.unit.test_plausible_histories import lived


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("adjustment", Adjustment)
def test_b18_f6_no_day_of_thirteen_real_years_is_refused(symbol: str, adjustment: Adjustment) -> None:
    """Crashes of 2000 and 2008 and, raw, four splits included."""
    assert daily(Known(), bars(symbol, adjustment)).doubted == ()


@pytest.mark.parametrize(
    ("symbol", "splits"),
    [
        ("AAPL", {"2000-06-21", "2000-06-22", "2005-02-28", "2005-03-01"}),
        ("META", set()),
    ],
)
def test_b18_f6_day_by_day_only_splits_wait_two_days(symbol: str, splits: set[str]) -> None:
    """Not Apple's loss of half its price on 2000-09-29, on which 22 times the usual volume was traded."""
    doubted: dict[str, Doubt] = {}
    last = Verdict()
    for _, last in lived(bars(symbol), Fetcher.DAILY_BARS, 5):
        doubted |= {at.date().isoformat(): kind for at, kind in quarantined(last).items()}
    assert doubted == dict.fromkeys(splits, Doubt.SPLIT)
    assert not last.doubted
