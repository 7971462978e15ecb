"""The short way of an answer about latest quotes: one statement that stores what raises no question, or does nothing.

The statement knows when none of the rules of plausibility.py can hold a quote; what those rules are is told there. On
the long way, which settling.py takes with every other answer, values are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.domain.answers import Observation
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher


def are_plain(call: Call, observations: Sequence[Observation]) -> bool:
    """Whether these can be settled the short way: bare quotes on one basis, one of each symbol that was asked for."""
    if call.fetcher is not Fetcher.QUOTE or call.window is not None or len(observations) != len(call.tasks):
        return False
    basis = observations[0].adjustment
    return all(
        row.open is None
        and row.high is None
        and row.low is None
        and row.volume is None
        and row.adjustment is basis
        for row in observations
    )


def settle(
    connection: Connection,
    call: Call,
    observations: Sequence[Observation],
    *,
    http_status: int | None,
    wire_bytes: int,
    units_left: int | None,
) -> int | None:
    """Store plain quotes, finish all tasks of their call and settle it, behind the fence, in one statement.

    Returns how many values were added to history. None, with nothing done, when any quote must be looked at, or the
    claim has lost any of the tasks.
    """
    parameters = {
        "ids": arrays.plain(call.task_ids),
        "token": call.claim_token,
        "http_status": http_status,
        "wire_bytes": wire_bytes,
        "units_left": units_left,
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "basis": observations[0].adjustment.value,
        "symbols": arrays.texts([row.symbol for row in observations]),
        "times": arrays.plain([row.observed_at for row in observations]),
        "closes": arrays.plain([row.close for row in observations]),
        "currencies": arrays.texts([row.currency for row in observations]),
        "texts": arrays.texts([row.text for row in observations]),
    }
    for (added,) in driver_rows(connection, driver_query("quotes.settle"), parameters):
        return int(added)
    return None
