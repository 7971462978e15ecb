"""The sandbox's partners: their tours live by seed and clock and change on request; limits and keys hold (D3)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from pricing_pipeline.sandbox.calls import Reply
from pricing_pipeline.sandbox.headout import variant_id
from pricing_pipeline.sandbox.slots import Slot, SlotChange, TourChange, Tours
from pricing_pipeline.sandbox.tours import SLOTS_A_DAY
from pricing_pipeline_tests.support.recordings import recorded_json
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed, running_sandbox

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
FIRST, LAST = date(2026, 11, 21), date(2026, 12, 20)
OCTO_KEY, HEADOUT_KEY = {"authorization": "Bearer sandbox-key"}, {"headout-auth": "sandbox-key"}
PRICED = OCTO_KEY | {"octo-capabilities": "octo/content, octo/pricing"}
ASKED = {
    "productId": "OCT-1001",
    "optionId": "DEFAULT",
    "localDateStart": "2026-11-21",
    "localDateEnd": "2026-11-22",
}
FREE = {"partner_calls_per_minute": None}


def octo(asked: Asked, endpoint: str, headers: dict[str, str] = PRICED, **fields: str) -> Reply:
    return asked.ask("octo", endpoint, fields, headers, "POST" if fields else "GET")


def headout(asked: Asked, endpoint: str, headers: dict[str, str] = HEADOUT_KEY, **params: str) -> Reply:
    return asked.ask("headout", endpoint, params, headers)


def all_slots(tours: Tours, now: datetime, tours_asked: range = range(1, 8)) -> dict[str, Slot]:
    return {
        slot.key: slot
        for number in tours_asked
        if (tour := tours.tour(number)) is not None
        for option in tour.options
        for slot in tours.slots(tour, option, FIRST, LAST, now)
    }


def changes(before: dict[str, Slot], after: dict[str, Slot]) -> int:
    return sum(before.get(key) != after.get(key) for key in before.keys() | after.keys())


def test_slots_live_places_are_booked_and_freed_prices_move_slots_vanish_and_appear() -> None:
    tours = Tours(7)
    before, after = all_slots(tours, NOW), all_slots(tours, NOW + timedelta(days=3))
    both = [(before[key], after[key]) for key in before.keys() & after.keys()]
    assert len(before) > 7 * SLOTS_A_DAY * 28
    assert before.keys() - after.keys(), "some are withdrawn"
    assert after.keys() - before.keys(), "some are added"
    moves = {(b.taken > a.taken) - (b.taken < a.taken) for a, b in both}
    assert moves == {-1, 0, 1}, "people book, and some cancel"
    assert {a.prices == b.prices for a, b in both} == {True, False}
    assert any(slot.left == 0 for slot in after.values())
    assert any(slot.is_closed for slot in before.values())
    assert any(slot.left is None for slot in before.values())
    assert all(slot.left is None or 0 <= slot.left <= (slot.seats or 0) for slot in after.values())
    assert 0 < changes(before, all_slots(tours, NOW + timedelta(minutes=15))) < len(before) // 20


def test_a_tour_changes_on_request_and_no_other() -> None:
    tours = Tours(7)
    others = all_slots(tours, NOW, range(2, 4))
    tours.change(
        TourChange(number=1, zone="Asia/Tokyo", currency="JPY", unit_names={"adult": "Grown-up"}, options=["DEFAULT"])
    )
    tour = tours.tour(1)
    assert tour is not None
    assert (tour.place.zone, tour.place.currency, tour.place.digits) == ("Asia/Tokyo", "JPY", 0)
    assert (tour.units[0].name, len(tour.options)) == ("Grown-up", 1)
    tours.change(TourChange(number=1, is_gone=True))
    assert tours.tour(1) is None
    assert all_slots(tours, NOW, range(2, 4)) == others
    with pytest.raises(ValidationError):
        TourChange(number=1, zone="Mars/Olympus")


def test_d3_the_thirty_first_call_of_a_minute_is_refused_by_key() -> None:
    asked = Asked(NOW)
    for endpoint, ask in (("products/OCT-1001", octo), ("product/get/5001", headout)):
        assert [ask(asked, endpoint).status for _ in range(31)] == [200] * 30 + [429]
    further = {"authorization": "Bearer sandbox-key-second"}
    assert octo(asked, "products", further).status == 200, "another key has a minute of its own"
    asked.now += timedelta(seconds=61)
    assert octo(asked, "products").status == 200


def test_wrong_keys_are_refused_and_not_charged() -> None:
    asked = Asked(NOW)
    assert (
        octo(asked, "products", {}).status,
        octo(asked, "products", {"authorization": "Bearer x"}).status,
    ) == (401, 403)
    assert headout(asked, "product/get/5001", {}).status == 401
    assert octo(asked, "products").status == 200


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"productId": "OCT-9999"}, "INVALID_PRODUCT_ID"),
        ({"optionId": "NONE"}, "INVALID_OPTION_ID"),
        ({"localDateEnd": "tomorrow"}, "BAD_REQUEST"),
    ],
    ids=str,
)
def test_octo_refuses_in_the_words_of_the_standard(change: dict[str, str], error: str) -> None:
    reply = octo(Asked(NOW, **FREE), "availability", **ASKED | change)
    assert (reply.status, parsed(reply)["error"]) == (400, error)


def test_octo_prices_only_whom_asks_for_them_and_answers_by_post() -> None:
    asked = Asked(NOW, **FREE)
    assert all("unitPricing" in row for row in parsed(octo(asked, "availability", **ASKED)))
    assert not any("unitPricing" in row for row in parsed(octo(asked, "availability", OCTO_KEY, **ASKED)))
    assert asked.ask("octo", "availability", ASKED, PRICED, "GET").status == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"variantId": f"{variant_id(1, 9)}"}, 400),
        ({"startDateTime": "2026-11-21T00:00:00Z"}, 400),
        ({"offset": "-1"}, 400),
        ({"currencyCode": "XXX"}, 400),
        ({"page": "2"}, 200),
    ],
    ids=str,
)
def test_headout_refuses_values_that_it_cannot_honour(change: dict[str, str], status: int) -> None:
    params = {"variantId": str(variant_id(1, 0)), "endDateTime": "2026-11-22T23:59:59"} | change
    assert headout(Asked(NOW, **FREE), "inventory/list-by/variant", **params).status == status


def test_headouts_pages_are_one_list() -> None:
    asked = Asked(NOW, **FREE)
    params = {"variantId": str(variant_id(1, 0)), "startDateTime": "2026-11-21T00:00:00"}
    params["endDateTime"] = "2026-11-27T23:59:59"
    whole = parsed(headout(asked, "inventory/list-by/variant", limit="100", **params))
    assert (whole["total"], whole["nextOffset"]) == (len(whole["items"]), None)
    rows, offset = [], 0
    while offset is not None:
        page = parsed(headout(asked, "inventory/list-by/variant", limit="7", offset=str(offset), **params))
        rows += page["items"]
        offset = page["nextOffset"]
    assert rows == whole["items"]


def names(value: Any) -> dict[str, type]:
    """Each field's name, by its path, and its type."""
    if isinstance(value, dict):
        inner = {f"{name}.{path}": kind for name, one in value.items() for path, kind in names(one).items()}
        return inner | {name: type(one) for name, one in value.items()}
    return names(value[0]) if isinstance(value, list) and value else {}


@pytest.mark.parametrize(
    ("file", "ask"),
    [
        ("octo_product_units.json", lambda asked: octo(asked, "products/OCT-1001")),
        ("octo_products_list.json", lambda asked: octo(asked, "products")),
        ("octo_availability_spec_example.json", lambda asked: octo(asked, "availability", OCTO_KEY, **ASKED)),
        (
            "headout_v1_inventory_list_by_variant.json",
            lambda asked: headout(
                *(asked, "inventory/list-by/variant"),
                variantId=str(variant_id(1, 0)), offset="1", limit="1",
            ),
        ),
    ],
)  # fmt: skip
def test_its_answers_have_the_recorded_names_and_types(file: str, ask: Any) -> None:
    theirs = names(recorded_json("inventory", file))
    ours = names(parsed(ask(Asked(NOW, **FREE))))
    assert not ours.keys() - theirs.keys()
    for path, kind in ours.items():
        kinds = {kind, theirs[path]} - {type(None)}
        assert len(kinds) < 2 or kinds == {int, float}, path


def test_over_http_by_post_with_changes_and_faults() -> None:
    import httpx

    with running_sandbox(clock=lambda: NOW, **FREE) as sandbox:
        ask = {"headers": PRICED, "json": ASKED}
        before = httpx.post(f"{sandbox.octo_url}/availability", **ask)
        assert before.status_code == 200
        sandbox.change_slots(100, seed=1)
        after = httpx.post(f"{sandbox.octo_url}/availability", **ask).json()
        assert after != before.json()
        sandbox.behave("times", factor=10, provider="octo")
        dearer = httpx.post(f"{sandbox.octo_url}/availability", **ask).json()
        assert dearer[0]["unitPricing"][0]["retail"] == after[0]["unitPricing"][0]["retail"] * 10
        sandbox.change_tour(1, is_gone=True)
        sandbox.behave_well()
        assert httpx.post(f"{sandbox.octo_url}/availability", **ask).status_code == 400
        bad = httpx.post(f"{sandbox.octo_url}/availability", headers=PRICED, content=b"[1]")
        assert (bad.status_code, bad.json()["error"]) == (400, "BAD_REQUEST")
        for path, body in (("slots", {"percent": 101}), ("tour", {"number": 0}), ("slots", {"rate": 5})):
            assert httpx.post(f"{sandbox.url}/_sandbox/{path}", json=body).status_code == 400
        calls = sandbox.calls("octo")
        assert [call["symbols"] for call in calls[:2]] == [["OCT-1001"]] * 2
        assert calls[0]["days"] == ["2026-11-21", "2026-11-22"]


def test_changes_upon_changes_never_make_a_slot_twice() -> None:
    tours = Tours(7)
    tour = tours.tour(1)
    assert tour is not None
    for seed in range(12):
        tours.change(SlotChange(percent=100, seed=seed))
    for option in tour.options:
        starts = [slot.start for slot in tours.slots(tour, option, FIRST, LAST, NOW)]
        assert len(starts) == len(set(starts)) > 0
