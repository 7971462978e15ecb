"""Products: their description, their time zone, and what a request needs to know of them (D4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import FailureKind, Stored, SymbolFailure
from pricing_pipeline.domain.inventory import Option, PaxCategory, Product
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.inventory import products, storage
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.support.inventory import (
    MONDAY,
    MONTH,
    PARTNER,
    PRODUCT,
    TODAY,
    TOUR,
    add_partner,
    add_product,
    call_of,
    days,
    naive,
    offer,
    read,
    revisions,
    slot,
    store,
    versions,
)
from pricing_pipeline_tests.support.stretching import stretch, why

template = bare_template
pytestmark = pytest.mark.usefixtures("still")

VIP = Option("VIP", "Private tour")
ADULT = PaxCategory("ADULT", "Adult", "ADULT", 18, None)


@pytest.fixture(autouse=True)
def partner(core: Core) -> None:
    add_partner(core)


def tour(zone: str | None = "Europe/London", **more: Any) -> Product:
    given: dict[str, Any] = {"options": (Option("DEFAULT", "Morning", True), VIP), "categories": (ADULT,)}
    return Product(TOUR, more.pop("name", "River tour"), zone, **(given | more))


def describe(core: Core, product: Product) -> Stored:
    (done,) = store(core, product, data_type=PRODUCT)
    assert isinstance(done, Stored)
    return done


def starts(core: Core, first: date = MONDAY, **question: Any) -> list[str]:
    """When the slots of a day start, in UTC."""
    return [one.starts_at.strftime("%d %H:%M") for one in read(core, first=first, **question)[0].slots]


# Description


def test_d4_a_product_is_read_as_it_was_said_and_the_same_again_writes_nothing(core: Core) -> None:
    assert describe(core, tour()) == Stored(TOUR, 1, 0)
    rows = versions(core)
    assert describe(core, tour()) == Stored(TOUR, 0, 0)
    assert (versions(core), set(revisions(core).values())) == (rows, {0})
    with core.engine.begin() as connection:
        found = products.product(connection, TOUR)
        assert (found.name, found.provider, found.time_zone, found.paused) == (
            *("River tour", PARTNER, "Europe/London", False),
        )
        assert [(o.option_id, o.name, o.is_default) for o in products.options(connection, TOUR)] == [
            ("DEFAULT", "Morning", True),
            ("VIP", "Private tour", False),
        ]
        (category,) = products.categories(connection, TOUR)
        assert (category.category_id, category.name, category.age_from, category.age_to) == (
            *("ADULT", "Adult", 18, None),
        )
        with pytest.raises(UnknownSymbol, match="product list"):
            products.product(connection, "NOSUCH")


def test_d4_what_a_product_changes_is_kept(core: Core, clock: Clock) -> None:
    describe(core, tour())
    for changed, table in (
        (tour(name="Canal tour"), "products"),
        (tour(options=(Option("DEFAULT", "Early", True), VIP)), "product_options"),
        (tour(options=(VIP,)), "product_options"),
        (tour(categories=(PaxCategory("ADULT", "Adult", "ADULT", 16, None),)), "pax_categories"),
        (tour(categories=(PaxCategory("SENIOR", "Senior"),)), "pax_categories"),
    ):
        before = revisions(core)
        clock.advance(60)
        assert describe(core, changed) == Stored(TOUR, 0, 1)
        after = revisions(core)
        assert {name for name in after if after[name] != before[name]} == {table}
        clock.advance(60)
        assert describe(core, tour()) == Stored(TOUR, 0, 1), "and back again"


def test_d4_what_a_product_no_longer_lists_stays_and_says_so(core: Core) -> None:
    describe(core, tour())
    describe(core, tour(options=(VIP,), categories=()))
    with core.engine.begin() as connection:
        assert {o.option_id: o.is_listed for o in products.options(connection, TOUR)} == {
            "VIP": True,
            "DEFAULT": False,
        }
        assert [c.is_listed for c in products.categories(connection, TOUR)] == [True], "it lists none at all"


def test_d4_slots_do_not_rename_what_the_product_describes(core: Core) -> None:
    describe(core, tour())
    rows = versions(core)["pax_categories"]
    store(core, days(slot(MONDAY, 9, offer("ADULT", name="Adult(s)"))))
    assert versions(core)["pax_categories"] == rows
    assert read(core)[0].slots[0].offers[0].category == "Adult"


def test_d4_a_category_keeps_its_name_while_slots_have_it(core: Core) -> None:
    """Slots name it by its id alone."""
    describe(core, tour(categories=(PaxCategory("SENIOR", "Senior"),)))
    describe(core, tour())
    store(core, days(slot(MONDAY, 9, offer("SENIOR", name="SENIOR"))))
    assert read(core)[0].slots[0].offers[0].category == "Senior"


def test_d6_a_slot_of_an_option_that_went_cannot_be_booked(core: Core, clock: Clock) -> None:
    """Its day may be asked about tomorrow only, and the product was asked about just now."""
    describe(core, tour())
    store(core, days(slot(MONDAY, 9, offer("ADULT"))))
    then = core.clock()
    clock.advance(60)
    describe(core, tour(options=(VIP,)))
    sellable = [[one.sellable for one in read(core, as_of=at)[0].slots] for at in (None, then)]
    assert sellable == [[False], [True]]
    describe(core, tour())
    assert read(core)[0].slots[0].sellable


@pytest.mark.parametrize("later", ["slots", "product"])
def test_d4_a_product_stays_as_the_answer_to_a_later_call_has_it(core: Core, later: str) -> None:
    """A call for slots asks for the product first, and may take minutes for the rest."""
    old, new = call_of(MONTH, TOUR).id, call_of(MONTH, TOUR).id
    vip = tour(options=(Option("DEFAULT", "Morning"), Option("VIP", "VIP"), Option("NEW", "Evening")))
    if later == "slots":
        store(core, vip, days(slot()), number=new)
    else:
        store(core, vip, data_type=PRODUCT, number=new)
    rows = versions(core)
    tuesday = MONDAY + timedelta(days=1)
    store(core, tour("Asia/Tokyo", name="Old"), days(slot(tuesday), first=tuesday), number=old)
    for table in ("products", "product_options"):
        assert versions(core)[table] == rows[table], table
    with core.engine.begin() as connection:
        assert products.product(connection, TOUR).name != "Old"
        assert all(option.is_listed for option in products.options(connection, TOUR))


def test_d4_a_product_that_only_slots_know_gets_its_name_later(core: Core, clock: Clock) -> None:
    store(core, days(slot()))
    with core.engine.begin() as connection:
        assert products.product(connection, TOUR).name is None
        assert [(o.option_id, o.name) for o in products.options(connection, TOUR)] == [("DEFAULT", None)]
    clock.advance(60)
    assert describe(core, tour()) == Stored(TOUR, 0, 1)
    assert read(core)[0].slots[0].option == "Morning"


# Gone


def refuse(core: Core, number: int | None = None, kind: FailureKind = FailureKind.UNKNOWN_SYMBOL) -> None:
    failure = SymbolFailure(TOUR, kind, "no such product")
    assert store(core, number=number, failures=(failure,)) == []


def sellable(core: Core, **question: Any) -> list[bool]:
    return [one.sellable for one in read(core, **question)[0].slots]


def test_d4_slots_of_a_product_that_its_provider_does_not_know_cannot_be_booked(core: Core, clock: Clock) -> None:
    store(core, days(slot()))
    rows = versions(core)
    listed_at = clock.now()
    clock.advance(60)
    refuse(core)
    assert (sellable(core), read(core, sellable=True)[0].slots) == ([False], ())
    assert sellable(core, as_of=listed_at) == [True], "it was for sale then"
    changed = versions(core)
    assert {name for name in rows if rows[name] != changed[name]} == {"products"}, "its slots stay as they were"
    refuse(core)
    assert (versions(core), revisions(core)["products"]) == (changed, 1), "the same again"
    gone_at = clock.now()
    clock.advance(60)
    store(core, days(slot()))
    assert (sellable(core), sellable(core, as_of=gone_at)) == ([True], [False])


def test_d4_a_product_that_its_provider_never_had_is_not_listed(core: Core) -> None:
    refuse(core)
    with core.engine.begin() as connection:
        found = products.product(connection, TOUR)
    assert (found.is_listed, found.provider) == (False, None)
    assert describe(core, tour()) == Stored(TOUR, 0, 1)
    with core.engine.begin() as connection:
        assert products.product(connection, TOUR).is_listed


def test_d4_only_an_unknown_product_is_no_longer_listed(core: Core) -> None:
    store(core, days(slot()))
    for kind in set(FailureKind) - {FailureKind.UNKNOWN_SYMBOL}:
        refuse(core, kind=kind)
        assert sellable(core) == [True], kind


def test_d4_who_has_never_sold_a_product_cannot_unlist_it(core: Core) -> None:
    store(core, days(slot()))
    for table in ("products", "slot_windows"):
        core.rows(f"UPDATE pricing.{table} SET provider = 'another'")
    refuse(core)
    assert sellable(core) == [True]


def test_d4_who_sells_the_slots_unlists_a_product_that_another_provider_describes(core: Core) -> None:
    store(core, days(slot()))
    core.rows("UPDATE pricing.products SET provider = 'another'")
    refuse(core)
    assert sellable(core) == [False]


def test_d4_what_an_earlier_call_said_of_a_product_changes_nothing(core: Core) -> None:
    earlier, later = 10**6, 10**6 + 1
    store(core, days(slot()), number=later)
    refuse(core, number=earlier)
    assert sellable(core) == [True]
    refuse(core, number=later + 2)
    store(core, days(slot()), number=later + 1)
    assert sellable(core) == [False]


# Where it takes place


def test_d1_a_product_that_moves_west_has_its_real_today_asked_for(core: Core, clock: Clock) -> None:
    clock.set(datetime(2031, 3, 3, 20, 0, tzinfo=UTC))
    describe(core, tour("Asia/Tokyo"))
    tuesday = MONDAY + timedelta(days=1)
    store(core, days(naive(slot(tuesday, 9)), first=tuesday), data_type=TODAY)
    stale = f"SELECT pricing.is_pair_stale('{TODAY}', '{TOUR}')"
    assert not core.one(stale)
    store(core, tour("America/New_York"), days(naive(slot(tuesday, 9)), first=tuesday), data_type=TODAY)
    assert core.one(stale), "there it is Monday"
    store(core, days(naive(slot(MONDAY, 18))), data_type=TODAY)
    assert not core.one(stale)
    with core.engine.begin() as connection:
        products.set_zone(connection, TOUR, "Asia/Tokyo")
    assert core.one(stale)


def test_d4_a_new_zone_is_asked_for_at_once_however_far_ttls_are_stretched(core: Core, clock: Clock) -> None:
    """At the longest stretch, the slots of the new zone's days waited for six more TTLs."""
    clock.set(datetime(2031, 3, 3, 12, 0, tzinfo=UTC))
    describe(core, tour("Europe/London"))
    store(core, days(naive(slot()), length=30), data_type=MONTH)
    core.heartbeat("ann", (MONTH, TOUR))
    stretch(core, core.one("SELECT pricing.most_stretched()"), provider=PARTNER)
    clock.advance(60)
    assert (core.enqueue_due(), why(core, MONTH, TOUR).state) == (0, "fresh")
    with core.engine.begin() as connection:
        products.set_zone(connection, TOUR, "Asia/Tokyo")
    found = why(core, MONTH, TOUR)
    assert (found.state, core.enqueue_due()) == ("due", 1)


def test_d4_a_category_named_by_its_id_alone_keeps_for_how_many_it_is(core: Core) -> None:
    describe(core, tour(categories=(PaxCategory("FAMILY", "Family", pax_count=4),)))
    describe(core, tour())
    store(core, days(slot(MONDAY, 9, replace(offer("FAMILY", name="FAMILY"), maximum=1))))
    assert [read(core, pax=pax)[0].slots[0].sellable for pax in (4, 5)] == [True, False]


def test_d4_local_times_are_placed_as_rfc_5545_says(core: Core) -> None:
    """Also those that come twice, or never, when clocks change: of two the first, of none the one so much later."""
    zones = (
        *("Europe/London", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"),
        *("Africa/Casablanca", "Europe/Dublin", "Pacific/Apia", "America/St_Johns", "Antarctica/Troll"),
    )
    changes = (datetime(2030, 3, 31), datetime(2030, 10, 27), datetime(2030, 11, 3), datetime(2030, 4, 7))
    places = [
        (zone, change - timedelta(hours=3) + timedelta(minutes=15 * quarter))
        for zone in zones
        for change in (*changes, datetime(2030, 10, 6), datetime(2030, 3, 10))
        for quarter in range(4 * 9)
    ]
    placed = core.rows(
        "SELECT pricing.instant_of(u.at, u.zone) FROM unnest(CAST(:times AS timestamp[]), CAST(:zones AS text[]))"
        " WITH ORDINALITY AS u (at, zone, n) ORDER BY u.n",
        times=[at for _, at in places],
        zones=[zone for zone, _ in places],
    )
    expected = [at.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC) for zone, at in places]
    assert [row[0] for row in placed] == expected


def test_d4_the_hour_that_comes_twice_and_the_one_that_never_comes(core: Core) -> None:
    describe(core, tour("Europe/London"))
    autumn, spring = date(2031, 10, 26), date(2032, 3, 28)
    twice = [naive(slot(autumn, hour)) for hour in (0, 1, 2)]
    never = [naive(slot(spring, hour)) for hour in (0, 1, 2)]
    store(core, days(*twice, first=autumn))
    store(core, days(*never, first=spring))
    assert starts(core, autumn) == ["25 23:00", "26 00:00", "26 02:00"], "of 01:00 the first"
    assert starts(core, spring) == ["28 00:00", "28 01:00", "28 01:00"], "01:00 is skipped: it is 02:00"
    assert all(one.ends_at >= one.starts_at for day in (autumn, spring) for one in read(core, first=day)[0].slots)


def test_d4_an_offset_places_a_slot_whatever_the_zone_is(core: Core) -> None:
    describe(core, tour("America/New_York"))
    ends = slot(MONDAY, 20, end_utc_offset=timedelta(hours=2))
    store(core, days(slot(MONDAY, 9), naive(slot(MONDAY, 12)), ends))
    assert starts(core) == ["03 08:00", "03 17:00", "03 19:00"]
    assert [one.time_zone for one in read(core)[0].slots] == [None, "America/New_York", None]
    assert read(core)[0].slots[2].ends_at == datetime(2031, 3, 3, 20, 0, tzinfo=UTC)


def test_d4_a_zone_that_changes_places_coming_slots_anew_and_loses_nothing(core: Core, clock: Clock) -> None:
    describe(core, tour("Europe/London"))
    over, coming = clock.now().date() - timedelta(days=3), MONDAY
    for day in (over, coming):
        store(core, days(naive(slot(day, 12)), slot(day, 15), first=day))
    then, before = clock.now(), starts(core)
    clock.advance(60)
    assert describe(core, tour("America/New_York")) == Stored(TOUR, 0, 1)
    assert before == ["03 12:00", "03 14:00"]
    assert starts(core) == ["03 17:00", "03 14:00"], "in the order of local times"
    assert starts(core, as_of=then) == before
    assert [one.time_zone for one in read(core, first=over)[0].slots] == ["Europe/London", None], "it is over"
    assert revisions(core)["slots"] == 1
    rows = versions(core)
    store(core, days(naive(slot(coming, 12)), slot(coming, 15)))
    assert versions(core)["slots"] == rows["slots"], "the next answer finds them where they are"


def test_d4_a_provider_that_no_longer_names_the_zone_takes_nothing_away(core: Core) -> None:
    describe(core, tour("Europe/London"))
    assert describe(core, tour(None)) == Stored(TOUR, 0, 0)


def test_d4_a_zone_that_only_this_machine_knows_counts_as_none(core: Core) -> None:
    """The server may have an older list of zones. It could not place the slots, and no later call could be prepared."""
    describe(core, tour("Europe/London"))
    for symbol in (TOUR, "NEW-1"):
        product = replace(tour(), symbol=symbol)
        object.__setattr__(product, "time_zone", "Mars/Phobos")
        store(core, product, data_type=PRODUCT)
    zones = core.rows("SELECT symbol, time_zone FROM pricing.products ORDER BY 1")
    assert zones == [("NEW-1", None), (TOUR, "Europe/London")]


def test_d4_a_zone_set_by_hand_counts_until_it_is_taken_back(core: Core, clock: Clock) -> None:
    with core.engine.begin() as connection:
        assert products.set_zone(connection, TOUR, "Asia/Tokyo") == 0
        assert products.product(connection, TOUR).provider is None, "none has answered"
    store(core, days(naive(slot(MONDAY, 12))))
    assert starts(core) == ["03 03:00"]
    clock.advance(60)
    describe(core, tour("Europe/London"))
    assert starts(core) == ["03 03:00"], "the person knows better"
    with core.engine.begin() as connection:
        found = products.product(connection, TOUR)
        assert (found.time_zone, found.is_set_by_hand) == ("Asia/Tokyo", True)
        assert products.set_zone(connection, TOUR, None) == 1
    assert starts(core) == ["03 12:00"]
    with core.engine.begin() as connection, pytest.raises(UnknownSymbol, match="no product is called"):
        products.set_zone(connection, "NOSUCH", "Asia/Tokyo")
    with core.engine.begin() as connection, pytest.raises(DBAPIError, match="Nowhere is not a time zone"):
        products.set_zone(connection, TOUR, "Nowhere")


def noted(core: Core) -> dict[str, int]:
    """By type, what has been noted since the last time."""
    found = core.rows("SELECT data_type, sum(changes)::integer AS n FROM pricing.data_changes GROUP BY 1")
    core.rows("DELETE FROM pricing.data_changes")
    return {row.data_type: row.n for row in found}


def test_g8_what_changes_without_an_answer_that_brings_it_is_news(core: Core, clock: Clock) -> None:
    with core.engine.begin() as connection:
        products.set_zone(connection, TOUR, "Asia/Tokyo")
    rows = core.rows("SELECT data_type, fetcher FROM pricing.data_type_registry WHERE contents = 'inventory'")
    all_types = {row.data_type: 1 for row in rows}
    assert noted(core) == {row.data_type: 1 for row in rows if row.fetcher == "product"}
    store(core, days(naive(slot(MONDAY, 12))))
    clock.advance(60)
    with core.engine.begin() as connection:
        products.set_zone(connection, TOUR, "Asia/Tokyo")
    assert noted(core) == {}, "the same again"
    with core.engine.begin() as connection:
        products.set_zone(connection, TOUR, "Europe/London")
    assert noted(core) == all_types
    for expected in (all_types, {}):
        refuse(core)
        assert noted(core) == expected


# What a request needs to know


def test_d1_a_request_begins_today_where_the_product_is(core: Core, clock: Clock) -> None:
    clock.set(datetime(2031, 3, 3, 20, 0, tzinfo=UTC))
    clock.stop()
    with core.engine.begin() as connection:
        first = storage.prepare(connection, call_of(MONTH, TOUR))
    assert (first.window, first.known) == (
        Window(MONDAY, MONDAY + timedelta(days=29)),
        {TOUR: {"currency": None, "time_zone": None, "is_zone_set": False}},
    )
    describe(core, tour("Asia/Tokyo"))
    with core.engine.begin() as connection:
        then = storage.prepare(connection, call_of(TODAY, TOUR))
        about = storage.prepare(connection, call_of(PRODUCT, TOUR))
    tuesday = MONDAY + timedelta(days=1)
    known = {"currency": None, "time_zone": "Asia/Tokyo", "is_zone_set": False}
    assert (then.window, then.known) == (Window(tuesday, tuesday), {TOUR: known})
    assert (about.window, about.known) == (None, {TOUR: known})


def test_d4_a_request_knows_the_currency_of_its_product(core: Core) -> None:
    """Whether the product was fetched before or not: its slots may be what is asked for first."""
    core.rows("UPDATE pricing.instruments SET currency = 'EUR' WHERE symbol = :symbol", symbol=TOUR)
    for _ in range(2):
        with core.engine.begin() as connection:
            assert storage.prepare(connection, call_of(TODAY, TOUR)).known[TOUR]["currency"] == "EUR"
        describe(core, tour("Asia/Tokyo"))


def test_d1_a_request_for_several_products_has_the_days_of_all(core: Core, clock: Clock) -> None:
    add_product(core, "TOUR-2")
    clock.set(datetime(2031, 3, 3, 20, 0, tzinfo=UTC))
    clock.stop()
    describe(core, tour("Asia/Tokyo"))
    with core.engine.begin() as connection:
        found = storage.prepare(connection, call_of(TODAY, TOUR, "TOUR-2"))
    assert found.window == Window(MONDAY, MONDAY + timedelta(days=1))
