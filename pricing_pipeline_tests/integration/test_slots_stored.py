"""Slots: what an answer changes, and what it leaves alone (D4).

Of slots that come, change, vanish and come back, in answers in any order, test_slots_model.py has all sequences.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Answer, FailureKind, Stored, SymbolFailure
from pricing_pipeline.inventory import products, storage
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.support.inventory import (
    DAYS,
    MONDAY,
    MONTH,
    PARTNER,
    TODAY,
    TOUR,
    WEEK,
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
from pricing_pipeline_tests.support.sessions import wait_for_locks

template = bare_template
pytestmark = pytest.mark.usefixtures("still")

TUESDAY = MONDAY + timedelta(days=1)


@pytest.fixture(autouse=True)
def partner(core: Core) -> None:
    add_partner(core)


def written(core: Core, change: Callable[[], Any]) -> dict[str, int]:
    """How many rows of each table a change writes."""
    before = versions(core)
    change()
    after = versions(core)
    return {table: len(after[table] - before[table]) for table in after if after[table] - before[table]}


def statuses(core: Core, length: int = 1, **question: Any) -> dict[tuple[int, int], str]:
    """The status of each slot, by its day and hour."""
    found = read(core, length=length, **question)
    return {(day.day.day, one.local_start.hour): one.status for day in found for one in day.slots}


def test_d4_an_answer_is_read_as_it_was_said_and_the_same_again_writes_nothing(core: Core) -> None:
    adult = offer("ADULT", 2500, original=3000, is_primary=True, minimum=1, maximum=4, remaining=3)
    said = slot(MONDAY, 9, adult, offer("CHILD", 0, original=None))
    assert store(core, days(said)) == [Stored(TOUR, 1, 0)]
    (day,) = read(core)
    (found,) = day.slots
    assert (found.slot_id, found.option_id, found.status) == (said.slot_id, "DEFAULT", "available")
    assert (found.remaining, found.capacity, found.local_start) == (9, 10, said.local_start)
    assert found.starts_at.isoformat() == "2031-03-03T08:00:00+00:00"
    first, second = found.offers
    assert (
        first.category_id,
        first.category,
        str(first.final),
        str(first.original),
        str(first.discount),
    ) == (*("ADULT", "adult", "25.00", "30.00", "5.00"),)
    assert (first.minimum, first.maximum, first.remaining, first.is_primary) == (1, 4, 3, True)
    assert (str(second.final), second.original, second.discount) == ("0.00", None, None)
    assert written(core, lambda: store(core, days(said))) == {}
    assert set(revisions(core).values()) == {0}


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ({"local_end": slot(MONDAY, 9).local_end + timedelta(minutes=1)}, "slots"),
        ({"bookable_until": None}, "slots"),
        ({"offers": (offer("ADULT", 2500, original=None), offer("CHILD"))}, "slot_prices"),
        ({"offers": (offer("ADULT", 2500, original=3000, minimum=2), offer("CHILD"))}, "pax_availability"),
    ],
)
def test_d4_a_change_writes_its_own_row_and_keeps_the_old_one(
    core: Core, clock: Clock, change: dict[str, Any], table: str
) -> None:
    until = clock.now() + timedelta(days=9)
    said = slot(MONDAY, 9, offer("ADULT", 2500, original=3000), offer("CHILD"), bookable_until=until)
    others = [slot(MONDAY, hour) for hour in (11, 13)]
    store(core, days(said, *others))
    before, then = read(core), clock.now()
    clock.advance(60)
    assert written(core, lambda: store(core, days(replace(said, **change), *others))) == {table: 1}
    kept = {name: number for name, number in revisions(core).items() if number}
    assert kept == {table: 1}
    assert [day.slots for day in read(core, as_of=then)] == [day.slots for day in before]
    assert [day.slots for day in read(core)] != [day.slots for day in before]


def test_d4_a_slot_that_moves_to_another_day_is_one_slot(core: Core) -> None:
    store(core, days(slot(MONDAY, slot_id="A"), length=2))
    assert store(core, days(slot(TUESDAY, slot_id="A"), length=2)) == [Stored(TOUR, 0, 1)]
    assert statuses(core, 2) == {(4, 9): "available"}


def test_d4_the_same_id_in_two_options_and_two_products_is_four_slots(core: Core) -> None:
    add_product(core, "TOUR-2")
    same = [slot(slot_id="A", option_id=option) for option in ("DEFAULT", "VIP")]
    store(core, days(*same), days(*same, symbol="TOUR-2"))
    assert core.one("SELECT count(*) FROM pricing.slots WHERE slot_id = 'A'") == 4
    store(core, days(same[0]))
    assert [one.status for one in read(core)[0].slots] == ["available", "vanished"]
    assert [one.status for one in read(core, "TOUR-2")[0].slots] == ["available", "available"]


def test_d4_a_day_is_stored_whole_or_not_at_all(core: Core, clock: Clock) -> None:
    store(core, days(slot(MONDAY, 9), slot(MONDAY, 11)))
    rows, kept = versions(core), revisions(core)
    clock.advance(60)
    core.rows(
        "CREATE FUNCTION pricing.break_off() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''the worker is lost''; END'"
    )
    core.rows(
        "CREATE TRIGGER break_off AFTER UPDATE ON pricing.slot_prices"
        " FOR EACH STATEMENT EXECUTE FUNCTION pricing.break_off()"
    )
    changed = days(slot(MONDAY, 9, offer(final=1), remaining=1), slot(MONDAY, 13))
    with pytest.raises(DBAPIError, match="the worker is lost"):
        store(core, changed)
    assert (versions(core), revisions(core)) == (rows, kept)
    core.rows("DROP TRIGGER break_off ON pricing.slot_prices")
    assert store(core, changed) == [Stored(TOUR, 1, 2)]


def test_d1_an_answer_confirms_every_type_that_asks_for_no_more_days(core: Core, clock: Clock) -> None:
    clock.set(datetime.combine(MONDAY, time(6), UTC))
    store(core, days(slot(), length=30), data_type=MONTH)
    confirmed = "SELECT data_type, fetched_at FROM pricing.confirmed_pairs ORDER BY 1"
    assert dict(map(tuple, core.rows(confirmed))) == dict.fromkeys(DAYS, clock.now())
    first = clock.now()
    clock.advance(3600)
    store(core, days(slot(), length=7), data_type=WEEK)
    assert dict(map(tuple, core.rows(confirmed))) == {MONTH: first, WEEK: clock.now(), TODAY: clock.now()}


def test_d4_two_answers_about_a_product_at_once_double_nothing(core: Core) -> None:
    wait_for_locks(core)
    answers = [days(slot(MONDAY, 9), slot(MONDAY, 11, remaining=left)) for left in (5, 6)]
    calls = [call_of(WEEK, TOUR), call_of(MONTH, TOUR)]
    with ThreadPoolExecutor() as pool, core.engine.connect() as first:
        storage.store(first, calls[0], Answer(records=(answers[0],)))

        def second() -> Any:
            with core.engine.begin() as connection:
                return storage.store(connection, calls[1], Answer(records=(answers[1],)))

        waiting = pool.submit(second)
        mine = first.execute(text("SELECT pg_backend_pid()")).scalar_one()
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND :mine = ANY (pg_blocking_pids(pid))"
        while not core.one(waits, mine=mine):
            assert not waiting.done(), "it waits for the first one"
        first.commit()
        assert waiting.result() == [Stored(TOUR, 0, 1)]
    assert len(read(core)[0].slots) == 2
    assert [one.remaining for one in read(core)[0].slots] == [9, 6]


# Currencies, categories, providers


def test_d4_a_currency_that_changes_is_a_revision_of_each_price(core: Core, clock: Clock) -> None:
    said = slot(MONDAY, 9, offer("ADULT", 2500), offer("CHILD", 1000))
    store(core, days(said))
    then = clock.now()
    clock.advance(60)
    yen = replace(said, currency="JPY", currency_scale=0, offers=(offer("ADULT", 4000), offer("CHILD", 1600)))
    assert written(core, lambda: store(core, days(yen))) == {"slot_prices": 2}

    def prices(**question: Any) -> list[tuple[str, str | None]]:
        return [(str(one.final), one.currency) for one in read(core, **question)[0].slots[0].offers]

    assert prices() == [("4000", "JPY"), ("1600", "JPY")]
    assert prices(as_of=then) == [("25.00", "EUR"), ("10.00", "EUR")]
    assert read(core, currency="EUR")[0].slots == ()
    store(core, days(replace(yen, offers=(offer("ADULT", None),))))
    assert read(core, currency="JPY")[0].slots == (), "it had a price in yen, and has none"


def test_d4_a_category_that_slots_rename_keeps_its_id_and_its_past(core: Core, clock: Clock) -> None:
    store(core, days(slot(MONDAY, 9, offer("A", name="Adult"))))
    then = clock.now()
    clock.advance(60)
    changed = written(core, lambda: store(core, days(slot(MONDAY, 9, offer("A", name="Grown-up")))))
    assert changed == {"pax_categories": 1}

    def name(**question: Any) -> tuple[str, str]:
        (found,) = read(core, **question)[0].slots[0].offers
        return found.category_id, found.category

    assert (name(), name(as_of=then)) == (("A", "Grown-up"), ("A", "Adult"))


def test_d4_ages_that_only_slots_tell_describe_a_category(core: Core, clock: Clock) -> None:
    def ages_after(*told: tuple[int | None, int | None], name: str = "Child") -> tuple[int | None, int | None]:
        clock.advance(60)
        of_ages = [replace(offer("C", name=name), age_from=age_from, age_to=age_to) for age_from, age_to in told]
        store(core, days(*(slot(MONDAY, 9 + n, of_age) for n, of_age in enumerate(of_ages))))
        with core.engine.begin() as connection:
            (found,) = products.categories(connection, TOUR)
        return found.age_from, found.age_to

    assert ages_after((4, 12)) == (4, 12)
    then = versions(core)["pax_categories"]
    assert ages_after((4, 12)) == (4, 12)
    assert versions(core)["pax_categories"] == then
    assert ages_after((4, 10), (5, 15)) == (4, 15)
    assert ages_after((65, None), (70, 99)) == (65, None)
    assert ages_after((None, None), name="C") == (65, None), "named by its id alone, it is what it was"
    assert ages_after((None, 12), name="C") == (None, 12)
    assert ages_after((None, None)) == (None, None)


def test_d4_slots_of_the_provider_before_vanish_with_its_answer(core: Core) -> None:
    store(core, days(slot(MONDAY, 9), slot(TUESDAY, 9), length=2))
    other = replace(call_of(MONTH, TOUR), provider="other")
    with core.engine.begin() as connection:
        storage.store(connection, other, Answer(records=(days(slot(MONDAY, 9), slot(MONDAY, 11)),)))
    found = [(one.provider, one.local_start.hour, one.status) for one in read(core)[0].slots]
    assert sorted(found) == [
        ("other", 9, "available"),
        ("other", 11, "available"),
        (PARTNER, 9, "vanished"),
    ]
    _, tuesday = read(core, length=2)
    assert [(one.provider, one.status) for one in tuesday.slots] == [(PARTNER, "vanished")]
    assert (tuesday.fetched_at, bool(tuesday.fresh)) == (None, False), "of that day nothing is known now"
    with core.engine.begin() as connection:
        listed = {(one.provider, one.is_listed) for one in products.options(connection, TOUR)}
        assert listed == {("other", True), (PARTNER, False)}
    earlier = replace(call_of(MONTH, TOUR, number=1), provider=PARTNER)
    with core.engine.begin() as connection:
        storage.store(connection, earlier, Answer(records=(days(slot(MONDAY, 9)),)))
    assert sorted((one.provider, one.status) for one in read(core)[0].slots)[0] == ("other", "available")


def test_d4_after_a_failover_and_back_all_days_are_asked_for_again(core: Core, clock: Clock) -> None:
    """The old window of the first provider made days fresh whose slots had vanished, and nobody asked for a day."""
    clock.set(datetime.combine(MONDAY, time(6), UTC))
    month = days(*(slot(MONDAY + timedelta(days=n), 18) for n in range(30)), length=30)
    store(core, month, data_type=MONTH)
    core.heartbeat("ann", (MONTH, TOUR))
    stale = f"SELECT pricing.is_pair_stale('{MONTH}', '{TOUR}')"
    for provider in ("other", PARTNER):
        clock.advance(1200)
        call = replace(call_of(TODAY, TOUR), provider=provider)
        with core.engine.begin() as connection:
            storage.store(connection, call, Answer(records=(days(slot(MONDAY, 18)),)))
        today, *others = read(core, length=30)
        assert (today.fresh, {(day.fetched_at, day.fresh) for day in others}) == (True, {(None, False)})
        assert core.one(stale)
        assert core.one("SELECT min(due_at) <= pricing.clock() FROM pricing.demand")
    store(core, month, data_type=MONTH)
    assert {(day.fresh, day.slots[0].sellable) for day in read(core, length=30)} == {(True, True)}
    assert not core.one(stale)


def test_d2_a_day_that_begins_during_a_sync_is_asked_for_at_once(core: Core, clock: Clock) -> None:
    """The pair was confirmed for its TTL, and nobody asked for the new day."""
    core.heartbeat("ann", (TODAY, TOUR))
    clock.set(datetime(2031, 3, 3, 23, 59, 58, tzinfo=UTC))
    stale = f"SELECT pricing.is_pair_stale('{TODAY}', '{TOUR}')"
    call = call_of(TODAY, TOUR)
    answer = Answer(records=(days(slot(MONDAY, 9)),))
    clock.advance(6)
    with core.engine.begin() as connection:
        storage.store(connection, call, answer)
    assert core.one(stale)
    store(core, days(slot(TUESDAY, 9), first=TUESDAY), data_type=TODAY)
    assert not core.one(stale)


# Answers without slots, and slots without a place


def test_d4_an_answer_without_days_confirms_and_changes_no_slot(core: Core) -> None:
    store(core, days(slot(MONDAY)))
    with core.engine.begin() as connection:
        done = storage.store(connection, call_of(WEEK, TOUR), Answer(empty=frozenset({TOUR})))
    assert done == [Stored(TOUR, 0, 0)]
    assert statuses(core, 2) == {(3, 9): "available"}, "it does not say of which days"


def test_d4_slots_that_nothing_can_place_are_misconfigured_and_cost_others_nothing(core: Core) -> None:
    add_product(core, "TOUR-2")
    done = store(core, days(naive(slot())), days(slot(), symbol="TOUR-2"))
    stored, failure = done
    assert stored == Stored("TOUR-2", 1, 0)
    assert isinstance(failure, SymbolFailure)
    assert (failure.symbol, failure.kind) == (TOUR, FailureKind.MISCONFIGURED)
    assert f"pricing-pipeline product set-zone {TOUR} ZONE" in failure.message
    assert core.one("SELECT count(*) FROM pricing.products WHERE symbol = :tour", tour=TOUR) == 0


def test_d2_a_task_whose_slots_cannot_be_placed_fails_for_good_with_the_way_out(core: Core) -> None:
    core.enqueue(TODAY, TOUR)
    call = core.claim_one(PARTNER)
    tally = settling.settle_answer(core.engine, call, Fetched(Answer(records=(days(naive(slot())),)), 200, 700))
    assert (tally.failed, tally.symbols) == (1, set())
    task = core.task(TOUR)
    assert (task.status, task.failure_kind) == ("failed", "misconfigured")
    assert "set-zone" in task.errors[-1]["message"]


def test_d2_a_settled_answer_is_stored_behind_the_fence(core: Core) -> None:
    core.enqueue(TODAY, TOUR)
    call = core.claim_one(PARTNER)
    fetched = Fetched(Answer(records=(days(slot()),)), 200, 700)
    assert core.return_tasks(call) == 1, "another worker has it now"
    assert settling.settle_answer(core.engine, call, fetched).symbols == set()
    assert read(core)[0].slots == ()
    tally = settling.settle_answer(core.engine, core.claim_one(PARTNER), fetched)
    assert (tally.added, tally.symbols) == (1, {TOUR})
    assert len(read(core)[0].slots) == 1
    assert core.one("SELECT verified_at IS NOT NULL FROM pricing.instruments WHERE symbol = :tour", tour=TOUR)


def test_d4_the_database_refuses_what_cannot_be_placed_whoever_asks(core: Core) -> None:
    says = json.dumps(
        [{"n": 0, "symbol": TOUR, "local_start": "2031-03-03T09:00:00", "local_end": "2031-03-03T11:00:00"}]
    )
    asked = json.dumps([{"symbol": TOUR, "first_day": str(MONDAY), "last_day": str(MONDAY)}])
    merge = "SELECT pricing.merge_slots('slots_today', 'partner', 1, CAST(:days AS jsonb), CAST(:slots AS jsonb), '[]')"
    with pytest.raises(DBAPIError, match="no time zone of the product is known"):
        core.call(merge, days=asked, slots=says)
