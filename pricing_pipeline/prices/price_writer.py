"""Store prices: latest ones, histories, and the days that a provider has answered for."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_copy, driver_rows
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.answers import Stored
from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Observations
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.answers import Judgement
from pricing_pipeline.judging.knowledge import Known, Verdict
from pricing_pipeline.prices import changes, columns, context

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FRIDAY = 4
_RECENT = timedelta(days=40)
"""Older bars are not looked up: they are final."""


def write(connection: Connection, judged: Judgement) -> list[Stored]:
    """Store the believed values of an answer within the caller's transaction, and what it says about its days.

    The result has each symbol that the answer has values of, or none by the provider's valid answer.
    """
    call, answer, verdicts = judged.call, judged.answer, judged.verdicts
    for symbol, change in judged.changes.items():
        if verdicts[symbol].good:  # believed days as traded: the history changes to their basis
            _change_basis(connection, call, symbol, verdicts[symbol], may_leave=change.may_leave(verdicts[symbol]))
    stored = store(connection, call, judged.good, judged.known)
    if judged.taken:
        store(connection, judged.call_for_taken, judged.taken, judged.known_of_taken)
    if call.fetcher is Fetcher.DAILY_BARS:
        _note_overlap(connection, call, verdicts, {row.symbol for row in stored})
    confirmed = answer.empty | {symbol for symbol, verdict in verdicts.items() if verdict.confirmed}
    stored += [Stored(symbol, 0, 0) for symbol in sorted(confirmed - {row.symbol for row in stored})]
    served = {row.symbol for row in stored if not row.is_stale_source}
    if call.window is not None:
        _cover_read(connection, call.data_type, sorted(served), call.window, answer.unread)
    else:
        if answer.empty:
            confirm(connection, call.data_type, sorted(answer.empty))
        if call.fetcher is not Fetcher.QUOTE:
            days = {symbol: verdict.good.dates() for symbol, verdict in verdicts.items() if symbol in served}
            _note_absent_days(connection, call.data_type, days)
    return stored


def _change_basis(connection: Connection, call: Call, symbol: str, verdict: Verdict, *, may_leave: bool) -> None:
    """Prepare a history for days as traded; those that did not come leave it."""
    brought = arrays.plain(row.observed_at for row in verdict.good)
    basis = Adjustment.RAW.value
    call_sql(connection, "change_basis", call.data_type, symbol, call.id, basis, brought, may_leave)


def store(
    connection: Connection,
    call: Call,
    observations: Observations,
    known: Mapping[str, Known] | None = None,
) -> list[Stored]:
    """Store the checked values of one call within the caller's transaction.

    An unchanged value writes nothing, a changed one leaves the old value in price_revisions, and nothing is ever
    deleted. Call it only for symbols whose tasks the claim still owns. `known` is the result of `context.known_values`;
    without it, it is loaded here.
    """
    if not observations:
        return []
    about = context.known_values(connection, call, observations) if known is None else known
    if call.window is None:
        latest = columns.price_columns(call, observations, about)
        merged = driver_rows(connection, driver_query("prices.merge"), latest)
        return [Stored(symbol, added, revised, outcome == "stale_source") for symbol, added, revised, outcome in merged]
    rows_by_symbol = observations.by_symbol()
    return [_store_span(connection, call, rows_by_symbol[symbol], about[symbol]) for symbol in sorted(rows_by_symbol)]


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
    for added, revised in driver_rows(connection, driver_query("prices.settle"), parameters):
        return added, revised
    return None


def confirm(connection: Connection, data_type: str, symbols: Sequence[str]) -> None:
    """Note a valid but empty answer: the stored values count as confirmed now."""
    call_sql(connection, "confirm_prices", data_type, list(symbols))


def cover(connection: Connection, data_type: str, symbols: Sequence[str], first_day: date, last_day: date) -> None:
    """Note that the provider has answered for these days, except today."""
    parameters = {"data_type": data_type, "first_day": first_day, "last_day": last_day}
    driver_rows(connection, driver_query("prices.cover"), parameters | {"symbols": arrays.texts(symbols)})


def _note_absent_days(connection: Connection, data_type: str, stored: Mapping[str, Sequence[date]]) -> None:
    """Note the trading days that an answer for latest prices lacked between the days of each symbol.

    Days that follow each other, except for a weekend, lack none: most answers need no statement.
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


def _cover_read(
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


def _note_overlap(connection: Connection, call: Call, verdicts: Mapping[str, Verdict], stored: Collection[str]) -> None:
    """Record how daily bars restated stored days, and which bars stored now are not final.

    A duty fetches a history again if it was restated by one ratio, and bars until they are final.
    """
    restated = [
        {
            "symbol": symbol,
            "kind": restatement.kind.value,
            "ratio": None if restatement.ratio is None else str(restatement.ratio),
            "days": len(restatement.times),
            "largest": str(restatement.largest),
            "first_on": restatement.first_at.date().isoformat(),
            "last_on": restatement.last_at.date().isoformat(),
        }
        for symbol, verdict in verdicts.items()
        if (restatement := verdict.restatement) is not None
    ]
    recent = [
        row
        for symbol, verdict in verdicts.items()
        if symbol in stored
        for row in verdict.good.after(call.claimed_at - _RECENT)
    ]
    if restated or recent:
        call_sql(
            connection,
            "note_overlap",
            call.data_type,
            call.provider,
            call.id,
            json.dumps(restated),
            [row.symbol for row in recent],
            [row.observed_at for row in recent],
        )
