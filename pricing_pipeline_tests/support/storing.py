"""Prices on their way into the tables, and what stands there afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import zip_longest
from typing import Any

from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers import flat
from pricing_pipeline.providers.values import plain_bars
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, TWELVEDATA, Core

MARCH = (date(2010, 3, 1), date(2010, 3, 31))
PROVIDERS = {NAV: "mfapi"}


def next_call(core: Core, data_type: str, *symbols: str, days: tuple[date, date] | None = None) -> Call:
    """A call made for these symbols, whose tasks are out of the way."""
    core.enqueue(data_type, *symbols, days=days)
    call = core.claim_one(PROVIDERS.get(data_type, TWELVEDATA))
    core.complete(call)
    core.settle(call, 600)
    return call


def versions(core: Core, table: str = "price_history") -> Sequence[Any]:
    """The row versions of a table: they differ after any write, even of equal values."""
    return core.rows(f"SELECT tableoid, ctid, xmin FROM pricing.{table} ORDER BY 1, 2")


def closes(core: Core, symbol: str = "AAPL", data_type: str = DAILY) -> dict[date, str]:
    found = core.history(symbol, data_type, date(1990, 1, 1), date(2100, 1, 1))
    return {bar.observed_at.date(): str(bar.close) for bar in found}


def bars_of(
    *closes: str,
    first: date = date(2010, 3, 1),
    symbol: str = "AAPL",
    volumes: Sequence[str] = (),
    second: Mapping[str, str] = {},
) -> Bars:
    """Bars by columns, a day each; parts of the second day may be something else."""
    rows = [
        {"date": str(first + timedelta(days=number)), "open": close, "high": "99.00000", "low": "0.50000"}
        | {"close": close, "volume": volume}
        for number, (close, volume) in enumerate(zip_longest(closes, volumes, fillvalue="7"))
    ]
    rows[1:2] = [{**row, **second} for row in rows[1:2]]
    read = flat.read(json.dumps({"bars": rows}, separators=(",", ":")).encode(), "bars")
    found = read and plain_bars(symbol, "USD", read[1], Window(*MARCH))
    assert found is not None
    return found
