"""Reading slots: what can be booked, how fresh it is, and what a read asks for (D6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from psycopg import errors
from sqlalchemy import text

from pricing_pipeline.domain.answers import Answer, Stored
from pricing_pipeline.domain.inventory import PaxCategory, PaxOffer, Product, SlotStatus
from pricing_pipeline.errors import InvalidRange
from pricing_pipeline.inventory import availability, storage
from pricing_pipeline_tests.fixtures.core import Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.inventory import (
    MONDAY,
    MONTH,
    PRODUCT,
    TODAY,
    TOUR,
    WEEK,
    add_partner,
    add_product,
    call_of,
    days,
    offer,
    read,
    slot,
    store,
)

template = bare_template
pytestmark = pytest.mark.usefixtures("still")

MORNING = datetime(2031, 3, 3, 6, 0, tzinfo=UTC)
"""Two hours before the slots of Monday begin."""


@pytest.fixture(autouse=True)
def partner(core: Core, clock: Clock, still: None) -> None:
    add_partner(core)
    clock.set(MORNING)
    clock.stop()


# What can be booked

GROUP = PaxCategory("GROUP", "Group of four", pax_count=4)
ADULT, CHILD = offer("ADULT", is_primary=True, minimum=1, maximum=4, remaining=3), offer("CHILD")


SELLABLE: tuple[tuple[tuple[PaxOffer, ...], dict[str, Any], int], ...] = (
    ((ADULT,), {}, 3),
    ((ADULT, CHILD), {}, 3),
    ((CHILD,), {}, 9),
    ((offer("ADULT", minimum=2),), {"remaining": 4}, 4),
    ((offer("ADULT", minimum=None, maximum=None, remaining=None),), {"remaining": None}, 99),
    ((offer("ADULT", minimum=None, maximum=None, remaining=None),), {"remaining": 5}, 5),
    ((), {"remaining": 5}, 5),
    ((offer("GROUP", minimum=1, maximum=2, remaining=2),), {"remaining": None}, 8),
    ((ADULT,), {"status": SlotStatus.FREESALE, "remaining": None}, 3),
    ((ADULT,), {"status": SlotStatus.LIMITED}, 3),
    ((ADULT,), {"status": SlotStatus.SOLD_OUT}, 0),
    ((ADULT,), {"status": SlotStatus.CLOSED}, 0),
    ((ADULT,), {"remaining": 0}, 0),
    ((ADULT,), {"bookable_until": MORNING}, 0),
    ((ADULT,), {"bookable_until": MORNING + timedelta(seconds=1)}, 3),
    ((ADULT,), {"local_start": datetime(2031, 3, 3, 7, 0)}, 0),
    ((ADULT,), {"local_start": datetime(2031, 3, 3, 7, 1)}, 3),
    ((ADULT,), {"local_start": datetime(2031, 3, 3, 0, 0), "local_end": datetime(2031, 3, 4, 0, 0)}, 3),
    ((ADULT,), {"local_start": datetime(2031, 3, 3, 0, 0), "local_end": datetime(2031, 3, 3, 7, 1)}, 0),
)
"""The offers of a slot, what else it has, and to how many it is sellable at most."""


def test_d6_a_slot_is_sellable_to_so_many(core: Core) -> None:
    """All of one day, so that they are stored once and read together."""
    store(core, Product(TOUR, "Tour", None, (), (GROUP,)), data_type=PRODUCT)
    slots = [
        replace(slot(slot_id=str(number)), offers=offers, **({"capacity": None} | slot_has))
        for number, (offers, slot_has, _) in enumerate(SELLABLE)
    ]
    store(core, days(*slots))
    for pax in range(1, 100) if is_thorough() else (1, 2, 3, 4, 5, 6, 8, 9, 10, 99):
        sellable = {
            str(number)
            for number, (offers, _, most) in enumerate(SELLABLE)
            if (2 if offers and offers[0].minimum == 2 else 1) <= pax <= most
        }
        assert {one.slot_id for one in read(core, pax=pax, sellable=True)[0].slots} == sellable, pax
        told = read(core, pax=pax)[0].slots
        assert len(told) == len(SELLABLE), "each is told all the same"
        assert {one.slot_id for one in told if one.sellable} == sellable, pax


def test_d6_a_vanished_slot_is_not_sellable_and_the_past_is_judged_by_its_own_time(core: Core, clock: Clock) -> None:
    store(core, days(slot()))
    then = clock.now()
    clock.advance(60)
    store(core, days())
    assert [one.sellable for one in read(core)[0].slots] == [False]
    clock.advance(86_400)
    assert [one.sellable for one in read(core, as_of=then)[0].slots] == [True]


def test_d6_a_currency_leaves_out_what_has_no_price_in_it(core: Core) -> None:
    free = slot(MONDAY, 13, offer("ADULT", None))
    store(core, days(slot(MONDAY, 9), slot(MONDAY, 11, currency="USD"), free))
    assert [one.local_start.hour for one in read(core, currency="EUR")[0].slots] == [9]
    assert [one.offers[0].currency for one in read(core)[0].slots] == ["EUR", "USD", None]


# How fresh it is


def test_d6_each_day_tells_when_it_was_confirmed_and_whether_that_is_fresh(core: Core, clock: Clock) -> None:
    store(core, days(slot(), length=30), data_type=MONTH)
    clock.advance(3600)
    store(core, days(slot(), length=7), data_type=WEEK)
    clock.advance(1800)
    found = {day.day: (day.age_seconds, day.fresh) for day in read(core, first=MONDAY - timedelta(days=1), length=33)}
    assert found[MONDAY - timedelta(days=1)] == (None, None), "no type asks for the past"
    assert found[MONDAY] == (1800, False), "today it may be 15 minutes old"
    assert found[MONDAY + timedelta(days=1)] == (1800, True)
    assert found[MONDAY + timedelta(days=7)] == (5400, True)
    assert found[MONDAY + timedelta(days=30)] == (None, None), "no type reaches so far"
    (past,) = read(core, as_of=MORNING)
    assert (past.fetched_at, past.age_seconds, past.fresh) == (None, None, None)


def test_d6_a_ttl_of_its_own_decides_how_fresh_the_days_of_a_product_are(core: Core, clock: Clock) -> None:
    store(core, days(slot()), data_type=TODAY)
    core.rows("UPDATE pricing.confirmed_pairs SET cache_ttl_minutes = 40 WHERE data_type = :type", type=TODAY)
    clock.advance(1800)
    (day,) = read(core)
    assert (day.age_seconds, day.fresh) == (1800, True)
    clock.advance(601)
    (day,) = read(core)
    assert day.fresh is False


def requested(core: Core, last: date = MONDAY) -> set[str]:
    """What a read asks for; it is out of the way then."""
    with core.engine.begin() as connection:
        availability.request(connection, TOUR, last)
    found = {task.data_type for task in core.tasks() if task.status == "pending"}
    for table in ("api_call_queue_live", "demand"):
        core.rows(f"DELETE FROM pricing.{table}")
    return found


def test_d6_a_read_asks_for_the_widest_stale_type_that_it_needs(core: Core, clock: Clock) -> None:
    assert requested(core) == {PRODUCT, TODAY}
    assert requested(core, core.clock().date() - timedelta(days=1)) == {PRODUCT}, "no slots of the past"
    assert requested(core, MONDAY + timedelta(days=5)) == {PRODUCT, WEEK}
    assert requested(core, MONDAY + timedelta(days=90)) == {PRODUCT, MONTH}
    store(core, Product(TOUR, "Tour", None), data_type=PRODUCT)
    store(core, days(slot(), length=30), data_type=MONTH)
    assert requested(core, MONDAY + timedelta(days=90)) == set(), "all is fresh"
    clock.advance(3600)
    assert requested(core, MONDAY + timedelta(days=90)) == {TODAY}
    clock.advance(4 * 3600)
    assert requested(core, MONDAY + timedelta(days=90)) == {WEEK}
    assert requested(core, MONDAY) == {TODAY}


def test_d6_the_days_of_a_read_are_a_week_from_today_where_the_product_is(core: Core, clock: Clock) -> None:
    store(core, Product(TOUR, "Tour", "Asia/Tokyo"), data_type=PRODUCT)
    clock.set(datetime(2031, 3, 3, 20, 0, tzinfo=UTC))
    clock.stop()
    tuesday = MONDAY + timedelta(days=1)
    with core.engine.begin() as connection:
        week = availability.days_of(connection, TOUR, None, None)
        assert (week.start, week.end) == (tuesday, tuesday + timedelta(days=6))
        assert availability.days_of(connection, TOUR, None, None, MORNING).start == MONDAY
        assert availability.days_of(connection, TOUR, date.max, None).end == date.max
        with pytest.raises(InvalidRange, match="ends before it begins"):
            availability.days_of(connection, TOUR, tuesday, MONDAY)
        with pytest.raises(InvalidRange, match="more than 366 days"):
            availability.days_of(connection, TOUR, MONDAY, MONDAY + timedelta(days=366))


# SQL for plain users

BY_HAND = "SELECT local_start, category, final, currency, sellable, fresh FROM pricing.availability('tour-1'"


@pytest.mark.parametrize("kind", ["client", "reader"])
def test_d6_a_plain_login_reads_availability_and_asks_for_what_is_stale(
    core: Core, clock: Clock, kind: str, request: pytest.FixtureRequest
) -> None:
    login: Login = request.getfixturevalue(kind)[1]
    store(core, days(slot(MONDAY, 9, offer("ADULT", 2550))), data_type=TODAY)
    assert login.execute(f"{BY_HAND})").fetchall() == [
        (datetime(2031, 3, 3, 9, 0), "adult", Decimal("25.50"), "EUR", True, True)
    ]
    asked = {row.data_type for row in core.rows("SELECT data_type FROM pricing.pair_requests WHERE kind = 'read'")}
    assert asked == {PRODUCT, WEEK}, "a week is read"
    then = clock.now()
    clock.advance(60)
    store(core, days(slot(MONDAY, 9, offer("ADULT", 2600))), data_type=TODAY)
    (now,) = login.execute(f"{BY_HAND})").fetchall()
    (past,) = login.execute(f"{BY_HAND}, as_of => %s)", [then]).fetchall()
    assert (now[2], past[2], past[5]) == (Decimal("26.00"), Decimal("25.50"), None)
    assert login.execute(f"{BY_HAND}, pax => 12, only_sellable => true)").fetchall() == []
    assert login.execute(f"{BY_HAND}, only_currency => 'USD')").fetchall() == []


def test_b7_a_client_reads_as_many_days_as_the_api_gives_and_no_more(client: tuple[str, Login]) -> None:
    """Each day costs a look-up, whether it has slots or not."""
    ask = "SELECT * FROM pricing.availability('tour-1', %s, %s)"
    assert client[1].execute(ask, [MONDAY, MONDAY + timedelta(days=availability.MOST_DAYS - 1)]).fetchall() == []
    with pytest.raises(errors.InvalidParameterValue, match="is more than 366 days") as refused:
        client[1].execute(ask, [MONDAY, MONDAY + timedelta(days=availability.MOST_DAYS)])
    assert "Ask for fewer days" in str(refused.value.diag.message_hint)
    with pytest.raises(errors.InvalidParameterValue):
        client[1].execute(ask, [date.min, date.max])


def test_d6_a_client_reads_no_table_of_slots(client: tuple[str, Login], core: Core) -> None:
    for table in ("slots", "slot_prices", "pax_availability", "revisions"):
        with pytest.raises(errors.InsufficientPrivilege):
            client[1].execute(f"SELECT * FROM pricing.{table}")


# What it costs


def test_d6_a_read_of_one_product_reads_its_own_rows_alone(core: Core) -> None:
    """Also if the tables were empty when the session first planned it."""
    with core.engine.connect() as connection:
        ask = text("SELECT * FROM pricing.slots_to_read('P7', :first, :last, 1, NULL, false, NULL)")
        days_read = {"first": MONDAY, "last": MONDAY + timedelta(days=29)}
        assert connection.execute(ask, days_read).all() == []
        connection.commit()
        fill(core, products=20)
        before = scans(connection), rows_read(connection)
        assert len(connection.execute(ask, days_read).all()) == 240
        scanned = {table: count - before[0].get(table, 0) for table, count in scans(connection).items()}
        assert {table for table, count in scanned.items() if count} == set()
        assert rows_read(connection) - before[1] < 1000, "of 2,400 slots, 4,800 offers and 4,800 prices"


def scans(connection: Any) -> dict[str, int]:
    """How often each table of slots was read from its beginning to its end, in this transaction."""
    rows = connection.execute(
        text(
            "SELECT relname, seq_scan FROM pg_stat_xact_all_tables"
            " WHERE schemaname = 'pricing' AND relname ~ 'slot|pax|^revisions'"
        )
    )
    return {row.relname: row.seq_scan for row in rows}


def fill(core: Core, products: int) -> None:
    """So many products, with four slots a day for 30 days and two categories each."""
    core.rows(
        "INSERT INTO pricing.products (symbol, provider, recorded_at)"
        " SELECT 'P' || p, 'partner', pricing.clock() FROM generate_series(1, :products) p",
        products=products,
    )
    core.rows(
        "INSERT INTO pricing.pax_categories (symbol, provider, category_id, name, is_described, call_id, recorded_at)"
        " SELECT p.symbol, 'partner', c, lower(c), true, 1, pricing.clock()"
        " FROM pricing.products p CROSS JOIN unnest('{ADULT,CHILD}'::text[]) c WHERE p.symbol ~ '^P'"
    )
    core.rows(
        "INSERT INTO pricing.slots (symbol, provider, option_id, slot_id, local_start, local_end, utc_offset,"
        " starts_at, ends_at, status, remaining, capacity, call_id, recorded_at)"
        " SELECT p.symbol, 'partner', 'DEFAULT', at::text, at, at + interval '1 hour', '0', at AT TIME ZONE 'UTC',"
        " (at + interval '1 hour') AT TIME ZONE 'UTC', 'available', 9, 9, 1, pricing.clock()"
        " FROM pricing.products p, LATERAL ("
        "SELECT CAST(:first AS timestamp) + make_interval(days => n / 4, hours => 9 + n % 4) AS at"
        " FROM generate_series(0, 119) n) t WHERE p.symbol ~ '^P'",
        first=MONDAY,
    )
    for table, columns, values in (
        ("pax_availability", "minimum, maximum, remaining", "1, 9, 9"),
        ("slot_prices", "final_price, original_price, currency, scale", "2500, 2500, 'EUR', 2"),
    ):
        core.rows(
            f"INSERT INTO pricing.{table} (slot_key, category_key, {columns}, call_id, recorded_at)"
            f" SELECT s.slot_key, c.category_key, {values}, 1, pricing.clock()"
            " FROM pricing.slots s JOIN pricing.pax_categories c USING (symbol)"
        )
    core.rows("ANALYZE pricing.slots, pricing.slot_prices, pricing.pax_availability")


def test_d4_a_changed_day_is_stored_by_reading_its_own_rows_alone(core: Core) -> None:
    """Also if the tables were empty when the session first planned it."""
    add_product(core, "P7")
    said = days(*(slot(MONDAY, hour, offer("ADULT", 2600), offer("CHILD")) for hour in (9, 10)), symbol="P7")
    with core.engine.connect() as connection:
        storage.store(connection, call_of(TODAY, "P7"), Answer(records=(said,)))
        connection.rollback()
        fill(core, products=20)
        before = scans(connection), rows_read(connection)
        assert storage.store(connection, call_of(TODAY, "P7"), Answer(records=(said,))) == [Stored("P7", 2, 4)]
        scanned = {table: count - before[0].get(table, 0) for table, count in scans(connection).items()}
        assert {table for table, count in scanned.items() if count} == set()
        assert rows_read(connection) - before[1] < 300
