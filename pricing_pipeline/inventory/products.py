"""Read products with their variants, categories and time zone; set that zone by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import UnknownSymbol

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class StoredProduct:
    """A product, as far as it is known. Times are UTC.

    `provider` and `recorded_at` are None if it was never fetched; `fetched_at` is the last time any of its slots were
    confirmed, and the days are those that were. `is_set_by_hand`: a person has set the zone. `is_listed`: its provider
    still has it, as far as is known.
    """

    symbol: str
    name: str | None
    provider: str | None
    time_zone: str | None
    is_set_by_hand: bool
    paused: bool
    is_listed: bool
    recorded_at: datetime | None
    fetched_at: datetime | None
    first_day: date | None
    last_day: date | None


@dataclass(frozen=True, slots=True)
class StoredOption:
    """A variant of a product. `name` is None if only slots have named it."""

    option_id: str
    name: str | None
    is_default: bool
    is_listed: bool
    provider: str


@dataclass(frozen=True, slots=True)
class StoredCategory:
    """Whom a product is sold to. Ages are in years, both included; `pax_count` is how many people a unit is for."""

    category_id: str
    name: str
    kind: str | None
    age_from: int | None
    age_to: int | None
    pax_count: int
    is_listed: bool
    provider: str


@dataclass(frozen=True, slots=True)
class StoredDoubt:
    """What the last answer lists of a product and is not believed: mostly one slot, which `reason` names.

    What was stored of it before stays. `value_id` is its number in the quarantine; `times` counts the answers with it.
    """

    value_id: int
    reason: str
    times: int
    recorded_at: datetime
    last_seen_at: datetime


def products(connection: Connection, at_most: int, after: str = "") -> list[StoredProduct]:
    """Products by symbol, from the one behind `after` on."""
    return _products(connection, None, at_most, after)


def product(connection: Connection, symbol: str) -> StoredProduct:
    """One product. Raises UnknownSymbol."""
    found = _products(connection, symbol, 1, "")
    if not found:
        raise UnknownSymbol(
            f"no product is called {symbol!r}. `pricing-pipeline product list` shows all; "
            f"`pricing-pipeline instrument add {symbol} --asset-class inventory` makes one known."
        )
    return found[0]


def options(connection: Connection, symbol: str) -> list[StoredOption]:
    """The options of a product, the default first, those that it no longer lists last."""
    rows = connection.execute(query("inventory.options"), {"symbol": symbol, "as_of": None})
    return [StoredOption(*row) for row in rows]


def categories(connection: Connection, symbol: str) -> list[StoredCategory]:
    """The categories of a product, those that it no longer lists last."""
    rows = connection.execute(query("inventory.categories"), {"symbol": symbol, "as_of": None})
    return [StoredCategory(*row) for row in rows]


def doubts(connection: Connection, symbol: str) -> list[StoredDoubt]:
    """What the last answers list of a product and is not believed, at most a hundred."""
    return [StoredDoubt(*row) for row in connection.execute(query("inventory.doubts"), {"symbol": symbol})]


def set_zone(connection: Connection, symbol: str, time_zone: str | None) -> int:
    """Set the time zone of a product by hand, which counts instead of what its provider says; None takes it back.

    Coming slots without an offset of their own are placed again; returns how many. Raises UnknownSymbol; the database
    refuses a name that is not a zone.
    """
    moved = call_sql(connection, "set_product_zone", symbol, time_zone).scalar_one()
    if moved is None:
        raise UnknownSymbol(f"no product is called {symbol!r}. `pricing-pipeline product list` shows all.")
    return int(moved)


def _products(connection: Connection, symbol: str | None, at_most: int, after: str) -> list[StoredProduct]:
    parameters = {"symbol": symbol, "at_most": at_most, "after": after}
    return [StoredProduct(*row) for row in connection.execute(query("inventory.products"), parameters)]
