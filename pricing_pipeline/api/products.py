"""`/v1/products`: what is sold in slots, and its availability, now or in the past. Nothing waits for a provider."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field, WithJsonSchema

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import Currency, Day, Moment, SymbolName
from pricing_pipeline.api.prices import PairReason
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.demand.freshness import Why
from pricing_pipeline.domain.inventory import MAX_PLACES
from pricing_pipeline.inventory import availability, products
from pricing_pipeline.inventory.availability import MOST_DAYS, Question
from pricing_pipeline.inventory.products import StoredProduct

router = APIRouter(prefix="/products", tags=["products"], route_class=TaggedRoute)


# Not the format date-time, which has a zone.
_LocalTime = Annotated[datetime, WithJsonSchema({"type": "string", "examples": ["2026-12-24T09:30:00"]})]


class _FromStored(Shape):
    model_config = ConfigDict(from_attributes=True)


class Product(_FromStored):
    """A product, as far as it is known. Times are UTC."""

    symbol: str = Field(examples=["TOUR-1"])
    name: str | None
    provider: str | None
    """The provider that last listed it; null if it was never fetched."""
    time_zone: str | None = Field(examples=["Europe/London"])
    """Of its place; null if nobody has named it."""
    is_set_by_hand: bool
    """Whether a person has set the time zone."""
    paused: bool
    is_listed: bool
    """Whether its provider still has it. If not, none of its slots can be booked."""
    recorded_at: datetime | None
    """Since when this is believed."""
    fetched_at: datetime | None
    """When any of its slots were last confirmed."""
    first_day: date | None
    """First local day of the last answers about its slots."""
    last_day: date | None
    """Last local day of them, included."""


class Products(Shape):
    """Products by symbol."""

    products: list[Product]
    next: str | None
    """The cursor of the next page; null on the last."""


class Option(_FromStored):
    """A variant of a product, such as a language."""

    option_id: str
    name: str | None
    is_default: bool
    is_listed: bool
    """Whether the product still has it."""
    provider: str


class Category(_FromStored):
    """Whom a product is sold to. Ages are in years, both included."""

    category_id: str = Field(examples=["ADULT"])
    name: str
    kind: str | None
    """The provider's own word for it."""
    age_from: int | None
    age_to: int | None
    pax_count: int
    """How many people one unit is for."""
    is_listed: bool
    """Whether the product still has it."""
    provider: str


class Doubt(_FromStored):
    """A part of the last answer about a product that is not believed. The value stored before stays."""

    value_id: int
    """Its number in the quarantine."""
    reason: str = Field(examples=["slot 1212 of option 647 on 2026-11-20: 99 places are left of 12"])
    times: int
    """How many answers had it."""
    recorded_at: datetime
    """When it first came."""
    last_seen_at: datetime


class ProductDetails(Product):
    """A product with its options and categories, and with the slots whose last values are not believed."""

    options: list[Option]
    categories: list[Category]
    doubts: list[Doubt]


class Offer(_FromStored):
    """What a slot costs for a category, and how many of it can be booked. Null = not said, or no bound."""

    category_id: str = Field(examples=["ADULT"])
    category: str
    is_primary: bool
    """Whether the product is made for it: others come along."""
    minimum: int | None
    """Fewest units of one booking."""
    maximum: int | None
    """Most units of one booking."""
    remaining: int | None
    """Units left."""
    final: Exact | None = Field(examples=["25.00"])
    """What is paid: exact, as a string."""
    original: Exact | None
    """Before discounts."""
    discount: Exact | None
    """`original` less `final`; below zero it is a surcharge."""
    currency: str | None = Field(examples=["EUR"])


class Slot(_FromStored):
    """A time at which an option of a product takes place."""

    slot_id: str
    option_id: str
    option: str | None
    local_start: _LocalTime
    """By the clock of its place, without a zone."""
    local_end: _LocalTime
    starts_at: datetime
    """In UTC."""
    ends_at: datetime
    time_zone: str | None
    """The product's zone that has placed it; null if it came with its own offset."""
    status: str = Field(examples=["available"])
    """available, freesale, limited, sold_out, closed, or vanished: no longer listed."""
    remaining: int | None
    """Places left; null = not said, or without a bound."""
    capacity: int | None
    sellable: bool
    """Whether `pax` people can book it."""
    provider: str
    recorded_at: datetime
    """Since when this is believed."""
    offers: list[Offer]


class AvailableDay(_FromStored):
    """A local day of a product."""

    day: date
    fetched_at: datetime | None
    """When its slots were last confirmed; null if they never were, and for a time in the past."""
    fresh: bool | None
    """Whether that is within its TTL; null if no data type asks for this day, because it is past or too far ahead, and
    for a time in the past."""
    slots: list[Slot]


class Availability(Shape):
    """The slots of a product on local days."""

    symbol: str
    from_: date = Field(alias="from")
    to: date
    pax: int
    currency: str | None
    sellable: bool
    as_of: datetime | None
    """As it was believed then; null = as it is now."""
    days: list[AvailableDay]
    reasons: list[PairReason]
    """Why days are not fresh, for each data type that asks for one; empty for a time in the past."""


_PRODUCTS: Keyset[StoredProduct] = Keyset("products", (str,), lambda product: (product.symbol,))


@router.get("")
def list_products(database: Database, caller: Reader, page: Annotated[Page, Depends(_PRODUCTS)]) -> Products:
    """The products that are known, by symbol."""
    with database.connect() as connection:
        rows = products.products(connection, page.at_most, *(page.after or ()))
    shown, after = page.cut(rows)
    return Products(products=[Product.model_validate(row) for row in shown], next=after)


# Before the next one, which takes the rest of a path.
@router.get("/{symbol:path}/availability")
def read_availability(
    database: Database,
    caller: Reader,
    symbol: SymbolName,
    first: Annotated[
        Day | None, Query(alias="from", description="First local day; default: today where the product is.")
    ] = None,
    last: Annotated[
        Day | None,
        Query(alias="to", description=f"Last local day; default: a week from the first. At most {MOST_DAYS} days."),
    ] = None,
    pax: Annotated[int, Query(ge=1, le=MAX_PLACES, description="How many people to book for.")] = 1,
    currency: Annotated[Currency | None, Query(description="Only what has prices in it.", examples=["EUR"])] = None,
    sellable: Annotated[bool, Query(description="Only slots that this number of people can book.")] = False,
    as_of: Annotated[Moment | None, Query(description="As it was believed at this time.")] = None,
) -> Availability:
    """The slots of a product on local days: times, places, and prices for each category.

    Missing and stale days are queued, so a later request has them, unless `as_of` asks for the past.
    """
    with database.begin() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        products.product(connection, symbol)
        window = availability.days_of(connection, symbol, first, last, as_of)
        days = availability.read(connection, Question(symbol, window, pax, currency, sellable, as_of))
        if as_of is None:
            availability.request(connection, symbol, window.end, caller.user_or_none)
        stale = sorted({day.data_type for day in days if day.data_type is not None and not day.fresh})
        reasons = [_of_days(why) for type_ in stale for why in freshness.why(connection, symbol, type_)]
    return Availability.model_validate(
        {
            "symbol": symbol,
            "from": window.start,
            "to": window.end,
            "pax": pax,
            "currency": currency,
            "sellable": sellable,
            "as_of": as_of,
            "days": [AvailableDay.model_validate(day) for day in days],
            "reasons": [PairReason.model_validate(reason, from_attributes=True) for reason in reasons],
        }
    )


def _of_days(why: Why) -> Why:
    """Why days are not fresh. Their pair may be fresh, if it was fetched before these days came within reach."""
    if why.state != "fresh":
        return why
    came = "these days came within reach after the last fetch; the next fetch brings them"
    return replace(why, sentence=f"{came}: {why.sentence}")


@router.get("/{symbol:path}")
def show_product(database: Database, caller: Reader, symbol: SymbolName) -> ProductDetails:
    """A product with its options, its categories, and the slots whose last values are not believed."""
    with database.connect() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        product = products.product(connection, symbol)
        options = products.options(connection, symbol)
        categories = products.categories(connection, symbol)
        doubts = products.doubts(connection, symbol)
    about = Product.model_validate(product).model_dump()
    return ProductDetails.model_validate({**about, "options": options, "categories": categories, "doubts": doubts})
