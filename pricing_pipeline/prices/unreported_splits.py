"""Steps of stored prices that look like an unreported split: adjusted values jump there."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.data_types import DataType, Fetcher
from pricing_pipeline.domain.windows import Window

if TYPE_CHECKING:
    from sqlalchemy import Connection


def warnings(
    connection: Connection,
    type_: DataType,
    symbol: str,
    days: Window,
    adjust: Adjust | None,
    as_of: datetime | None,
) -> list[str]:
    """Warnings for readers of adjusted daily bars: where the price as traded steps like an unreported split, and what
    to do.
    """
    is_adjusted = adjust in (Adjust.SPLITS, Adjust.TOTAL) and as_of is None
    if not is_adjusted or type_.fetcher is not Fetcher.DAILY_BARS:
        return []
    return [
        f"On {row.ex_on} the price steps like a split of {row.new_shares}:{row.old_shares}, and none is known. If it "
        f"was one: pricing-pipeline action add {symbol} {row.ex_on} --split {row.new_shares}:{row.old_shares}"
        for row in call_sql(connection, "unreported_splits", type_.data_type, symbol, days.start, days.end)
    ]
