"""Convert exact decimals to integers with a scale, as prices are stored, and back. No float is involved."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.observations import Observation

if TYPE_CHECKING:
    from pricing_pipeline.domain.bars import Column

MAX_DIGITS = 18
"""The most digits of an amount: a signed 64-bit integer can hold them. Parsers refuse longer prices."""


def scale_of(observation: Observation, at_least: int) -> int:
    """The number of decimals with which every price of an observation is exact.

    It is at least `at_least`, unless the added zeros would make the amount longer than MAX_DIGITS.
    """
    close = observation.close
    bar = (close, observation.open, observation.high, observation.low)
    values = [value for value in bar if value is not None]
    if all(_fits(value, at_least) for value in values):
        return at_least
    room = MAX_DIGITS - max(value.adjusted() + 1 for value in values)
    return max(min(at_least, room), *(_decimals(value) for value in values))


def do_fit(prices: Sequence[Decimal]) -> bool:
    """Whether all prices fit MAX_DIGITS at the largest scale of them: a bar is stored at one scale."""
    return max(price.adjusted() for price in prices) + 1 + max(map(_decimals, prices)) <= MAX_DIGITS


def amounts_of(bars: Bars, at_least: int) -> tuple[Column, list[Column]] | None:
    """The scale of each bar, by the rule of `scale_of`, and its open, high, low and close at that scale.

    None if `at_least` is so large that the scale depends on the length of each price.
    """
    import numpy as np

    prices = (bars.opens, bars.highs, bars.lows, bars.closes)
    if at_least > MAX_DIGITS // 2:
        return None
    finest = max(bars.scale, at_least)
    surplus = 10 ** (finest - at_least)
    scales = np.full(len(bars), at_least, dtype=np.int64)
    fine = [price * 10 ** (finest - bars.scale) for price in prices]
    if any((price % surplus).any() for price in fine):
        # A power of ten divides all four if it divides their greatest common divisor.
        for number, common in enumerate(np.gcd.reduce(fine).tolist()):
            if common % surplus:
                scales[number] = _places(common, finest)
    return scales, [price // 10 ** (finest - scales) for price in fine]


def _places(amount: int, scale: int) -> int:
    """The number of decimals that an amount needs."""
    while amount % 10 == 0:
        amount, scale = amount // 10, scale - 1
    return scale


def to_amount(value: Decimal, scale: int) -> int:
    """The amount in minor units; exact, because `scale` covers every decimal of `value`."""
    return int(value.scaleb(scale))


def to_decimal(amount: int, scale: int) -> Decimal:
    """The price of an amount in minor units, with `scale` decimals."""
    return Decimal(amount).scaleb(-scale)


def _fits(value: Decimal, scale: int) -> bool:
    amount = value.scaleb(scale)
    return amount == int(amount) and amount.adjusted() < MAX_DIGITS


def _decimals(value: Decimal) -> int:
    # Trailing zeros are spelling, not precision: 146.55000 needs two decimals.
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
