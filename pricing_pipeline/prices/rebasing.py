"""A divided history becomes one as traded when its own provider tells all of it so; of a part, all is asked for.

What the bases are is told in docs/truth.md. Values are judged elsewhere; here is decided which basis a history has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.domain.answers import Adjustment, Answer, Observation
from pricing_pipeline.domain.bars import Bars, by_symbol, of_symbols
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.validation.knowledge import Known, Verdict
from pricing_pipeline.validation.restatement import Restatement, RestatementKind


@dataclass(frozen=True, slots=True)
class BasisChange:
    """The own provider of a divided history has told days of it as traded.

    `is_whole`: it was asked about every stored day. `is_asked`: all of it was asked for lately, for the same cause.
    """

    is_whole: bool
    is_asked: bool


def lock_basis(connection: Connection, call: Call) -> None:
    """Have no other session change the basis of these histories until the caller's transaction ends."""
    if call.fetcher is Fetcher.DAILY_BARS:
        named = {"data_type": call.data_type, "symbols": arrays.texts(call.symbols)}
        driver_rows(connection, driver_query("rebasing.lock_basis"), named)


def find_basis_changes(
    connection: Connection,
    call: Call,
    answer: Answer,
    observed: Sequence[Observation],
    known: Mapping[str, Known],
) -> dict[str, BasisChange]:
    """The symbols of which an answer tells days as traded whose history is divided, and its provider's own.

    Their histories are locked then. What nobody has confirmed yet is no other basis. Divided days change nothing: one
    split that cannot be read would take what is known as traded out of reach.
    """
    if call.fetcher is not Fetcher.DAILY_BARS or call.window is None or answer.unconfirmed is not None:
        return {}
    other = set()
    for symbol, rows in by_symbol(observed).items():
        bases = {rows.adjustment} if isinstance(rows, Bars) else {row.adjustment for row in rows}
        if bases == {Adjustment.RAW} and known[symbol].adjustment not in (None, Adjustment.RAW):
            other.add(symbol)
    if not other:
        return {}
    parameters = {
        "data_type": call.data_type,
        "provider": call.provider,
        "symbols": arrays.texts(sorted(other)),
    }
    return {
        symbol: BasisChange(call.window.start <= first and last <= call.window.end, is_asked)
        for symbol, first, last, is_own, is_asked in driver_rows(
            connection, driver_query("rebasing.extents"), parameters
        )
        if is_own
    }


def change_bases(
    connection: Connection,
    call: Call,
    observed: Sequence[Observation],
    verdicts: Mapping[str, Verdict],
    changes: Mapping[str, BasisChange],
) -> set[str]:
    """Ready histories for days as traded, where all of them are believed. Call it before those values are stored.

    Returns the symbols of which all days are to be asked for instead, if the answer left some out, and was not asked
    for that lately. Then nothing of the answer is stored.
    """
    asked = set()
    for symbol, change in changes.items():
        verdict = verdicts[symbol]
        if change.is_whole and (not verdict.good or _has_changed(connection, call, symbol, change, verdict)):
            continue
        verdict.other_basis += len(verdict.good)
        verdict.good, verdict.confirmed = (), []
        if not change.is_asked:
            asked.add(symbol)
            times = frozenset(row.observed_at for row in of_symbols(observed, {symbol}))
            verdict.restatement = Restatement(RestatementKind.BASIS, times, Decimal(0), ratio=Decimal(1))
    return asked


def _has_changed(
    connection: Connection, call: Call, symbol: str, change: BasisChange, verdict: Verdict
) -> bool:
    """Whether the history has the other basis now: every stored day came, or was left out twice."""
    is_restated = bool(verdict.confirmed) or (
        verdict.restatement is not None and verdict.restatement.is_constant
    )
    parameters = {
        "data_type": call.data_type,
        "symbol": symbol,
        "call_id": call.id,
        "basis": Adjustment.RAW.value,
        "times": arrays.plain(row.observed_at for row in verdict.good),
        "may_leave": change.is_asked and not is_restated,
    }
    ((has_changed,),) = driver_rows(connection, driver_query("rebasing.change"), parameters)
    return bool(has_changed)
