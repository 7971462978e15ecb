"""OCTO, the open standard of tours and activities, with its capability octo/pricing. What is sold is in slots.py.

Charged is one call, refused ones included. Where the standard is silent, the choice is named at its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from pricing_pipeline.sandbox.calls import JSON, Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.keys import key_name
from pricing_pipeline.sandbox.limits import KeyWindows
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.slots import CUTOFF, Price, Slot, Tours
from pricing_pipeline.sandbox.tours import MOST_TOURS, Option, Tour, Unit

MOST_DAYS = 370
"""Most days of one answer. The standard names no bound; systems that follow it do."""
_FIRST_NUMBER = 1000
_PRICING = "octo/pricing"
_FIELDS = {"productId", "optionId", "localDateStart", "localDateEnd", "localDate", "availabilityIds", "units"}

Row = dict[str, object]


def octo_id(number: int) -> str:
    """The id of a tour's product."""
    return f"OCT-{_FIRST_NUMBER + number}"


class _Refused(Exception):
    """What the standard does not answer: status, code and words."""

    def __init__(self, status: int, error: str, words: str, **fields: str) -> None:
        super().__init__(words)
        self.reply = _reply({"error": error, "errorMessage": words, **fields}, status)


class Octo:
    """The partner as the accounts behind its keys see it."""

    name = "octo"

    def __init__(self, settings: SandboxSettings, tours: Tours) -> None:
        self._settings = settings
        self._tours = tours
        self._windows = KeyWindows(settings.partner_calls_per_minute)

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        key = headers.get("authorization", "").removeprefix("Bearer ") or None
        parts = endpoint.strip("/").split("/")
        asked = parts[1] if parts[0] == "products" and len(parts) == 2 else params.get("productId")
        wanted = headers.get("octo-capabilities", "").replace(" ", "").split(",")
        if _PRICING in wanted:
            params = {**params, _PRICING: "true"}
        return ProviderCall(endpoint, params, (asked,) if asked else (), key, now)

    def admit(self, call: ProviderCall) -> Admission:
        if call.key is None:
            return Admission(
                0, _refusal(401, "UNAUTHORIZED", "No API key was sent in the Authorization header")
            )
        name = key_name(call.key, self._settings.partner_key)
        window = None if name is None else self._windows.of(name)
        if window is None:
            return Admission(0, _refusal(403, "FORBIDDEN", "The API key is invalid or was revoked"))
        at = call.now.timestamp()
        if not window.is_over(window.charge(1, at)):
            return Admission(1, key_name=name)
        # The standard has no code for this; the header is HTTP's own.
        refusal = _refusal(429, "TOO_MANY_REQUESTS", "Too many requests", {"Retry-After": "5"})
        return Admission(1, refusal, is_over_limit=True, key_name=name)

    def answer(self, call: ProviderCall) -> Reply:
        parts = call.endpoint.strip("/").split("/")
        try:
            match call.method, *parts:
                case "GET", "products":
                    tours = (self._tours.tour(number) for number in range(1, MOST_TOURS + 1))
                    return _reply([_product(tour) for tour in tours if tour is not None])
                case "GET", "products", asked:
                    return _reply(_product(self._tour(asked, call)))
                case "POST", "availability":
                    return _reply(self._availability(call))
                case "POST", "availability", "calendar":
                    return _reply(self._calendar(call))
        except _Refused as refused:
            return refused.reply
        return _refusal(404, "BAD_REQUEST", f"There is no {call.method} /{call.endpoint}")

    def plan(self) -> dict[str, object]:
        return {"calls_per_minute": self._settings.partner_calls_per_minute}

    def reset(self) -> None:
        self._windows.reset()

    def _tour(self, asked: str, call: ProviderCall) -> Tour:
        named = call.answers.get(asked, asked)
        number = named.removeprefix("OCT-")
        tour = (
            self._tours.tour(int(number) - _FIRST_NUMBER) if named != number and number.isdecimal() else None
        )
        if tour is None or octo_id(tour.number) != named:
            words = "The productId was missing or invalid"
            raise _Refused(400, "INVALID_PRODUCT_ID", words, productId=asked)
        return tour

    def _asked(self, call: ProviderCall) -> tuple[Tour, Option, date, date]:
        """What a POST asks for. Raises _Refused for a body that is not as the standard has it."""
        params = {name: value for name, value in call.params.items() if name != _PRICING}
        if unknown := params.keys() - _FIELDS:
            raise _bad(f"{', '.join(sorted(unknown))} is not understood")
        if not {"productId", "optionId"} <= params.keys():
            raise _bad("productId and optionId are required")
        tour = self._tour(params["productId"], call)
        option = next((option for option in tour.options if option.option_id == params["optionId"]), None)
        if option is None:
            words = "The optionId was missing or invalid"
            raise _Refused(400, "INVALID_OPTION_ID", words, optionId=params["optionId"])
        first = params.get("localDateStart") or params.get("localDate")
        last = params.get("localDateEnd") or params.get("localDate")
        try:
            days = date.fromisoformat(first or ""), date.fromisoformat(last or "")
        except ValueError:
            raise _bad("localDateStart and localDateEnd are required, as YYYY-MM-DD") from None
        if not timedelta(0) <= days[1] - days[0] < timedelta(days=MOST_DAYS):
            raise _bad("localDateEnd is before localDateStart, or too far behind it")
        return tour, option, *days

    def _availability(self, call: ProviderCall) -> list[Row]:
        tour, option, first, last = self._asked(call)
        is_priced = _PRICING in call.params
        return [
            _availability(tour, slot, is_priced=is_priced)
            for slot in self._tours.slots(tour, option, first, last, call.now)
        ]

    def _calendar(self, call: ProviderCall) -> list[Row]:
        """One row for each day; the price of a day is its lowest."""
        tour, option, first, last = self._asked(call)
        rows: list[Row] = []
        for n in range((last - first).days + 1):
            day = first + timedelta(days=n)
            slots = self._tours.slots(tour, option, day, day, call.now)
            best = min(slots, key=lambda slot: _ORDER.index(_status(slot)), default=None)
            row: Row = {
                "localDate": str(day),
                "available": best is not None and _is_sold(best),
                "status": "CLOSED" if best is None else _status(best),
                "vacancies": None if option.seats is None else sum(_vacancies(slot) or 0 for slot in slots),
                "capacity": None if option.seats is None else option.seats * len(slots),
                "openingHours": [],
            }
            if _PRICING in call.params and slots:
                lowest = min(slots, key=lambda slot: slot.prices[0].retail)
                row["unitPricingFrom"] = [_pricing(tour, price) for price in lowest.prices]
            rows.append(row)
        return rows


_ORDER = ("FREESALE", "AVAILABLE", "LIMITED", "SOLD_OUT", "CLOSED")


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


def _availability(tour: Tour, slot: Slot, *, is_priced: bool) -> Row:
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
        "openingHours": [],
    }
    if is_priced:
        row["unitPricing"] = [_pricing(tour, price) for price in slot.prices]
    return row


def _pricing(tour: Tour, price: Price) -> Row:
    """A price in minor units, with a tax of a tenth that is part of it where prices have cents."""
    taxes: list[Row] = []
    if tour.place.digits == 2:
        parts = {"original": price.original, "retail": price.retail, "net": price.net}
        taxes.append({"name": "VAT 10%"} | {name: amount // 11 for name, amount in parts.items()})
    return {
        "unitId": price.unit_id,
        "original": price.original,
        "retail": price.retail,
        "net": price.net,
        "currency": tour.place.currency,
        "currencyPrecision": tour.place.digits,
        "includedTaxes": taxes,
    }


def _product(tour: Tour) -> Row:
    return {
        "id": octo_id(tour.number),
        "internalName": tour.name,
        "reference": f"T{tour.number:03d}",
        "locale": "en",
        "timeZone": tour.place.zone,
        "allowFreesale": any(option.seats is None for option in tour.options),
        "instantConfirmation": True,
        "instantDelivery": True,
        "availabilityRequired": True,
        "availabilityType": "START_TIME",
        "deliveryFormats": ["QRCODE"],
        "deliveryMethods": ["VOUCHER"],
        "redemptionMethod": "DIGITAL",
        "options": [_option(tour, option, is_first=n == 0) for n, option in enumerate(tour.options)],
    }


def _option(tour: Tour, option: Option, *, is_first: bool) -> Row:
    return {
        "id": option.option_id,
        "default": is_first,
        "internalName": option.name,
        "reference": None,
        "availabilityLocalStartTimes": [f"{start // 60:02d}:{start % 60:02d}" for start in option.starts],
        "cancellationCutoff": "1 hour",
        "cancellationCutoffAmount": 1,
        "cancellationCutoffUnit": "hour",
        "requiredContactFields": [],
        "restrictions": {"minUnits": 1, "maxUnits": 9},
        "units": [_unit(unit) for unit in tour.units],
    }


def _unit(unit: Unit) -> Row:
    return {
        "id": unit.unit_id,
        "internalName": unit.name,
        "reference": None,
        "type": unit.kind,
        "requiredContactFields": [],
        "restrictions": {
            "minAge": unit.ages[0] or 0,
            "maxAge": unit.ages[1] or 100,
            "idRequired": False,
            "minQuantity": None,
            "maxQuantity": None,
            "paxCount": unit.pax,
            "accompaniedBy": [],
        },
    }


def _bad(words: str) -> _Refused:
    return _Refused(400, "BAD_REQUEST", words)


def _refusal(status: int, error: str, words: str, headers: Mapping[str, str] | None = None) -> Reply:
    return _reply({"error": error, "errorMessage": words}, status, headers)


def _reply(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return Reply(status, text.encode(), JSON, headers or {})
