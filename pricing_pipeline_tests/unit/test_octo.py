"""OCTO's parser: its states, times, prices and refusals, by answers of the standard and of partners (D4)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import PaxCategory, Product, ProductDays, Slot, SlotStatus
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    InvalidRange,
    KeyRefused,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline_tests.support.provider_samples import literal
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.tours import OCTO, days_of, driven, kinds, responded, scripted

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
SYMBOL, WINDOW = "OCT-7", Window(date(2026, 11, 20), date(2026, 11, 22))
KNOWN = {SYMBOL: {"time_zone": "Europe/Paris", "currency": None}}
PRICE = {
    "unitId": "adult",
    "original": 4480,
    "retail": 4255,
    "net": 3800,
    "currency": "EUR",
    "currencyPrecision": 2,
}
SLOT: dict[str, Any] = {
    "id": "2026-11-20T09:00:00+01:00",
    "localDateTimeStart": "2026-11-20T09:00:00+01:00",
    "localDateTimeEnd": "2026-11-20T11:00:00+01:00",
    "utcCutoffAt": "2026-11-20T07:30:00Z",
    "allDay": False,
    "available": True,
    "status": "AVAILABLE",
    "vacancies": 7,
    "capacity": 12,
    "maxUnits": 6,
    "openingHours": [],
    "unitPricing": [PRICE | {"includedTaxes": [{"name": "VAT", "original": 374, "retail": 355, "net": 300}]}],
}
PRODUCT = {
    "id": SYMBOL,
    "internalName": "A walk",
    "timeZone": "Europe/Paris",
    "options": [
        {
            "id": option,
            "default": option == "A",
            "internalName": f"Option {option}",
            "units": [{"id": "adult", "internalName": "Adult"}],
        }
        for option in "AB"
    ],
}
UNKNOWN = {
    "error": "INVALID_PRODUCT_ID",
    "errorMessage": "The productId was missing or invalid",
    "productId": SYMBOL,
}
GONE = {"error": "INVALID_OPTION_ID", "errorMessage": "The optionId was missing or invalid", "optionId": "A"}
EMPTY = responded(200, [])


def slots(*answers: Response, product: object = PRODUCT) -> tuple[Answer, list[Request]]:
    """A call for slots whose first answer is the product, and these the further ones."""
    dialogue = OCTO.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, KNOWN))
    return driven(dialogue, scripted(responded(200, product), *answers))


def one_slot(**changes: object) -> Slot:
    (slot,) = days_of(slots(responded(200, [SLOT | changes]), EMPTY)[0]).slots
    return slot


def product(answer: Response) -> Answer:
    return driven(OCTO.ask(Question(Fetcher.PRODUCT, [SYMBOL], None, NOW)), scripted(answer))[0]


def test_d4_a_slot_is_read_as_the_partner_has_it() -> None:
    slot = one_slot()
    (offer,) = slot.offers
    assert (slot.slot_id, slot.option_id) == (SLOT["id"], "A")
    assert (slot.local_start, slot.utc_offset) == (datetime(2026, 11, 20, 9), timedelta(hours=1))
    assert slot.bookable_until == datetime(2026, 11, 20, 7, 30, tzinfo=UTC)
    assert (slot.remaining, slot.capacity, slot.currency, slot.currency_scale) == (7, 12, "EUR", 2)
    assert (offer.category_id, offer.name, offer.final, offer.original) == ("adult", "Adult", 4255, 4480)
    assert (offer.maximum, offer.is_primary) == (6, True)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"status": "AVAILABLE"}, SlotStatus.AVAILABLE),
        ({"status": "LIMITED"}, SlotStatus.LIMITED),
        ({"status": "FREESALE", "vacancies": None, "capacity": None}, SlotStatus.FREESALE),
        ({"status": "SOLD_OUT", "available": False, "vacancies": 0}, SlotStatus.SOLD_OUT),
        ({"status": "CLOSED", "available": False}, SlotStatus.CLOSED),
        ({"status": "AVAILABLE", "available": False}, SlotStatus.CLOSED),
        ({"status": "FREESALE", "available": False}, SlotStatus.CLOSED),
    ],
)
def test_d4_states(said: dict[str, object], status: SlotStatus) -> None:
    slot = one_slot(**said)
    assert slot.status is status
    assert slot.remaining == said.get("vacancies", 7)


def test_d4_yen_have_no_decimals_and_dinars_have_three() -> None:
    for currency, digits in (("JPY", 0), ("KWD", 3)):
        slot = one_slot(unitPricing=[PRICE | {"currency": currency, "currencyPrecision": digits}])
        assert (slot.currency, slot.currency_scale, slot.offers[0].final) == (currency, digits, 4255)


def test_d4_an_original_price_of_nothing_is_none() -> None:
    """Some partners send 0 where there was no price before."""
    (offer,) = one_slot(unitPricing=[PRICE | {"original": 0}]).offers
    assert (offer.final, offer.original) == (4255, None)
    (free,) = one_slot(unitPricing=[PRICE | {"original": 0, "retail": 0}]).offers
    assert (free.final, free.original) == (0, 0)


def test_d4_prices_may_be_for_a_whole_booking_or_missing() -> None:
    whole = {name: value for name, value in PRICE.items() if name != "unitId"}
    slot = one_slot(unitPricing=None, pricing=whole)
    assert [(one.category_id, one.final) for one in slot.offers] == [("booking", 4255)]
    bare = {name: value for name, value in SLOT.items() if name != "unitPricing"}
    (slot,) = days_of(slots(responded(200, [bare]), EMPTY)[0]).slots
    assert (slot.offers, slot.currency) == ((), None)


def test_d4_the_first_offer_of_adults_is_primary() -> None:
    prices = [PRICE | {"unitId": "u1", "unitType": "CHILD"}, PRICE | {"unitId": "u2", "unitType": "ADULT"}]
    assert [one.is_primary for one in one_slot(unitPricing=prices).offers] == [False, True]
    others = [PRICE | {"unitId": "x"}, PRICE | {"unitId": "y"}]
    assert [one.is_primary for one in one_slot(unitPricing=others).offers] == [True, False]


def test_d4_a_tour_over_the_change_of_clocks_has_both_offsets() -> None:
    slot = one_slot(localDateTimeStart="2026-11-22T01:30:00-04:00", localDateTimeEnd="2026-11-22T01:15:00-05:00")
    assert (slot.utc_offset, slot.end_utc_offset) == (timedelta(hours=-4), timedelta(hours=-5))


SPOILED: list[dict[str, object]] = [
    {"status": "SOMETIMES"},
    {"vacancies": "7"},
    {"vacancies": -1},
    {"vacancies": 99},
    {"available": "yes"},
    {"localDateTimeStart": "2026-11-19T09:00:00+01:00"},
    {"localDateTimeStart": "2026-11-20T12:00:00+01:00"},
    {"utcCutoffAt": "2026-11-20T07:30:00"},
    {"utcCutoffAt": "0001-01-01T00:00:00+10:00"},
    {"utcCutoffAt": "soon"},
    {"unitPricing": [PRICE, PRICE]},
    {"unitPricing": [PRICE, PRICE | {"unitId": "child", "currency": "USD"}]},
    {"unitPricing": [PRICE | {"retail": -1}]},
    {"unitPricing": [PRICE | {"retail": 10**18}]},
    {"unitPricing": [PRICE | {"retail": "4255"}]},
    {"unitPricing": [PRICE | {"currency": "GBp"}]},
    {"unitPricing": [PRICE | {"currency": "XXZ"}]},
    {"unitPricing": [PRICE | {"currencyPrecision": 30}]},
    {"unitPricing": [{name: value for name, value in PRICE.items() if name != "unitId"}]},
]
LATER = SLOT | {
    "id": "later",
    "localDateTimeStart": "2026-11-21T10:00:00+01:00",
    "localDateTimeEnd": "2026-11-21T11:30:00+01:00",
}


@pytest.mark.parametrize("spoiled", SPOILED, ids=repr)
def test_d4_a_slot_that_is_not_believed_is_kept_as_it_was_and_costs_no_other(
    spoiled: dict[str, object],
) -> None:
    answer, _ = slots(responded(200, [LATER, SLOT | spoiled]), EMPTY)
    days = days_of(answer)
    assert [slot.slot_id for slot in days.slots] == ["later"]
    assert (days.kept, days.unread) == (frozenset({("A", SLOT["id"])}), frozenset())
    (told,) = answer.rejected
    assert (told.symbol, told.text) == (SYMBOL, f"A {SLOT['id']}")
    assert f"slot {SLOT['id']} of option A on 2026-11-" in told.reason
    assert "nothing was stored" not in told.reason.lower()


@pytest.mark.parametrize("id_", ["", None, 7, "a\nb", "x" * 256, ["A"]], ids=repr)
def test_d4_a_slot_without_a_readable_id_costs_its_day(id_: object) -> None:
    """It may be any slot of that day, so none of them has vanished."""
    same_day = SLOT | {"id": "same day"}
    answer, _ = slots(responded(200, [SLOT | {"id": id_}, same_day, LATER]), EMPTY)
    days = days_of(answer)
    assert [slot.slot_id for slot in days.slots] == ["later"]
    assert (days.kept, days.unread) == (frozenset({("A", "same day")}), frozenset({WINDOW.start}))
    assert "on 2026-11-20 has no readable id" in answer.rejected[0].reason


def test_d4_a_slot_without_a_readable_day_costs_the_product() -> None:
    for start in ("2026-11-20 09:00", "2026-02-30T09:00:00+01:00"):
        answer, _ = slots(responded(200, [LATER, SLOT | {"localDateTimeStart": start}]), EMPTY)
        assert kinds(answer) == [FailureKind.IMPLAUSIBLE]
    for row in (SLOT | {"localDateTimeStart": None}, "slot", None):
        with pytest.raises(SchemaDrift, match="no readable day"):
            slots(responded(200, [LATER, row]), EMPTY)


def test_d4_an_answer_of_which_no_slot_is_believed_is_refused() -> None:
    assert kinds(slots(responded(200, [SLOT | {"vacancies": 99}]), EMPTY)[0]) == [FailureKind.IMPLAUSIBLE]
    with pytest.raises(SchemaDrift, match="no slot of octo's product OCT-7 is like its schema"):
        slots(responded(200, [SLOT | {"status": "SOMETIMES"}, LATER | {"vacancies": "7"}]), EMPTY)


JUNK = st.sampled_from([None, "", "x", [], {}, True, -1, 10**30])


@given(data=st.data())
def test_d4_whatever_is_spoiled_no_other_slot_is_changed_or_lost(data: st.DataObject) -> None:
    """A node of one of three slots is another one: the call fails, or the two others are as they were."""
    rows = [
        copy.deepcopy(SLOT) | {"id": str(n), "localDateTimeStart": f"2026-11-20T0{n}:00:00+01:00"} for n in range(1, 4)
    ]
    true = days_of(slots(responded(200, rows), EMPTY)[0]).slots
    spoiled = copy.deepcopy(rows)
    where: Any = spoiled[1]
    if data.draw(st.booleans()):
        where = where["unitPricing"][0]
    where[data.draw(st.sampled_from(sorted(where)))] = data.draw(JUNK)
    try:
        answer, _ = slots(responded(200, spoiled), EMPTY)
    except ProviderError:
        return
    if answer.records:
        days = days_of(answer)
        believed = {slot.slot_id: slot for slot in days.slots}
        for slot in (true[0], true[2]):
            assert believed.get(slot.slot_id) == slot or ("A", slot.slot_id) in days.kept
        # "x" is an id, too: then slot 2 is no longer listed.
        assert {"2", "x"} & believed.keys() or days.kept or days.unread


def test_d4_a_slot_that_comes_twice_is_not_believed() -> None:
    answer, _ = slots(responded(200, [SLOT, LATER, SLOT | {"vacancies": 3}, SLOT]), EMPTY)
    assert [slot.slot_id for slot in days_of(answer).slots] == ["later"]
    assert days_of(answer).kept == {("A", SLOT["id"])}
    assert "it comes twice" in answer.rejected[0].reason
    both_options, _ = slots(responded(200, [SLOT]), responded(200, [SLOT]))
    assert [slot.option_id for slot in days_of(both_options).slots] == ["A", "B"], "ids are those of an option"


def test_d4_no_slots_at_all_is_an_answer() -> None:
    answer, requests = slots(EMPTY, EMPTY)
    assert days_of(answer) == ProductDays(SYMBOL, WINDOW, ())
    assert len(requests) == 3


def test_d4_the_product_is_asked_for_first_and_brought_along() -> None:
    """A new option is for sale at once, and what slots do not say of their units is of now."""
    answer, requests = slots(EMPTY, EMPTY)
    assert [one.path for one in requests] == [f"/products/{SYMBOL}", "/availability", "/availability"]
    assert [one.json["optionId"] for one in requests[1:]] == ["A", "B"]  # type: ignore[index]
    first, second = answer.records
    assert isinstance(first, Product)
    assert isinstance(second, ProductDays)
    assert [option.option_id for option in first.options] == ["A", "B"]


def test_d4_an_option_that_goes_in_the_middle_of_a_call_costs_the_answer() -> None:
    with pytest.raises(SchemaDrift, match="has just named"):
        slots(EMPTY, responded(400, GONE))


@pytest.mark.parametrize(
    ("of_option", "of_unit", "of_slot", "bounds"),
    [
        (None, None, None, (None, None)),
        ({"minUnits": 1, "maxUnits": 9}, None, None, (1, 9)),
        ({"minUnits": 1, "maxUnits": 9}, {"minQuantity": 2, "maxQuantity": 4}, 6, (2, 4)),
        ({"minUnits": 3, "maxUnits": None}, {"minQuantity": None, "maxQuantity": 8}, 6, (3, 6)),
        ({"minUnits": 2}, {"maxQuantity": 8}, 1, (0, 0)),
    ],
)
def test_d4_the_tightest_bounds_of_slot_option_and_unit_hold(
    of_option: object, of_unit: object, of_slot: int | None, bounds: tuple[int | None, int | None]
) -> None:
    unit = {"id": "adult", "restrictions": of_unit}
    body = PRODUCT | {"options": [{"id": "A", "restrictions": of_option, "units": [unit]}]}
    answer, _ = slots(responded(200, [SLOT | {"maxUnits": of_slot}]), product=body)
    (slot,) = days_of(answer).slots
    assert [(offer.minimum, offer.maximum) for offer in slot.offers] == [bounds]


@pytest.mark.parametrize("status", [400, 404, 200])
def test_d2_an_unknown_product_is_the_symbols_own_fault(status: int) -> None:
    assert kinds(product(responded(status, UNKNOWN))) == [FailureKind.UNKNOWN_SYMBOL]
    dialogue = OCTO.ask(Question(Fetcher.SLOTS, [SYMBOL], WINDOW, NOW, KNOWN))
    assert kinds(driven(dialogue, scripted(responded(status, UNKNOWN)))[0]) == [FailureKind.UNKNOWN_SYMBOL]
    assert kinds(slots(EMPTY, responded(status, UNKNOWN))[0]) == [FailureKind.UNKNOWN_SYMBOL], "it went meanwhile"


REFUSALS: list[tuple[Response, type[ProviderError]]] = [
    (responded(401, {"error": "UNAUTHORIZED", "errorMessage": "no key"}), KeyRefused),
    (responded(403, {"error": "FORBIDDEN", "errorMessage": "revoked"}), KeyRefused),
    (responded(429, {"error": "TOO_MANY_REQUESTS", "errorMessage": ""}, **{"retry-after": "9"}), Throttled),
    (responded(429, UNKNOWN), Throttled),
    (responded(500, {"error": "INTERNAL_SERVER_ERROR", "errorMessage": "ours"}), ProviderDown),
    (responded(502, b"<html>Bad gateway</html>"), ProviderDown),
    (responded(503, UNKNOWN), ProviderDown),
    (responded(400, {"error": "BAD_REQUEST", "errorMessage": "no"}), RequestRefused),
    (responded(404, b"<html>nginx</html>"), ProviderDown),
    (responded(200, {"error": "UNPROCESSABLE_ENTITY", "errorMessage": "no"}), SchemaDrift),
    (responded(200, b"<html>Just a moment</html>"), SchemaDrift),
    (responded(200, {"slots": []}), SchemaDrift),
]


@pytest.mark.parametrize(("response", "error"), REFUSALS, ids=lambda one: getattr(one, "status", None) or one.__name__)
@pytest.mark.parametrize("before", [(), (responded(200, [SLOT]),)], ids=["first", "second"])
def test_d2_a_refusal_ends_the_call_wherever_it_comes(
    response: Response, error: type[ProviderError], before: tuple[Response, ...]
) -> None:
    with pytest.raises(error) as caught:
        slots(*before, response)
    if isinstance(caught.value, Throttled) and "retry-after" in response.headers:
        assert caught.value.retry_after == 9.0


def test_d4_units_of_several_options_are_one_category() -> None:
    units = [
        {
            "id": "adult",
            "internalName": "Adult",
            "type": "ADULT",
            "restrictions": {"minAge": 13, "paxCount": 1},
        },
        {
            "id": "baby",
            "title": "Baby",
            "type": "INFANT",
            "restrictions": {"minAge": 0, "maxAge": 2, "paxCount": 0},
        },
    ]
    body = PRODUCT | {"options": [{"id": one, "units": units[: n + 1]} for n, one in enumerate("AB")]}
    (read,) = product(responded(200, body)).records
    assert isinstance(read, Product)
    assert read.categories == (
        PaxCategory("adult", "Adult", "ADULT", 13, None, 1),
        PaxCategory("baby", "Baby", "INFANT", 0, 2, 1),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"id": "OCT-8"},
        {"timeZone": "Mars/Olympus"},
        {"options": [PRODUCT["options"][0]] * 2},
        {"options": [{"id": "A", "units": [{"id": "x", "restrictions": {"minAge": 9, "maxAge": 3}}]}]},
    ],
    ids=repr,
)
def test_d4_a_product_that_cannot_be_is_refused(change: dict[str, object]) -> None:
    assert kinds(product(responded(200, PRODUCT | change))) == [FailureKind.IMPLAUSIBLE]


def test_d4_what_cannot_be_asked_is_not() -> None:
    with pytest.raises(InvalidRange, match="of days only"):
        OCTO.ask(Question(Fetcher.SLOTS, [SYMBOL], None, NOW, KNOWN))


# --- recorded answers ---------------------------------------------------------------------------


def test_d4_the_standards_own_example() -> None:
    window = Window(date(2022, 5, 23), date(2022, 5, 23))
    answer = recorded("inventory", "octo_availability_spec_example.json")
    body = PRODUCT | {"options": [{"id": "DEFAULT", "units": []}]}
    dialogue = OCTO.ask(Question(Fetcher.SLOTS, [SYMBOL], window, NOW, KNOWN))
    read, _ = driven(dialogue, scripted(responded(200, body), answer))
    (slot,) = days_of(read).slots
    assert (slot.local_start, slot.local_end) == (datetime(2022, 5, 23), datetime(2022, 5, 24))
    assert (slot.utc_offset, slot.status, slot.remaining, slot.offers) == (
        *(timedelta(hours=1), SlotStatus.AVAILABLE, 10, ()),
    )


def test_d4_a_recorded_product() -> None:
    symbol = "6b903d44-dc24-4ca4-ae71-6bde6c4f4854"
    answer = recorded("inventory", "octo_product_units.json")
    read, _ = driven(OCTO.ask(Question(Fetcher.PRODUCT, [symbol], None, NOW)), scripted(answer))
    (found,) = read.records
    assert isinstance(found, Product)
    assert (found.name, found.time_zone) == ("Amazon River Tour", "Europe/London")
    assert [(one.option_id, one.name, one.is_default) for one in found.options] == [
        ("DEFAULT", "Private Morning Tour", True)
    ]
    assert [(one.name, one.kind, one.age_from, one.age_to, one.pax_count) for one in found.categories] == [
        ("Adult(s)", "YOUTH", 3, 17, 1)
    ]


def is_unknown(read: Callable[[], Answer]) -> None:
    assert kinds(read()) == [FailureKind.UNKNOWN_SYMBOL]


def fails(error: type[ProviderError]) -> Callable[[Callable[[], Answer]], None]:
    def check(read: Callable[[], Answer]) -> None:
        with pytest.raises(error):
            read()

    return check


RECORDED = {
    "octo_error_400_invalid_product_id.json": is_unknown,
    "octo_error_400_bad_request.json": fails(RequestRefused),
    "octo_error_400_invalid_availability_id.json": fails(RequestRefused),
    "octo_availability_calendar.json": fails(SchemaDrift),
    "octo_products_list.json": fails(SchemaDrift),
}


@pytest.mark.parametrize("file", sorted(RECORDED))
def test_d2_recorded_refusals_and_answers_of_other_endpoints(file: str) -> None:
    answer = recorded("inventory", file)
    status = 400 if "error_400" in file else 200
    RECORDED[file](lambda: slots(Response(status, {}, answer.body, answer.wire_bytes))[0])


def test_d4_the_recorded_refusal_of_an_option_is_known_as_one() -> None:
    answer = recorded("inventory", "octo_error_400_invalid_option_id.json")
    with pytest.raises(SchemaDrift, match="has just named"):
        slots(Response(400, {}, answer.body, answer.wire_bytes))


def test_a9_amounts_are_whole_numbers_and_nothing_else() -> None:
    text = json.dumps([SLOT | {"unitPricing": [PRICE | {"retail": literal("4255.5")}]}])
    body = text.replace('"@@', "").replace('@@"', "").encode()
    with pytest.raises(SchemaDrift, match="retail"):
        slots(responded(200, body), EMPTY)
