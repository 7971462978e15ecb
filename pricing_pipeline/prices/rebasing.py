"""Change the basis of a history from divided to as traded, when its own provider sends all of it as traded.

If the provider sends only a part as traded, the whole history is fetched. docs/truth.md explains the bases. This module
decides the basis of a history; other modules judge values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observations, Rows
from pricing_pipeline.prices import actions, known_values
from pricing_pipeline.validation.knowledge import Known, Verdict
from pricing_pipeline.validation.restatement import Restatement, RestatementKind


@dataclass(frozen=True, slots=True)
class BasisChange:
    """The own provider of a divided history has sent days of it as traded.

    `is_whole`: the call asked for every stored day. `is_asked`: the whole history was asked for lately, for this cause.
    """

    is_whole: bool
    is_asked: bool


def lock_basis(connection: Connection, call: Call) -> None:
    """Lock the basis of these histories against other sessions until the caller's transaction ends."""
    if call.fetcher is Fetcher.DAILY_BARS:
        named = {"data_type": call.data_type, "symbols": arrays.texts(call.symbols)}
        driver_rows(connection, driver_query("rebasing.lock_basis"), named)


def load_known(
    connection: Connection, call: Call, answer: Answer
) -> tuple[dict[str, Known], dict[str, BasisChange]]:
    """The known values to judge an answer by, and the histories that may change to the answer's basis."""
    loaded = known_values.load(connection, call, answer.observations)
    if not call.fetcher.is_daily:
        return loaded, {}
    known = actions.refined(connection, call, answer, loaded)
    changes = find_basis_changes(connection, call, answer, known)
    bases = {symbol: Adjustment.RAW for symbol, change in changes.items() if change.is_whole}
    return (actions.refined(connection, call, answer, loaded, bases) if bases else known), changes


def find_basis_changes(
    connection: Connection,
    call: Call,
    answer: Answer,
    known: Mapping[str, Known],
) -> dict[str, BasisChange]:
    """The symbols with days as traded in the answer and a divided history of the same provider; locks these histories.

    An unconfirmed answer changes no basis. Neither do divided days: with one unreadable split, the prices as traded
    could not be computed any more.
    """
    if call.fetcher is not Fetcher.DAILY_BARS or call.window is None or answer.unconfirmed is not None:
        return {}
    other = set()
    for symbol, rows in answer.observations.by_symbol().items():
        if rows.adjustments() == {Adjustment.RAW} and known[symbol].adjustment not in (None, Adjustment.RAW):
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
    observed: Observations,
    verdicts: Mapping[str, Verdict],
    changes: Mapping[str, BasisChange],
) -> set[str]:
    """Change histories to days as traded if all of these are believed. Call it before the values are stored.

    If the answer left out days, nothing of it is stored. Then, unless that happened lately, the symbol is returned: its
    whole history must be asked for instead.
    """
    asked = set()
    for symbol, change in changes.items():
        verdict = verdicts[symbol]
        if change.is_whole and (not verdict.good or _has_changed(connection, call, symbol, change, verdict)):
            continue
        verdict.other_basis += len(verdict.good)
        verdict.good, verdict.confirmed = Rows(), []
        if not change.is_asked:
            asked.add(symbol)
            times = frozenset(row.observed_at for row in observed.of({symbol}))
            verdict.restatement = Restatement(RestatementKind.BASIS, times, Decimal(0), ratio=Decimal(1))
    return asked


def _has_changed(
    connection: Connection, call: Call, symbol: str, change: BasisChange, verdict: Verdict
) -> bool:
    """Whether the history has the new basis now: every stored day came, or was left out twice."""
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
