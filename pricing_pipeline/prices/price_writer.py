"""Store prices: latest ones, histories, and the days that a provider has answered for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_copy, driver_rows
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain.answers import Stored
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.domain.observations import Observation, Observations, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import changes, columns, known_values
from pricing_pipeline.validation.knowledge import Known

_FRIDAY = 4


def store(
    connection: Connection,
    call: Call,
    observations: Observations,
    known: Mapping[str, Known] | None = None,
) -> list[Stored]:
    """Store the checked values of one call within the caller's transaction.

    An unchanged value writes nothing, a changed one leaves the old value in price_revisions, and nothing is ever
    deleted. Call it only for symbols whose tasks the claim still owns. `known` is the result of `known_values.load`;
    without it, it is loaded here.
    """
    if not observations:
        return []
    about = known_values.load(connection, call, observations) if known is None else known
    if call.window is None:
        latest = columns.price_columns(call, observations, about)
        merged = driver_rows(connection, driver_query("prices.merge"), latest)
        return [
            Stored(symbol, added, revised, outcome == "stale_source")
            for symbol, added, revised, outcome in merged
        ]
    rows_by_symbol = observations.by_symbol()
    return [
        _store_span(connection, call, rows_by_symbol[symbol], about[symbol])
        for symbol in sorted(rows_by_symbol)
    ]


def _store_span(connection: Connection, call: Call, observations: Observations, about: Known) -> Stored:
    """Store the values of one symbol's days; bars in columns are copied if none of their days is stored."""
    symbol, rows = observations[0].symbol, None
    if isinstance(observations, Bars) and not about.stored:
        named = {"data_type": call.data_type, "symbol": symbol, "currency": observations.currency}
        ((now,),) = driver_rows(connection, driver_query("prices.verify"), named)
        rows = columns.new_bar_rows(call, observations, about, now)
    if rows is None:
        parameters = columns.bar_columns(call, observations, about)
        ((added, revised),) = driver_rows(connection, driver_query("prices.merge_bars"), parameters)
        return Stored(symbol, added, revised)
    driver_copy(connection, driver_query("prices.copy_history"), rows)
    changes.note(connection, call.data_type, observations.months())
    return Stored(symbol, len(observations), 0)


def settle(
    connection: Connection,
    call: Call,
    observations: Sequence[Observation],
    known: Mapping[str, Known],
    receipt: Receipt,
) -> tuple[int, int] | None:
    """Store the latest prices of a call, finish all its tasks and settle it, in one statement.

    Returns how many values were added and how many revised. Returns None and does nothing if the claim has lost a task.
    Raises a DBAPIError and does nothing if a price is older than the stored one.
    """
    parameters = {
        "ids": arrays.plain(call.task_ids),
        "token": call.claim_token,
        **receipt.parameters,
        **columns.price_columns(call, observations, known),
    }
    for added, revised, _ in driver_rows(connection, driver_query("prices.settle"), parameters):
        return added, revised
    return None


def confirm(connection: Connection, data_type: str, symbols: Sequence[str]) -> None:
    """Note a valid but empty answer: the stored values count as confirmed now."""
    connection.execute(query("prices.confirm"), {"data_type": data_type, "symbols": list(symbols)})


def lacking(connection: Connection, data_type: str, rows: Observations) -> Rows:
    """Those of the daily values whose days are over and have no value yet."""
    parameters = {
        "data_type": data_type,
        "symbols": [row.symbol for row in rows],
        "days": rows.dates(),
    }
    found = {(row.symbol, row.day) for row in connection.execute(query("prices.lacking"), parameters)}
    return Rows(row for row, day in zip(rows, rows.dates(), strict=True) if (row.symbol, day) in found)


def cover(
    connection: Connection, data_type: str, symbols: Sequence[str], first_day: date, last_day: date
) -> None:
    """Note that the provider has answered for these days, except today."""
    parameters = {"data_type": data_type, "first_day": first_day, "last_day": last_day}
    driver_rows(connection, driver_query("prices.cover"), parameters | {"symbols": arrays.texts(symbols)})


def note_absent_days(connection: Connection, data_type: str, stored: Mapping[str, Sequence[date]]) -> None:
    """Note the trading days that an answer for latest prices lacked between the days of each symbol.

    Days that follow each other, but for a weekend, lack none: most answers need no statement.
    """
    holed = {symbol: sorted(days) for symbol, days in stored.items() if _may_lack_one(sorted(days))}
    if holed:
        parameters = {
            "data_type": data_type,
            "symbols": list(holed),
            "first_days": [days[0] for days in holed.values()],
            "last_days": [days[-1] for days in holed.values()],
        }
        connection.execute(query("prices.note_absent_days"), parameters)


def _may_lack_one(days: Sequence[date]) -> bool:
    return any((b - a).days > (3 if a.weekday() == _FRIDAY else 1) for a, b in pairwise(days))


def cover_read(
    connection: Connection,
    data_type: str,
    symbols: Sequence[str],
    window: Window,
    unread: Mapping[str, frozenset[date]],
) -> None:
    """Note the days that an answer covers, except, by symbol, days whose value could not be read."""
    read = [symbol for symbol in symbols if symbol not in unread]
    cover(connection, data_type, read, window.start, window.end)
    for symbol in sorted(unread.keys() & symbols):
        parameters = {
            "data_type": data_type,
            "symbols": [symbol],
            "first_day": window.start,
            "last_day": window.end,
            "unread": list(unread[symbol]),
        }
        connection.execute(query("prices.cover_without"), parameters)
