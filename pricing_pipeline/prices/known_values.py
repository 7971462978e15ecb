"""Load the known values by which new values are judged; decides nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import Connection

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.domain.bars import StoredValues
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.exchanges import currency_of
from pricing_pipeline.domain.observations import Adjustment, Observations
from pricing_pipeline.registry import calendars
from pricing_pipeline.validation.knowledge import DEFAULT_SCALE, Known, Peer, Point, Rival, Traded

_ADJUSTMENTS = {adjustment.value: adjustment for adjustment in Adjustment}
_NOTHING: Mapping[datetime, Decimal] = {}


class _Row(NamedTuple):
    """A row of the query `known_values.load`."""

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


def load(connection: Connection, call: Call, observations: Observations) -> dict[str, Known]:
    """The known values of an answer's symbols; its values are judged by them and stored with them."""
    first_and_last = observations.spans()
    if not first_and_last:
        return {}
    symbols = sorted(first_and_last)
    parameters = {
        "data_type": call.data_type,
        "provider": call.provider,
        "symbols": arrays.texts(symbols),
        "first_times": arrays.plain(first_and_last[symbol][0] for symbol in symbols),
        "last_times": arrays.plain(first_and_last[symbol][1] for symbol in symbols),
        "is_latest": call.window is None,
    }
    rows = driver_rows(connection, driver_query("known_values.load"), parameters)
    return {row[0]: _known(_Row(*row), call.asset_class) for row in rows}


def trading(
    connection: Connection, call: Call, observations: Observations
) -> Mapping[str, tuple[Traded, ...]]:
    """The trading on the twenty stored days before an answer, by symbol; without symbols that have none."""
    if call.fetcher is not Fetcher.DAILY_BARS:
        return {}
    firsts = {symbol: first for symbol, (first, _) in observations.spans().items()}
    parameters = {
        "data_type": call.data_type,
        "symbols": arrays.texts(firsts),
        "first_times": arrays.plain(firsts.values()),
    }
    traded: defaultdict[str, tuple[Traded, ...]] = defaultdict(tuple)
    for symbol, *day in driver_rows(connection, driver_query("known_values.trading"), parameters):
        traded[symbol] += (Traded(*day),)
    return traded


def closed_days(
    connection: Connection, call: Call, observations: Observations
) -> Mapping[tuple[str, date], str]:
    """The symbols and days of an answer's daily bars on which their exchange has no session, with its calendar."""
    if call.fetcher is not Fetcher.DAILY_BARS:
        return {}
    rows_by_symbol = observations.by_symbol()
    pairs = [(symbol, day) for symbol, rows in rows_by_symbol.items() for day in rows.dates()]
    return calendars.without_session(connection, call.data_type, pairs)


def _known(row: _Row, asset_class: str) -> Known:
    return Known(
        DEFAULT_SCALE if row.scale is None else row.scale,
        row.currency or currency_of(asset_class, row.symbol),
        None if row.adjustment is None else _ADJUSTMENTS[row.adjustment],
        row.lowest,
        row.highest,
        row.newest_at,
        row.are_jumps_trusted,
        StoredValues(row.same_times, row.same_amounts or (), row.same_scales or ())
        if row.same_times
        else _NOTHING,
        tuple(_anchors(row)),
        others={
            at: Rival(at, value, provider)
            for at, value, provider in zip(
                row.other_times or (), row.other_values or (), row.other_providers or (), strict=True
            )
            if value > 0
        },
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
    return (
        Point(at, to_decimal(amount, scale))
        for at, amount, scale in candidates
        if at is not None and amount > 0
    )


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
