"""Headout's API for partners, version 1: products, and their inventory by variant, in pages.

What is sold is in slots.py. Charged is one call, refused ones included. Where its documentation is silent, the choice
is named at its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta

from pricing_pipeline.sandbox.calls import Dialect, Invalid, ProviderCall, Refused, Reply, json_reply
from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.limits import Charge, Plan
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.slots import Price, Slot, Tours
from pricing_pipeline.sandbox.tours import PLACES, Option, Tour, Unit
from pricing_pipeline.sandbox.units import divided

USUAL_PAGE, MOST_ROWS = 20, 100
"""Rows of a page: where none are asked for, and at most. The second is not documented: a guess on the safe side."""
_FIRST_NUMBER = 5000
_PRODUCT, _INVENTORY = "product/get/", "inventory/list-by/variant"
_DOLLARS = {"USD": 1000, "GBP": 1270, "EUR": 1080, "JPY": 7, "AUD": 660, "NZD": 610, "KWD": 3260, "NPR": 8}
"""Thousandths of a dollar for one unit of a currency: good enough for a sandbox, and always the same."""
_DIGITS = {place.currency: place.digits for place in PLACES} | {"EUR": 2}

Row = dict[str, object]


def variant_id(number: int, place: int) -> int:
    """The id of an option: of the tour's options by place, the first being 0."""
    return (_FIRST_NUMBER + number) * 10 + place


class Headout(Dialect):
    name = "headout"
    roots = ("api/public/v1/", "api/v1/", "api/partner/v1/")

    def __init__(self, settings: SandboxSettings, tours: Tours) -> None:
        super().__init__(Plan(settings.key, settings.partner_calls_per_minute))
        self._tours = tours

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        product = endpoint.removeprefix(_PRODUCT) if endpoint.startswith(_PRODUCT) else ""
        # A call for a variant is one for its product, so that faults of one product hit both.
        asked = product or params.get("variantId", "")[:-1]
        return (asked,) if asked else ()

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        return headers.get("headout-auth")

    def invalid(self, name: str, given: str) -> Reply:
        return _refusal(400, "E_INVALID_ARGUMENT", f"Invalid {name}: {given}")

    def wrong_key(self, call: ProviderCall) -> Reply:
        return _refusal(401, "E_UNAUTHORIZED", "The api key is missing or invalid.")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        return _refusal(429, "E_TOO_MANY_REQUESTS", "Too many requests.", {"Retry-After": "5"})

    def answered(self, call: ProviderCall) -> Reply:
        if call.endpoint.startswith(_PRODUCT):
            return json_reply(self._product(call))
        if call.endpoint == _INVENTORY:
            return json_reply(self._inventory(call))
        return _refusal(404, "E_NOT_FOUND", "Not found.")

    def _tour(self, asked: str, call: ProviderCall) -> Tour | None:
        named = call.answers.get(asked, asked)
        return self._tours.tour(int(named) - _FIRST_NUMBER) if named.isascii() and named.isdecimal() else None

    def _product(self, call: ProviderCall) -> Row:
        asked = call.endpoint.removeprefix(_PRODUCT)
        tour = self._tour(asked, call)
        if tour is None:
            raise Invalid("productId", asked)
        place = tour.place
        return {
            "id": _FIRST_NUMBER + tour.number,
            "name": tour.name,
            "city": {"name": place.city, "code": place.city.upper().replace(" ", "_")},
            "currency": {"code": place.currency, "precision": place.digits},
            "productType": "TOUR",
            "variants": [_variant(tour, option, n) for n, option in enumerate(tour.options)],
        }

    def _inventory(self, call: ProviderCall) -> Row:
        """One page of a variant's slots. `total` counts the slots of all pages."""
        params = call.params
        if "variantId" not in params:
            raise Invalid("variantId")
        asked = params["variantId"]
        tour = self._tour(asked[:-1], call)
        place = int(asked[-1]) if asked[-1:].isdecimal() else len(asked)
        if tour is None or place >= len(tour.options):
            raise Refused(_refusal(400, "CAL-0121", "This tour is not available anymore."))
        first, last = _time(call, "startDateTime", 0), _time(call, "endDateTime", 30)
        offset = call.whole("offset", 0, 10**6)
        limit = min(max(call.whole("limit", USUAL_PAGE, 10**6), 1), MOST_ROWS)
        currency = params.get("currencyCode", tour.place.currency)
        if currency not in _DOLLARS:
            raise Invalid("CurrencyCode code", currency)
        slots = [
            slot
            for slot in self._tours.slots(tour, tour.options[place], first.date(), last.date(), call.now)
            if first <= slot.start.replace(tzinfo=None) <= last
        ]
        rest = slots[offset : offset + limit]
        following = offset + len(rest)
        return {
            "items": [_row(tour, slot, currency) for slot in rest],
            "total": len(slots),
            "nextOffset": None if following >= len(slots) else following,
        }


def _variant(tour: Tour, option: Option, place: int) -> Row:
    return {
        "id": variant_id(tour.number, place),
        "name": option.name if len(tour.options) > 1 else None,
        "inventoryType": "FIXED_START_FIXED_DURATION",
        "duration": option.minutes * 60_000,
        "priceType": "PER_GROUP" if tour.is_by_group else "PER_PERSON",
        "pax": {"min": 1, "max": 9},
    }


def _row(tour: Tour, slot: Slot, currency: str) -> Row:
    units = {unit.unit_id: unit for unit in tour.units}
    sold = [(units[price.unit_id], price) for price in slot.prices]
    return {
        "id": str(pick(f"headout:{slot.key}", 10**8, 10**9)),
        "startDateTime": f"{slot.start:%Y-%m-%dT%H:%M:%S}",
        "endDateTime": f"{slot.end:%Y-%m-%dT%H:%M:%S}",
        "availability": "CLOSED" if slot.is_closed else "UNLIMITED" if slot.left is None else "LIMITED",
        "remaining": slot.left or 0,
        "pricing": {
            "persons": [] if tour.is_by_group else [_person(tour, *offer, currency) for offer in sold],
            "groups": [_group(tour, *offer, currency) for offer in sold] if tour.is_by_group else [],
        },
    }


def _person(tour: Tour, unit: Unit, price: Price, currency: str) -> Row:
    return {
        "type": unit.kind,
        "name": unit.name,
        "ageFrom": unit.ages[0],
        "ageTo": unit.ages[1],
        **_amounts(tour, price, currency),
    }


def _group(tour: Tour, unit: Unit, price: Price, currency: str) -> Row:
    return {"size": unit.pax, **_amounts(tour, price, currency)}


def _amounts(tour: Tour, price: Price, currency: str) -> Row:
    return {
        "price": _decimal(converted(price.retail, tour.place.currency, currency), currency),
        "originalPrice": _decimal(converted(price.original, tour.place.currency, currency), currency),
    }


def converted(amount: int, currency: str, into: str) -> int:
    """Minor units of a currency in those of another one, half-even."""
    if currency == into:
        return amount
    return divided(amount * _DOLLARS[currency] * 10 ** _DIGITS[into], _DOLLARS[into] * 10 ** _DIGITS[currency])


def _decimal(amount: int, currency: str) -> float:
    one: int = 10 ** _DIGITS[currency]
    return amount // one if amount % one == 0 else amount / one


def _time(call: ProviderCall, name: str, usual: int) -> datetime:
    """A local time without zone; a missing one is the midnight so many days from now."""
    text = call.params.get(name)
    if text is None:
        return datetime.combine(call.now.date() + timedelta(days=usual), time())
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(name, text) from None
    if at.tzinfo is not None:
        raise Invalid(name, text)
    return at


def _refusal(status: int, code: str, words: str, headers: Mapping[str, str] | None = None) -> Reply:
    return json_reply({"status": status, "error": {"code": code, "message": words}}, status, headers)
