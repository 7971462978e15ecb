"""OCTO, the open standard of tours and activities, with its capability octo/pricing. What is sold is in slots.py.

Charged is one call, refused ones included. Where the standard is silent, the choice is named at its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC

from pricing_pipeline.sandbox.calls import Dialect, Invalid, ProviderCall, Refused, Reply, bearer, json_reply
from pricing_pipeline.sandbox.limits import Charge, Plan
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.slots import CUTOFF, Price, Slot, Tours
from pricing_pipeline.sandbox.tours import MOST_TOURS, Option, Tour, Unit

_FIRST_NUMBER = 1000

Row = dict[str, object]


def octo_id(number: int) -> str:
    """The id of a tour's product."""
    return f"OCT-{_FIRST_NUMBER + number}"


class Octo(Dialect):
    name = "octo"

    def __init__(self, settings: SandboxSettings, tours: Tours) -> None:
        super().__init__(Plan(settings.key, settings.partner_calls_per_minute))
        self._tours = tours

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        root, _, product = endpoint.partition("/")
        asked = product if root == "products" and product else params.get("productId")
        return (asked,) if asked else ()

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        return bearer(headers)

    def invalid(self, name: str, given: str) -> Reply:
        return _refusal(400, "BAD_REQUEST", f"{name} is missing or invalid")

    def wrong_key(self, call: ProviderCall) -> Reply:
        if call.key is None:
            return _refusal(401, "UNAUTHORIZED", "No API key was sent in the Authorization header")
        return _refusal(403, "FORBIDDEN", "The API key is invalid or was revoked")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        # The standard has no code for this; the header is HTTP's own.
        body = {"error": "TOO_MANY_REQUESTS", "errorMessage": "Too many requests"}
        return json_reply(body, 429, {"Retry-After": "5"})

    def answered(self, call: ProviderCall) -> Reply:
        match call.method, *call.endpoint.split("/"):
            case "GET", "products":
                tours = (self._tours.tour(number) for number in range(1, MOST_TOURS + 1))
                return json_reply([_product(tour) for tour in tours if tour is not None])
            case "GET", "products", asked:
                return json_reply(_product(self._tour(asked, call)))
            case "POST", "availability":
                return json_reply(self._availability(call))
        return _refusal(404, "BAD_REQUEST", f"There is no {call.method} /{call.endpoint}")

    def _tour(self, asked: str, call: ProviderCall) -> Tour:
        named = call.answers.get(asked, asked)
        numbers = range(1, MOST_TOURS + 1)
        tour = next((self._tours.tour(number) for number in numbers if octo_id(number) == named), None)
        if tour is None:
            raise _invalid("INVALID_PRODUCT_ID", "productId", asked)
        return tour

    def _availability(self, call: ProviderCall) -> list[Row]:
        params = call.params
        if not {"productId", "optionId"} <= params.keys():
            raise Invalid("productId or optionId")
        tour = self._tour(params["productId"], call)
        option = next((option for option in tour.options if option.option_id == params["optionId"]), None)
        if option is None:
            raise _invalid("INVALID_OPTION_ID", "optionId", params["optionId"])
        first, last = call.day("localDateStart"), call.day("localDateEnd")
        if first is None or last is None:
            raise Invalid("localDateStart or localDateEnd")
        is_priced = "octo/pricing" in call.headers.get("octo-capabilities", "")
        slots = self._tours.slots(tour, option, first, last, call.now)
        return [_slot(tour, slot, is_priced=is_priced) for slot in slots]


def _status(slot: Slot) -> str:
    if slot.is_closed:
        return "CLOSED"
    if slot.left is None or slot.seats is None:
        return "FREESALE"
    if slot.left == 0:
        return "SOLD_OUT"
    return "LIMITED" if slot.left * 5 <= slot.seats else "AVAILABLE"


def _is_sold(slot: Slot) -> bool:
    return _status(slot) not in ("SOLD_OUT", "CLOSED")


def _vacancies(slot: Slot) -> int | None:
    return 0 if slot.is_closed and slot.left is not None else slot.left


def _slot(tour: Tour, slot: Slot, *, is_priced: bool) -> Row:
    cutoff = (slot.start - CUTOFF).astimezone(UTC)
    row: Row = {
        "id": slot.start.isoformat(),
        "localDateTimeStart": slot.start.isoformat(),
        "localDateTimeEnd": slot.end.isoformat(),
        "utcCutoffAt": f"{cutoff:%Y-%m-%dT%H:%M:%SZ}",
        "allDay": False,
        "available": _is_sold(slot),
        "status": _status(slot),
        "vacancies": _vacancies(slot),
        "capacity": slot.seats,
        "maxUnits": None if slot.seats is None else min(slot.seats, 9),
    }
    if is_priced:
        row["unitPricing"] = [_pricing(tour, price) for price in slot.prices]
    return row


def _pricing(tour: Tour, price: Price) -> Row:
    """A price in minor units."""
    return {
        "unitId": price.unit_id,
        "original": price.original,
        "retail": price.retail,
        "net": price.net,
        "currency": tour.place.currency,
        "currencyPrecision": tour.place.digits,
    }


def _product(tour: Tour) -> Row:
    return {
        "id": octo_id(tour.number),
        "internalName": tour.name,
        "timeZone": tour.place.zone,
        "allowFreesale": any(option.seats is None for option in tour.options),
        "availabilityType": "START_TIME",
        "options": [_option(tour, option, is_first=n == 0) for n, option in enumerate(tour.options)],
    }


def _option(tour: Tour, option: Option, *, is_first: bool) -> Row:
    return {
        "id": option.option_id,
        "default": is_first,
        "internalName": option.name,
        "availabilityLocalStartTimes": [f"{start // 60:02d}:{start % 60:02d}" for start in option.starts],
        "restrictions": {"minUnits": 1, "maxUnits": 9},
        "units": [_unit(unit) for unit in tour.units],
    }


def _unit(unit: Unit) -> Row:
    return {
        "id": unit.unit_id,
        "internalName": unit.name,
        "type": unit.kind,
        "restrictions": {
            "minAge": unit.ages[0] or 0,
            "maxAge": unit.ages[1] or 100,
            "paxCount": unit.pax,
        },
    }


def _invalid(error: str, name: str, given: str) -> Refused:
    words = f"The {name} was missing or invalid"
    return Refused(json_reply({"error": error, "errorMessage": words, name: given}, 400))


def _refusal(status: int, error: str, words: str) -> Reply:
    return json_reply({"error": error, "errorMessage": words}, status)
