"""Turn checked values into the columns that the functions of db/functions/prices/prices.sql take; judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pricing_pipeline.db import arrays, copying
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.exact import amounts_of, scale_of, to_amount
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Known

if TYPE_CHECKING:
    from pricing_pipeline.domain.bars import Column


def price_columns(call: Call, rows: Sequence[Observation], about: Mapping[str, Known]) -> dict[str, object]:
    """The arguments of `pricing.merge_prices`, an array for each column."""
    scales = [scale_of(row, about[row.symbol].scale) for row in rows]

    def amounts(price: Callable[[Observation], Decimal | None]) -> str | None:
        prices = [price(row) for row in rows]
        if not any(prices):
            return None
        return arrays.plain(
            [None if value is None else to_amount(value, scale) for value, scale in zip(prices, scales, strict=True)]
        )

    return {
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "is_latest": call.window is None,
        "symbols": arrays.texts([row.symbol for row in rows]),
        "times": arrays.plain([row.observed_at for row in rows]),
        "amounts": amounts(lambda row: row.close),
        "open_amounts": amounts(lambda row: row.open),
        "high_amounts": amounts(lambda row: row.high),
        "low_amounts": amounts(lambda row: row.low),
        "scales": arrays.plain(scales),
        "currencies": arrays.texts([row.currency for row in rows]),
        "volumes": arrays.plain([row.volume for row in rows]),
        "texts": arrays.texts([row.text for row in rows]),
        # A history has one basis for all its values.
        "adjustments": arrays.plain([about[row.symbol].adjustment or row.adjustment for row in rows]),
        "qualities": arrays.texts([row.quality for row in rows]) if any(row.quality for row in rows) else None,
    }


def bar_columns(call: Call, observations: Sequence[Observation], about: Known) -> dict[str, object]:
    """The arguments of `pricing.merge_bars`: the values of one symbol."""
    first = observations[0]
    common = {
        "symbol": first.symbol,
        "currency": first.currency,
        "adjustment": about.adjustment or first.adjustment,
    }
    exact = amounts_of(observations, about.scale) if isinstance(observations, Bars) else None
    if exact is None or not isinstance(observations, Bars):
        rows = sorted(observations, key=lambda row: row.observed_at)
        return price_columns(call, rows, {first.symbol: about}) | common
    scales, (opens, highs, lows, closes) = exact
    return common | {
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "times": copying.array(copying.times(observations.microseconds), "timestamptz"),
        "amounts": copying.array(copying.bigints(closes), "bigint"),
        "open_amounts": copying.array(copying.bigints(opens), "bigint"),
        "high_amounts": copying.array(copying.bigints(highs), "bigint"),
        "low_amounts": copying.array(copying.bigints(lows), "bigint"),
        "scales": copying.array(copying.smallints(scales), "smallint"),
        "volumes": copying.array(copying.numerics(observations.volumes), "numeric"),
        "qualities": None,
        "texts": arrays.texts(observations.texts),
    }


def new_bar_rows(call: Call, bars: Bars, about: Known, now: datetime) -> bytes | None:
    """The input of `prices.copy_history`: bars of days without stored values, believed since `now`.

    None if the scale of a price depends on its length.
    """
    exact = amounts_of(bars, about.scale)
    if exact is None:
        return None
    scales, prices = exact
    opens, highs, lows, closes = prices
    texts = _kept_texts(bars, scales)

    def fields(rows: Column, text: copying.Values | None) -> list[bytes | copying.Values | None]:
        return [
            copying.text(call.data_type),
            copying.text(bars.symbol),
            copying.times(bars.microseconds[rows]),
            *(copying.bigints(price[rows]) for price in (closes, opens, highs, lows)),
            copying.smallints(scales[rows]),
            copying.text(bars.currency),
            copying.numerics(bars.volumes[rows]),
            copying.text(call.provider),
            copying.bigint(call.id),
            copying.time(now),
            copying.text(about.adjustment or bars.adjustment),
            text,
        ]

    return copying.file(copying.rows(len(rows), fields(rows, text)) for rows, text in texts)


def _kept_texts(bars: Bars, scales: Column) -> list[tuple[Column, copying.Values | None]]:
    """The bars grouped by the length of their kept spelling, with these spellings; None for bars without one.

    Like `pricing.kept_text`, it keeps no spelling that equals the stored digits.
    """
    import numpy as np

    texts = np.array(bars.texts, dtype=np.bytes_)
    lengths = np.char.str_len(texts)
    whole = np.char.str_len((bars.closes // 10**bars.scale).astype(np.bytes_))
    is_plain = (scales == bars.scale) & (lengths == whole + (bars.scale > 0) + bars.scale)
    lengths[is_plain] = 0
    parts: list[tuple[Column, copying.Values | None]] = []
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        parts.append((rows, texts[rows].astype(f"S{length}") if length else None))
    return parts
