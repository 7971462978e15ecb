"""The quick check of one value never calls a value calm that the rules doubt (B18, F6)."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from unittest import mock

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.judging import plausibility
from pricing_pipeline.judging.knowledge import Known, Point
from pricing_pipeline_tests.support.real_histories import NOON

YESTERDAY = NOON - timedelta(days=1)
CALM = Known(currency="USD", anchors=(Point(YESTERDAY, Decimal(1)),))


def test_f6_a_calm_price_is_judged_without_a_walk_over_levels() -> None:
    with mock.patch.object(plausibility, "_judged") as rules:
        for close in ("0.771", "1.299"):
            row = Observation("S", NOON, Decimal(close), close, "USD")
            assert plausibility.judge(CALM, Rows([row]), Fetcher.QUOTE, is_latest=True).good == (row,)
        assert not rules.called
