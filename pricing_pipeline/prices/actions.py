"""Corporate actions: splits, spin-offs, dividends and capital gains, stored beside prices, applied when these are read.

db/functions/prices/history.sql applies them; plausibility.py recognizes restated prices.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import prod
from typing import Any

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain.answers import (
    SAME_ACTION,
    Answer,
    CapitalGain,
    CorporateAction,
    Dividend,
    RejectedValue,
    SpinOff,
    Split,
)
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.validation.knowledge import ROUNDING, Known, Point, Verdict

FINAL_AFTER = timedelta(hours=25)
"""How long after the midnight UTC of its day a bar is final, for every exchange: an hour after the day's end."""
_RECENT = timedelta(days=40)
"""Older bars are not looked up: they are final."""


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


def store(
    connection: Connection,
    call: Call,
    answer: Answer,
    symbols: Collection[str],
    *,
    without: Collection[CorporateAction] = (),
) -> int:
    """Store an answer's actions of some symbols, except those in `without`, within the caller's transaction.

    Returns how many are new or corrected. Call it only for symbols whose tasks the claim still owns.
    """
    told_since = {symbol: day for symbol, day in sorted(answer.actions_since.items()) if symbol in symbols}
    rows = [_row(action) for action in answer.actions if action.symbol in symbols and action not in without]
    if not told_since and not rows:
        return 0
    parameters = {
        "data_type": call.data_type,
        "provider": call.provider,
        "call_id": call.id,
        "actions": json.dumps(rows),
        "symbols": list(told_since),
        "since": list(told_since.values()),
        "gains_told": sorted(told_since.keys() & answer.gains_told),
    }
    return int(connection.execute(query("actions.merge"), parameters).scalar_one())


def as_confirmed(connection: Connection, call: Call, answer: Answer) -> Answer:
    """The answer, read with its unconfirmed splits if a person has entered all of them."""
    if (unsure := answer.unconfirmed) is None:
        return answer
    parameters = {
        "data_type": call.data_type,
        "symbols": [unsure.splits[0].symbol],
        "first_times": [call.claimed_at],
        "last_times": [call.claimed_at],
    }
    ((_, _, _, days, ratios, *_),) = connection.execute(query("actions.known_basis"), parameters)
    believed = {day: float(ratio) for day, ratio in zip(days or (), ratios or (), strict=True)}
    are_known = all(
        any(_are_same_split(*known, split.ex_on, split.shares) for known in believed.items())
        for split in unsure.splits
    )
    return unsure.answer if are_known else answer


def doubted(
    connection: Connection, call: Call, answer: Answer, symbols: Collection[str]
) -> Mapping[CorporateAction, RejectedValue]:
    """Payments of the answer that cannot be true beside the stored prices and its own, with the reason."""
    payments = [
        payment for payment in answer.actions if isinstance(payment, Dividend) and payment.symbol in symbols
    ]
    if not payments:
        return {}
    rows = json.dumps([_row(payment) for payment in payments])
    rejected: dict[CorporateAction, RejectedValue] = {}
    for row in connection.execute(query("actions.doubted"), {"data_type": call.data_type, "actions": rows}):
        payment = _PAYMENTS[row.kind](row.symbol, row.ex_on, row.cash, row.currency)
        currency = "" if row.currency is None else f" --currency {row.currency}"
        entered = f"{row.symbol} {row.ex_on} --{row.kind.replace('_', '-')} {row.cash:f}{currency}"
        at = datetime.combine(row.ex_on, datetime.min.time(), UTC)
        reason = f"{row.reason}. If it is true, enter it: pricing-pipeline action add {entered}"
        rejected[payment] = RejectedValue(row.symbol, at, reason, f"{row.cash:f}")
    return rejected


def refined(
    connection: Connection,
    call: Call,
    answer: Answer,
    known: Mapping[str, Known],
    bases: Mapping[str, Adjustment] = {},
) -> dict[str, Known]:
    """The known daily values, with their splits (those of the answer too) and the stored bars that were not final.

    If a history is divided by the splits until each value was recorded, the values here are also divided by the splits
    since then, as the answer should be. `bases` names symbols whose answer is on another basis than their history;
    their known values are converted to it.
    """
    found_spans = {symbol: span for symbol, span in answer.observations.spans().items() if symbol in known}
    symbols = sorted(found_spans)
    parameters = {
        "data_type": call.data_type,
        "symbols": arrays.texts(symbols),
        "first_times": arrays.plain(found_spans[symbol][0] for symbol in symbols),
        "last_times": arrays.plain(found_spans[symbol][1] for symbol in symbols),
    }
    named_splits: defaultdict[str, dict[date, float]] = defaultdict(dict)
    for action in answer.actions:
        if isinstance(action, Split):
            named_splits[action.symbol][action.ex_on] = action.shares
    refuted = _refuted(connection, call, answer) if named_splits else frozenset()
    refined_known = dict(known)
    rows = driver_rows(connection, driver_query("actions.known_basis"), parameters)
    for symbol, may_split, adjustment, days, ratios, newest, earlier, same_times, same_recorded in rows:
        splits: dict[date, Decimal] = dict(zip(days or (), ratios or (), strict=True))
        recorded: dict[datetime, datetime] = dict(zip(same_times or (), same_recorded or (), strict=True))
        about = replace(
            known[symbol],
            adjustment=None if adjustment is None else Adjustment(adjustment),
            are_splits_told=symbol in answer.actions_since,
            has_splits=bool(days or named_splits[symbol]) or (may_split and symbol not in answer.unsplit),
            # A NAV is published once, and does not change with its day.
            provisional=frozenset(at for at, then in recorded.items() if then - at < FINAL_AFTER)
            if call.fetcher is Fetcher.DAILY_BARS
            else frozenset(),
        )
        believed = {day: float(ratio) for day, ratio in splits.items()}
        sure = {day: shares for day, shares in named_splits[symbol].items() if (symbol, day) not in refuted}
        applied = _merge_splits(believed, sure)
        if about.adjustment is Adjustment.SPLITS:
            since = {
                day: ratio for day, ratio in splits.items() if day <= call.claimed_at.astimezone(UTC).date()
            }
            about = _of_later_shares(about, _Recorded(newest, earlier, recorded), since)
        if symbol in bases:
            about = _on_basis(about, bases[symbol], applied, answer.observations.of({symbol}))
        if about.adjustment is not Adjustment.SPLITS:
            unnamed = _unnamed(
                believed, named_splits[symbol], answer.actions_since.get(symbol), call.claimed_at
            )
            about = replace(about, splits=applied, unnamed=unnamed)
        refined_known[symbol] = about
    return refined_known


def _on_basis(
    about: Known, basis: Adjustment, splits: Sequence[tuple[date, float]], rows: Sequence[Observation]
) -> Known:
    """The known values on the answer's basis. If a value differs by rounding alone, the answer's is taken."""
    closes = {row.observed_at: row.close for row in rows}

    def converted(at: datetime, value: Decimal) -> Decimal:
        shares = Decimal(prod(shares for ex_on, shares in splits if ex_on > at.date()))
        value = value * shares if basis is Adjustment.RAW else value / shares
        return closes[at] if at in closes and abs(closes[at] / value - 1) < ROUNDING else value

    return replace(
        about,
        adjustment=basis,
        stored={at: converted(at, value) for at, value in about.stored.items()},
        anchors=tuple(Point(point.at, converted(point.at, point.value)) for point in about.anchors),
        restated=frozenset(),
    )


def _refuted(connection: Connection, call: Call, answer: Answer) -> frozenset[tuple[str, date]]:
    """The splits and spin-offs of the answer that a person has removed or replaced, by symbol and day."""
    rows = json.dumps([_row(action) for action in answer.actions if isinstance(action, Split)])
    parameters = {"data_type": call.data_type, "provider": call.provider, "actions": rows}
    refuted = connection.execute(query("actions.refuted"), parameters)
    return frozenset((row.symbol, row.ex_on) for row in refuted)


def _merge_splits(
    believed: Mapping[date, float], named: Mapping[date, float]
) -> tuple[tuple[date, float], ...]:
    """Believed splits and those that the answer names; the same split counts once, on its believed day."""
    new = {
        day: shares
        for day, shares in named.items()
        if day in believed
        or not any(
            _are_same_split(*known, day, shares) for known in believed.items() if known[0] not in named
        )
    }
    return tuple(sorted({**believed, **new}.items()))


def _unnamed(
    believed: Mapping[date, float], named: Mapping[date, float], since: date | None, now: datetime
) -> tuple[tuple[date, float], ...]:
    """Believed splits that an answer does not name, though it names all splits after `since`."""
    if since is None:
        return ()
    today = now.astimezone(UTC).date()
    return tuple(
        split
        for split in believed.items()
        if since < split[0] <= today and not any(_are_same_split(*split, *other) for other in named.items())
    )


def _are_same_split(day: date, shares: float, other_day: date, other_shares: float) -> bool:
    """Whether splits of two days may be the same: sources differ by some days about its first day."""
    return abs(other_day - day) <= SAME_ACTION and abs(other_shares / shares - 1) < 0.01


def note_overlap(
    connection: Connection, call: Call, verdicts: Mapping[str, Verdict], stored: Collection[str]
) -> None:
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
        parameters = {
            "data_type": call.data_type,
            "provider": call.provider,
            "call_id": call.id,
            "restated": json.dumps(restated),
            "symbols": [row.symbol for row in recent],
            "times": [row.observed_at for row in recent],
        }
        connection.execute(query("actions.note_overlap"), parameters)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """When stored values were recorded: the newest, the last before the answer, and those that the answer repeats."""

    newest: datetime | None
    earlier: datetime | None
    same: Mapping[datetime, datetime]


def _of_later_shares(about: Known, recorded: _Recorded, splits: Mapping[date, Decimal]) -> Known:
    def since(then: datetime | None) -> Decimal:
        """New shares for an old one, by the splits that came after a value was recorded."""
        ratio = Decimal(1)
        for ex_on, shares in splits.items():
            if then is not None and ex_on > then.astimezone(UTC).date():
                ratio *= shares
        return ratio

    if not splits:
        return about

    def of_anchor(point: Point) -> Decimal:
        is_newest = about.newest_at is not None and point.at >= about.newest_at
        return since(recorded.same.get(point.at, recorded.newest if is_newest else recorded.earlier))

    return replace(
        about,
        stored={at: value / since(recorded.same.get(at)) for at, value in about.stored.items()},
        anchors=tuple(Point(point.at, point.value / of_anchor(point)) for point in about.anchors),
        restated=frozenset(at for at, then in recorded.same.items() if since(then) != 1),
    )


def read(
    connection: Connection, asset_class: str, symbol: str, as_of: datetime | None = None
) -> list[StoredAction]:
    """The corporate actions of an instrument, newest first, as believed at `as_of` (None = now)."""
    parameters = {"asset_class": asset_class, "symbol": symbol, "as_of": as_of}
    return [_stored(symbol, row) for row in connection.execute(query("actions.read"), parameters)]


def revisions(connection: Connection, asset_class: str, symbol: str, ex_on: date) -> list[Revision]:
    """What was believed of a day and is no more, the newest first."""
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
    parameters = {
        "asset_class": instrument.asset_class,
        "symbol": instrument.symbol,
        "until": instrument.until,
    }
    connection.execute(query("actions.note_judged"), parameters)


def classes(connection: Connection, symbol: str) -> list[str]:
    """Asset classes in which an instrument has this symbol."""
    return list(connection.execute(query("actions.classes"), {"symbol": symbol}).scalars())


def class_of(connection: Connection, symbol: str, wanted: str | None) -> str:
    """The asset class that is meant. Raises UnknownSymbol if there is none, or are several and none is wanted."""
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
    parameters = {"new_shares": None, "old_shares": None, "cash": None, "currency": None} | _row(action)
    return str(
        connection.execute(
            query("actions.enter"),
            parameters
            | {
                "asset_class": asset_class,
                "ex_on": action.ex_on,
                "by_whom": by,
                "why": why,
                "is_further": is_further,
            },
        ).scalar_one()
    )


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
    """Remove an action, or all payments of a kind and day (in one currency), as the owner; False when there is none.

    It stays as a revision, and is not believed if its provider reports the same again.
    """
    parameters = {
        "asset_class": asset_class,
        "symbol": symbol,
        "ex_on": ex_on,
        "kind": kind,
        "by_whom": by,
        "why": why,
        "currency": currency,
    }
    return bool(connection.execute(query("actions.remove"), parameters).scalar_one() == "removed")


def _row(action: CorporateAction) -> dict[str, Any]:
    row = {"symbol": action.symbol, "ex_on": action.ex_on.isoformat(), "kind": kind_of(action)}
    match action:
        case Split():
            return row | {"new_shares": str(action.new_shares), "old_shares": str(action.old_shares)}
        case Dividend():
            return row | {"cash": str(action.amount), "currency": action.currency}
