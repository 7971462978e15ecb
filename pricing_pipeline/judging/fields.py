"""Judge open, high, low and volume of a bar by its close. plausibility.py judges the day by the close itself.

A source may send a true close with a high below it, an open in another unit or a low of nearly nothing. Such a part is
dropped, and the bar's `quality` says so. If two parts contradict each other and not the close, both are dropped,
because nothing tells which is true. Pure functions; docs/truth.md describes the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from statistics import median

from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.exact import do_fit
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Known

_FARTHEST = 5
"""The largest factor between the close and another price of its day."""
_CALM = 2
"""The smallest such limit, for an answer with calm days. An answer needs this number of days to count as calm:"""
_MANY = 20
_WIDE = 25
"""How many times the usual width a day of a long answer may have, unless its close has moved as far."""
_BUSIEST = 10**6
"""How many times the usual volume one day of a long answer may have."""
_FAR_FROM_LAST = Decimal("1.5")
"""The same factor for the last close: a price that crashed or soared began its day there."""


def are_sound(bars: Bars) -> bool:
    """Whether every part of all bars can be true, by a quick check of their columns, without bounds.

    It may return False for bars whose parts are all believed later, but never True if one is not.
    """
    opens, highs, lows, closes = bars.opens, bars.highs, bars.lows, bars.closes
    busiest = _busiest(bars.volumes[bars.volumes > 0].tolist())
    return bool(
        (lows <= opens).all()
        and (lows <= closes).all()
        and (opens <= highs).all()
        and (closes <= highs).all()
        and (highs <= _CALM * closes).all()
        and (closes <= _CALM * lows).all()
        and (busiest is None or bars.volumes.max() <= busiest)
    )


def with_sound_parts(known: Known, rows: Sequence[Observation]) -> list[Observation]:
    """The bars of one symbol, oldest first, without the parts that cannot be true beside the close."""
    sound = []
    last = _last_before(known, rows)
    farthest, busiest = _farthest(rows), _busiest([float(row.volume) for row in rows if row.volume])
    for row in rows:
        sound.append(_sound(known, row, last, farthest, busiest))
        last = row.close
    return sound


def _farthest(rows: Sequence[Observation]) -> Decimal:
    """The largest factor between close and other prices for these days: smaller if many of them are calm."""
    widths = [row.high / row.low for row in rows if row.high and row.low and row.high >= row.low]
    if len(widths) < _MANY:
        return Decimal(_FARTHEST)
    return min(Decimal(_FARTHEST), max(Decimal(_CALM), 1 + _WIDE * (median(widths) - 1)))


def _busiest(volumes: Sequence[float]) -> float | None:
    """The largest volume that one of these days can have; None if too few days have a volume."""
    return _BUSIEST * median(volumes) if len(volumes) >= _MANY else None


def _last_before(known: Known, rows: Sequence[Observation]) -> Decimal | None:
    before = [point for point in known.anchors if rows and point.at < rows[0].observed_at]
    return max(before, key=lambda point: point.at).value if before else None


def _sound(
    known: Known, row: Observation, last: Decimal | None, farthest: Decimal, busiest: float | None
) -> Observation:
    parts = {"open": row.open, "high": row.high, "low": row.low}
    kept = {name: value for name, value in parts.items() if value is not None}
    faults: list[str] = []

    def drop(names: Sequence[str], why: str) -> None:
        faults.append(why)
        for name in names:
            del kept[name]

    for name, value in list(kept.items()):
        fault = _fault_of_price(known, row.close, value, last, farthest)
        if fault is not None:
            drop([name], f"{name} {value:f} is {fault}")
    if "high" in kept and kept["high"] < row.close:
        drop(["high"], f"high {kept['high']:f} is below the close {row.close:f}")
    if "low" in kept and kept["low"] > row.close:
        drop(["low"], f"low {kept['low']:f} is above the close {row.close:f}")
    if "open" in kept and "high" in kept and kept["open"] > kept["high"]:
        drop(["open", "high"], f"open {kept['open']:f} is above high {kept['high']:f}")
    if "open" in kept and "low" in kept and kept["open"] < kept["low"]:
        drop(["open", "low"], f"open {kept['open']:f} is below low {kept['low']:f}")
    if kept and not do_fit([row.close, *kept.values()]):
        drop(list(kept), "open, high and low have too many digits beside the close")
    volume = row.volume
    if volume is not None and busiest is not None and volume > busiest:
        volume = None
        faults.append(f"volume {row.volume:f} is more than a million times the usual one")
    if not faults:
        return row
    return replace(
        row,
        open=kept.get("open"),
        high=kept.get("high"),
        low=kept.get("low"),
        volume=volume,
        quality="; ".join([row.quality, *faults] if row.quality else faults),
    )


def _fault_of_price(
    known: Known, close: Decimal, value: Decimal, last: Decimal | None, farthest: Decimal
) -> str | None:
    """Why a day's price alone cannot be true; None if it can."""
    if known.lowest is not None and value < known.lowest:
        return f"below the bound of {known.lowest:f}"
    if known.highest is not None and value > known.highest:
        return f"above the bound of {known.highest:f}"
    if last is not None:
        # If the close has moved far, the day's other prices may have moved as far.
        farthest = max(farthest, min(max(close / last, last / close), Decimal(_FARTHEST)))
    most, least = farthest * close, close / farthest
    if last is not None:
        most, least = max(most, last * _FAR_FROM_LAST), min(least, last / _FAR_FROM_LAST)
    if not least <= value <= most:
        return f"far from the close {close:f}"
    return None
