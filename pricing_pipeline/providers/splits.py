"""Several splits of one company: what they make of a share, and which of them are one that is told twice."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal

from pricing_pipeline.domain import SAME_ACTION, Split

Ratio = tuple[Decimal, Decimal]
"""So many new shares for so many old ones."""
WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)


class Splits:
    """What splits after a day have made of its shares; computed once, for all days."""

    def __init__(self, told: Sequence[Split]) -> None:
        self.told = tuple(sorted(told, key=lambda split: split.ex_on))
        self._days = [split.ex_on for split in self.told]
        self._ratios: list[Ratio] = [(Decimal(1), Decimal(1))]
        """By all splits but for so many of the first ones, the last first."""
        for split in reversed(self.told):
            new, old = self._ratios[-1]
            self._ratios.append((WIDE.multiply(new, split.new_shares), WIDE.multiply(old, split.old_shares)))

    def ratio(self, day: date) -> Ratio:
        """So many new shares for so many old ones, by the splits after a day."""
        return self._ratios[len(self._days) - bisect_right(self._days, day)]


def told_once(splits: Sequence[Split]) -> tuple[list[Split], list[tuple[Split, Split]]]:
    """The splits of which no other may be the same, and each other one beside one that it may be.

    Two of one day may be one, and two of one ratio within a week.
    """
    once, twice = [], []
    for number, split in enumerate(splits):
        others = (other for n, other in enumerate(splits) if n != number and _may_be_one(split, other))
        if (other := next(others, None)) is None:
            once.append(split)
        else:
            twice.append((split, other))
    return once, twice


def _may_be_one(one: Split, other: Split) -> bool:
    if one.ex_on == other.ex_on:
        return True
    is_same_ratio = one.new_shares * other.old_shares == other.new_shares * one.old_shares
    return is_same_ratio and abs(one.ex_on - other.ex_on) <= SAME_ACTION
