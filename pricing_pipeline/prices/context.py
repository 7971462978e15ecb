"""Load the context of an answer: the known values by which it is judged. Decides and writes nothing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import call_sql, driver_query
from pricing_pipeline.domain.answers import Answer, Split
from pricing_pipeline.domain.bars import StoredValues
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.exchanges import currency_of
from pricing_pipeline.domain.observations import Adjustment, Observations, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging import basis
from pricing_pipeline.judging.answers import Context, Judgement
from pricing_pipeline.judging.basis import Basis, BasisChange
from pricing_pipeline.judging.knowledge import DEFAULT_SCALE, Known, Peer, Point, Rival, Traded
from pricing_pipeline.prices import actions
from pricing_pipeline.registry import calendars

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ADJUSTMENTS = {adjustment.value: adjustment for adjustment in Adjustment}
_NOTHING: Mapping[datetime, Decimal] = {}


def load(connection: Connection, call: Call, answer: Answer, symbols: Collection[str]) -> Context:
    """The context of an answer about some symbols. Locks the bases of their histories until the transaction ends."""
    if call.fetcher.contents is not Contents.PRICES:
        return Context(call, answer.of(symbols))
    answer = _as_confirmed(connection, call, answer).of(symbols)
    if call.fetcher is Fetcher.DAILY_BARS:
        _rows(connection, "context.share_basis", call, symbols=arrays.texts(call.symbols))
    known, bases = _load(connection, call, answer)
    changes = _changes(connection, call, basis.may_change(call, answer, bases))
    if changes:  # other sessions may have stored days before the lock
        known, bases = _load(connection, call, answer)
    known = _refined(connection, call, answer, known, bases, changes)
    missing = _lacking(connection, call, answer)
    if not missing:
        return Context(call, answer, known, changes)
    days = missing.dates()
    unasked = replace(answer, observations=missing)
    known_of_unasked = known_of(connection, replace(call, window=Window(min(days), max(days))), unasked)
    return Context(call, answer, known, changes, missing, known_of_unasked)


def with_evidence(connection: Connection, context: Context, judged: Judgement) -> Context | None:
    """The context with evidence for the doubted values; None without evidence, or without doubted values."""
    doubted = judged.answer.observations.of(judged.in_doubt)
    proved = evidence(connection, context.call, doubted, context.known) if doubted else {}
    return replace(context, known={**context.known, **proved}) if proved else None


def known_of(connection: Connection, call: Call, answer: Answer) -> dict[str, Known]:
    """The known values of an answer that changes no basis."""
    known, bases = _load(connection, call, answer)
    return _refined(connection, call, answer, known, bases, {})


def known_values(connection: Connection, call: Call, observations: Observations) -> dict[str, Known]:
    """The known values of symbols, by which latest prices are judged and with which values are stored."""
    spans = observations.spans()
    if not spans:
        return {}
    parameters = {**arrays.spans(spans), "provider": call.provider, "is_latest": call.window is None}
    rows = _rows(connection, "context.known_values", call, **parameters)
    return {row[0]: _known(_Row(*row), call.asset_class) for row in rows}


def evidence(connection: Connection, call: Call, rows: Observations, known: Mapping[str, Known]) -> dict[str, Known]:
    """The known values of doubted symbols with evidence for them. Only symbols that have any.

    Evidence is decisions of people, trading before the answer, and other doubted values: earlier ones of the provider,
    and those of other providers.
    """
    own = rows.by_symbol()
    pairs = {"provider": call.provider, "symbols": arrays.texts(sorted(own))}
    found: defaultdict[str, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for symbol, at, value in _rows(connection, "context.witnesses", call, **pairs):
        found[symbol]["witnesses"].append(Point(at, value))
    for symbol, at, value in _rows(connection, "context.released", call, **pairs):
        found[symbol]["released"].append((at, value))
    if call.fetcher is Fetcher.DAILY_BARS:
        for symbol, *day in _rows(connection, "context.trading", call, **arrays.spans(rows.spans())):
            found[symbol]["trading"].append(Traded(*day))
    firsts = [own[symbol][0] for symbol in sorted(own)]
    rivals = {
        "provider": call.provider,
        "currencies": arrays.texts(first.currency for first in firsts),
        "bases": arrays.plain(first.adjustment for first in firsts),
    }
    for symbol, at, value, provider in _rows(
        connection, "context.rivals", call, **arrays.spans(rows.spans()), **rivals
    ):
        found[symbol]["unsettled"].append(Rival(at, value, provider))
    return {
        symbol: replace(
            known[symbol],
            witnesses=tuple(parts["witnesses"]),
            released=frozenset(parts["released"]),
            trading=tuple(parts["trading"]),
            unsettled={rival.at: rival for rival in parts["unsettled"]},
        )
        for symbol, parts in found.items()
    }


def _load(connection: Connection, call: Call, answer: Answer) -> tuple[dict[str, Known], dict[str, Basis]]:
    known = known_values(connection, call, answer.observations)
    if not (known and call.fetcher.is_daily):
        return known, {}
    bases = {
        symbol: Basis(
            None if adjustment is None else _ADJUSTMENTS[adjustment],
            dict(zip(days or (), ratios or (), strict=True)),
            may_split,
            newest,
            earlier,
            dict(zip(times or (), recorded or (), strict=True)),
        )
        for symbol, may_split, adjustment, days, ratios, newest, earlier, times, recorded in _rows(
            connection, "context.known_basis", call, **arrays.spans(answer.observations.spans())
        )
    }
    splits = [actions.to_row(action) for action in answer.actions if isinstance(action, Split)]
    refuted: defaultdict[str, set[date]] = defaultdict(set)
    if splits:
        parameters = {"provider": call.provider, "actions": json.dumps(splits)}
        for symbol, ex_on in _rows(connection, "context.refuted", call, **parameters):
            refuted[symbol].add(ex_on)
    return known, {symbol: replace(own, refuted=frozenset(refuted[symbol])) for symbol, own in bases.items()}


def _refined(
    connection: Connection,
    call: Call,
    answer: Answer,
    known: Mapping[str, Known],
    bases: Mapping[str, Basis],
    changes: Mapping[str, BasisChange],
) -> dict[str, Known]:
    refined = dict(known)
    for symbol, own in bases.items():
        is_rebased = symbol in changes and changes[symbol].is_whole
        refined[symbol] = basis.refined(known[symbol], own, call, answer.of({symbol}), is_rebased=is_rebased)
    if call.fetcher is Fetcher.DAILY_BARS:
        closed = calendars.without_session(connection, call.data_type, answer.observations)
        refined |= {symbol: replace(refined[symbol], closed=days) for symbol, days in closed.items()}
    return refined


def _changes(connection: Connection, call: Call, symbols: Collection[str]) -> dict[str, BasisChange]:
    """The histories that may change their basis, if most of each is this provider's; locks them."""
    if not symbols or call.window is None:
        return {}
    rows = call_sql(connection, "lock_basis", call.data_type, call.provider, sorted(symbols))
    return {
        row.symbol: BasisChange(
            row.first_day,
            row.last_day,
            call.window.start <= row.first_day and row.last_day <= call.window.end,
            row.is_asked,
        )
        for row in rows
        if row.is_own
    }


def _as_confirmed(connection: Connection, call: Call, answer: Answer) -> Answer:
    """The answer, read with its unconfirmed splits if a person has entered all of them."""
    if (unsure := answer.unconfirmed) is None:
        return answer
    parameters = {
        "symbols": arrays.texts([unsure.splits[0].symbol]),
        "first_times": arrays.plain([call.claimed_at]),
        "last_times": arrays.plain([call.claimed_at]),
    }
    ((_, _, _, days, ratios, *_),) = _rows(connection, "context.known_basis", call, **parameters)
    believed = {day: float(ratio) for day, ratio in zip(days or (), ratios or (), strict=True)}
    return unsure.answer if basis.are_believed(unsure, believed) else answer


def _lacking(connection: Connection, call: Call, answer: Answer) -> Rows:
    """The values that came unasked, of days that are over and have no value; in order, and only one of a day."""
    unasked = Rows(row for value in answer.rejected for row in value.unasked)
    if not unasked:
        return unasked
    days = {"symbols": arrays.texts(row.symbol for row in unasked), "days": arrays.plain(unasked.dates())}
    lacking = set(_rows(connection, "context.lacking", call, **days))
    times = Counter((row.symbol, row.observed_at) for row in unasked)
    return Rows(
        sorted(
            (
                row
                for row, day in zip(unasked, unasked.dates(), strict=True)
                if (row.symbol, day) in lacking and times[row.symbol, row.observed_at] == 1
            ),
            key=lambda row: (row.symbol, row.observed_at),
        )
    )


def _rows(connection: Connection, name: str, call: Call, **parameters: object) -> list[tuple[Any, ...]]:
    return driver_rows(connection, driver_query(name), {"data_type": call.data_type, **parameters})


class _Row(NamedTuple):
    """A row of the query `context.known_values`."""

    symbol: str
    scale: int | None
    currency: str | None
    adjustment: str | None
    lowest: Decimal | None
    highest: Decimal | None
    are_jumps_trusted: bool
    newest_at: datetime | None
    newest: int
    newest_scale: int
    earlier_at: datetime | None
    earlier: int
    earlier_scale: int
    later_at: datetime | None
    later: int
    later_scale: int
    kin_at: datetime | None
    kin: int
    kin_scale: int
    same_times: list[int] | None
    same_amounts: list[int] | None
    same_scales: list[int] | None
    other_times: list[datetime] | None
    other_values: list[Decimal] | None
    other_providers: list[str] | None
    rejected_times: list[datetime] | None
    rejected_values: list[Decimal] | None
    peer_at: datetime | None
    peer_value: Decimal
    peer_low: Decimal | None
    peer_high: Decimal | None
    peer_currency: str | None
    peer_type: str
    peer_is_bar: bool
    peer_splits: list[float] | None


def _known(row: _Row, asset_class: str) -> Known:
    return Known(
        DEFAULT_SCALE if row.scale is None else row.scale,
        row.currency or currency_of(asset_class, row.symbol),
        None if row.adjustment is None else _ADJUSTMENTS[row.adjustment],
        row.lowest,
        row.highest,
        row.newest_at,
        row.are_jumps_trusted,
        StoredValues(row.same_times, row.same_amounts or (), row.same_scales or ()) if row.same_times else _NOTHING,
        tuple(_anchors(row)),
        others={
            at: Rival(at, value, provider)
            for at, value, provider in zip(
                row.other_times or (), row.other_values or (), row.other_providers or (), strict=True
            )
            if value > 0
        },
        is_rate=asset_class == "fx",
        peer=_peer(row),
        rejected=frozenset(zip(row.rejected_times or (), row.rejected_values or (), strict=True)),
    )


def _anchors(row: _Row) -> Iterator[Point]:
    """Values that new ones are compared with: of the pair, or, for its first ones, of another data type."""
    candidates = [
        (row.earlier_at, row.earlier, row.earlier_scale),
        (row.newest_at, row.newest, row.newest_scale),
        (row.later_at, row.later, row.later_scale),
    ]
    # On the day of a split, the peer may be in old or new shares: peers.py judges that.
    if not row.peer_splits:
        candidates.append((row.kin_at, row.kin, row.kin_scale))
    return (Point(at, to_decimal(amount, scale)) for at, amount, scale in candidates if at is not None and amount > 0)


def _peer(row: _Row) -> Peer | None:
    if row.peer_at is None:
        return None
    return Peer(
        row.peer_at,
        row.peer_value,
        row.peer_low,
        row.peer_high,
        row.peer_currency,
        row.peer_type,
        row.peer_is_bar,
        tuple(row.peer_splits or ()),
    )
