"""Prices to judge: real ones as they were recorded, quotes made by hand, and faults put into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.judging.knowledge import Doubt, Known, Verdict
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.sandbox.recorded import recorded_bars

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def bars(symbol: str, adjustment: Adjustment = Adjustment.RAW) -> list[Observation]:
    """Thirteen years as they were recorded: raw, or divided by the splits that came later."""
    return list(_bars(symbol, adjustment))


@cache
def _bars(symbol: str, adjustment: Adjustment) -> tuple[Observation, ...]:
    found = []
    for bar in recorded_bars()[symbol]:
        by = bar.split if adjustment is Adjustment.SPLITS else 1
        at = datetime(bar.day.year, bar.day.month, bar.day.day, tzinfo=UTC)
        prices = (Decimal(text) / by for text in (bar.close, bar.open, bar.high, bar.low))
        close, open_, high, low = prices
        volume = Decimal(bar.volume * by)
        found.append(Observation(symbol, at, close, bar.close, "USD", open_, high, low, volume, adjustment))
    return tuple(found)


def times(row: Observation, factor: Decimal) -> Observation:
    shifted = {
        name: value * factor for name in ("close", "open", "high", "low") if (value := getattr(row, name)) is not None
    }
    return replace(row, **shifted)


def quarantined(verdict: Verdict) -> dict[datetime, Doubt]:
    return {doubt.observation.observed_at: doubt.kind for doubt in verdict.doubted}


def daily(known: Known, rows: Sequence[Observation]) -> Verdict:
    return judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
