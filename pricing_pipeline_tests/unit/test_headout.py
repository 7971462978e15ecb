"""Headout's parser: its pages, states, exact prices and refusals (D4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import Product, Slot, SlotStatus
from pricing_pipeline.domain.time_zones import is_time_zone
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    Misconfigured,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers import headout, headout_cities
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline.providers.currencies import CURRENCIES, digits_of
from pricing_pipeline.providers.inventory import minor_units
from pricing_pipeline.providers.values import Implausible
from pricing_pipeline_tests.support.provider_samples import encoded, literal
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.tours import HEADOUT, Answering, days_of, driven, kinds, responded, scripted

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
SYMBOL, WINDOW = "512", Window(date(2026, 11, 20), date(2026, 11, 22))
KNOWN = {SYMBOL: {"currency": None, "time_zone": "America/New_York"}}
ADULT = {"type": "ADULT", "name": "Adult", "ageFrom": 13, "ageTo": None, "price": 100, "originalPrice": 110}
CHILD = {"type": "CHILD", "name": "Child", "ageFrom": 4, "ageTo": 12, "price": 50, "originalPrice": 60}
ITEM: dict[str, Any] = {
    "id": "1212121",
    "startDateTime": "2026-11-20T15:30:00",
    "endDateTime": "2026-11-20T16:30:00",
    "availability": "LIMITED",
    "remaining": 5,
    "pricing": {"persons": [CHILD, ADULT], "groups": []},
}
PRODUCT: dict[str, Any] = {
    "id": 512,
    "name": "Wicked",
    "city": {"name": "New York", "code": "NEW_YORK"},
    "variants": [{"id": 647, "name": "Rear Orchestra"}, {"id": 648, "name": None}],
}
GONE = {
    "error": {
        "code": "CAL-0121",
        "title": "Itinerary error",
        "message": "This tour is not available anymore.",
    }
}
INVALID = {"status": 400, "error": {"code": "E_INVALID_ARGUMENT", "message": "Invalid productId: 512"}}


def page(items: Sequence[object], total: int | None = None, following: int | None = None) -> Response:
    count = len(items) if total is None else total
    body = {"items": list(items), "nextUrl": None, "prevUrl": None, "total": count, "nextOffset": following}
    return responded(200, encoded(body))


ONE_VARIANT = PRODUCT | {"variants": [{"id": 647, "name": "Rear Orchestra"}]}


def slots(*answers: Response, product: object = ONE_VARIANT, known: Any = KNOWN) -> tuple[Answer, list[Request]]:
    """A call for slots whose first answer is the product, and these the further ones."""
    dialogue = HEADOUT.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, known))
    return driven(dialogue, scripted(responded(200, product), *answers))


def one_slot(**changes: object) -> Slot:
    (slot,) = days_of(slots(page([ITEM | changes]))[0]).slots
    return slot


def product(answer: Response) -> Answer:
    return driven(HEADOUT.ask(Question(Fetcher.PRODUCT, [SYMBOL], None, NOW)), scripted(answer))[0]


def test_d4_a_slot_is_read_as_the_partner_has_it() -> None:
    slot = one_slot()
    assert (slot.slot_id, slot.option_id, slot.utc_offset) == ("1212121", "647", None)
    assert (slot.local_start, slot.local_end) == (
        datetime(2026, 11, 20, 15, 30),
        datetime(2026, 11, 20, 16, 30),
    )
    assert (slot.status, slot.remaining, slot.currency, slot.currency_scale) == (*(SlotStatus.AVAILABLE, 5, "USD", 2),)
    assert [(one.category_id, one.name, one.final, one.original, one.is_primary) for one in slot.offers] == [
        ("CHILD", "Child", 5000, 6000, False),
        ("ADULT", "Adult", 10000, 11000, True),
    ]
    assert [(one.age_from, one.age_to) for one in slot.offers] == [(4, 12), (13, None)]


@pytest.mark.parametrize(
    ("availability", "remaining", "status", "left"),
    [
        ("LIMITED", 5, SlotStatus.AVAILABLE, 5),
        ("LIMITED", 0, SlotStatus.SOLD_OUT, 0),
        ("UNLIMITED", 0, SlotStatus.FREESALE, None),
        ("UNLIMITED", None, SlotStatus.FREESALE, None),
        ("CLOSED", 5, SlotStatus.CLOSED, 5),
    ],
)
def test_d4_states(availability: str, remaining: int | None, status: SlotStatus, left: int | None) -> None:
    slot = one_slot(availability=availability, remaining=remaining)
    assert (slot.status, slot.remaining) == (status, left)


def test_d4_a_group_is_sold_as_one_unit() -> None:
    groups = [{"size": 7, "price": 120, "originalPrice": 120}, {"size": 4, "price": literal("99.5")}]
    slot = one_slot(pricing={"persons": [], "groups": groups})
    assert [(one.category_id, one.name, one.final, one.original, one.minimum, one.maximum) for one in slot.offers] == [
        ("GROUP_4", "Group of up to 4", 9950, None, 1, 1),
        ("GROUP_7", "Group of up to 7", 12000, 12000, 1, 1),
    ]
    assert [(one.is_primary, one.pax_count) for one in slot.offers] == [(False, 4), (False, 7)]


def test_d4_the_final_price_is_what_a_customer_pays_and_never_the_partners() -> None:
    paid = {
        "price": literal("109.94"),
        "netPrice": literal("109.94"),
        "headoutSellingPrice": literal("129.34"),
        "originalPrice": literal("187.88"),
    }
    persons = [ADULT | paid, CHILD | paid | {"headoutSellingPrice": None}]
    adult, child = one_slot(pricing={"persons": persons, "groups": [{"size": 4} | paid]}).offers[:2]
    assert (adult.final, adult.original) == (12934, 18788)
    assert (child.final, child.original) == (None, 18788), "109.94 is what the partner pays"


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, None),
        ({"availability": "LIMITED", "remaining": 3}, 3),
        ({"availability": "LIMITED", "remaining": 0}, 0),
        ({"availability": "CLOSED", "remaining": 14}, 0),
        ({"availability": "CLOSED"}, 0),
        ({"availability": "UNLIMITED", "remaining": 0}, None),
        ({"availability": "LIMITED", "remaining": 9999}, None),
        ({"availability": "LIMITED", "remaining": 1000}, None),
    ],
)
def test_d4_a_category_that_is_closed_or_used_up_has_no_places_of_its_slot(
    changes: dict[str, object], left: int | None
) -> None:
    pricing = {"persons": [ADULT | changes], "groups": [{"size": 4, "price": 100} | changes]}
    assert [offer.remaining for offer in one_slot(pricing=pricing).offers] == [left, left]


def test_d4_a_number_that_stands_for_no_limit_is_no_count_of_places() -> None:
    slot = one_slot(availability="LIMITED", remaining=9999)
    assert (slot.status, slot.remaining) == (SlotStatus.AVAILABLE, None)


def test_d4_a_category_says_how_many_a_booking_takes() -> None:
    (offer,) = one_slot(pricing={"persons": [ADULT | {"paxRange": {"min": 2, "max": 8}}]}).offers
    assert (offer.minimum, offer.maximum) == (2, 8)


def test_d4_pages_of_version_2_are_read_and_those_of_another_product_are_refused() -> None:
    body = {"productId": "512", "availabilities": [ITEM], "total": 1, "nextOffset": None}
    assert [one.slot_id for one in days_of(slots(responded(200, body))[0]).slots] == ["1212121"]
    answer, _ = slots(responded(200, body | {"productId": "513"}))
    assert kinds(answer) == [FailureKind.IMPLAUSIBLE]
    assert "it is of product 513" in answer.failures[0].message


# --- exact money --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("58.4", "USD", 5840),
        ("0", "USD", 0),
        ("0.10", "USD", 10),
        ("100", "JPY", 100),
        ("1E+2", "USD", 10000),
        ("12.345", "KWD", 12345),
        ("12.5", "KWD", 12500),
        ("1.0000", "CLF", 10000),
        ("1.00", "JPY", 1),
    ],
)
def test_a9_decimals_become_minor_units_by_the_currencys_scale(text: str, currency: str, amount: int) -> None:
    assert minor_units(text, currency, "price") == amount


@pytest.mark.parametrize(
    ("text", "currency"),
    [("58.405", "USD"), ("0.5", "JPY"), ("99.99000000000001", "USD"), ("-1", "USD"), ("NaN", "USD")],
)
def test_a9_what_is_no_whole_number_of_minor_units_is_refused(text: str, currency: str) -> None:
    with pytest.raises(Implausible):
        minor_units(text, currency, "price")
    if currency == "USD":
        spoiled = ITEM | {"pricing": {"persons": [ADULT | {"price": literal(text)}], "groups": None}}
        assert kinds(slots(page([spoiled]))[0]) == [FailureKind.IMPLAUSIBLE]


@given(amount=st.integers(0, 10**12), currency=st.sampled_from(sorted(CURRENCIES)))
def test_a9_every_amount_is_read_back_exactly(amount: int, currency: str) -> None:
    digits = digits_of(currency)
    text = str(amount).rjust(digits + 1, "0")
    written = f"{text[: len(text) - digits]}.{text[len(text) - digits :]}" if digits else text
    assert minor_units(written, currency, "price") == amount


# --- pages --------------------------------------------------------------------------------------


def items(count: int) -> list[dict[str, Any]]:
    return [ITEM | {"id": str(n)} for n in range(count)]


def paged(rows: Sequence[object], size: int, *, lost: range = range(0), gives_last: bool = False) -> Answering:
    """A partner with pages of a size; rows of `lost` are on none. `gives_last`: the last page names an offset, too."""

    def answer(request: Request) -> Response:
        if request.path.startswith("/product/"):
            return responded(200, ONE_VARIANT)
        offset = int(dict(request.params)["offset"])
        part = [row for n, row in enumerate(rows[offset : offset + size], offset) if n not in lost]
        following = offset + size
        is_last = following >= len(rows)
        return page(part, len(rows), None if is_last and not gives_last else following)

    return answer


@given(count=st.integers(0, 40), size=st.integers(1, 15), gives_last=st.booleans())
def test_d4_pages_of_any_size_make_one_list(count: int, size: int, *, gives_last: bool) -> None:
    rows = items(count)
    read, requests = driven(
        HEADOUT.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, KNOWN)), paged(rows, size, gives_last=gives_last)
    )
    assert [slot.slot_id for slot in days_of(read).slots] == [row["id"] for row in rows]
    assert len(requests) == 1 + max(-(-count // size), 1)
    assert {dict(one.params)["currencyCode"] for one in requests[1:]} == {"USD"}


@given(count=st.integers(2, 30), size=st.integers(1, 9), data=st.data())
def test_d4_rows_that_are_on_no_page_cost_the_whole_answer(count: int, size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    lost = range(first, data.draw(st.integers(first + 1, count)))
    dialogue = HEADOUT.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, KNOWN))
    with pytest.raises(SchemaDrift, match="no whole list"):
        driven(dialogue, paged(items(count), size, lost=lost))


TORN = {
    "the total grows": (page(items(2), 4, 2), page(items(2), 5, 4)),
    "the total shrinks": (page(items(2), 4, 2), page(items(1), 3)),
    "the offset goes back": (page(items(2), 6, 2), page(items(2), 6, 1)),
    "the offset stays": (page(items(2), 6, 2), page(items(2), 6, 2)),
    "it ends too early": (page(items(2), 6, 2), page(items(2), 6)),
    "a page is skipped": (page(items(2), 6, 4), page(items(2), 6)),
    "a page is empty": (page(items(2), 6, 2), page([], 6, 4)),
    "it has more than its total": (page(items(3), 2),),
    "its total is below zero": (page([], -1),),
    "its total is beyond reason": (page(items(1), 10**7, 1),),
}


@pytest.mark.parametrize("torn", sorted(TORN))
def test_d4_pages_that_are_not_one_list_are_refused_whole(torn: str) -> None:
    with pytest.raises(SchemaDrift, match="no whole list"):
        slots(*TORN[torn])


def test_d4_a_slot_on_two_pages_is_not_believed() -> None:
    days = days_of(slots(page(items(2), 4, 2), page([*items(1), GOOD], 4))[0])
    assert ([slot.slot_id for slot in days.slots], days.kept) == (["1", "good"], {("647", "0")})


# --- products -----------------------------------------------------------------------------------


def test_d4_a_product_with_its_variants_and_the_zone_of_its_city() -> None:
    (read,) = product(responded(200, PRODUCT)).records
    assert isinstance(read, Product)
    assert (read.symbol, read.name, read.time_zone) == ("512", "Wicked", "America/New_York")
    assert [(one.option_id, one.name, one.is_default) for one in read.options] == [
        ("647", "Rear Orchestra", True),
        ("648", "Wicked", False),
    ]
    for city in ({"code": "ATLANTIS"}, None):
        (elsewhere,) = product(responded(200, PRODUCT | {"city": city})).records
        assert isinstance(elsewhere, Product)
        assert elsewhere.time_zone is None


def test_d4_every_citys_zone_is_one() -> None:
    zones = headout_cities._zones()
    assert all(is_time_zone(zone) for zone in zones.values())
    assert {zones[city] for city in ("PARIS", "DUBAI", "LAS_VEGAS", "BALI")} == {
        *("Europe/Paris", "Asia/Dubai", "America/Los_Angeles", "Asia/Makassar"),
    }
    assert "SAN_JUAN" not in zones, "Puerto Rico's is not Argentina's"


def test_d4_the_product_is_asked_for_first_and_brought_along() -> None:
    answer, requests = slots(page([ITEM]), page([]), product=PRODUCT, known={})
    assert [one.path for one in requests] == ["/product/get/512", *["/inventory/list-by/variant"] * 2]
    assert [dict(one.params)["variantId"] for one in requests[1:]] == ["647", "648"]
    assert isinstance(answer.records[0], Product)
    assert [slot.option_id for slot in days_of(answer).slots] == ["647"]
    sent = dict(requests[1].params)
    assert (sent["startDateTime"], sent["endDateTime"]) == ("2026-11-20T00:00:00", "2026-11-22T23:59:59")


def test_d4_a_variant_that_goes_in_the_middle_of_a_call_costs_the_answer() -> None:
    for status in (200, 400, 404):
        with pytest.raises(SchemaDrift, match="has just named"):
            slots(page([]), responded(status, GONE), product=PRODUCT)


def test_d2_an_unknown_product_is_the_symbols_own_fault() -> None:
    for body in (INVALID, GONE):
        assert kinds(product(responded(400, body))) == [FailureKind.UNKNOWN_SYMBOL]
    dialogue = HEADOUT.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, KNOWN))
    assert kinds(driven(dialogue, scripted(responded(400, GONE)))[0]) == [FailureKind.UNKNOWN_SYMBOL]
    assert kinds(product(responded(200, PRODUCT | {"id": 513}))) == [FailureKind.IMPLAUSIBLE]


REFUSALS: list[tuple[Response, type[ProviderError]]] = [
    (responded(401, {"status": 401, "error": {"code": "E_UNAUTHORIZED", "message": "no"}}), KeyRefused),
    (responded(429, {"error": {"code": "X", "message": "slow"}}, **{"retry-after": "9"}), Throttled),
    (responded(503, GONE), ProviderDown),
    (responded(200, b"<html>Just a moment</html>"), SchemaDrift),
    (responded(200, {"error": {"code": "X"}}), SchemaDrift),
    (responded(200, {"items": []}), SchemaDrift),
]


@pytest.mark.parametrize(("response", "error"), REFUSALS, ids=lambda one: getattr(one, "status", None) or one.__name__)
@pytest.mark.parametrize("before", [(), (page([ITEM], 2, 1),)], ids=["first", "second"])
def test_d2_a_refusal_ends_the_call_wherever_it_comes(
    response: Response, error: type[ProviderError], before: tuple[Response, ...]
) -> None:
    with pytest.raises(error):
        slots(*before, response)


SPOILED: list[dict[str, object]] = [
    {"availability": "SOMETIMES"},
    {"remaining": "5"},
    {"remaining": -1},
    {"remaining": None},
    {"startDateTime": "2026-11-20T15:30:00Z"},
    {"startDateTime": "2026-11-23T00:00:00"},
    {"startDateTime": "2026-11-20T17:00:00"},
    {"endDateTime": "soon"},
    {"pricing": None},
    {"pricing": {"persons": [ADULT, ADULT]}},
    {"pricing": {"groups": [{"size": 4, "price": 1}, {"size": 4, "price": 2}]}},
    {"pricing": {"groups": [{"size": 0, "price": 1}]}},
    {"pricing": {"persons": [ADULT | {"price": None}]}},
]
GOOD = ITEM | {"id": "good", "startDateTime": "2026-11-21T15:30:00", "endDateTime": "2026-11-21T16:30:00"}


@pytest.mark.parametrize("spoiled", SPOILED, ids=repr)
def test_d4_a_slot_that_is_not_believed_is_kept_as_it_was_and_costs_no_other(
    spoiled: dict[str, object],
) -> None:
    answer, _ = slots(page([GOOD, ITEM | spoiled]))
    days = days_of(answer)
    assert [slot.slot_id for slot in days.slots] == ["good"]
    assert (days.kept, days.unread) == (frozenset({("647", ITEM["id"])}), frozenset())
    (told,) = answer.rejected
    assert "slot 1212121 of option 647 on 2026-11-2" in told.reason


# --- recorded answers ---------------------------------------------------------------------------


def test_d4_the_documentations_example_has_no_state_and_its_pages_do_not_add_up() -> None:
    """Its availability is "LIMITED/UNLIMITED/CLOSED", its total 100, its next offset 21 after one item."""
    answer = recorded("inventory", "headout_v1_inventory_list_by_variant.json")
    with pytest.raises(SchemaDrift, match="no whole list"):
        slots(answer, page([], 100))


@pytest.mark.parametrize("name", ["invalid_argument", "invalid_enum", "missing_parameter"])
def test_d2_recorded_refusals(name: str) -> None:
    answer = recorded("inventory", f"headout_v2_error_400_{name}.json")
    with pytest.raises(RequestRefused):
        slots(answer)


# --- currency -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_instrument", "asked", "scale", "final"),
    [(None, headout.DEFAULT_CURRENCY, 2, 10000), ("EUR", "EUR", 2, 10000), ("JPY", "JPY", 0, 100)],
)
def test_d4_prices_are_in_the_currency_of_the_instrument(
    of_instrument: str | None, asked: str, scale: int, final: int
) -> None:
    """Answers name none, so what was asked for is what the prices are in."""
    known = {SYMBOL: {"currency": of_instrument}}
    answer, requests = slots(page([ITEM]), page([]), product=PRODUCT, known=known)
    assert [dict(one.params).get("currencyCode") for one in requests] == [None, asked, asked]
    (slot,) = days_of(answer).slots
    assert (slot.currency, slot.currency_scale, slot.offers[1].final) == (asked, scale, final)


def test_d4_a_currency_that_is_none_is_refused_before_a_call() -> None:
    with pytest.raises(Misconfigured, match=r"not a code of ISO 4217.*instrument change 512 --currency USD"):
        slots(known={SYMBOL: {"currency": "XXZ"}})
