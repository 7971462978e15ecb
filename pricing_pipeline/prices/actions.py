"""Corporate actions: splits, spin-offs, dividends and capital gains, stored beside prices, applied when these are read.

db/functions/prices/history.sql applies them; plausibility.py recognizes restated prices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import (
    CapitalGain,
    CorporateAction,
    Dividend,
    RejectedValue,
    SpinOff,
    Split,
)
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.judging.answers import Judgement
from pricing_pipeline.providers.values import midnight
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class StoredAction:
    """A corporate action, believed since `recorded_at` (UTC), with its source: a provider, or a person."""

    action: CorporateAction
    provider: str
    call_id: int
    recorded_at: datetime
    entered_by: str | None
    """The person who entered it, for the `reason`; None when its provider reported it."""
    reason: str | None


@dataclass(frozen=True, slots=True)
class Revision:
    """A corporate action that was believed until `revised_at` (UTC).

    `removed_by` is the person who removed or replaced it; None when its provider reported another one.
    """

    stored: StoredAction
    revised_at: datetime
    removed_by: str | None
    removed_because: str | None


def store(connection: Connection, judged: Judgement) -> list[RejectedValue]:
    """Store an answer's actions within the caller's transaction, except payments that cannot be true; returns these.

    Payments are judged beside the stored prices, so it comes after these are stored. If the level of a symbol's prices
    is doubted, the splits that were undone for them are doubted too. Call it only for symbols whose tasks the claim
    still owns.
    """
    call, answer = judged.call, judged.answer
    off_level = judged.off_level
    reported_since = {symbol: day for symbol, day in sorted(answer.actions_since.items()) if symbol not in off_level}
    told = [action for action in answer.actions if action.symbol not in off_level]
    wrong = _doubted(connection, call, [action for action in told if isinstance(action, Dividend)])
    rows = [to_row(action) for action in told if action not in wrong]
    if reported_since or rows:
        call_sql(
            connection,
            "merge_actions",
            call.data_type,
            call.provider,
            call.id,
            json.dumps(rows),
            list(reported_since),
            list(reported_since.values()),
            sorted(reported_since.keys() & answer.gains_reported),
        )
    return list(wrong.values())


def _doubted(
    connection: Connection, call: Call, payments: Sequence[Dividend]
) -> Mapping[CorporateAction, RejectedValue]:
    """Those of the payments that cannot be true beside the stored prices and each other, with the reason."""
    if not payments:
        return {}
    rows = json.dumps([to_row(payment) for payment in payments])
    rejected: dict[CorporateAction, RejectedValue] = {}
    for row in call_sql(connection, "doubted_payments", call.data_type, rows):
        payment = _PAYMENTS[row.kind](row.symbol, row.ex_on, row.cash, row.currency)
        currency = "" if row.currency is None else f" --currency {row.currency}"
        entered = f"{row.symbol} {row.ex_on} --{row.kind.replace('_', '-')} {row.cash:f}{currency}"
        reason = f"{row.reason}. If it is true, enter it: pricing-pipeline action add {entered}"
        rejected[payment] = RejectedValue(row.symbol, midnight(row.ex_on), reason, f"{row.cash:f}")
    return rejected


def read(connection: Connection, asset_class: str, symbol: str, as_of: datetime | None = None) -> list[StoredAction]:
    """The corporate actions of an instrument, newest first, as believed at `as_of` (None = now)."""
    parameters = {"asset_class": asset_class, "symbol": symbol, "as_of": as_of}
    return [_stored(symbol, row) for row in connection.execute(query("actions.read"), parameters)]


def revisions(connection: Connection, asset_class: str, symbol: str, ex_on: date) -> list[Revision]:
    """What is no longer believed about a day, newest first."""
    parameters = {"asset_class": asset_class, "symbol": symbol, "ex_on": ex_on}
    return [
        Revision(_stored(symbol, row), row.revised_at, row.removed_by, row.removed_because)
        for row in connection.execute(query("actions.revisions"), parameters)
    ]


def _stored(symbol: str, row: Any) -> StoredAction:
    return StoredAction(
        _PAYMENTS[row.kind](symbol, row.ex_on, row.cash, row.currency)
        if row.kind in _PAYMENTS
        else _RATIOS[row.kind](symbol, row.ex_on, row.new_shares, row.old_shares),
        row.provider,
        row.call_id,
        row.recorded_at,
        row.entered_by,
        row.reason,
    )


@dataclass(frozen=True, slots=True)
class Unjudged:
    """An instrument with new splits, known `until` a time (UTC), by which its quarantined values were not judged yet.

    `data_types` are its daily ones. `by_whom` reported the newest split, and `why` names it.
    """

    asset_class: str
    symbol: str
    until: datetime
    data_types: Sequence[str]
    by_whom: str
    why: str


def unjudged(connection: Connection) -> list[Unjudged]:
    """The instruments whose quarantined values must be judged again, the longest waiting first; at most twenty."""
    return [
        Unjudged(row.asset_class, row.symbol, row.until, row.data_types or (), row.by_whom, row.why)
        for row in connection.execute(query("actions.unjudged"))
    ]


def note_judged(connection: Connection, instrument: Unjudged) -> None:
    """Note that quarantined values were judged by known splits; histories divided by one ratio are fetched again."""
    call_sql(connection, "note_judged", instrument.asset_class, instrument.symbol, instrument.until)


def classes(connection: Connection, symbol: str) -> list[str]:
    """Asset classes in which an instrument has this symbol."""
    return list(connection.execute(query("actions.classes"), {"symbol": symbol}).scalars())


def class_of(connection: Connection, symbol: str, wanted: str | None) -> str:
    """The asset class of a symbol. Raises UnknownSymbol if it has none, or several and none was chosen."""
    known = [class_ for class_ in classes(connection, symbol) if wanted in (None, class_)]
    if len(known) == 1:
        return known[0]
    if known:
        raise UnknownSymbol(
            f"{symbol} names instruments of several classes: {', '.join(known)}. Say which by --asset-class, over HTTP "
            f"by ?asset_class={known[0]}."
        )
    raise data_type_registry.unknown_symbol(connection, symbol, asset_class=wanted)


_RATIOS: Mapping[str, type[Split]] = {"split": Split, "spin_off": SpinOff}
_PAYMENTS: Mapping[str, type[Dividend]] = {"dividend": Dividend, "capital_gain": CapitalGain}
_KINDS = {type_: kind for kind, type_ in (*_RATIOS.items(), *_PAYMENTS.items())}


def kind_of(action: CorporateAction) -> str:
    """`split`, `spin_off`, `dividend` or `capital_gain`."""
    return _KINDS[type(action)]


def digits(number: Decimal) -> str:
    """A ratio or amount with no more digits than it needs, and no exponent."""
    return format(number.normalize(), "f")


def content_of(stored: StoredAction) -> dict[str, Any]:
    """An action as the API and --json answer it: its numbers are strings."""
    action = stored.action
    content: dict[str, Any] = {"ex_on": action.ex_on, "kind": kind_of(action)}
    match action:
        case Split():
            content |= {"new_shares": digits(action.new_shares), "old_shares": digits(action.old_shares)}
        case Dividend():
            content |= {"amount": digits(action.amount), "currency": action.currency}
    return content | {
        "provider": stored.provider,
        "call_id": stored.call_id or None,
        "recorded_at": stored.recorded_at,
        "entered_by": stored.entered_by,
        "reason": stored.reason,
    }


def enter(
    connection: Connection,
    asset_class: str,
    action: CorporateAction,
    by: str,
    why: str | None = None,
    *,
    is_further: bool = False,
) -> str:
    """Enter an action for a person, as the owner; returns `added`, `replaced` or `known_already`.

    `ex_on`, the first trading day without it, is a day of its exchange. The ratio of that day is replaced, or the
    payment of this kind in this currency; a payment that `is_further` is added.
    """
    row = to_row(action)
    value = [row.get(name) for name in ("new_shares", "old_shares", "cash", "currency")]
    about = (asset_class, action.symbol, action.ex_on, row["kind"])
    return str(call_sql(connection, "enter_action", *about, *value, by, why, is_further).scalar_one())


def remove(
    connection: Connection,
    asset_class: str,
    symbol: str,
    ex_on: date,
    kind: str,
    by: str,
    why: str | None = None,
    *,
    currency: str | None = None,
) -> bool:
    """Remove an action, or all payments of a kind and day (in one currency), as the owner; False if it does not exist.

    It stays as a revision, and is not believed if its provider reports the same again.
    """
    return bool(
        call_sql(connection, "remove_action", asset_class, symbol, ex_on, kind, by, why, currency).scalar_one()
        == "removed"
    )


def to_row(action: CorporateAction) -> dict[str, Any]:
    """An action as the database takes it in JSON."""
    row = {"symbol": action.symbol, "ex_on": action.ex_on.isoformat(), "kind": kind_of(action)}
    match action:
        case Split():
            return row | {"new_shares": str(action.new_shares), "old_shares": str(action.old_shares)}
        case Dividend():
            return row | {"cash": str(action.amount), "currency": action.currency}
