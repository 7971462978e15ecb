"""Prices on their way into the tables, and what stands there afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from pricing_pipeline.domain.calls import Call
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, TWELVEDATA, Core

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
