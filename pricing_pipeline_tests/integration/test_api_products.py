"""Products and their availability over HTTP and by command (D6), and products that are paused (D5)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_client import NotFound, PricingClient
from pricing_pipeline.domain.inventory import Option, PaxCategory, Product
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.inventory import availability
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.inventory import (
    DAYS,
    MONDAY,
    PARTNER,
    PRODUCT,
    TODAY,
    TOUR,
    WEEK,
    add_partner,
    days,
    naive,
    offer,
    slot,
    store,
)

template = bare_template
pytestmark = pytest.mark.usefixtures("still")

RIVER = Product(
    TOUR,
    "River tour",
    "Europe/London",
    (Option("DEFAULT", "Morning", True),),
    (PaxCategory("ADULT", "Adult"),),
)
DAY = {"from": str(MONDAY), "to": str(MONDAY)}
CLI_DAY = ("--from", str(MONDAY), "--to", str(MONDAY))


@pytest.fixture(autouse=True)
def partner(core: Core) -> None:
    add_partner(core, TOUR, "TOUR-2")
    store(core, RIVER, data_type=PRODUCT)
    store(core, days(slot(MONDAY, 9, offer("ADULT", 2550, original=3000)), slot(MONDAY, 11, remaining=1)))


@pytest.fixture
def caller(api: RunningApi) -> Caller:
    return api.caller(Scope.READ)


# HTTP


def test_d6_products_are_listed_in_pages_and_shown(caller: Caller, core: Core) -> None:
    first = caller.get("products", limit=1)
    assert [product["symbol"] for product in first["products"]] == [TOUR]
    assert first["products"][0]["time_zone"] == "Europe/London"
    rest = caller.get("products", limit=1, cursor=first["next"])
    assert ([product["symbol"] for product in rest["products"]], rest["next"]) == (["TOUR-2"], None)
    assert (rest["products"][0]["provider"], rest["products"][0]["fetched_at"]) == (None, None)
    shown = caller.get("products/tour-1")
    assert (shown["name"], shown["provider"], shown["paused"]) == ("River tour", PARTNER, False)
    assert [option["name"] for option in shown["options"]] == ["Morning"]
    assert [(one["category_id"], one["name"]) for one in shown["categories"]] == [("ADULT", "Adult")]
    assert "product list" in caller.refusal("GET", "products/NOSUCH")["detail"]


def test_d6_more_slots_than_one_read_may_have_are_refused_and_none_is_left_out(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reckoned from 2,208 slots: 20,000 a year, each for six categories, would take 400 MB and 4 s of a request."""
    monkeypatch.setattr(availability, "MOST_ROWS", 2)
    assert len(caller.get("products/tour-1/availability", **DAY)["days"][0]["slots"]) == 2
    monkeypatch.setattr(availability, "MOST_ROWS", 1)
    refused = caller.refusal("GET", "products/tour-1/availability", params=DAY)
    assert refused["status"] == 422
    assert "has more than 1 slots and categories of TOUR-1. Ask for fewer days" in refused["detail"]


def test_d6_availability_is_exact_and_tells_what_can_be_booked(caller: Caller) -> None:
    answer = caller.get("products/tour-1/availability", **DAY)
    assert (answer["symbol"], answer["from"], answer["to"], answer["as_of"]) == (TOUR, *DAY.values(), None)
    (day,) = answer["days"]
    first, second = day["slots"]
    assert (first["local_start"], first["starts_at"]) == ("2031-03-03T09:00:00", "2031-03-03T08:00:00Z")
    assert (first["option"], first["status"], first["remaining"], first["sellable"]) == (
        *("Morning", "available", 9, True),
    )
    (adult,) = first["offers"]
    assert (adult["category"], adult["final"], adult["original"], adult["discount"], adult["currency"]) == (
        *("Adult", "25.50", "30.00", "4.50", "EUR"),
    )
    two = caller.get(f"products/{TOUR}/availability", pax=2, sellable=True, **DAY)
    assert [one["slot_id"] for one in two["days"][0]["slots"]] == [first["slot_id"]]
    assert second["sellable"] is True
    assert caller.get(f"products/{TOUR}/availability", currency="USD", **DAY)["days"][0]["slots"] == []


def test_d6_who_has_the_answer_already_is_told_so(caller: Caller, core: Core) -> None:
    path = f"products/{TOUR}/availability"
    tag = caller.ask("GET", path, params=DAY).headers["etag"]
    known = caller.ask("GET", path, params=DAY, headers={"If-None-Match": tag})
    assert (known.status_code, known.content) == (304, b"")
    store(core, days(slot(MONDAY, 9)))
    assert caller.ask("GET", path, params=DAY, headers={"If-None-Match": tag}).status_code == 200


def test_d6_the_past_is_read_as_it_was_believed_and_asks_for_nothing(caller: Caller, core: Core, clock: Clock) -> None:
    then = clock.now()
    clock.advance(7200)
    store(core, days(), data_type=TODAY)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    past = caller.get(f"products/{TOUR}/availability", as_of=then.isoformat(), **DAY)
    assert [one["status"] for one in past["days"][0]["slots"]] == ["available", "available"]
    assert (past["days"][0]["fetched_at"], past["days"][0]["fresh"]) == (None, None)
    assert core.tasks() == []
    now = caller.get(f"products/{TOUR}/availability", **DAY)
    assert [one["status"] for one in now["days"][0]["slots"]] == ["vanished", "vanished"]


def test_d6_what_is_missing_is_asked_for(caller: Caller, core: Core) -> None:
    answer = caller.get("products/TOUR-2/availability")
    assert [(day["slots"], day["fresh"]) for day in answer["days"]] == [([], False)] * 7
    assert {reason["data_type"] for reason in answer["reasons"]} <= {TODAY, WEEK}
    assert all("nothing was ever fetched" in reason["sentence"] for reason in answer["reasons"]), answer["reasons"]
    asked = core.rows("SELECT data_type, symbol FROM pricing.pair_requests WHERE kind = 'read'")
    found = {(row.data_type, row.symbol) for row in [*asked, *core.tasks()]}
    assert found == {(PRODUCT, "TOUR-2"), (WEEK, "TOUR-2")}


def test_d6_days_that_came_within_reach_are_told_to_come(caller: Caller, core: Core, clock: Clock) -> None:
    """Their pair is fresh: it was fetched the evening before."""
    clock.set(datetime.combine(MONDAY, datetime.min.time(), UTC))
    store(core, days(first=MONDAY, length=7), data_type=WEEK)
    core.rows("UPDATE pricing.slot_windows SET last_day = last_day - 1 WHERE data_type = :type", type=WEEK)
    sunday = str(MONDAY + timedelta(days=6))
    answer = caller.get(f"products/{TOUR}/availability", **{"from": sunday, "to": sunday})
    assert [day["fresh"] for day in answer["days"]] == [False]
    (reason,) = answer["reasons"]
    assert (reason["data_type"], reason["state"]) == (WEEK, "fresh")
    assert reason["sentence"].startswith("these days came within reach after the last fetch")


def test_d6_what_availability_refuses(caller: Caller) -> None:
    for params, status, words in (
        ({"from": "2031-03-04", "to": "2031-03-03"}, 422, "ends before it begins"),
        ({"from": "2031-03-04", "to": "2033-03-03"}, 422, "more than 366 days"),
        ({"pax": "0"}, 422, "pax: it is below 1"),
        ({"currency": "eur"}, 422, "currency"),
        ({"as_of": "yesterday"}, 422, "write a time like"),
    ):
        problem = caller.refusal("GET", f"products/{TOUR}/availability", params=params)
        assert (problem["status"], words in problem["detail"]) == (status, True), problem


# By command


def test_d6_ages_that_read_the_same_are_told_once(cli: CommandLine, core: Core, clock: Clock) -> None:
    """Two days of two answers, less than a second apart."""
    tuesday = MONDAY + timedelta(days=1)
    clock.advance(0.2)
    store(core, days(slot(tuesday, 9), first=tuesday))
    clock.advance(3600)
    said = cli("product", "availability", TOUR, "--from", str(MONDAY), "--to", str(tuesday))
    assert "Confirmed 1 h ago." in said.stderr


def test_d6_the_python_client_reads_exact_slots(api: RunningApi, core: Core, clock: Clock) -> None:
    token = api.caller(Scope.READ).token
    assert token is not None
    then = clock.now()
    clock.advance(60)
    store(core, days(slot(MONDAY, 9, offer("ADULT", 2600))))
    with PricingClient(api.url, token, patience=0) as client:
        (day,) = client.availability("tour-1", MONDAY, MONDAY)
        (past,) = client.availability("tour-1", MONDAY, MONDAY, as_of=then)
        assert client.availability("tour-1", MONDAY, MONDAY, pax=12, sellable=True)[0].slots == []
        assert client.availability("tour-1", MONDAY, MONDAY, currency="USD")[0].slots == []
        with pytest.raises(NotFound, match="No product is called"):
            client.availability("NOSUCH")
    (slot_now,) = [one for one in day.slots if one.status != "vanished"]
    assert (day.day, slot_now.local_start) == (MONDAY, datetime(2031, 3, 3, 9, 0))
    assert slot_now.starts_at.tzinfo == UTC
    assert (slot_now.offers[0].final, slot_now.offers[0].currency) == (Decimal("26.00"), "EUR")
    assert [one.final for one in past.slots[0].offers] == [Decimal("25.50")]


def test_d6_the_same_by_command(cli: CommandLine, core: Core, clock: Clock) -> None:
    listed = cli("product", "list", "--json").json["products"]
    assert [product["symbol"] for product in listed] == [TOUR, "TOUR-2"]
    assert "River tour" in cli("product", "list").stdout
    assert "hint: there are more" in cli("product", "list", "--limit", "1").stderr
    shown = cli("product", "show", "tour-1").stdout
    assert "DEFAULT (Morning)" in shown
    assert "ADULT (Adult)" in shown
    assert cli("product", "show", TOUR, "--json").json["options"][0]["option_id"] == "DEFAULT"
    said = cli("product", "availability", TOUR, *CLI_DAY)
    assert re.search(r"Confirmed (\d+ s|\d+ ms|0 s) ago\.", said.stderr), said.stderr
    assert "bookable" in said.stdout
    lines = [line.split() for line in said.stdout.splitlines() if "2031-" in line]
    assert [(line[1], line[-1]) for line in lines] == [("09:00", "yes"), ("11:00", "yes")]
    assert "25.5" in said.stdout
    two = cli("product", "availability", TOUR, *CLI_DAY, "--pax", "2", "--sellable", "--json").json
    (day,) = two["days"]
    assert [one["offers"][0]["final"] for one in day["slots"]] == ["25.50"]
    then = clock.now()
    clock.advance(60)
    store(core, days(slot(MONDAY, 9), naive(slot(MONDAY, 15))))
    past = cli("product", "availability", TOUR, *CLI_DAY, "--as-of", then.isoformat(), "--json").json
    assert len(past["days"][0]["slots"]) == 2
    before = cli("product", "availability", TOUR, *CLI_DAY, "--as-of", "2020-01-01")
    assert f"no such slot was known then from {MONDAY} to {MONDAY}" in before.stderr
    assert "no product is called 'NOSUCH'" in cli("product", "show", "NOSUCH").error
    none = cli("product", "availability", TOUR, *CLI_DAY, "--pax", "99", "--sellable", "--currency", "EUR")
    assert "there may be slots, but none that 99 can book with a price in EUR" in none.stderr
    odd = cli("product", "availability", TOUR, *CLI_DAY, "--currency", "EURO")
    assert "'EURO' is not a known currency" in odd.stderr
    far = cli("product", "availability", TOUR, "--from", "2032-01-01", "--to", "2032-01-02", "--sellable")
    assert "there may be slots" not in far.stderr, "nothing is known of them"
    assert "nothing is known of 2 of 2 days, and no data type asks for them" in far.stderr
    assert cli("product", "availability", TOUR, "--as-of", "2030-11-20", "--json").json["days"][0]["day"] == (
        "2030-11-20"
    )


def test_d6_reads_of_prices_say_what_reads_slots(cli: CommandLine, caller: Caller) -> None:
    """A product is an instrument, so anyone who asks for its price is not told that nobody knows it."""
    instead = f"pricing-pipeline product availability {TOUR}"
    assert f"{TOUR} has no prices. It has inventory: {instead}" in cli("price", "show", TOUR).stderr
    assert f"It has inventory: {instead}" in cli("price", "history", TOUR, "--type", WEEK).stderr
    shown = cli("instrument", "show", TOUR).stdout
    assert (WEEK in shown, f"{WEEK} (none)" in shown) == (True, False)
    missing = {
        one["symbol"]: one["why"]["sentence"] for one in caller.get("prices", symbols=f"{TOUR},NOSUCH")["missing"]
    }
    assert missing[TOUR] == (
        f"no active data type of prices applies to the instrument {TOUR}; see GET /v1/why for its other data types"
    )
    assert missing["NOSUCH"] == "no instrument is called NOSUCH; watching it adds it"
    refusal = caller.refusal("GET", f"prices?symbols={TOUR}&data_type={WEEK}")
    assert "GET /v1/products/SYMBOL/availability reads them" in refusal["detail"]


def test_d4_a_zone_is_set_by_command(cli: CommandLine, core: Core, clock: Clock) -> None:
    store(core, days(naive(slot(MONDAY, 9))))
    clock.advance(60)
    said = cli("product", "set-zone", TOUR, "Asia/Tokyo")
    assert said.stdout == "TOUR-1 is in Asia/Tokyo; 1 coming slots were moved.\n"
    assert "Asia/Tokyo, set by hand" in cli("product", "show", TOUR).stdout
    assert cli("product", "set-zone", TOUR, "none", "--json").json == {
        "symbol": TOUR,
        "time_zone": None,
        "moved": 1,
    }
    assert "Nowhere is not a time zone" in cli("product", "set-zone", TOUR, "Nowhere").error


# Paused products


def test_d5_a_product_is_paused_and_resumed_at_once(core: Core, clock: Clock, worker: Login) -> None:
    clock.advance(86_400)
    for data_type in DAYS:
        core.heartbeat("ann", (data_type, TOUR), (data_type, "TOUR-2"))
    core.enqueue_due()
    waiting = {(task.data_type, task.symbol) for task in core.tasks() if task.status == "pending"}
    assert waiting == {(data_type, symbol) for data_type in DAYS for symbol in (TOUR, "TOUR-2")}
    pause = "SELECT pricing.pause_instruments(ARRAY[%s], %s)"
    worker.execute(pause, [TOUR, True])
    left = {(task.data_type, task.symbol) for task in core.tasks() if task.status == "pending"}
    assert left == {(data_type, "TOUR-2") for data_type in DAYS}, "what waits is cancelled, of it alone"
    core.enqueue_due()
    claimed = {task.symbol for call in core.claim(PARTNER, max_calls=9) for task in call.tasks}
    assert claimed == {"TOUR-2"}, "no claim takes a paused product"
    worker.execute(pause, [TOUR, False])
    core.enqueue_due()
    again = {(task.data_type, task.symbol) for task in core.tasks(TOUR) if task.status == "pending"}
    assert again == {(data_type, TOUR) for data_type in DAYS}, "what is watched is due at once"


def test_d4_a_product_with_slots_is_retired_and_not_removed(cli: CommandLine, caller: Caller) -> None:
    said = cli("instrument", "remove", TOUR, "TOUR-2", "--asset-class", "inventory", "--json").json
    assert {one["symbol"]: one["outcome"] for one in said["instruments"]} == {
        TOUR: "retired",
        "TOUR-2": "removed",
    }
    assert len(caller.get(f"products/{TOUR}/availability", **DAY)["days"][0]["slots"]) == 2


def test_d5_a_paused_product_is_read_and_says_so(caller: Caller, core: Core, clock: Clock, cli: CommandLine) -> None:
    clock.advance(86_400)
    core.pause(TOUR)
    core.rows("DELETE FROM pricing.pair_requests")
    answer = caller.get(f"products/{TOUR}/availability", **DAY)
    assert len(answer["days"][0]["slots"]) == 2
    assert core.tasks() == []
    assert core.rows("SELECT FROM pricing.pair_requests WHERE kind = 'read'") == []
    assert caller.get(f"products/{TOUR}")["paused"] is True
    assert "the product is paused" in cli("product", "availability", TOUR, *CLI_DAY).stderr
