"""Prices: from exact decimals to integers with a scale and back, stored and read. No float on any path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from pricing_pipeline import columns, frames, known_values
from pricing_pipeline.bars import Bars, by_symbol
from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_copy, driver_rows
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain import Adjust, Call, Observation, Stored, Window
from pricing_pipeline.errors import InvalidAdjustment, InvalidRange, ReadReplica
from pricing_pipeline.exact import to_decimal
from pricing_pipeline.knowledge import Known

if TYPE_CHECKING:
    from pandas import DataFrame

_NO_RIGHT = "42501"
"""SQLSTATE of a missing privilege."""
_DATA_EXCEPTION = "22000"
"""SQLSTATE with which our functions refuse what cannot be computed."""


@dataclass(frozen=True, slots=True)
class LatestPrice:
    """The newest known price of a pair; times are UTC, `age_seconds` counts from `fetched_at`."""

    data_type: str
    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    fetched_at: datetime
    provider: str
    age_seconds: float
    fresh: bool
    paused: bool
    """Its instrument is paused: nothing of it is fetched."""
    provider_active: bool
    """False when the provider that sent it has been switched off since."""
    frozen_since: datetime | None
    """Since when (source's time) the value stays the same under ever newer times; None if it moves."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a read found, and how many data types of the symbol it has queued because they were missing or stale."""

    prices: list[LatestPrice]
    requested: int


@dataclass(frozen=True, slots=True)
class Bar:
    """One value of history. For quotes and NAVs open, high, low and volume are None.

    `quality` says which parts of a bar were dropped beside its close, and why; None where none was.
    `fetched_at` is when we came to believe it, `call_id` the call that brought it; times are UTC.
    """

    observed_at: datetime
    open: Decimal | None
    high: Decimal | None
    low: Decimal | None
    close: Decimal
    volume: Decimal | None
    currency: str | None
    provider: str
    fetched_at: datetime
    call_id: int = 0
    adjustment: Adjust = Adjust.RAW
    quality: str | None = None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A line of a small table of latest prices."""

    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    provider: str


def store(
    connection: Connection,
    call: Call,
    observations: Sequence[Observation],
    known_symbols: Mapping[str, Known] | None = None,
) -> list[Stored]:
    """Store the checked values of one call within the caller's transaction.

    Unchanged values write nothing, changed ones leave the old value in price_revisions, and nothing
    is ever deleted. Call it only for symbols whose tasks the claim still holds. `known_symbols` is what `known`
    says of them, asked here if it is not given.
    """
    if not observations:
        return []
    about = known_values.load(connection, call, observations) if known_symbols is None else known_symbols
    if call.window is not None:
        found = by_symbol(observations)
        return [_store_span(connection, call, found[symbol], about[symbol]) for symbol in sorted(found)]
    merged = driver_rows(connection, driver_query("prices.merge"), columns.of_all(call, observations, about))
    return [
        Stored(symbol, added, revised, outcome == "stale_source")
        for symbol, added, revised, outcome in merged
    ]


def _store_span(
    connection: Connection, call: Call, observations: Sequence[Observation], about: Known
) -> Stored:
    """Store the values of one symbol's days: bars by columns are copied, if none of their days is stored."""
    symbol = observations[0].symbol
    if isinstance(observations, Bars) and not about.stored:
        named = {"data_type": call.data_type, "symbol": symbol, "currency": observations.currency}
        ((now,),) = driver_rows(connection, driver_query("prices.verify"), named)
        rows = columns.of_new(call, observations, about, now)
        if rows is not None:
            driver_copy(connection, driver_query("prices.copy_history"), rows)
            return Stored(symbol, len(observations), 0)
    parameters = columns.of_one(call, observations, about)
    ((added, revised),) = driver_rows(connection, driver_query("prices.merge_bars"), parameters)
    return Stored(symbol, added, revised)


def settle(
    connection: Connection,
    call: Call,
    observations: Sequence[Observation],
    known_symbols: Mapping[str, Known],
    *,
    http_status: int | None,
    wire_bytes: int,
    units_left: int | None,
) -> tuple[int, int] | None:
    """Store the latest prices of a call, finish all its tasks and settle it, in one statement.

    Returns how many values were added and how many revised; None, with nothing done, when the claim has lost any of
    the tasks. Raises a DBAPIError, with nothing done, when a price is older than what is stored.
    """
    parameters = {
        "ids": arrays.plain(call.task_ids),
        "token": call.claim_token,
        "http_status": http_status,
        "wire_bytes": wire_bytes,
        "units_left": units_left,
    }
    for added, revised in driver_rows(
        connection,
        driver_query("prices.settle"),
        columns.of_all(call, observations, known_symbols) | parameters,
    ):
        return added, revised
    return None


def confirm(connection: Connection, data_type: str, symbols: Sequence[str]) -> None:
    """A valid but empty answer: what is stored counts as confirmed now."""
    connection.execute(query("prices.confirm"), {"data_type": data_type, "symbols": list(symbols)})


def cover(
    connection: Connection, data_type: str, symbols: Sequence[str], first_day: date, last_day: date
) -> None:
    """Remember that the provider has answered for these days, today excepted."""
    parameters = {"data_type": data_type, "first_day": first_day, "last_day": last_day}
    driver_rows(connection, driver_query("prices.cover"), parameters | {"symbols": arrays.texts(symbols)})


def cover_read(
    connection: Connection,
    data_type: str,
    symbols: Sequence[str],
    window: Window,
    unread: Mapping[str, frozenset[date]],
) -> None:
    """Remember the days of an answer but for those, by symbol, whose value could not be read."""
    read = [symbol for symbol in symbols if symbol not in unread]
    cover(connection, data_type, read, window.start, window.end)
    for symbol in sorted(unread.keys() & symbols):
        for part in window.without(unread[symbol]):
            cover(connection, data_type, [symbol], part.start, part.end)


def latest(connection: Connection, *symbols: str, data_type: str | None = None) -> list[LatestPrice]:
    """The latest prices of symbols in each data type that has one, or in the one that is named; by type and symbol."""
    rows = connection.execute(query("prices.latest"), {"symbols": list(symbols), "data_type": data_type})
    return [_latest(row) for row in rows]


def read(connection: Connection, symbol: str) -> Reading:
    """What `latest` gives, and a request for what is missing or stale, as for one viewer. Never waits for a provider.

    The request is part of the connection's transaction, which the caller commits. Where it may not be made (on
    a read replica, by a role that only reads), the answer is the same.
    """
    found = latest(connection, symbol)
    try:
        with connection.begin_nested():
            requested = connection.execute(query("prices.request"), {"symbol": symbol}).scalar_one()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _NO_RIGHT:
            raise
        requested = 0
    except ReadReplica:
        requested = 0
    return Reading(found, int(requested or 0))


def is_known(connection: Connection, symbol: str) -> bool:
    """True when any instrument has this symbol."""
    return bool(connection.execute(query("prices.is_known"), {"symbol": symbol}).scalar_one())


def bars(
    connection: Connection,
    symbol: str,
    data_type: str,
    first_day: date,
    last_day: date,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | str | None = None,
) -> list[Bar]:
    """Values between two days (UTC, both included), oldest first, as they were believed at `as_of` (aware; None = now).

    Without `adjust` exactly as stored, on the basis that each names; else on that basis, by the splits and dividends
    that were known at `as_of`, prices rounded to 10 decimals. Raises InvalidAdjustment where that cannot be done, and
    InvalidRange for days upside down or a time without a zone.
    """
    parameters = _span(symbol, data_type, first_day, last_day, as_of)
    if adjust is None:
        return [_bar(row) for row in connection.execute(query("prices.history"), parameters)]
    basis = _basis(adjust)
    with _refusals(symbol, data_type):
        rows = connection.execute(query("prices.adjusted"), {**parameters, "adjust": basis}).all()
    return [
        Bar(
            observed_at=row.observed_at,
            open=row.open,
            high=row.high,
            low=row.low,
            close=row.close,
            volume=row.volume,
            currency=row.currency,
            provider=row.provider,
            fetched_at=row.recorded_at,
            call_id=row.call_id,
            adjustment=Adjust(row.adjustment),
            quality=row.quality,
        )
        for row in rows
    ]


def _basis(adjust: Adjust | str) -> str:
    try:
        return Adjust(adjust).value
    except ValueError:
        raise InvalidAdjustment(
            f"adjust={adjust!r} is none of: {', '.join(Adjust)}. Leave it out for what is stored."
        ) from None


@contextmanager
def _refusals(symbol: str, data_type: str) -> Iterator[None]:
    """What the database cannot compute becomes InvalidAdjustment."""
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _DATA_EXCEPTION:
            raise
        diagnosis = getattr(error.orig, "diag", None)
        said = (
            f"{getattr(diagnosis, 'message_primary', error.orig)}. {getattr(diagnosis, 'message_hint', '')}"
        )
        raise InvalidAdjustment(f"{symbol} {data_type} cannot be adjusted: {said}") from None


def _span(
    symbol: str, data_type: str, first_day: date, last_day: date, as_of: datetime | None
) -> dict[str, object]:
    """Whose values, of which days, and as believed when."""
    if first_day > last_day:
        raise InvalidRange(f"the range {first_day} to {last_day} is upside down. Give the earlier day first.")
    if as_of is not None and as_of.tzinfo is None:
        raise InvalidRange(
            f"the time {as_of} has no zone. Give it one: as_of.replace(tzinfo=UTC), for instance."
        )
    return {
        "data_type": data_type,
        "symbol": symbol,
        "first_day": first_day,
        "last_day": last_day,
        "as_of": as_of,
    }


def history(
    connection: Connection,
    symbol: str,
    data_type: str,
    start: date,
    end: date,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | str | None = None,
) -> DataFrame:
    """What `bars` gives as a pandas frame, one row a value; docs/prices.md says which dtype each column has.

    Its index is `observed_at` (UTC). Prices and volumes are Decimals with every digit, never floats. Raises what
    `bars` raises.
    """
    parameters = _span(symbol, data_type, start, end, as_of)
    if adjust is None:
        (row,) = driver_rows(connection, driver_query("history.columns"), parameters, is_binary=True)
        return frames.made(*row)
    basis = _basis(adjust)
    with _refusals(symbol, data_type):
        (row,) = driver_rows(
            connection,
            driver_query("history.adjusted_columns"),
            {**parameters, "adjust": basis},
            is_binary=True,
        )
    return frames.made(*row)


def months(
    connection: Connection, data_type: str, first_day: date, last_day: date
) -> dict[date, tuple[int, int]]:
    """Number of rows and of symbols stored in each UTC month between two days; keyed by the month's first day."""
    parameters = {"data_type": data_type, "first_day": first_day, "last_day": last_day}
    rows = connection.execute(query("history.months"), parameters)
    return {row.month: (row.rows, row.symbols) for row in rows}


def sample(connection: Connection, data_type: str, at_most: int) -> list[SampleRow]:
    """A few latest prices of a data type, most recently fetched first, for people to look at."""
    rows = connection.execute(query("prices.sample"), {"data_type": data_type, "at_most": at_most})
    return [
        SampleRow(row.symbol, to_decimal(row.amount, row.scale), row.currency, row.observed_at, row.provider)
        for row in rows
    ]


def _latest(row: Row[Any]) -> LatestPrice:
    return LatestPrice(
        data_type=row.data_type,
        symbol=row.symbol,
        price=to_decimal(row.amount, row.scale),
        currency=row.currency,
        observed_at=row.observed_at,
        fetched_at=row.fetched_at,
        provider=row.provider,
        age_seconds=row.age_seconds,
        fresh=row.fresh,
        paused=row.paused,
        provider_active=row.provider_active,
        frozen_since=row.frozen_since,
    )


def _bar(row: Row[Any]) -> Bar:
    def price(amount: int | None) -> Decimal | None:
        return None if amount is None else to_decimal(amount, row.scale)

    return Bar(
        observed_at=row.observed_at,
        open=price(row.open_amount),
        high=price(row.high_amount),
        low=price(row.low_amount),
        close=to_decimal(row.amount, row.scale),
        volume=row.volume,
        currency=row.currency,
        provider=row.provider,
        fetched_at=row.recorded_at,
        call_id=row.call_id,
        adjustment=Adjust(row.adjustment),
        quality=row.quality,
    )
