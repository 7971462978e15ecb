"""Which parts of a bar can be true beside its close. The close decides about the day, in plausibility.py.

A source may send a high below the close, an open of another unit or a low of nearly nothing beside a close that is
true. Such a part is left out, and the bar's `quality` says so. Of two parts that contradict each other and not the
close, nothing tells which is true: both are left out. Pure functions; the rule is told to people in docs/truth.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pricing_pipeline.bars import Bars
from pricing_pipeline.domain import Observation
from pricing_pipeline.exact import do_fit
from pricing_pipeline.knowledge import Known

_FARTHEST = 5
"""How many times the close another price of its day may be, or the close it."""
_FAR_FROM_LAST = Decimal("1.5")
"""The same for the last close: a price that has crashed, or soared, began its day there."""


def are_sound(bars: Bars) -> bool:
    """Whether every part of all bars can be true, seen over their columns; of bounds it knows nothing.

    It may say no of bars of which each part is then believed, never yes of one that is not.
    """
    opens, highs, lows, closes = bars.opens, bars.highs, bars.lows, bars.closes
    return bool(
        (lows <= opens).all()
        and (lows <= closes).all()
        and (opens <= highs).all()
        and (closes <= highs).all()
        and (highs <= _FARTHEST * closes).all()
        and (closes <= _FARTHEST * lows).all()
    )


def with_sound_parts(known: Known, rows: Sequence[Observation]) -> list[Observation]:
    """The bars of one symbol, the oldest first, each with those parts that can be true beside its close."""
    found = []
    last = _last_before(known, rows)
    for row in rows:
        found.append(_sound(known, row, last))
        last = row.close
    return found


def _last_before(known: Known, rows: Sequence[Observation]) -> Decimal | None:
    before = [point for point in known.anchors if rows and point.at < rows[0].observed_at]
    return max(before, key=lambda point: point.at).value if before else None


def _sound(known: Known, row: Observation, last: Decimal | None) -> Observation:
    parts = {"open": row.open, "high": row.high, "low": row.low}
    given = {name: value for name, value in parts.items() if value is not None}
    faults: list[str] = []

    def drop(names: Sequence[str], why: str) -> None:
        faults.append(why)
        for name in names:
            del given[name]

    for name, value in list(given.items()):
        fault = _alone(known, row.close, value, last)
        if fault is not None:
            drop([name], f"{name} {value:f} is {fault}")
    if "high" in given and given["high"] < row.close:
        drop(["high"], f"high {given['high']:f} is below the close {row.close:f}")
    if "low" in given and given["low"] > row.close:
        drop(["low"], f"low {given['low']:f} is above the close {row.close:f}")
    if "open" in given and "high" in given and given["open"] > given["high"]:
        drop(["open", "high"], f"open {given['open']:f} is above high {given['high']:f}")
    if "open" in given and "low" in given and given["open"] < given["low"]:
        drop(["open", "low"], f"open {given['open']:f} is below low {given['low']:f}")
    if given and not do_fit([row.close, *given.values()]):
        drop(list(given), "open, high and low have too many digits beside the close")
    if not faults:
        return row
    return replace(
        row,
        open=given.get("open"),
        high=given.get("high"),
        low=given.get("low"),
        quality="; ".join([row.quality, *faults] if row.quality else faults),
    )


def _alone(known: Known, close: Decimal, value: Decimal, last: Decimal | None) -> str | None:
    """Why a price of a day cannot be true, whatever its other parts; None if it can."""
    if known.lowest is not None and value < known.lowest:
        return f"below the bound of {known.lowest:f}"
    if known.highest is not None and value > known.highest:
        return f"above the bound of {known.highest:f}"
    most, least = _FARTHEST * close, close / _FARTHEST
    if last is not None:
        most, least = max(most, last * _FAR_FROM_LAST), min(least, last / _FAR_FROM_LAST)
    if not least <= value <= most:
        return f"far from the close {close:f}"
    return None
