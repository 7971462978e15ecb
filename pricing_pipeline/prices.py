"""Prices: from exact decimals to integers with a scale and back, stored and read. No float on any path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.query_loader import named, query
from pricing_pipeline.domain import Adjust, Adjustment, Call, Observation, Stored
from pricing_pipeline.errors import InvalidAdjustment, ReadReplica
from pricing_pipeline.plausibility import DEFAULT_SCALE, Known, Point

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_DIGITS = 18
"""Digits of an amount: what a signed 64-bit integer surely holds. Parsers refuse longer prices."""

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


FRAME_COLUMNS = {
    "open": "object",
    "high": "object",
    "low": "object",
    "close": "object",
    "volume": "object",
    "currency": "str",
    "adjustment": "str",
    "provider": "str",
    "call_id": "int64",
    "fetched_at": "datetime64[us, UTC]",
}
"""Columns of `history`'s frame and their dtypes; objects are Decimals, or None."""
_TIMES = "datetime64[us, UTC]"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A line of a small table of latest prices."""

    symbol: str
    price: Decimal
    currency: str | None
    observed_at: datetime
    provider: str


def scale_of(observation: Observation, at_least: int) -> int:
    """The number of decimals that holds every price of an observation exactly.

    It is `at_least` or more, unless so many zeros would make the amount longer than MAX_DIGITS.
    """
    bar = (observation.close, observation.open, observation.high, observation.low)
    values = [value for value in bar if value is not None]
    room = MAX_DIGITS - max(value.adjusted() + 1 for value in values)
    return max(min(at_least, room), *(_decimals(value) for value in values))


def to_amount(value: Decimal, scale: int) -> int:
    """The integer of minor units; exact, because `scale` holds every decimal of `value`."""
    return int(value.scaleb(scale))


def to_decimal(amount: int, scale: int) -> Decimal:
    """The price that an amount of minor units stands for, with `scale` decimals."""
    return Decimal(amount).scaleb(-scale)


def known(connection: Connection, call: Call, observations: Iterable[Observation]) -> dict[str, Known]:
    """What is known of the symbols that an answer has values of: what the values are judged by and stored with."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for row in observations:
        first, last = spans.get(row.symbol, (row.observed_at, row.observed_at))
        spans[row.symbol] = min(first, row.observed_at), max(last, row.observed_at)
    if not spans:
        return {}
    symbols = sorted(spans)
    rows = connection.execute(
        query("prices.known"),
        {
            "data_type": call.data_type,
            "symbols": symbols,
            "first_times": [spans[symbol][0] for symbol in symbols],
            "last_times": [spans[symbol][1] for symbol in symbols],
            "is_latest": call.window is None,
        },
    )
    return {row.symbol: _known(row) for row in rows}


def store(
    connection: Connection,
    call: Call,
    observations: Iterable[Observation],
    known_symbols: Mapping[str, Known] | None = None,
) -> list[Stored]:
    """Store the checked values of one call within the caller's transaction.

    Unchanged values write nothing, changed ones leave the old value in price_revisions, and nothing
    is ever deleted. Call it only for symbols whose tasks the claim still holds. `known_symbols` is what `known`
    says of them, asked here if it is not given.
    """
    rows = list(observations)
    if not rows:
        return []
    about = known(connection, call, rows) if known_symbols is None else known_symbols
    connection.execute(query("prices.open_staging"))
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101 - a checked-out connection has one
    with driver.cursor() as cursor, cursor.copy(named("prices.stage").rstrip(";")) as copy:
        for row in rows:
            copy.write_row(_staged(row, about[row.symbol]))
    merged = connection.execute(
        query("prices.merge"),
        {
            "data_type": call.data_type,
            "provider": call.provider,
            "call_id": call.id,
            "is_latest": call.window is None,
        },
    )
    return [Stored(row.symbol, row.added, row.revised, row.outcome == "stale_source") for row in merged]


def confirm(connection: Connection, data_type: str, symbols: Sequence[str]) -> None:
    """A valid but empty answer: what is stored counts as confirmed now."""
    connection.execute(query("prices.confirm"), {"data_type": data_type, "symbols": list(symbols)})


def cover(
    connection: Connection, data_type: str, symbols: Sequence[str], first_day: date, last_day: date
) -> None:
    """Remember that the provider has answered for these days, today excepted."""
    connection.execute(
        query("prices.cover"),
        {"data_type": data_type, "symbols": list(symbols), "first_day": first_day, "last_day": last_day},
    )


def latest(connection: Connection, symbol: str) -> list[LatestPrice]:
    """The latest price of a symbol in each data type that has one."""
    rows = connection.execute(query("prices.latest"), {"symbol": symbol})
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


def is_paused(connection: Connection, symbol: str) -> bool:
    """True when every instrument of this symbol is paused; False for a symbol that is none."""
    return bool(connection.execute(query("prices.is_paused"), {"symbol": symbol}).scalar_one())


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
    adjust: Adjust | None = None,
) -> list[Bar]:
    """Values between two days (UTC, both included), oldest first, as they were believed at `as_of` (aware; None = now).

    Without `adjust` exactly as stored, on the basis that each names; else on that basis, by the splits and dividends
    that were known at `as_of`, prices rounded to 10 decimals. Raises InvalidAdjustment where that cannot be done.
    """
    parameters = {
        "data_type": data_type,
        "symbol": symbol,
        "first_day": first_day,
        "last_day": last_day,
        "as_of": as_of,
    }
    if adjust is None:
        return [_bar(row) for row in connection.execute(query("prices.history"), parameters)]
    try:
        rows = connection.execute(query("prices.adjusted"), {**parameters, "adjust": adjust.value}).all()
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != _DATA_EXCEPTION:
            raise
        diagnosis = getattr(error.orig, "diag", None)
        said = (
            f"{getattr(diagnosis, 'message_primary', error.orig)}. {getattr(diagnosis, 'message_hint', '')}"
        )
        raise InvalidAdjustment(f"{symbol} {data_type} cannot be adjusted: {said}") from None
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
        )
        for row in rows
    ]


def history(
    connection: Connection,
    symbol: str,
    data_type: str,
    start: date,
    end: date,
    *,
    as_of: datetime | None = None,
    adjust: Adjust | None = None,
) -> DataFrame:
    """What `bars` gives as a pandas frame, one row a value; docs/prices.md says which dtype each column has.

    Its index is `observed_at` (UTC). Prices and volumes are Decimals with every digit, never floats.
    """
    from pandas import DataFrame, DatetimeIndex, Series  # half a second that nobody else waits for

    found = bars(connection, symbol, data_type, start, end, as_of=as_of, adjust=adjust)
    index = DatetimeIndex([bar.observed_at for bar in found], dtype=_TIMES, name="observed_at")
    columns = {
        name: Series([getattr(bar, name) for bar in found], index=index, dtype=dtype)
        for name, dtype in FRAME_COLUMNS.items()
    }
    return DataFrame(columns, index=index)


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


def _decimals(value: Decimal) -> int:
    # Trailing zeros are spelling, not precision: 146.55000 needs two decimals.
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _known(row: Row[Any]) -> Known:
    nearest = (
        (row.earlier_at, row.earlier_amount, row.earlier_scale),
        (row.newest_at, row.newest_amount, row.newest_scale),
        (row.later_at, row.later_amount, row.later_scale),
        (row.kin_at, row.kin_amount, row.kin_scale),
    )
    return Known(
        scale=DEFAULT_SCALE if row.scale is None else row.scale,
        currency=row.currency,
        adjustment=None if row.adjustment is None else Adjustment(row.adjustment),
        lowest=row.lowest,
        highest=row.highest,
        newest_at=row.newest_at,
        are_jumps_trusted=row.jumps_are_trusted,
        stored={
            at: to_decimal(amount, scale)
            for at, amount, scale in zip(
                row.same_times or (), row.same_amounts or (), row.same_scales or (), strict=True
            )
        },
        anchors=tuple(
            Point(at, to_decimal(amount, scale))
            for at, amount, scale in nearest
            if at is not None and amount > 0
        ),
    )


def _staged(row: Observation, about: Known) -> tuple[object, ...]:
    scale = scale_of(row, about.scale)
    return (
        row.symbol,
        row.observed_at,
        to_amount(row.close, scale),
        None if row.open is None else to_amount(row.open, scale),
        None if row.high is None else to_amount(row.high, scale),
        None if row.low is None else to_amount(row.low, scale),
        scale,
        row.currency,
        row.volume,
        row.text,
        # A history has one basis, which its newest value shares with every other.
        about.adjustment or row.adjustment,
    )


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
    )
