"""Several splits of one company: their ratio together, and splits that are reported twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal

from pricing_pipeline.domain.answers import SAME_ACTION, SpinOff, Split
from pricing_pipeline.providers.noise import before_division
from pricing_pipeline.providers.values import Implausible, decimal_of, price_of

Ratio = tuple[Decimal, Decimal]
"""New shares and the old shares that they replace."""
_WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)


class Splits:
    """The ratio by which all splits after a day divide prices and multiply volumes; computed once, for all days."""

    def __init__(self, splits: Sequence[Split]) -> None:
        self.all = tuple(sorted(splits, key=lambda split: split.ex_on))
        self._days = [split.ex_on for split in self.all]
        self._of_prices: list[Ratio] = [(Decimal(1), Decimal(1))]
        """By the last split, by the last two, and so on; before them, by none."""
        self._of_volumes = list(self._of_prices)
        for split in reversed(self.all):
            for ratios, counts in (
                (self._of_prices, True),
                (self._of_volumes, not isinstance(split, SpinOff)),
            ):
                new, old = ratios[-1]
                after = (_WIDE.multiply(new, split.new_shares), _WIDE.multiply(old, split.old_shares))
                ratios.append(after if counts else (new, old))

    def of_prices(self, day: date) -> Ratio:
        """New shares and the old shares that they replace, by the splits and spin-offs after a day."""
        return self._of_prices[sum(ex_on > day for ex_on in self._days)]

    def of_volumes(self, day: date) -> Ratio:
        """The same by the splits alone: a spin-off leaves the number of shares as it is."""
        return self._of_volumes[sum(ex_on > day for ex_on in self._days)]


def without_repeats(splits: Sequence[Split]) -> tuple[list[Split], list[tuple[Split, Split]]]:
    """The splits that are certainly different, and each other one beside the split that it may repeat.

    Two splits of one day may be the same, and so may two of one ratio within a week.
    """
    once, twice = [], []
    for number, split in enumerate(splits):
        others = (other for n, other in enumerate(splits) if n != number and _may_be_same(split, other))
        if (other := next(others, None)) is None:
            once.append(split)
        else:
            twice.append((split, other))
    return once, twice


def _may_be_same(first: Split, second: Split) -> bool:
    if first.ex_on == second.ex_on:
        return True
    is_same_ratio = first.new_shares * second.old_shares == second.new_shares * first.old_shares
    return is_same_ratio and abs(first.ex_on - second.ex_on) <= SAME_ACTION


def undivided(price: Decimal, ratio: Ratio | None) -> Decimal:
    """The price before the splits."""
    if ratio is None or ratio[0] == ratio[1]:
        return price
    try:
        return price_of(before_division(price, *ratio), "the price before its splits")
    except ArithmeticError:
        raise Implausible(f"{price} cannot be a price divided by splits") from None


def unmultiplied(volume: Decimal, ratio: Ratio | None) -> Decimal:
    """The volume before the splits, in whole shares."""
    if ratio is None or ratio[0] == ratio[1]:
        return volume
    return decimal_of(_WIDE.divide(_WIDE.multiply(volume, ratio[1]), ratio[0]).to_integral_value(), "volume")
