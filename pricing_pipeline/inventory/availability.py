"""Read the slots of a product: times, categories, prices, and what can be booked. Never waits for a provider."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.errors import by_the_way
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.windows import Window, span
from pricing_pipeline.errors import InvalidRange

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_DAYS = 366
"""Local days of one read."""
MOST_ROWS = 20_000
"""Slots of one read, each counted once for every category: 5 MB of JSON. Ten a day for five have 18,000 a year."""
_DEFAULT_DAYS = 7
_SlotRow = tuple[Any, ...]
_SLOT, _OFFER, _KEY = slice(1, 15), slice(15, None), (1, 2, 13)
"""The columns of the query `inventory.slots` that have StoredSlot and Offer, and those that identify a slot."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which slots are read: of `symbol` on the local days of `window`, for `pax` people.

    With a `currency`, only what has prices in it; `sellable`: only what can be booked; with `as_of` (aware), as it was
    believed then.
    """

    symbol: str
    window: Window
    pax: int = 1
    currency: str | None = None
    sellable: bool = False
    as_of: datetime | None = None


class Offer(NamedTuple):
    """The price of a slot for one category, and how many of it can be booked. None = not said, or no bound.

    A tuple, because a month has hundreds.
    """

    category_id: str
    category: str
    is_primary: bool
    minimum: int | None
    maximum: int | None
    remaining: int | None
    final: Decimal | None
    original: Decimal | None
    discount: Decimal | None
    currency: str | None


class StoredSlot(NamedTuple):
    """A slot, believed since `recorded_at`. Local times are naive, all others are UTC."""

    slot_id: str
    option_id: str
    option: str | None
    local_start: datetime
    local_end: datetime
    starts_at: datetime
    ends_at: datetime
    time_zone: str | None
    """Of the product, where it has placed the slot; None if the slot has its own offset."""
    status: str
    remaining: int | None
    capacity: int | None
    sellable: bool
    """Whether the requested number of people can book it."""
    provider: str
    recorded_at: datetime
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Day:
    """A local day of a product with its slots. Times are UTC.

    `fetched_at` is None if no answer has listed the day yet, and for a time in the past. `fresh` and `data_type` are
    None if no data type asks for this day, because it is past or too far ahead, and for a time in the past.
    """

    day: date
    fetched_at: datetime | None
    age_seconds: float | None
    fresh: bool | None
    data_type: str | None
    slots: tuple[StoredSlot, ...]


def days_of(
    connection: Connection, symbol: str, first: date | None, last: date | None, as_of: datetime | None = None
) -> Window:
    """The local days between two, both included: a week from today where the product is, unless they are given.

    Raises InvalidRange if they are in the wrong order, or too many.
    """
    if first is None:
        first = call_sql(connection, "product_day", symbol, as_of).scalar_one()
    if last is None:
        last = date.fromordinal(min(first.toordinal() + _DEFAULT_DAYS - 1, date.max.toordinal()))
    days = span(first, last)
    if (last - first).days >= MOST_DAYS:
        raise InvalidRange(f"{first} to {last} is more than {MOST_DAYS} days. Ask for fewer.")
    return days


def read(connection: Connection, question: Question) -> list[Day]:
    """The days of a product with their slots, in order of their local times. Raises InvalidRange for too many."""
    days = {"symbol": question.symbol, "first_day": question.window.start, "last_day": question.window.end}
    which = {
        "pax": question.pax,
        "currency": question.currency,
        "sellable": question.sellable,
        "as_of": question.as_of,
        "at_most": MOST_ROWS + 1,
    }
    # A row of the driver's is a plain tuple: a month has hundreds, and named rows would take longer than the query.
    rows = driver_rows(connection, driver_query("inventory.slots"), {**days, **which})
    if len(rows) > MOST_ROWS:
        raise InvalidRange(
            f"{question.window.start} to {question.window.end} has more than {MOST_ROWS} slots and categories of "
            f"{question.symbol}. Ask for fewer days."
        )
    slots_by_day = {day: _slots(of_day) for day, of_day in groupby(rows, itemgetter(0))}
    is_now = question.as_of is None
    return [
        Day(
            row.day,
            row.fetched_at if is_now else None,
            row.age_seconds if is_now else None,
            row.fresh if is_now else None,
            row.data_type if is_now else None,
            slots_by_day.get(row.day, ()),
        )
        for row in connection.execute(query("inventory.days"), days)
    ]


def request(connection: Connection, symbol: str, last: date, user_id: str | None = None) -> bool:
    """Queue the missing or stale slots of a product up to a local day; returns whether there are any.

    With `user_id`, what exceeds the caps of that user is not queued. It is part of the connection's transaction, which
    the caller commits. Where it is not possible (on a read replica, by a role that only reads), nothing is queued.
    """
    name = "inventory.request" if user_id is None else "inventory.request_for"
    parameters = {"symbol": symbol, "last_day": last, "user_id": user_id}
    return bool(by_the_way(connection, lambda: connection.execute(query(name), parameters).scalar()))


def _slots(rows: Iterable[_SlotRow]) -> tuple[StoredSlot, ...]:
    grouped = groupby(rows, itemgetter(*_KEY))
    return tuple(_slot([*of_slot]) for _, of_slot in grouped)


def _slot(rows: list[_SlotRow]) -> StoredSlot:
    offers = tuple(Offer._make(row[_OFFER]) for row in rows if row[_OFFER.start] is not None)
    return StoredSlot._make((*rows[0][_SLOT], offers))
