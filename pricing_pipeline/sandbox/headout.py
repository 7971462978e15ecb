"""Headout's API for partners, version 1: products, and their inventory by variant, in pages.

What is sold is in slots.py. Charged is one call, refused ones included. Where its documentation is silent, the choice
is named at its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta

from pricing_pipeline.sandbox.calls import JSON, Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.fmp_company import Digits
from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.keys import key_name
from pricing_pipeline.sandbox.limits import KeyWindows
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.slots import Price, Slot, Tours
from pricing_pipeline.sandbox.tours import PLACES, Option, Tour, Unit
from pricing_pipeline.sandbox.units import divided

USUAL_PAGE, MOST_ROWS = 20, 100
"""Rows of a page: where none are asked for, and at most. The second is not documented: a guess on the safe side."""
_FIRST_NUMBER = 5000
_ROOTS = ("api/public/v1/", "api/v1/", "api/partner/v1/")
"""Parts of its address; ours may have one, too."""
_SERVED = {
    "product/get": {"currencyCode", "fetch-variants", "language"},
    "inventory/list-by/variant": {
        "variantId", "startDateTime", "endDateTime", "offset", "limit", "currencyCode",
    },
}  # fmt: skip
_DOLLARS = {"USD": 1000, "GBP": 1270, "EUR": 1080, "JPY": 7, "AUD": 660, "NZD": 610, "KWD": 3260, "NPR": 8}
"""Thousandths of a dollar for one unit of a currency: good enough for a sandbox, and always the same."""
_DIGITS = {place.currency: place.digits for place in PLACES} | {"EUR": 2}

Row = dict[str, object]


def headout_id(number: int) -> str:
    """The id of a tour's product."""
    return str(_FIRST_NUMBER + number)


def variant_id(number: int, place: int) -> int:
    """The id of an option: of the tour's options by place, the first being 0."""
    return (_FIRST_NUMBER + number) * 10 + place


class _Refused(Exception):
    """What it does not answer: status, code and words."""

    def __init__(self, status: int, code: str, words: str) -> None:
        super().__init__(words)
        self.reply = _refusal(status, code, words)


class Headout:
    """The partner as the accounts behind its keys see it."""

    name = "headout"

    def __init__(self, settings: SandboxSettings, tours: Tours) -> None:
        self._settings = settings
        self._tours = tours
        self._windows = KeyWindows(settings.partner_calls_per_minute)

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        for root in _ROOTS:
            endpoint = endpoint.removeprefix(root)
        product = endpoint.removeprefix("product/get/") if endpoint.startswith("product/get/") else ""
        # A call for a variant is one for its product, so that faults of one product hit both.
        variant = params.get("variantId", "")
        asked = product or variant[:-1]
        return ProviderCall(endpoint, params, (asked,) if asked else (), headers.get("headout-auth"), now)

    def admit(self, call: ProviderCall) -> Admission:
        name = key_name(call.key, self._settings.partner_key)
        window = None if name is None else self._windows.of(name)
        if window is None:
            return Admission(0, _refusal(401, "E_UNAUTHORIZED", "The api key is missing or invalid."))
        if not window.is_over(window.charge(1, call.now.timestamp())):
            return Admission(1, key_name=name)
        refusal = _refusal(429, "E_TOO_MANY_REQUESTS", "Too many requests.", {"Retry-After": "5"})
        return Admission(1, refusal, is_over_limit=True, key_name=name)

    def answer(self, call: ProviderCall) -> Reply:
        where = "product/get" if call.endpoint.startswith("product/get/") else call.endpoint
        if where not in _SERVED or call.method != "GET":
            return _refusal(404, "E_NOT_FOUND", "Not found.")
        try:
            for name in call.params.keys() - _SERVED[where]:
                raise _Refused(400, "E_INVALID_ARGUMENT", f"Invalid parameter: {name}")
            if where == "product/get":
                return _reply(self._product(call))
            return _reply(self._inventory(call))
        except _Refused as refused:
            return refused.reply

    def plan(self) -> dict[str, object]:
        return {"calls_per_minute": self._settings.partner_calls_per_minute}

    def reset(self) -> None:
        self._windows.reset()

    def _tour(self, asked: str, call: ProviderCall) -> Tour | None:
        named = call.answers.get(asked, asked)
        return self._tours.tour(int(named) - _FIRST_NUMBER) if named.isascii() and named.isdecimal() else None

    def _product(self, call: ProviderCall) -> Row:
        asked = call.endpoint.removeprefix("product/get/")
        tour = self._tour(asked, call)
        if tour is None:
            raise _Refused(400, "E_INVALID_ARGUMENT", f"Invalid productId: {asked[:40]}")
        place = tour.place
        return {
            "id": _FIRST_NUMBER + tour.number,
            "name": tour.name,
            "neighbourhood": "",
            "city": {"name": place.city, "code": place.city.upper().replace(" ", "_")},
            "currency": {"code": place.currency, "precision": place.digits},
            "displayTags": [],
            "productType": "TOUR",
            "hasInstantConfirmation": True,
            "hasMobileTicket": True,
            "variants": [_variant(tour, option, n) for n, option in enumerate(tour.options)],
        }

    def _inventory(self, call: ProviderCall) -> Row:
        """One page of a variant's slots. `total` counts the slots of all pages."""
        params = call.params
        if "variantId" not in params:
            raise _Refused(400, "E_MISSING_PARAMETER", "Missing required parameter: variantId")
        asked = params["variantId"]
        tour = self._tour(asked[:-1], call)
        place = int(asked[-1]) if asked[-1:].isdecimal() else len(asked)
        if tour is None or place >= len(tour.options):
            raise _Refused(400, "CAL-0121", "This tour is not available anymore.")
        first, last = _time(params, "startDateTime", call.now), _time(params, "endDateTime", call.now)
        offset, limit = _whole(params, "offset", 0), _whole(params, "limit", USUAL_PAGE)
        limit = min(max(limit, 1), MOST_ROWS)
        currency = params.get("currencyCode", tour.place.currency)
        if currency not in _DOLLARS:
            raise _Refused(
                400,
                "E_INVALID_ARGUMENT",
                f"Invalid CurrencyCode code: {currency[:9]}. CurrencyCode doesn't exist.",
            )
        slots = [
            slot
            for slot in self._tours.slots(tour, tour.options[place], first.date(), last.date(), call.now)
            if first <= slot.start.replace(tzinfo=None) <= last
        ]
        rest = slots[offset : offset + limit]
        following = offset + len(rest)
        is_last = following >= len(slots)
        here = (
            f"https://www.headout.com/api/public/v1/inventory/list-by/variant?variantId={asked}&limit={limit}"
        )
        return {
            "items": [_row(tour, slot, currency) for slot in rest],
            "nextUrl": None if is_last else f"{here}&offset={following}",
            "prevUrl": None if offset == 0 else f"{here}&offset={max(offset - limit, 0)}",
            "total": len(slots),
            "nextOffset": None if is_last else following,
        }


def _variant(tour: Tour, option: Option, place: int) -> Row:
    return {
        "id": variant_id(tour.number, place),
        "name": option.name if len(tour.options) > 1 else None,
        "description": "",
        "inventoryType": "FIXED_START_FIXED_DURATION",
        "duration": option.minutes * 60_000,
        "priceType": "PER_GROUP" if tour.is_by_group else "PER_PERSON",
        "pax": {"min": 1, "max": 9},
        "cashback": None,
        "inputFields": [],
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
    return divided(
        amount * _DOLLARS[currency] * 10 ** _DIGITS[into], _DOLLARS[into] * 10 ** _DIGITS[currency]
    )


def _decimal(amount: int, currency: str) -> Digits:
    """Without zeros at the end, as floats are written."""
    digits = _DIGITS[currency]
    text = str(amount).rjust(digits + 1, "0")
    text = f"{text[: len(text) - digits]}.{text[len(text) - digits :]}" if digits else text
    return Digits(text.rstrip("0").rstrip(".") if digits else text)


def _time(params: Mapping[str, str], name: str, now: datetime) -> datetime:
    """A local time without zone; a missing first one is now, and a missing last one 30 days from now."""
    text = params.get(name)
    if text is None:
        today = datetime.combine(now.date(), time())
        return today if name == "startDateTime" else today + timedelta(days=30)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is not None or not date(2000, 1, 1) <= at.date() <= date(2100, 1, 1):
        raise _Refused(400, "E_INVALID_ARGUMENT", f"Invalid {name}: {text[:40]}")
    return at


def _whole(params: Mapping[str, str], name: str, usual: int) -> int:
    text = params.get(name, str(usual))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise _Refused(400, "E_INVALID_ARGUMENT", f"Invalid {name}: {text[:40]}")
    return int(text)


def _refusal(status: int, code: str, words: str, headers: Mapping[str, str] | None = None) -> Reply:
    return _reply({"status": status, "error": {"code": code, "message": words}}, status, headers)


def _reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, _text(value).encode(), JSON, headers or {})


def _text(value: object) -> str:
    if isinstance(value, Digits):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
