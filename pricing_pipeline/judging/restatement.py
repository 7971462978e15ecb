"""Classify an overlap: days that come again with other values, by the way they differ.

If all older days differ by one ratio, the source has adjusted its history for a split or a dividend. If single days
differ, it is a correction. plausibility.py and basis.py decide what follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from math import log
from statistics import median

from pricing_pipeline.domain.observations import Observation


class RestatementKind(StrEnum):
    """How an overlap differs from what is stored."""

    SPLIT = "split"
    """By one ratio, and companies split by that ratio."""
    DIVIDEND = "dividend"
    """By one ratio that is not a split's, as after a dividend that the source subtracts."""
    SCATTERED = "scattered"
    """Single days, or each day by another factor."""
    BASIS = "basis"
    """As traded, while the stored history is divided by splits; the ratio means nothing then. See basis.py."""


@dataclass(frozen=True, slots=True)
class Restatement:
    """Days of one symbol that came with other values than are stored; times are UTC.

    The stored values are divided by `ratio`; it is None if there is no single ratio. `largest` is the largest change as
    a share of the stored value. Bars that were stored before the end of their day do not count: they change anyway.
    """

    kind: RestatementKind
    times: frozenset[datetime]
    largest: Decimal
    ratio: Decimal | None = None

    @property
    def first_at(self) -> datetime:
        return min(self.times)

    @property
    def last_at(self) -> datetime:
        return max(self.times)

    @property
    def is_constant(self) -> bool:
        return self.ratio is not None


_FEWEST = 3
"""How many days must differ by one ratio: two may do so by chance."""
_MOST_SHARES = 20
_LEAST_SPLIT = log(1.04)
_NOISE = 1e-7


@dataclass(frozen=True, slots=True)
class _Pair:
    """A day's stored value and its new one. `error` is the largest step that rounding alone can make."""

    at: datetime
    before: Decimal
    after: Decimal
    error: float

    @property
    def step(self) -> float:
        return log(float(self.before) / float(self.after))


def find(
    stored: Mapping[datetime, Decimal], rows: Sequence[Observation], provisional: Collection[datetime] = ()
) -> Restatement | None:
    """How the answer restates stored days; None if all values are as stored.

    `provisional` are times of stored bars that were not final.
    """
    repeated = [
        row
        for row in sorted(rows, key=lambda row: row.observed_at)
        if stored.get(row.observed_at, 0) > 0 and row.observed_at not in provisional
    ]
    if all(stored[row.observed_at] == row.close for row in repeated):
        return None
    half_before = _half_a_place([stored[row.observed_at] for row in repeated])
    half_after = _half_a_place([row.close for row in repeated])
    pairs = [
        _Pair(
            row.observed_at,
            before := stored[row.observed_at],
            row.close,
            _NOISE + half_before / float(before) + half_after / float(row.close),
        )
        for row in repeated
    ]
    changed = [pair for pair in pairs if pair.before != pair.after]
    times = frozenset(pair.at for pair in changed)
    largest = max(abs(pair.after / pair.before - 1) for pair in changed)
    # An adjustment changes all days before some day, so that none of them is unchanged.
    is_prefix = all(pair.before != pair.after for pair in pairs[: len(changed)])
    middle = median(pair.step for pair in changed)
    is_one_ratio = all(abs(pair.step - middle) <= 2 * pair.error for pair in changed)
    is_beyond_rounding = all(abs(pair.step) > 2 * pair.error for pair in changed)
    if len(changed) < _FEWEST or not (is_prefix and is_one_ratio and is_beyond_rounding):
        return Restatement(RestatementKind.SCATTERED, times, largest)
    best = min(changed, key=lambda pair: pair.error)
    kind = RestatementKind.SPLIT if _is_split(middle, 2 * best.error) else RestatementKind.DIVIDEND
    return Restatement(kind, times, largest, ratio=(best.before / best.after).quantize(Decimal("1e-9")))


def _half_a_place(values: Sequence[Decimal]) -> float:
    """The largest rounding error of the values: half of the last decimal place that any of them has."""
    exponents = [value.normalize().as_tuple().exponent for value in values]
    finest = min(exponent for exponent in exponents if isinstance(exponent, int))
    return float(Decimal(5).scaleb(min(finest, 0) - 1))


def _is_split(step: float, error: float) -> bool:
    if abs(step) < _LEAST_SPLIT:
        return False
    shares = range(1, _MOST_SHARES + 1)
    return any(abs(step - log(new / old)) <= max(error, 1e-5) for new in shares for old in shares)
