"""Prices to judge: real ones as they were recorded, quotes made by hand, and faults put into them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.knowledge import Doubt, Known, Verdict
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.providers.base import Question
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline.sandbox.recorded import recorded_bars
from pricing_pipeline_tests.support.recordings import recorded

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SCHEMES = ("118632", "119551", "120841", "125497")
"""Funds whose whole history was recorded."""


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


def navs(code: str) -> list[Observation]:
    """The net asset values of a fund as mfapi.in gave them, oldest first."""
    answer = recorded("mfapi", f"mf_{code}_full_history.json")
    window = Window(date(2006, 1, 1), NOON.date())
    parsed = MfApi().parse(Question(Fetcher.NAV, [code], window, NOON), answer)
    return list(parsed.observations)


def stretch(rows: list[Observation], draw: random.Random, days: int = 750) -> list[Observation]:
    """Some years of thirteen."""
    start = draw.randrange(max(1, len(rows) - days))
    return rows[start : start + days]


def times(row: Observation, factor: Decimal) -> Observation:
    shifted = {
        name: value * factor for name in ("close", "open", "high", "low") if (value := getattr(row, name)) is not None
    }
    return replace(row, **shifted)


def quarantined(verdict: Verdict) -> dict[datetime, Doubt]:
    return {doubt.observation.observed_at: doubt.kind for doubt in verdict.doubted}


def daily(known: Known, rows: Sequence[Observation]) -> Verdict:
    return judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
