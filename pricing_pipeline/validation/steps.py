"""What one step between two values may be: a split that was not applied, or a true move.

Pure functions; which of the two values is then believed is decided in plausibility.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import exp, log
from statistics import median

from pricing_pipeline.domain.answers import Observation
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.validation.knowledge import Known

QUESTIONED = log(1.3)
"""A larger step asks for a reason."""
NEVER = log(20.0)
"""A factor of 20 within a step is believed of nobody without heavy trading, however often it is repeated."""
QUOTE_LIMIT = log(3.0)
"""How far a quote may be from the last, before it is held until others confirm it."""
_QUOTE_SPAN = timedelta(hours=1)
"""Quotes come by the minute: they confirm each other only when they are that far apart."""
SOON = timedelta(days=30)
_HEAVY = 2.5
"""So many times the usual shares, and the usual money, speak for a true move.

One of them is not enough: a split moves as many more shares as it has made of one, and a price that is wrong alone
more money. Half as many times as the price has moved it must be, too: a busy day is no proof of a hundredfold price.
"""
_BELIEVABLE = 10_000
"""More than so many times the usual shares are a mistake of their own, and prove nothing."""
_USUAL, _FEWEST_USUAL = 20, 3
"""Days before that tell what is usual."""
_SPLITS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18)
_SPLIT_TOLERANCE = 0.10
_LEAST_KNOWN = log(1.2)
"""Steps of smaller known splits are those of any day; those up to `QUESTIONED` are looked for on their own alone."""


@dataclass(slots=True)
class Step:
    """One value in the order of time. Only `row`s are judged; the others are there to be compared with.

    `value` is of today's shares, and so are the `shares` that were traded: 0 where that is not known.
    """

    at: datetime
    value: float
    row: Observation | None = None
    is_anchor: bool = False
    shares: float = 0.0


def is_traded(known: Known, steps: Sequence[Step], place: int, size: float) -> bool:
    """Whether the trading on the day at `place` proves a move of `size`, as a logarithm: steps are in order of time.

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
    """The newest days before the answer's of which the trading is known."""
    days = known.trading[max(0, len(known.trading) - at_most) :]
    return [step_of(known, day.at, day.close, day.volume) for day in days]


def step_of(known: Known, at: datetime, close: Decimal, volume: Decimal | None) -> Step:
    """A day as a step, of today's shares. A split changes their number, and not what was paid for all of them."""
    value = known.of_todays_shares(close, at)
    return Step(at, value, shares=float(volume or 0) * float(close) / value)


def are_confirmed(times: Collection[datetime], fetcher: Fetcher, needed: int) -> bool:
    """Whether values of these different times on one level show that their source means it."""
    if len(times) < needed:
        return False
    return fetcher is not Fetcher.QUOTE or max(times) - min(times) >= _QUOTE_SPAN


def unit_factor(size: float) -> int | None:
    """The power of ten that a step is near to, as between pence and pounds; None for one that is of no other unit."""
    powers = round(size / log(10.0))
    return 10**powers if size >= NEVER and abs(size - powers * log(10.0)) < log(1.5) else None


def split_factor(size: float) -> int | None:
    """The whole factor that a step is near to, if it is one that companies split by."""
    distance, nearest = min((abs(size - log(factor)), factor) for factor in _SPLITS)
    return nearest if distance <= _SPLIT_TOLERANCE else None


def known_split(known: Known, earlier: Step, later: Step) -> date | None:
    """The day of a known split, within a month of a step that is as large, of values that should not show it."""
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
    """Known splits that are told from the moves of any day."""
    return (split for split in known.splits if abs(log(split[1])) >= _LEAST_KNOWN)


def least_step(shares: float) -> float:
    """The smallest step, as a logarithm, that is taken for a known split: a tenth less, or a quarter of a small one."""
    ratio = abs(log(shares))
    return ratio - min(_SPLIT_TOLERANCE, ratio / 4)
