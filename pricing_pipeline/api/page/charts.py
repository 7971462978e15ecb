"""Charts as coordinates of SVG paths; the templates make pictures of them and add words.

Positions in a picture are no prices: doubles are exact enough for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pricing_pipeline.api.page.reading import Provider, Quarantined, Quarter

_QUARTER = timedelta(minutes=15)
_COLUMNS = 96
_TALL = 30


@dataclass(frozen=True, slots=True)
class FreshnessChart:
    """A day in quarters of an hour, 96 wide and 30 tall: the fresh share, and bars at the foot where pairs were late.

    `lowest` is the least fresh share and `lowest_at` when that was; both None if nobody watched.
    """

    fresh: str
    late: str
    lowest: float | None
    lowest_at: datetime | None


def freshness_chart(quarters: Sequence[Quarter], now: datetime) -> FreshnessChart:
    """The chart of the 24 hours before `now`."""
    begin = now - _QUARTER * _COLUMNS
    fresh = late = ""
    before: tuple[int, int] | None = None
    for quarter in quarters:
        x = min(max(int((quarter.at - begin) / _QUARTER), 0), _COLUMNS - 1)
        if quarter.late:
            late += f"M{x},{_TALL}h1"
        if quarter.fresh is None:
            before = None
            continue
        y = round(2 + (1 - quarter.fresh) * (_TALL - 6))
        # A quarter without a sample is a gap: nobody watched, or nothing ran.
        fresh += f"V{y}h1" if before is not None and before[0] == x else f"M{x},{y}h1"
        before = x + 1, y
    known = [quarter for quarter in quarters if quarter.fresh is not None]
    worst = min(known, key=lambda quarter: quarter.fresh or 0.0, default=None)
    return FreshnessChart(fresh, late, worst.fresh if worst else None, worst.at if worst else None)


def bytes_chart(provider: Provider) -> str:
    """A bar for the bytes of each of 30 days, 30 wide and 20 tall; the highest day fills the height."""
    most = max((count for _, count in provider.by_day), default=0)
    bars = ""
    for day, (_, count) in enumerate(provider.by_day):
        height = round(20 * count / most, 1) if most else 0
        if count:
            bars += f"M{day + 0.1:.1f},20v-{max(height, 0.5)}h.8v{max(height, 0.5)}z"
    return bars


@dataclass(frozen=True, slots=True)
class ValueChart:
    """A quarantined value among its neighbours, 120 wide and 40 tall: `line` joins the stored ones, `x` and `y` are the
    place of the quarantined value.
    """

    line: str
    dots: Sequence[tuple[float, float]]
    x: float
    y: float


def value_chart(quarantined: Quarantined) -> ValueChart | None:
    """The chart of a value whose time and price are known, if any value is stored around it."""
    observation = quarantined.value.observation
    if observation is None or not quarantined.around:
        return None
    before = sum(at < observation.observed_at for at, _ in quarantined.around)
    stored = [float(price) for _, price in quarantined.around]
    price = float(observation.close)
    low, high = min(*stored, price), max(*stored, price)
    step = 112 / max(len(stored), 1)

    def y(value: float) -> float:
        return round(36 - 32 * (value - low) / (high - low), 1) if high > low else 20.0

    # In the order of time with equal steps, so that weekends leave no gaps; the quarantined value takes a step of its
    # own.
    places = [index if index < before else index + 1 for index in range(len(stored))]
    dots = [(round(4 + place * step, 1), y(value)) for place, value in zip(places, stored, strict=True)]
    line = "M" + "L".join(f"{x},{height}" for x, height in dots)
    return ValueChart(line, dots, round(4 + before * step, 1), y(price))
