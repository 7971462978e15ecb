"""OCTO, the open standard of tours and activities: products, and slots with prices by its capability octo/pricing.

Slots are asked for by option: `POST /availability` answers for one option and a span of days. `/availability/calendar`
is not asked: it costs a request for each option and tells only on which days slots are, which the same span at
`/availability` tells with the slots. Prices are in minor units already, local times have their offset.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Literal

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.inventory import (
    Option,
    PaxCategory,
    PaxOffer,
    Product,
    Slot,
    SlotStatus,
)
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import KeyRefused, SchemaDrift
from pricing_pipeline.providers.base import (
    Request,
    Schema,
    check_key,
    check_status,
    decode_if_json,
    safe_words,
    validate,
)
from pricing_pipeline.providers.inventory import (
    MAX_SLOTS,
    Facts,
    InventoryProvider,
    ListedSlots,
    is_id,
    known_currency,
    local_time,
    unknown,
    with_primary,
)
from pricing_pipeline.providers.values import Implausible

_PRICING = (("Octo-Capabilities", "octo/pricing"),)
_WHOLE_BOOKING = "booking"
"""The category of a price that is for the whole booking, and not for a unit."""


class _Restrictions(Schema):
    minAge: int | None = None
    maxAge: int | None = None
    paxCount: int | None = None
    minQuantity: int | None = None
    maxQuantity: int | None = None


class _Unit(Schema):
    id: str
    internalName: str | None = None
    title: str | None = None
    type: str | None = None
    restrictions: _Restrictions | None = None


class _OptionRestrictions(Schema):
    minUnits: int | None = None
    maxUnits: int | None = None


class _Option(Schema):
    id: str
    restrictions: _OptionRestrictions | None = None
    default: bool = False
    internalName: str | None = None
    title: str | None = None
    units: list[_Unit]


class _Product(Schema):
    id: str
    internalName: str | None = None
    title: str | None = None
    timeZone: str | None = None
    options: list[_Option]


class _Price(Schema):
    """Of octo/pricing. The reseller's own price (`net`) is not read."""

    original: int | None = None
    retail: int
    currency: str
    currencyPrecision: int


class _UnitPrice(_Price):
    unitId: str
    unitType: str | None = None


class _Availability(Schema):
    id: str
    localDateTimeStart: str
    localDateTimeEnd: str
    utcCutoffAt: str | None = None
    available: bool
    status: Literal["AVAILABLE", "FREESALE", "SOLD_OUT", "LIMITED", "CLOSED"]
    vacancies: int | None = None
    capacity: int | None = None
    maxUnits: int | None = None
    unitPricing: list[_UnitPrice] | None = None
    pricing: _Price | None = None


class _Error(Schema):
    error: str
    errorMessage: str | None = None


class Octo(InventoryProvider[_Product]):
    """Provider `octo`: one partner that follows the standard. Symbols are the ids of its products."""

    name = "octo"
    base_url = "https://api.ventrata.com/octo"
    product_path = "/products/"

    def accepts(self, symbol: str) -> bool:
        """Ids as in URLs: letters, digits, `_`, `.`, `:` and `-`."""
        return is_id(symbol)

    def authorize(self, key: str) -> Mapping[str, str]:
        """The header that the standard names."""
        return {"Authorization": f"Bearer {key}"}

    def read_product(self, symbol: str, response: Response, now: datetime) -> _Product:
        return validate(_Product, self._body(symbol, response, now), f"octo's product {symbol}")

    def product_of(self, read: _Product) -> Product:
        return _product_of(read)

    def ask_slots(
        self, read: _Product, listed: ListedSlots, facts: Facts, now: datetime
    ) -> Generator[Request, Response, None]:
        symbol = listed.product.symbol
        names = {category.category_id: category.name for category in listed.product.categories}
        count = 0
        for option in read.options:
            response = yield _availability(symbol, option.id, listed.window)
            rows = self._body(symbol, response, now)
            if not isinstance(rows, list) or len(rows) + count > MAX_SLOTS:
                raise SchemaDrift(
                    f"octo's slots of {symbol}, option {safe_words(option.id)} are no list, or more than {MAX_SLOTS}; "
                    "nothing was stored."
                )
            count += len(rows)
            listed.read(option.id, rows, "localDateTimeStart", partial(_read_slot, option, names))

    def _body(self, symbol: str, response: Response, now: datetime) -> object:
        """The body of an answer without an error. Raises ProviderError and ProductFailed."""
        body = decode_if_json(self.name, response)
        is_error = isinstance(body, dict) and isinstance(body.get("error"), str)
        error = validate(_Error, body, "octo's error") if is_error else None
        words = safe_words(f"{error.error}: {error.errorMessage or ''}") if error else ""
        if error is not None and response.status < 500 and response.status != 429:
            if error.error == "INVALID_PRODUCT_ID":
                raise unknown(self.name, symbol, words)
            if error.error == "INVALID_OPTION_ID":
                raise SchemaDrift(
                    f"octo refuses an option that it has just named of {symbol}: {words}. Nothing was stored."
                )
            if response.status in (401, 403):
                raise KeyRefused(f"octo answered {response.status}: {words}. {check_key(self.name)}")
        check_status(self.name, response, now=now, detail=words)
        if error is not None:
            raise SchemaDrift(f"octo answered {response.status}: {words}. Nothing was stored.")
        return body


def _availability(symbol: str, option: str, window: Window) -> Request:
    body = {
        "productId": symbol,
        "optionId": option,
        "localDateStart": window.start.isoformat(),
        "localDateEnd": window.end.isoformat(),
    }
    return Request("/availability", method="POST", json=body, headers=_PRICING)


def _product_of(read: _Product) -> Product:
    """Raises ValueError for what the domain refuses."""
    categories: dict[str, PaxCategory] = {}
    for option in read.options:
        for unit in option.units:
            # One unit of several options is described in each; that of the first option counts.
            categories.setdefault(unit.id, _category(unit))
    return Product(
        read.id,
        read.title or read.internalName or read.id,
        read.timeZone,
        tuple(
            Option(option.id, option.title or option.internalName or option.id, option.default)
            for option in read.options
        ),
        tuple(categories.values()),
    )


def _category(unit: _Unit) -> PaxCategory:
    limits = unit.restrictions or _Restrictions()
    return PaxCategory(
        unit.id,
        unit.title or unit.internalName or unit.id,
        unit.type,
        limits.minAge,
        limits.maxAge,
        # 0 is a baby on a lap. Here a unit counts one person at least.
        max(1 if limits.paxCount is None else limits.paxCount, 1),
    )


def _read_slot(option: _Option, names: Mapping[str, str], row: object) -> Slot:
    """Raises ValueError for what cannot be read, or cannot be true."""
    return _slot(_Availability.model_validate(row), option, names)


def _slot(row: _Availability, option: _Option, names: Mapping[str, str]) -> Slot:
    """Raises ValueError for what cannot be true."""
    start, offset = local_time(row.localDateTimeStart)
    end, end_offset = local_time(row.localDateTimeEnd)
    priced: list[tuple[_Price, str, str | None]] = [
        (price, price.unitId, price.unitType) for price in row.unitPricing or ()
    ]
    if not priced and row.pricing is not None:
        priced = [(row.pricing, _WHOLE_BOOKING, None)]
    currencies = {(known_currency(price.currency), price.currencyPrecision) for price, *_ in priced}
    if len(currencies) > 1:
        raise Implausible(f"it has prices in several currencies: {sorted(currencies)}")
    currency, scale = next(iter(currencies), (None, 0))
    return Slot(
        slot_id=row.id,
        option_id=option.id,
        local_start=start,
        local_end=end,
        utc_offset=offset,
        end_utc_offset=None if end_offset == offset else end_offset,
        status=_status(row),
        remaining=row.vacancies,
        capacity=row.capacity,
        currency=currency,
        currency_scale=scale,
        offers=with_primary(
            (_offer(price, unit, names, _bounds(row, option, unit)), kind or unit) for price, unit, kind in priced
        ),
        bookable_until=None if row.utcCutoffAt is None else _instant(row.utcCutoffAt),
    )


def _status(row: _Availability) -> SlotStatus:
    status = SlotStatus(row.status.lower())
    is_over = not row.available and status not in (SlotStatus.SOLD_OUT, SlotStatus.CLOSED)
    return SlotStatus.CLOSED if is_over else status


def _offer(price: _Price, unit: str, names: Mapping[str, str], bounds: tuple[int | None, int | None]) -> PaxOffer:
    # Some partners send 0 where they have no price before a discount.
    is_without = price.original == 0 < price.retail
    minimum, maximum = bounds
    return PaxOffer(
        unit,
        names.get(unit, unit),
        final=price.retail,
        original=None if is_without else price.original,
        minimum=minimum,
        maximum=maximum,
    )


def _bounds(row: _Availability, option: _Option, unit: str) -> tuple[int | None, int | None]:
    """The fewest and the most units of one booking, as slot, option and unit allow together; None = no bound."""
    of_option = option.restrictions or _OptionRestrictions()
    described = next((one.restrictions for one in option.units if one.id == unit), None)
    of_unit = described or _Restrictions()
    least = [bound for bound in (of_option.minUnits, of_unit.minQuantity) if bound is not None]
    most = [bound for bound in (row.maxUnits, of_option.maxUnits, of_unit.maxQuantity) if bound is not None]
    minimum, maximum = max(least, default=None), min(most, default=None)
    if minimum is not None and maximum is not None and minimum > maximum:
        return 0, 0  # fewer are left than one must book
    return minimum, maximum


def _instant(raw: str) -> datetime:
    at, offset = local_time(raw)
    if offset is None:
        raise Implausible(f"{raw!r} has no offset from UTC")
    return at.replace(tzinfo=UTC) - offset
