"""Headout's API for partners: products, and their inventory by variant, in pages.

Version 1 is asked. Answers of version 2 are read as well: they name the product of a list, and its rows may be called
`availabilities`.

A customer pays `headoutSellingPrice`. Where that is missing, `price` is what a customer pays, unless it equals
`netPrice`, which is what the partner pays.

Answers name no currency, so one is asked for: that of the instrument, or else DEFAULT_CURRENCY. Local times have no
offset: the product's zone decides, which is that of its city (headout_cities.py). The pages of a variant must add up to
its total; otherwise slots were added or taken between two requests, or one is lost, and nothing is believed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Literal

from pydantic import AliasChoices, Field

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import Option, PaxOffer, Product, Slot, SlotStatus
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import Misconfigured, SchemaDrift
from pricing_pipeline.providers.base import (
    Dialogue,
    Question,
    Request,
    Schema,
    check_status,
    decode_if_json,
    safe_words,
    validate,
)
from pricing_pipeline.providers.currencies import CURRENCIES, digits_of
from pricing_pipeline.providers.headout_cities import zone_of
from pricing_pipeline.providers.inventory import (
    MAX_SLOTS,
    Facts,
    InventoryProvider,
    ListedSlots,
    implausible,
    local_time,
    minor_units,
    unknown,
    with_primary,
)
from pricing_pipeline.providers.values import Implausible, Number, decimal_of

DEFAULT_CURRENCY = "USD"
"""In which prices are asked for if the instrument has no currency: an answer does not say what its prices are in."""
PAGE = 100
"""Slots of a page; fewer may come, the totals tell."""
_NO_LIMIT = (1000, 9999)
"""Counts of places that stand for no limit, also where a slot is said to be limited."""


class _City(Schema):
    code: str


class _Variant(Schema):
    id: int | str
    name: str | None = None


class _Product(Schema):
    id: int | str
    name: str
    city: _City | None = None
    variants: list[_Variant]


Availability = Literal["LIMITED", "UNLIMITED", "CLOSED"]


class _PaxRange(Schema):
    min: int | None = None
    max: int | None = None


class _Price(Schema):
    price: Number | None = None
    originalPrice: Number | None = None
    netPrice: Number | None = None
    headoutSellingPrice: Number | None = None
    availability: Availability | None = None
    remaining: int | None = None


class _Person(_Price):
    type: str
    name: str
    ageFrom: int | None = None
    ageTo: int | None = None
    paxRange: _PaxRange | None = None


class _Group(_Price):
    size: int


class _Pricing(Schema):
    persons: list[_Person] | None = None
    groups: list[_Group] | None = None


class _Item(Schema):
    id: str
    startDateTime: str
    endDateTime: str
    availability: Availability
    remaining: int | None = None
    pricing: _Pricing


class _Page(Schema):
    items: list[object] = Field(validation_alias=AliasChoices("items", "availabilities"))
    productId: int | str | None = None
    total: int
    nextOffset: int | None = None


class _Fault(Schema):
    code: str
    message: str | None = None


class _Error(Schema):
    error: _Fault


class Headout(InventoryProvider[_Product]):
    """Provider `headout`. Symbols are the numbers of its products; their options are its variants."""

    name = "headout"
    base_url = "https://www.headout.com/api/public/v1"
    product_path = "/product/get/"

    def accepts(self, symbol: str) -> bool:
        """Numbers of products."""
        return symbol.isascii() and symbol.isdecimal() and len(symbol) <= 18

    def authorize(self, key: str) -> Mapping[str, str]:
        """The documented header."""
        return {"Headout-Auth": key}

    def ask(self, question: Question) -> Dialogue:
        """See SeveralRequests.ask. Nothing is asked for in an unknown currency."""
        if question.fetcher is Fetcher.SLOTS:
            _currency_of(question.symbol, question.known.get(question.symbol, {}))
        return super().ask(question)

    def read_product(self, symbol: str, response: Response, now: datetime) -> _Product:
        return validate(_Product, self._body(symbol, response, now, is_product=True), f"headout's product {symbol}")

    def product_of(self, read: _Product) -> Product:
        return _product_of(read)

    def ask_slots(
        self, read: _Product, listed: ListedSlots, facts: Facts, now: datetime
    ) -> Generator[Request, Response, None]:
        currency = _currency_of(listed.product.symbol, facts)
        symbol = listed.product.symbol
        for variant in (option.option_id for option in listed.product.options):
            what = f"headout's slots of {symbol}, variant {safe_words(variant)}"
            rows = yield from self._pages(symbol, variant, listed.window, currency, what, now)
            listed.read(variant, rows, "startDateTime", partial(_read_slot, variant, currency))

    def _pages(
        self, symbol: str, variant: str, window: Window, currency: str, what: str, now: datetime
    ) -> Generator[Request, Response, list[object]]:
        """The rows of all pages of a variant. Raises SchemaDrift if they are not one whole list."""
        rows: list[object] = []
        offset, total = 0, None
        while True:
            response = yield _inventory(variant, window, currency, offset)
            page = validate(_Page, self._body(symbol, response, now, is_product=False), what)
            if page.productId is not None and str(page.productId) != symbol:
                raise implausible(what, symbol, Implausible(f"it is of product {safe_words(str(page.productId))}"))
            total = page.total if total is None else total
            rows += page.items
            following = page.nextOffset
            if page.total != total:
                raise _torn(what, f"its total was {total}, and is {page.total} on a later page")
            if not 0 <= total <= MAX_SLOTS:
                raise _torn(what, f"its total is {total}, from 0 to {MAX_SLOTS} is expected")
            if following is None or following >= total:
                break
            if following <= offset:
                raise _torn(what, f"after offset {offset} the next one is {following}")
            if not page.items:
                raise _torn(what, f"its page at offset {offset} is empty")
            offset = following
        if len(rows) != total:
            raise _torn(what, f"its pages have {len(rows)} slots together, and its total is {total}")
        return rows

    def _body(self, symbol: str, response: Response, now: datetime, *, is_product: bool) -> object:
        """The body of an answer without an error. Raises ProviderError and ProductFailed."""
        body = decode_if_json(self.name, response)
        is_error = isinstance(body, dict) and isinstance(body.get("error"), dict)
        error = validate(_Error, body, "headout's error").error if is_error else None
        words = safe_words(f"{error.code}: {error.message or ''}") if error else ""
        if error is not None and response.status in (200, 400, 404) and _means_gone(error):
            if is_product:
                raise unknown(self.name, symbol, words)
            raise SchemaDrift(
                f"headout refuses a variant of {symbol} that it has just named: {words}. Nothing was stored."
            )
        check_status(self.name, response, now=now, detail=words)
        if error is not None:
            raise SchemaDrift(f"headout answered {response.status}: {words}. Nothing was stored.")
        return body


def _product_of(read: _Product) -> Product:
    """Raises ValueError for what the domain refuses."""
    variants = (Option(str(variant.id), variant.name or read.name, n == 0) for n, variant in enumerate(read.variants))
    zone = zone_of(read.city.code) if read.city else None
    return Product(str(read.id), read.name, zone, tuple(variants))


def _means_gone(error: _Fault) -> bool:
    """Whether a product or variant is not sold. Its documentation names no code; the words are of a report by users."""
    words = (error.message or "").lower()
    return error.code == "CAL-0121" or "not available anymore" in words or "invalid productid" in words


def _torn(what: str, why: str) -> SchemaDrift:
    return SchemaDrift(
        f"{what} are no whole list: {why}. They changed between two requests, or a page is lost; nothing was stored."
    )


def _currency_of(symbol: str, facts: Facts) -> str:
    """In which prices of a product are asked for. Raises Misconfigured."""
    currency = str(facts.get("currency") or DEFAULT_CURRENCY)
    if currency not in CURRENCIES:
        raise Misconfigured(
            f"headout cannot be asked for prices of {symbol} in {safe_words(currency)}, which is not a code of "
            f"ISO 4217. Change it: pricing-pipeline instrument change {symbol} --currency {DEFAULT_CURRENCY}."
        )
    return currency


def _inventory(variant: str, window: Window, currency: str, offset: int) -> Request:
    return Request(
        "/inventory/list-by/variant",
        (
            ("variantId", variant),
            ("startDateTime", f"{window.start}T00:00:00"),
            ("endDateTime", f"{window.end}T23:59:59"),
            ("offset", str(offset)),
            ("limit", str(PAGE)),
            ("currencyCode", currency),
        ),
    )


def _read_slot(variant: str, currency: str, row: object) -> Slot:
    """Raises ValueError for what cannot be read, or cannot be true."""
    return _slot(_Item.model_validate(row), variant, currency)


def _slot(item: _Item, variant: str, currency: str) -> Slot:
    """Raises ValueError for what cannot be true."""
    start, offset = local_time(item.startDateTime)
    end, end_offset = local_time(item.endDateTime)
    if offset is not None or end_offset is not None:
        raise Implausible("it has times with an offset, and local ones are expected")
    persons = with_primary(_persons(item.pricing.persons or (), currency))
    offers = (*persons, *_groups(item.pricing.groups or (), currency))
    has_prices = bool(offers)
    return Slot(
        slot_id=item.id,
        option_id=variant,
        local_start=start,
        local_end=end,
        utc_offset=None,
        status=_status(item),
        remaining=_places_left(item.availability, item.remaining),
        capacity=None,
        currency=currency if has_prices else None,
        currency_scale=digits_of(currency) if has_prices else 0,
        offers=offers,
    )


def _status(item: _Item) -> SlotStatus:
    """Its LIMITED only says that places are counted, not that few are left."""
    if item.availability == "CLOSED":
        return SlotStatus.CLOSED
    if item.availability == "UNLIMITED":
        return SlotStatus.FREESALE
    if item.remaining is None:
        raise Implausible("it is limited, and does not say how many places are left")
    return SlotStatus.AVAILABLE if item.remaining > 0 else SlotStatus.SOLD_OUT


def _places_left(availability: Availability, remaining: int | None) -> int | None:
    """None without a limit; the number then means nothing."""
    return None if availability == "UNLIMITED" or remaining in _NO_LIMIT else remaining


def _left_for(price: _Price) -> int | None:
    """How many units of a category are left; None if only the places of its slot bound it."""
    if price.availability == "CLOSED":
        return 0
    return _places_left(price.availability or "LIMITED", price.remaining)


def _persons(persons: Sequence[_Person], currency: str) -> list[tuple[PaxOffer, str | None]]:
    offers: list[tuple[PaxOffer, str | None]] = []
    for person in persons:
        final, original = _amounts(person, currency, f"price of {person.type}")
        pax = person.paxRange or _PaxRange()
        offer = PaxOffer(
            *(person.type, person.name, final, original, pax.min, pax.max, _left_for(person)),
            age_from=person.ageFrom,
            age_to=person.ageTo,
        )
        offers.append((offer, person.type))
    return offers


def _groups(groups: Sequence[_Group], currency: str) -> list[PaxOffer]:
    """A group of a size is sold as one unit, to that many people or fewer. None is primary."""
    offers: list[PaxOffer] = []
    least = 1
    for group in sorted(groups, key=lambda group: group.size):
        if group.size < least:
            raise Implausible(f"a group of {group.size} comes twice, or has no people")
        # By its size alone: the next smaller group may be another one on each slot.
        name = f"Group of up to {group.size}"
        amounts = _amounts(group, currency, f"price of a group of {group.size}")
        left = _left_for(group)
        offers.append(PaxOffer(f"GROUP_{group.size}", name, *amounts, 1, 1, left, pax_count=group.size))
        least = group.size + 1
    return offers


def _amounts(price: _Price, currency: str, what: str) -> tuple[int | None, int | None]:
    """The price for a customer, and the one before a discount. Neither is ever the partner's price."""
    if price.headoutSellingPrice is not None:
        final: Number | None = price.headoutSellingPrice
    elif price.price is not None:
        final = None if _are_equal(price.price, price.netPrice, what) else price.price
    else:
        raise Implausible(f"{what} is missing")
    return (
        None if final is None else minor_units(final, currency, what),
        None if price.originalPrice is None else minor_units(price.originalPrice, currency, f"original {what}"),
    )


def _are_equal(price: Number, net: Number | None, what: str) -> bool:
    return net is not None and decimal_of(price, what) == decimal_of(net, f"net {what}")
