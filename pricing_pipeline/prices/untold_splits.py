"""Steps of stored prices that look like a split that nobody has reported: adjusted values jump there."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.answers import Split


def read(connection: Connection, data_type: str, symbol: str, first_day: date, last_day: date) -> list[Split]:
    """Steps of prices as traded, between two days (both included), that look like an unreported split."""
    parameters = {"data_type": data_type, "symbol": symbol, "first_day": first_day, "last_day": last_day}
    return [
        Split(symbol, row.ex_on, Decimal(row.new_shares), Decimal(row.old_shares))
        for row in connection.execute(query("actions.untold_splits"), parameters)
    ]


def warning(split: Split) -> str:
    """What people must know who read adjusted values, and what to do about it."""
    shares = f"{split.new_shares}:{split.old_shares}"
    return (
        f"On {split.ex_on} the price steps like a split of {shares}, and none is known. If it was one: "
        f"pricing-pipeline action add {split.symbol} {split.ex_on} --split {shares}"
    )
