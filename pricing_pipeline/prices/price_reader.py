"""Read prices: the latest ones, and history as stored, as of a time, or adjusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from psycopg import errors

from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.errors import by_the_way, statement_error
from pricing_pipeline.db.query_loader import driver_query, named, query
from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.exact import to_decimal
from pricing_pipeline.domain.prices import Bar, Price
from pricing_pipeline.domain.windows import Window, last_of, span
from pricing_pipeline.errors import (
    InvalidAdjustment,
    InvalidRange,
    UncountedPayment,
    UncountedPayments,
)
from pricing_pipeline.prices import conversion, frames, moved_values
from pricing_pipeline.registry import calendars

if TYPE_CHECKING:
    from pandas import DataFrame
    from sqlalchemy import Connection, Row

    from pricing_pipeline.db.loop_sessions import LoopSessions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a read, and in how many data types it queued the symbol as missing or stale."""

    prices: list[Price]
    requested: int


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A line of a small table of latest prices."""

    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    provider: str


def latest(connection: Connection, *symbols: str, data_type: str | None = None) -> list[Price]:
    """The latest prices of symbols, in all data types or in the given one; by type and symbol. None has its `why`."""
    rows = connection.execute(query("prices.latest"), {"symbols": list(symbols), "data_type": data_type})
    return [_latest(row) for row in rows]


def latest_of_type(connection: Connection, data_type: str) -> list[Price]:
    """The latest prices of all symbols of a data type, by symbol."""
    rows = connection.execute(query("prices.latest"), {"symbols": None, "data_type": data_type})
    return [_latest(row) for row in rows]


def read(connection: Connection, symbol: str, data_type: str | None = None) -> Reading:
    """The result of `latest` for a symbol, and that of `request`."""
    return Reading(latest(connection, symbol, data_type=data_type), request(connection, [symbol], data_type))


def as_answer(connection: Connection, pairs: Sequence[tuple[str | None, str]]) -> dict[str, Any]:
    """The latest prices of pairs, or of symbols in every data type, and the pairs without one: a Prices as JSON has it,
    as `/v1/prices` answers. It asks for nothing.
    """
    parameters = {
        "data_types": [data_type for data_type, _ in pairs],
        "symbols": [symbol for _, symbol in pairs],
    }
    content: dict[str, Any] = connection.execute(query("prices.answer"), parameters).scalar_one()
    return content


async def read_as_json(
    sessions: LoopSessions,
    wanted: Sequence[tuple[str | None, str]],
    data_type: str | None,
    user_id: str | None,
) -> str | None:
    """The latest prices of pairs, those without one, and why what is not fresh is old, as `/v1/prices` answers them.

    Either all of `wanted` have a data type, or none has. Without one a symbol is read in all, and asked for where it is
    watched or held. What else is missing or stale is asked for, for a user within the user's caps; with None as for one
    viewer. It is one statement, which writes nothing where all is fresh. None if `data_type`, where it is given, is no
    active type of prices.
    """
    symbols = ",".join(symbol for _, symbol in wanted)
    is_of_pairs = data_type is None and wanted[0][0] is not None
    types = ",".join(named or "" for named, _ in wanted) if is_of_pairs else None
    parameters = (symbols, types, data_type, user_id)
    return await sessions.ask(named("prices.read"), *parameters, on_replica=named("prices.read_from_replica"))


def request(connection: Connection, symbols: Sequence[str], data_type: str | None = None) -> int:
    """Request missing or stale prices of symbols, as for one viewer; returns how many pairs are queued.

    Without a data type it asks for those that are watched or held. Never waits for a provider. The request is part of
    the connection's transaction, which the caller commits. If it is not possible (on a read replica, by a role that
    only reads), nothing happens.
    """
    parameters = {"symbols": list(symbols), "data_type": data_type}
    queued = by_the_way(connection, lambda: connection.execute(query("prices.request"), parameters).scalar_one())
    return int(queued or 0)


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
    """Values between two days (UTC, both included), oldest first, as believed at `as_of` (aware; None = now).

    Without `adjust` they are exactly as stored, each on its own basis. With it they are on that basis, by the splits
    and payments known at `as_of`, with prices rounded to 10 decimals. Raises InvalidAdjustment if that is impossible,
    UncountedPayments if a payment between the days is in a currency without a stored rate of its day, and InvalidRange
    if the days are in the wrong order or the time has no zone. `quality` names payments after the days, or after a
    hole in them, that are not counted.
    """
    parameters = _span(symbol, data_type, first_day, last_day, as_of)
    name = "prices.history" if adjust is None else "prices.adjusted"
    rows = _complete(connection, parameters, adjust, lambda whole: connection.execute(query(name), whole).all())
    return [_bar(row, is_stored=adjust is None) for row in rows]


def _complete(
    connection: Connection,
    parameters: dict[str, Any],
    adjust: Adjust | str | None,
    read: Callable[[dict[str, Any]], T],
) -> T:
    """What `read` finds with these parameters and with the moved values."""
    wanted = parameters | {"adjust": None if adjust is None else _basis(adjust)}
    rates: Sequence[Row[Any]] = []
    if adjust == Adjust.TOTAL:
        rates = connection.execute(query("rates.moved_of_payments"), parameters).all()

    def with_moved(moved: str | None) -> T:
        with nullcontext() if adjust is None else _refusals(parameters["symbol"], parameters["data_type"]):
            return read(wanted | {"moved": moved})

    each = [wanted, *(parameters | rate._asdict() | {"adjust": None} for rate in rates)]
    return moved_values.complete(connection, each, with_moved)


def _basis(adjust: Adjust | str) -> str:
    try:
        return Adjust(adjust).value
    except ValueError:
        raise InvalidAdjustment(
            f"adjust={adjust!r} is unknown: use one of {', '.join(Adjust)}, or leave it out for what is stored."
        ) from None


@contextmanager
def _refusals(symbol: str, data_type: str) -> Iterator[None]:
    """Turn the database's refusal to compute into InvalidAdjustment, or UncountedPayments if it lists them."""
    try:
        yield
    except statement_error() as error:
        if not isinstance(error.orig, errors.DataException):
            raise
        diagnosis = getattr(error.orig, "diag", None)
        words = f"{getattr(diagnosis, 'message_primary', error.orig)}. {getattr(diagnosis, 'message_hint', '')}"
        message = f"{symbol} {data_type} cannot be adjusted: {words}"
        detail = getattr(diagnosis, "message_detail", None)
        if detail is None:
            raise InvalidAdjustment(message) from None
        payments = [
            UncountedPayment(**{**payment, "ex_on": date.fromisoformat(payment["ex_on"])})
            for payment in json.loads(detail)
        ]
        raise UncountedPayments(message, payments) from None


def _span(symbol: str, data_type: str, first_day: date, last_day: date, as_of: datetime | None) -> dict[str, Any]:
    """The parameters of a query of history."""
    if first_day > last_day:
        raise InvalidRange(f"the range {first_day} to {last_day} ends before it begins. Give the earlier day first.")
    if as_of is not None and as_of.tzinfo is None:
        raise InvalidRange(f"the time {as_of} has no zone. Give it one: as_of.replace(tzinfo=UTC), for instance.")
    return {
        "data_type": data_type,
        "symbol": symbol,
        "first_day": first_day,
        "last_day": last_day,
        "read_until": last_day,
        "as_of": as_of,
    }


_DEFAULT_DAYS = timedelta(days=30)


def days(connection: Connection, first: date | None, last: date | None) -> Window:
    """The requested UTC days: the last is today if None, the first 30 days before it.

    Raises InvalidRange if they are in the wrong order, or the first has not come yet.
    """
    last_day = last_of(first, last, calendars.today(connection))
    return span(first or max(last_day, date.min + _DEFAULT_DAYS) - _DEFAULT_DAYS, last_day)


def history(
    connection: Connection,
    symbol: str,
    data_type: str,
    start: date,
    end: date,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | str | None = None,
    currency: str | None = None,
) -> DataFrame:
    """The result of `bars` as a pandas frame, one row a value; docs/prices.md lists the dtype of each column.

    Its index is `observed_at` (UTC). Prices and volumes are Decimals with every digit, never floats. With `currency`
    prices are converted, and `rate` names the rates, or says which is missing. Raises what `bars` raises, and
    InvalidCurrency.
    """
    name = "history.columns" if adjust is None else "history.adjusted_columns"
    parameters = _span(symbol, data_type, start, end, as_of)
    columns = frames.Columns(*_columns(connection, name, parameters, adjust))
    if currency is not None:
        into = conversion.Target.named(currency)
        has_rows = columns.observed_at is not None
        columns = _converted(connection, columns, parameters, into) if has_rows else columns._replace(rate=b"")
    return frames.make_frame(*columns)


def _converted(
    connection: Connection,
    columns: frames.Columns,
    parameters: Mapping[str, Any],
    into: conversion.Target,
) -> frames.Columns:
    first, last, as_of = parameters["first_day"], parameters["last_day"], parameters["as_of"]
    rates = conversion.RatesOfTimes(connection, into, first, last, as_of, of_days=columns.is_daily)
    own = partial(conversion.own_currency, connection, parameters)
    return conversion.converted(columns, into, rates, own)


def history_parts(
    connection: Connection,
    symbol: str,
    data_type: str,
    first_day: date,
    last_day: date,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | str | None = None,
    into: conversion.Target | None = None,
) -> Iterator[frames.Columns]:
    """The values of `bars` as columns, oldest first, some ten thousand rows at a time: what arrow.py and lines.py take.

    With `into` they are converted, as conversion.py does. All parts are of one moment if the connection's transactions
    are REPEATABLE READ. Raises what `bars` raises.
    """
    parameters = _span(symbol, data_type, first_day, last_day, as_of)
    name = "history.columns" if adjust is None else "history.adjusted_columns"
    for first, last in _parts(connection, parameters):
        part = parameters | {"first_day": first, "last_day": last}
        row = _columns(connection, name, part, adjust)
        if row[0] is None:  # no believed value may be left
            continue
        columns = frames.Columns(*row)
        yield columns if into is None else _converted(connection, columns, part, into)


def _columns(
    connection: Connection, name: str, parameters: dict[str, Any], adjust: Adjust | str | None
) -> Sequence[Any]:
    """The one row of a query of history: an array for each column."""

    def read(whole: dict[str, Any]) -> Sequence[Any]:
        (row,) = driver_rows(connection, driver_query(name), whole, is_binary=True)
        return row

    return _complete(connection, parameters, adjust, read)


def _parts(connection: Connection, parameters: Mapping[str, Any]) -> Iterator[tuple[date, date]]:
    """Spans of days: those that reach into files go by the calendar, the others by their number of rows."""
    rest = dict(parameters)
    for tile in connection.execute(query("exports.moved_tiles"), parameters):
        yield tile.first_day, tile.last_day
        rest["first_day"] = tile.last_day + timedelta(days=1)
    yield from driver_rows(connection, driver_query("history.parts"), {**rest, "rows": _ROWS_OF_A_PART})


_ROWS_OF_A_PART = 10_000


def symbols_between(
    connection: Connection, data_type: str, first_day: date, last_day: date, *, as_of: datetime | None = None
) -> list[str]:
    """The symbols of a data type that have values between two days, wherever these are stored, or had some `as_of`."""
    parameters = {
        "data_type": data_type,
        "first_day": first_day,
        "last_day": last_day,
        "as_of": as_of,
    }
    return list(connection.execute(query("history.symbols"), parameters).scalars())


def months(connection: Connection, data_type: str, first_day: date, last_day: date) -> dict[date, tuple[int, int]]:
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


def _latest(row: Row[Any]) -> Price:
    known = row._asdict()
    exact = to_decimal(known.pop("amount"), known.pop("scale"))
    return Price(price=exact, fresh=row.state == "fresh", why=None, **known)


def _bar(row: Row[Any], *, is_stored: bool) -> Bar:
    """A bar from a row, whose prices are amounts with a scale if it is as stored, and decimals otherwise."""

    def price(name: str) -> Decimal | None:
        if not is_stored:
            return getattr(row, name)  # type: ignore[no-any-return]
        amount = getattr(row, "amount" if name == "close" else f"{name}_amount")
        return None if amount is None else to_decimal(amount, row.scale)

    return Bar(
        date=row.observed_at.astimezone(UTC).date() if row.is_daily else None,
        observed_at=row.observed_at,
        open=price("open"),
        high=price("high"),
        low=price("low"),
        close=cast(Decimal, price("close")),
        volume=row.volume,
        currency=row.currency,
        adjustment=row.adjustment,
        provider=row.provider,
        call_id=row.call_id,
        fetched_at=row.recorded_at,
        quality=row.quality,
    )
