"""A price history drawn with characters: candles, each as many values as the width makes necessary.

Pure drawing. Positions are computed with decimals, like everything that is a price.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rich.text import Text

GAP, REVISED = "┊", "•"
_LEAST_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Candle:
    """Prices over a while; for a single value all four are the same. `label` says when it began.

    `is_after_gap`: something is missing before it, or within it if several are joined. `is_revised`: it was told
    otherwise before.
    """

    label: str
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    is_after_gap: bool = False
    is_revised: bool = False


def draw(candles: Sequence[Candle], width: int, height: int) -> list[Text]:
    """Draw at most `width` characters wide and `height` rows high, with a price scale and the first and last label.

    A full block is the span from open to close, a line the span from low to high. Green rose, red fell. A dotted line
    goes up before what comes after a gap; under what was revised is a dot, on a line that is there only if needed.
    """
    low, high = min(c.low for c in candles), max(c.high for c in candles)
    scale = [_at(row, low, high, height) for row in range(height)]
    decimals = max(0, *(-int(c.close.as_tuple().exponent) for c in candles))
    if high - low >= 1:
        decimals = min(decimals, 2)
    labels = [f"{price:.{decimals}f}" for price in scale]
    margin = max(map(len, labels)) + 2
    columns = merge(candles, max(_LEAST_COLUMNS, width - margin))

    lines = []
    for row in range(height):
        # Every fourth row is enough of a scale to read a price by.
        line = Text(
            f"{labels[row]:>{margin - 2}} ┤"
            if row % 4 == 0 or row == height - 1
            else " " * (margin - 1) + "│"
        )
        for before, candle in zip([None, *columns], columns, strict=False):
            cell = _cell(candle, row, low, high, height)
            if cell == " " and candle.is_after_gap:
                line.append(GAP, style="yellow")
            else:
                line.append(cell, style=_style(candle, before))
        lines.append(line)
    if any(candle.is_revised for candle in columns):
        dots = "".join(REVISED if candle.is_revised else " " for candle in columns)
        lines.append(Text(" " * margin + dots.rstrip(), style="magenta"))
    first, last = candles[0].label, candles[-1].label
    room = max(1, len(columns) - len(first) - len(last))
    lines.append(Text(" " * margin + (first + " " * room + last if len(candles) > 1 else first)))
    return lines


def merge(candles: Sequence[Candle], columns: int) -> list[Candle]:
    """Join neighbours until there are no more than `columns`: first open, highest, lowest, last close."""
    groups = min(columns, len(candles))
    bounds = [index * len(candles) // groups for index in range(groups + 1)]
    parts = [candles[start:end] for start, end in itertools.pairwise(bounds)]
    return [
        Candle(
            p[0].label,
            p[0].open,
            max(c.high for c in p),
            min(c.low for c in p),
            p[-1].close,
            any(c.is_after_gap for c in p),
            any(c.is_revised for c in p),
        )
        for p in parts
    ]


def _at(row: int, low: Decimal, high: Decimal, height: int) -> Decimal:
    return high - (high - low) * row / max(1, height - 1)


def _row(price: Decimal, low: Decimal, high: Decimal, height: int) -> int:
    if high == low:
        return height // 2
    return int(((high - price) / (high - low) * (height - 1)).to_integral_value())


def _cell(candle: Candle, row: int, low: Decimal, high: Decimal, height: int) -> str:
    body = sorted(_row(price, low, high, height) for price in (candle.open, candle.close))
    if body[0] <= row <= body[1]:
        return "█" if candle.open != candle.close else "━"
    if _row(candle.high, low, high, height) <= row <= _row(candle.low, low, high, height):
        return "│"
    return " "


def _style(candle: Candle, before: Candle | None) -> str:
    """By its own change; a value without one is judged by the value before it."""
    reference = candle.open if candle.open != candle.close or before is None else before.close
    return "green" if candle.close > reference else "red" if candle.close < reference else ""
