"""Explain one step between two values: a split that was not applied, another unit, or a true move.

Pure functions; plausibility.py decides which of the two values is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import exp, log
from statistics import median

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Known

QUESTIONED = log(1.3)
"""A larger step asks for a reason."""
NEVER = log(20.0)
"""A factor of 20 in one step is never believed without heavy trading, however often it is repeated."""
QUOTE_LIMIT = log(3.0)
"""How far a quote may be from the last; a larger step is quarantined until others confirm it."""
_QUOTE_SPAN = timedelta(hours=1)
"""Quotes come every minute: they confirm each other only over at least this time."""
SOON = timedelta(days=30)
_HEAVY = 2.5
"""This many times the usual shares and the usual money prove a true move.

One of the two is not enough: after a split more shares are traded, and a wrong price looks like more money. They must
also be at least half the factor of the price's move: a busy day is no proof of a hundredfold price.
"""
_BELIEVABLE = 10_000
"""A volume of more than this multiple of the usual is wrong, and proves nothing."""
_USUAL, _FEWEST_USUAL = 20, 3
"""How many earlier days show what is usual, at most and at least."""
_SPLITS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18)
_SPLIT_TOLERANCE = 0.10
_LEAST_KNOWN = log(1.2)
"""Smaller known splits look like any day's step. Splits up to `QUESTIONED` are matched only on their own day."""


@dataclass(slots=True)
class Step:
    """One value in the order of time. Only steps with a `row` are judged; the others are there for comparison.

    `value` and the traded `shares` are in today's shares; `shares` is 0 if unknown.
    """

    at: datetime
    value: float
    row: Observation | None = None
    is_anchor: bool = False
    shares: float = 0.0


def is_traded(known: Known, steps: Sequence[Step], place: int, size: float) -> bool:
    """Whether the trading at index `place` proves a move of `size`, as a logarithm; the steps are in order of time.

    A split, or prices in another unit, leave shares or money as usual. A true move multiplies both.
    """
    first = steps[place]
    if not first.shares:
        return False
    usual = [step for step in steps[max(0, place - 3 * _USUAL) : place] if step.shares][-_USUAL:]
    usual = [*_past(known, _USUAL - len(usual)), *usual]
    if len(usual) < _FEWEST_USUAL:
        return False
    shares = first.shares / median(step.shares for step in usual)
    money = first.shares * first.value / median(step.shares * step.value for step in usual)
    return min(shares, money) > max(_HEAVY, exp(size) / 2) and shares < _BELIEVABLE


def _past(known: Known, at_most: int) -> list[Step]:
    """The newest days before the answer with known trading."""
    days = known.trading[max(0, len(known.trading) - at_most) :]
    return [step_of(known, day.at, day.close, day.volume) for day in days]


def step_of(known: Known, at: datetime, close: Decimal, volume: Decimal | None) -> Step:
    """A day as a step, in today's shares. A split changes their number, but not the money paid for all of them."""
    value = known.of_todays_shares(close, at)
    return Step(at, value, shares=float(volume or 0) * float(close) / value)


def are_confirmed(times: Collection[datetime], fetcher: Fetcher, needed: int) -> bool:
    """Whether values at these times on one level confirm it."""
    if len(times) < needed:
        return False
    return fetcher is not Fetcher.QUOTE or max(times) - min(times) >= _QUOTE_SPAN


def unit_factor(size: float) -> int | None:
    """The power of ten near a step, as between pence and pounds; None if none is near."""
    powers = round(size / log(10.0))
    return 10**powers if size >= NEVER and abs(size - powers * log(10.0)) < log(1.5) else None


def split_factor(size: float) -> int | None:
    """The whole factor near a step, if companies split by it."""
    distance, nearest = min((abs(size - log(factor)), factor) for factor in _SPLITS)
    return nearest if distance <= _SPLIT_TOLERANCE else None


def known_split(known: Known, earlier: Step, later: Step) -> date | None:
    """The day of a known split that explains a step of its size within a month of it."""
    if not known.splits:
        return None
    size = abs(log(earlier.value / later.value))
    first, last = sorted((earlier.at.date(), later.at.date()))
    for ex_on, shares in visible_splits(known):
        ratio = abs(log(shares))
        reach = SOON if ratio > QUESTIONED else timedelta(0)
        is_near = first - reach < ex_on <= last + reach
        if is_near and abs(size - ratio) <= ratio - least_step(shares):
            return ex_on
    return None


def visible_splits(known: Known) -> Iterable[tuple[date, float]]:
    """Known splits that are larger than the moves of any day."""
    return (split for split in known.splits if abs(log(split[1])) >= _LEAST_KNOWN)


def least_step(shares: float) -> float:
    """The smallest step, as a logarithm, that counts as a known split: a tenth less, or a quarter if it is small."""
    ratio = abs(log(shares))
    return ratio - min(_SPLIT_TOLERANCE, ratio / 4)
