"""Random good and bad rows of slots: what is stored is what a plain model says (D4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.inventory import products, storage
from pricing_pipeline.providers.base import Question
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.inventory import (
    MONDAY,
    MONTH,
    PARTNER,
    TODAY,
    WEEK,
    add_partner,
    add_product,
    call_of,
    read,
)
from pricing_pipeline_tests.support.tours import OCTO, driven, responded, scripted

template = bare_template

NOW = datetime(2031, 3, 1, 12, tzinfo=UTC)
DAYS = 3
WINDOW = Window(MONDAY, MONDAY + timedelta(days=DAYS - 1))
BAD_VALUES: Sequence[dict[str, Any]] = [
    {"vacancies": 99},
    {"vacancies": "9"},
    {"status": "SOMETIMES"},
    {"localDateTimeEnd": "soon"},
    {"localDateTimeEnd": "2031-03-01T09:00:00+01:00"},
    {"unitPricing": [{"unitId": "adult", "retail": -1, "currency": "EUR", "currencyPrecision": 2}]},
]


class Row(NamedTuple):
    """A row of an answer: of which slot, on which day, how many places, and what is bad about it."""

    slot_id: str
    day: int
    places: int
    fault: str
    bad: int


Believed = dict[str, tuple[int, int, str]]
"""By slot: its day, its places and its status."""


def rows() -> st.SearchStrategy[Row]:
    fault = st.sampled_from(["none", "none", "none", "values", "id", "day"])
    return st.builds(
        Row,
        st.sampled_from("ABCDEF"),
        st.integers(0, DAYS - 1),
        st.integers(1, 9),
        fault,
        st.integers(0, len(BAD_VALUES) - 1),
    )


def body(row: Row) -> dict[str, Any]:
    day = MONDAY + timedelta(days=row.day)
    said: dict[str, Any] = {
        "id": row.slot_id,
        "localDateTimeStart": f"{day}T09:00:00+01:00",
        "localDateTimeEnd": f"{day}T10:00:00+01:00",
        "available": True,
        "status": "AVAILABLE",
        "vacancies": row.places,
        "capacity": 10,
    }
    if row.fault == "values":
        return said | BAD_VALUES[row.bad]
    if row.fault == "id":
        return said | {"id": [None, 7, ""][row.bad % 3]}
    if row.fault == "day":
        return said | {"localDateTimeStart": [None, "soon", "2031-02-30T09:00:00"][row.bad % 3]}
    return said


def expected(before: Believed, answer: Sequence[Row]) -> Believed:
    """The plain model: what is believed after an answer."""
    if any(row.fault == "day" for row in answer):
        return before
    lost_days = {row.day for row in answer if row.fault == "id"}
    named = [row.slot_id for row in answer if row.fault != "id"]
    good = {
        row.slot_id: row
        for row in answer
        if row.fault == "none" and named.count(row.slot_id) == 1 and row.day not in lost_days
    }
    if answer and not good:
        return before
    after = dict(before)
    for slot_id, (day, places, _) in before.items():
        if slot_id not in named and day not in lost_days:
            after[slot_id] = (day, places, "vanished")
    for slot_id, row in good.items():
        after[slot_id] = (row.day, row.places, "available")
    return after


def asked(symbol: str, listed: Sequence[Row]) -> Answer | None:
    """The answer as OCTO's parser reads it; None if it refuses all of it."""
    product = {"id": symbol, "internalName": "A walk", "options": [{"id": "A", "units": []}]}
    dialogue = OCTO.ask(Question(Fetcher.SLOTS, [symbol], WINDOW, NOW))
    said = scripted(responded(200, product), responded(200, [body(row) for row in listed]))
    try:
        return driven(dialogue, said)[0]
    except ProviderError:
        return None


def stored(core: Core, symbol: str) -> Believed:
    return {
        slot.slot_id: ((day.day - MONDAY).days, slot.remaining or 0, slot.status)
        for day in read(core, symbol, MONDAY, DAYS)
        for slot in day.slots
    }


def listed_days(core: Core, symbol: str) -> set[int]:
    return {(day.day - MONDAY).days for day in read(core, symbol, MONDAY, DAYS) if day.fetched_at is not None}


def test_d4_a_bad_row_costs_its_slot_its_day_or_its_answer_and_nothing_else(core: Core, clock: Clock) -> None:
    add_partner(core)
    clock.stop()
    numbers = count()

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(st.lists(rows(), max_size=6), min_size=1, max_size=5))
    def compare(answers: list[list[Row]]) -> None:
        symbol = f"TOUR-{next(numbers)}-OF-MANY"
        add_product(core, symbol)
        believed: Believed = {}
        for listed in answers:
            answer = asked(symbol, listed)
            if answer is not None:
                with core.engine.begin() as connection:
                    storage.store(connection, call_of(MONTH, symbol), answer)
            believed = expected(believed, listed)
            assert stored(core, symbol) == believed
            if answer is not None and answer.records:
                lost = {row.day for row in listed if row.fault == "id"}
                assert listed_days(core, symbol) == set(range(DAYS)) - lost
                faults = sum(row.fault != "none" for row in listed)
                assert len(answer.rejected) >= faults, "each bad row is told"
            clock.advance(60)

    compare()


def test_d4_a_slot_that_is_not_believed_is_counted_told_and_shown_until_it_is_right_again(
    core: Core, caplog: Any
) -> None:
    add_partner(core, "TOUR-1")
    good, bad = Row("A", 0, 5, "none", 0), Row("B", 0, 5, "values", 0)
    core.enqueue(WEEK, "TOUR-1")
    call = core.claim_one(PARTNER)
    answer = asked("TOUR-1", [good, bad])
    assert answer is not None
    tally = settling.settle_answer(core.engine, call, Fetched(answer, 200, 700))
    assert (tally.quarantined, tally.failed, tally.symbols) == (1, 0, {"TOUR-1"})
    assert "TOUR-1: slot B of option A on 2031-03-03: 99 places are left of 10" in caplog.text
    with core.engine.begin() as connection:
        (doubt,) = products.doubts(connection, "TOUR-1")
    assert "slot B of option A" in doubt.reason
    core.enqueue(WEEK, "TOUR-1")
    call = core.claim_one(PARTNER)
    answer = asked("TOUR-1", [good, bad._replace(fault="none")])
    assert answer is not None
    settling.settle_answer(core.engine, call, Fetched(answer, 200, 700))
    with core.engine.begin() as connection:
        assert products.doubts(connection, "TOUR-1") == []
    assert stored(core, "TOUR-1")["B"] == (0, 5, "available")


def test_d4_a_pair_that_asks_for_a_lost_day_alone_is_asked_for_again(core: Core, clock: Clock) -> None:
    add_partner(core, "TOUR-1")
    clock.set(datetime(2031, 3, 3, 6, tzinfo=UTC))
    core.heartbeat("ann", (TODAY, "TOUR-1"))
    answer = asked("TOUR-1", [Row("A", 0, 5, "id", 0), Row("B", 1, 5, "none", 0)])
    assert answer is not None
    with core.engine.begin() as connection:
        storage.store(connection, call_of(MONTH, "TOUR-1"), answer)
    assert core.one(f"SELECT pricing.is_pair_stale('{TODAY}', 'TOUR-1')")
    assert not core.one(f"SELECT pricing.is_pair_stale('{MONTH}', 'TOUR-1')")
