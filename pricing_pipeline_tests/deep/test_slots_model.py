"""Slots against a plain model: whatever answers come, every moment reads as it was believed then (D4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import count
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Stored
from pricing_pipeline.domain.inventory import Slot, SlotStatus
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock, bare_template
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.inventory import (
    MONDAY,
    MONTH,
    TODAY,
    WEEK,
    add_partner,
    add_product,
    days,
    offer,
    read,
    revisions,
    slot,
    store,
    versions,
)

template = bare_template

HOURS, SPAN = (9, 14), 3
"""Two slots a day on three days are enough for all that can meet."""

Place = tuple[date, int]


class Told(NamedTuple):
    """What a slot says: its status, places left, and by category the price, its currency and the units left."""

    status: str
    remaining: int | None
    offers: tuple[tuple[str, int | None, str | None, int | None], ...]

    def rows(self) -> dict[tuple[str, str], object]:
        """What the tables have of it, by table and category."""
        found: dict[tuple[str, str], object] = {("slots", ""): (self.status, self.remaining)}
        for category, price, currency, left in self.offers:
            found["pax_availability", category] = left
            if price is not None:
                found["slot_prices", category] = (price, currency)
        return found


def as_slot(place: Place, told: Told) -> Slot:
    currency = next((currency for _, _, currency, _ in told.offers if currency), None)
    found = slot(*place, status=SlotStatus(told.status), remaining=told.remaining, currency=currency or "EUR")
    offers = tuple(offer(category, price, remaining=left) for category, price, _, left in told.offers)
    return replace(found, offers=offers)


@st.composite
def tellings(draw: st.DrawFn) -> Told:
    status = draw(st.sampled_from(["available", "limited", "sold_out", "closed", "freesale"]))
    currency = draw(st.sampled_from(["EUR", "USD"]))
    amounts = st.tuples(st.sampled_from([None, 0, 2500]), st.sampled_from([None, 4]))
    offers = draw(st.dictionaries(st.sampled_from(["ADULT", "CHILD"]), amounts))
    told = tuple(
        (category, price, None if price is None else currency, left)
        for category, (price, left) in sorted(offers.items())
    )
    return Told(status, draw(st.sampled_from([None, 0, 9])), told)


@dataclass(frozen=True)
class Step:
    """An answer of one data type: its first day and how many, and what it lists on them.

    `is_late`: it answers a call that was made before the one that was answered last.
    """

    first: int
    length: int
    slots: Mapping[tuple[int, int], Told]
    data_type: str
    is_late: bool

    @property
    def days(self) -> set[date]:
        return {MONDAY + timedelta(days=self.first + number) for number in range(self.length)}

    @property
    def listed(self) -> dict[Place, Told]:
        return {(MONDAY + timedelta(days=day), hour): told for (day, hour), told in self.slots.items()}


@st.composite
def steps(draw: st.DrawFn) -> Step:
    first = draw(st.integers(0, SPAN - 1))
    length = draw(st.integers(1, SPAN - first))
    places = st.tuples(st.integers(first, first + length - 1), st.sampled_from(HOURS))
    slots = draw(st.dictionaries(places, tellings(), max_size=4))
    return Step(first, length, slots, draw(st.sampled_from([TODAY, WEEK, MONTH])), draw(st.integers(0, 4)) == 0)


Slots = dict[Place, Told]


class Model:
    """What is believed of each slot, as a plain dictionary, now and at every moment so far."""

    def __init__(self) -> None:
        self.slots: Slots = {}
        self.past: list[tuple[datetime, Slots]] = []
        self.windows: dict[str, tuple[int, set[date]]] = {}

    def answer(self, number: int, step: Step) -> Slots:
        """Take an answer in. Returns what was believed before."""
        overtaken = {day for later, days in self.windows.values() if later > number for day in days}
        before = self.slots
        news = {place: told for place, told in step.listed.items() if place[0] not in overtaken}
        gone = {
            place: told._replace(status="vanished")
            for place, told in before.items()
            if place[0] in step.days - overtaken and place not in news
        }
        self.slots = before | gone | news
        if self.windows.get(step.data_type, (0, set()))[0] < number:
            self.windows[step.data_type] = (number, step.days)
        return before


def changed_rows(before: Slots, after: Slots) -> Counter[str]:
    """How many rows of each table differ between two beliefs."""
    changes: Counter[str] = Counter()
    for place, told in after.items():
        old = before[place].rows() if place in before else {}
        new = told.rows()
        changes.update(
            table for table, category in old | new if old.get((table, category), 0) != new.get((table, category), 0)
        )
    return changes


def stored(core: Core, symbol: str, as_of: datetime | None = None) -> Slots:
    """All that the database believes, as the model writes it."""
    found = {}
    for day in read(core, symbol, MONDAY, SPAN, as_of=as_of):
        for one in day.slots:
            offers = tuple(
                (o.category_id, None if o.final is None else int(o.final * 100), o.currency, o.remaining)
                for o in sorted(one.offers, key=lambda o: o.category_id)
            )
            found[day.day, one.local_start.hour] = Told(one.status, one.remaining, offers)
    return found


def take(core: Core, symbol: str, model: Model, step: Step, number: int) -> None:
    """Store an answer; compare what was written, and what is believed now."""
    rows, kept = versions(core, symbol), revisions(core)
    slots = (as_slot(place, told) for place, told in step.listed.items())
    answer = days(*slots, symbol=symbol, first=min(step.days), length=step.length)
    (done,) = store(core, answer, data_type=step.data_type, number=number)
    before = model.answer(number, step)
    assert isinstance(done, Stored)
    assert done.added + done.revised == sum(before.get(place) != told for place, told in model.slots.items())
    assert stored(core, symbol) == model.slots
    changes, after, kept_after = changed_rows(before, model.slots), versions(core, symbol), revisions(core)
    for table in ("slots", "slot_prices", "pax_availability"):
        assert len(after[table] - rows[table]) == changes[table], "what is the same is not written"
        replaced = changes[table] - (len(after[table]) - len(rows[table]))
        assert kept_after[table] - kept[table] == replaced, "each old belief is kept once"


def test_d4_slots_are_what_answers_said_now_and_at_every_past_moment(core: Core, clock: Clock) -> None:
    add_partner(core)
    clock.stop()
    numbers = count()

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(steps(), min_size=1, max_size=7))
    def compare(answers: list[Step]) -> None:
        example = next(numbers)
        symbol = f"TOUR-{example}-OF-MANY"
        add_product(core, symbol)
        model = Model()
        for position, step in enumerate(answers):
            take(core, symbol, model, step, 1000 * example + 10 * position - 15 * step.is_late)
            model.past.append((clock.now(), model.slots))
            clock.advance(60)
        for moment, believed in model.past:
            assert stored(core, symbol, moment) == believed
        assert stored(core, symbol, model.past[0][0] - timedelta(seconds=1)) == {}

    compare()
