"""A seeded price walk in whole numbers: a symbol and a day give the same bar on every machine, for ever.

Nothing here knows calendars, markets or providers: days are indexes 0, 1, 2 and prices are integers in
units of 10^-5. No binary float takes part, so no processor or library version can change a digit.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple

DOUBLING = 1 << 16
"""Steps of one doubling of the price, on the logarithmic scale that the walk moves on."""

_SHIFT = 30
_COARSE = [int(Decimal(2) ** (Decimal(k) / 256) * (1 << _SHIFT)) for k in range(256)]
_FINE = [int(Decimal(2) ** (Decimal(k) / DOUBLING) * (1 << _SHIFT)) for k in range(256)]
_BLOCK = 256  # days summed up in advance, so that no bar needs the whole walk before it
_LOG_STEPS_PER_WHOLE = 94_548  # DOUBLING / ln 2: turns a small step into a share of the price


class Day(NamedTuple):
    """Open, high, low, close in units, and a volume in pieces."""

    open: int
    high: int
    low: int
    close: int
    volume: int


class Walk:
    """A random walk around `anchor` that is reflected at `bound`, so that decades cannot carry it away.

    `swing` is the largest daily move and `bound` the largest distance from the anchor, both in steps of
    which `DOUBLING` double the price. Prices are multiples of `tick` units. Longer walks begin with the
    shorter ones.
    """

    def __init__(self, key: str, length: int, *, anchor: int, tick: int, swing: int, bound: int, volume: int) -> None:
        self.length = length
        self._anchor = anchor
        self._tick = tick
        self._swing = swing
        self._bound = bound
        self._volume = volume
        # SHAKE is a stream: asking for more bytes keeps the first ones, so no new day changes an old one.
        steps = array("h")
        steps.frombytes(hashlib.shake_128(f"{key}:steps".encode()).digest(2 * length))
        if sys.byteorder == "big":
            steps.byteswap()
        self._steps = steps
        blocks = (sum(steps[start : start + _BLOCK]) for start in range(0, length, _BLOCK))
        self._sums = list(accumulate(blocks, initial=0))
        self._shapes = hashlib.shake_128(f"{key}:shapes".encode()).digest(4 * length)

    def days(self, first: int, last: int) -> list[Day]:
        """Bars of the days `first` to `last`, both included."""
        tick, swing, volume = self._tick, self._swing, self._volume
        before, *closes = self._closes(first - 1, last)
        shapes = self._shapes[4 * first : 4 * (last + 1)]
        days = []
        for close, gap, up, down, busy in zip(
            closes, shapes[0::4], shapes[1::4], shapes[2::4], shapes[3::4], strict=True
        ):
            reach = before * swing // _LOG_STEPS_PER_WHOLE
            opened = before + reach * (gap - 128) // 512
            opened -= opened % tick
            top, bottom = (opened, close) if opened > close else (close, opened)
            high, low = top + reach * up // 512, bottom - reach * down // 512
            days.append(Day(opened, high - high % tick, low - low % tick, close, volume * (64 + busy) >> 8))
            before = close
        return days

    def _closes(self, first: int, last: int) -> list[int]:
        """Closes of the days `first` to `last`, both included; that of day -1 is the anchor."""
        anchor, tick, swing, bound = self._anchor, self._tick, self._swing, self._bound
        block = (first + 1) // _BLOCK
        height = self._sums[block] + sum(self._steps[block * _BLOCK : first + 1])
        closes = []
        for summed in accumulate(self._steps[first + 1 : last + 1], initial=height):
            # Reflection: up to the bound and back, as a triangle wave of the unbounded walk.
            reflected = bound - abs(((summed * swing >> 15) + bound) % (4 * bound) - 2 * bound)
            # The anchor times two to the power of reflected / DOUBLING, by tables of its two low bytes.
            price = anchor * _COARSE[reflected >> 8 & 0xFF] >> _SHIFT
            price = price * _FINE[reflected & 0xFF] >> (_SHIFT - (reflected >> 16))
            closes.append(price - price % tick)
        return closes
