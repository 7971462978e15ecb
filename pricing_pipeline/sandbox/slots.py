"""The slots of the tours at a moment: places, prices and states, by seed, clock and changes on request.

People book over the weeks before a slot and some cancel; prices follow season, weekday and demand; slots sell out,
close, are withdrawn, and new ones are added. The same moment brings the same slots, in every process. Nothing here
knows how a partner presents them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.tours import PLACES, Option, Tour, tour_of
from pricing_pipeline.sandbox.units import divided

_SEASONS = (80, 80, 90, 100, 105, 115, 130, 130, 110, 95, 85, 120)
"""Percent of the price, by month."""
_WEEKDAYS = (95, 95, 95, 100, 105, 120, 115)
_LONGEST_LEAD = 720
"""Hours before a slot within which its places are booked."""
_EARLY = timedelta(days=14)
"""Some slots cost a tenth less this long before their start."""
CUTOFF = timedelta(minutes=30)
"""A slot closes this long before its start."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one unit, in minor units: before a discount, to be paid, and for the reseller."""

    unit_id: str
    original: int
    retail: int
    net: int


@dataclass(frozen=True, slots=True)
class Slot:
    """One start of one option at a moment. `start` and `end` are aware, in the tour's zone."""

    key: str
    """The same for as long as the slot is there, and of no other slot of its option."""
    option_id: str
    start: datetime
    end: datetime
    is_closed: bool
    taken: int
    seats: int | None
    prices: tuple[Price, ...]

    @property
    def left(self) -> int | None:
        """Places that can still be booked; None without a limit."""
        return None if self.seats is None else self.seats - self.taken


class SlotChange(BaseModel):
    """A request to change about `percent` of all slots from now on; `seed` decides which ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    percent: int = Field(ge=0, le=100)
    seed: int = 0

    def draw(self, slot: str) -> int | None:
        """The change of a slot, as a number from 0 to 255; None if it does not change."""
        first, second, third = hashlib.blake2b(f"{self.seed}:{slot}".encode(), digest_size=3).digest()
        return third if (first << 8 | second) * 100 < self.percent << 16 else None


class TourChange(BaseModel):
    """A request to take a tour away, or to give it another zone, currency, unit name or fewer options."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int = Field(ge=1)
    is_gone: bool = False
    zone: str | None = None
    currency: str | None = None
    unit_names: dict[str, str] = {}
    options: list[str] | None = None
    """Those that are left, by id."""

    @field_validator("zone")
    @classmethod
    def _is_a_zone(cls, zone: str | None) -> str | None:
        if zone is not None and zone not in available_timezones():
            raise ValueError(f"{zone} is not a time zone, such as Europe/London")
        return zone

    def applied(self, tour: Tour) -> Tour:
        place = tour.place
        if self.zone is not None:
            place = replace(place, zone=self.zone)
        if self.currency is not None:
            digits = next((one.digits for one in PLACES if one.currency == self.currency), 2)
            place = replace(place, currency=self.currency, digits=digits)
        named = tuple(replace(unit, name=self.unit_names.get(unit.unit_id, unit.name)) for unit in tour.units)
        left = tuple(option for option in tour.options if self.options is None or option.option_id in self.options)
        return replace(tour, place=place, units=named, options=left)


class Tours:
    """All tours with their slots. Changes on request are made from any thread."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._slot_changes: tuple[SlotChange, ...] = ()
        self._tour_changes: dict[int, TourChange] = {}
        self._fate = lru_cache(100_000)(self._drawn)

    def reset(self) -> None:
        """Forget all changes."""
        with self._lock:
            self._slot_changes, self._tour_changes = (), {}

    def change(self, change: SlotChange | TourChange) -> None:
        with self._lock:
            if isinstance(change, SlotChange):
                self._slot_changes = (*self._slot_changes, change)
            else:
                self._tour_changes = self._tour_changes | {change.number: change}

    def tour(self, number: int) -> Tour | None:
        """The tour as it is now; None for one that is not sold."""
        tour, change = tour_of(number), self._tour_changes.get(number)
        if tour is None or change is None:
            return tour
        return None if change.is_gone else change.applied(tour)

    def slots(self, tour: Tour, option: Option, first: date, last: date, now: datetime) -> list[Slot]:
        """The slots of an option that start on the local days `first` to `last`, in order, at the minute of `now`."""
        now = now.replace(second=0, microsecond=0)
        days = (first + timedelta(days=n) for n in range((last - first).days + 1))
        return [
            slot
            for day in days
            for start in _starts(tour, option, day)
            for slot in self._with_changes(tour, self._slot(tour, option, start, now))
        ]

    def _drawn(self, key: str, seats: int) -> bytes:
        return hashlib.shake_128(f"{self._seed}:{key}".encode()).digest(6 + 2 * seats)

    def _slot(self, tour: Tour, option: Option, start: datetime, now: datetime) -> Slot | None:
        key = f"{tour.number}:{option.option_id}:{start.isoformat()}"
        fate = self._fate(key, option.seats or 0)
        ahead = (start - now) // timedelta(hours=1)
        if (fate[0] < 5 and ahead <= fate[1]) or (fate[0] > 246 and ahead > 240):
            return None  # withdrawn some days before, or added ten days before
        taken = _taken(fate, option.seats or 0, ahead)
        return Slot(
            key=key,
            option_id=option.option_id,
            start=start,
            end=(start.astimezone(UTC) + timedelta(minutes=option.minutes)).astimezone(tour.zone),
            is_closed=fate[2] < 6 or now >= start - CUTOFF,
            taken=taken,
            seats=option.seats,
            prices=_prices(tour, option, start, ahead, fate[3], taken),
        )

    def _with_changes(self, tour: Tour, slot: Slot | None) -> Iterator[Slot]:
        """The slot after all changes on request: none if it vanished, two if another one was added to it."""
        added: list[Slot] = []
        for change in self._slot_changes:
            draw = None if slot is None else change.draw(slot.key)
            if slot is None or draw is None:
                continue
            match draw % 16:
                case 0:
                    slot = None
                case 1:
                    # Each change that adds one beside the same slot adds another one.
                    later = timedelta(minutes=7 * (len(added) + 1))
                    key, start, end = f"{slot.key}+{len(added) + 1}", slot.start + later, slot.end + later
                    added.append(replace(slot, key=key, start=start, end=end))
                case 2:
                    slot = replace(slot, is_closed=not slot.is_closed)
                case kind if kind < 9 and slot.seats:
                    slot = replace(slot, taken=(slot.taken + 1 + draw % slot.seats) % (slot.seats + 1))
                case _:
                    slot = replace(slot, prices=tuple(_dearer(price, 101 + draw % 9) for price in slot.prices))
        yield from ([] if slot is None else [slot])
        yield from added


def _starts(tour: Tour, option: Option, day: date) -> Iterator[datetime]:
    """A day's starts in order. A time that clocks skip has none; one that comes twice has two."""
    found = []
    for minutes in option.starts:
        local = datetime.combine(day, time(minutes // 60, minutes % 60), tour.zone)
        for fold in (0, 1):
            start = local.replace(fold=fold)
            is_real = start.astimezone(UTC).astimezone(tour.zone).replace(tzinfo=None) == local.replace(tzinfo=None)
            if is_real and (fold == 0 or start.utcoffset() != local.utcoffset()):
                found.append(start)
    yield from sorted(found, key=lambda start: start.astimezone(UTC))


def _taken(fate: bytes, seats: int, ahead: int) -> int:
    """How many places are booked this many hours before the start. A few are cancelled after half of the time."""
    demand = 60 + fate[4]
    taken = 0
    for place in range(seats):
        hours, wish = fate[6 + 2 * place], fate[7 + 2 * place]
        lead = hours * hours * _LONGEST_LEAD >> 16
        is_cancelled = wish % 16 == 0 and ahead <= lead // 2
        taken += wish < demand and ahead <= lead and not is_cancelled
    return taken


def _prices(tour: Tour, option: Option, start: datetime, ahead: int, luck: int, taken: int) -> tuple[Price, ...]:
    percent = _SEASONS[start.month - 1] * _WEEKDAYS[start.weekday()]
    if option.seats and taken * 4 >= option.seats * 3:
        percent = percent * 110 // 100
    extra = pick(f"option:{tour.number}:{option.option_id}", 100, 130)
    step = 10 if tour.place.digits else 1
    prices = []
    for unit in tour.units:
        full = tour.price * percent * extra * unit.percent // 10**8
        original = max(divided(full, step) * step, step)
        is_early = luck < 90 and timedelta(hours=ahead) > _EARLY
        retail = divided(original * 9, 10) if is_early else original
        prices.append(Price(unit.unit_id, original, retail, divided(retail * 4, 5)))
    return tuple(prices)


def _dearer(price: Price, percent: int) -> Price:
    """The price with a new figure, which is another one in any case."""
    original = max(price.original * percent // 100, price.original + 1)
    retail = max(price.retail * percent // 100, price.retail + 1)
    return Price(price.unit_id, original, retail, divided(retail * 4, 5))
