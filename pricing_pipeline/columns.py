"""Checked values as the columns that the functions of db/functions/prices.sql take. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from pricing_pipeline.bars import Bars
from pricing_pipeline.db import arrays
from pricing_pipeline.domain import Call, Observation
from pricing_pipeline.exact import amounts_of, scale_of, to_amount
from pricing_pipeline.plausibility import Known


def of_all(call: Call, rows: Sequence[Observation], about: Mapping[str, Known]) -> dict[str, object]:
    """What `pricing.merge_prices` takes, an array for each column."""
    scales = [scale_of(row, about[row.symbol].scale) for row in rows]

    def amounts(price: Callable[[Observation], Decimal | None]) -> str | None:
        found = [price(row) for row in rows]
        if not any(found):
            return None
        return arrays.plain(
            [None if one is None else to_amount(one, scale) for one, scale in zip(found, scales, strict=True)]
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
        # A history has one basis, which its newest value shares with every other.
        "adjustments": arrays.plain([about[row.symbol].adjustment or row.adjustment for row in rows]),
    }


def of_one(call: Call, observations: Sequence[Observation], about: Known) -> dict[str, object]:
    """What `pricing.merge_bars` takes: the values of one symbol."""
    exact = amounts_of(observations, about.scale) if isinstance(observations, Bars) else None
    first = observations[0]
    common = {
        "symbol": first.symbol,
        "currency": first.currency,
        "adjustment": about.adjustment or first.adjustment,
    }
    if exact is None or not isinstance(observations, Bars):
        rows = sorted(observations, key=lambda row: row.observed_at)
        return of_all(call, rows, {first.symbol: about}) | common
    (opens, highs, lows, closes), scales = exact
    return common | {
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "times": f"{{{' 00:00+00,'.join(observations.days)} 00:00+00}}",
        "amounts": arrays.integers(closes),
        "open_amounts": arrays.integers(opens),
        "high_amounts": arrays.integers(highs),
        "low_amounts": arrays.integers(lows),
        "scales": arrays.integers(scales),
        "volumes": arrays.integers(observations.volumes),
    }
