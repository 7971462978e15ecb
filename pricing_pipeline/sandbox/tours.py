"""The tours and activities that partners sell: a catalogue, made up by number. What is sold of them is in slots.py.

Both partners of the sandbox sell the same tours under ids of their own, as providers of prices quote the same shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.venues import WORLD

MOST_TOURS = 100
"""Tours are numbered from 1 to this."""
SLOTS_A_DAY = 10
"""Of a tour that has no starts of its own."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where tours take place: its zone, and the currency and digits of its prices."""

    city: str
    zone: str
    currency: str
    digits: int
    price: int
    """Of one adult, in minor units: what a tour there costs about."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Whom a tour is sold to. `percent` of the tour's price is what it costs."""

    unit_id: str
    kind: str
    name: str
    ages: tuple[int | None, int | None]
    percent: int
    pax: int = 1


@dataclass(frozen=True, slots=True)
class Option:
    """A variant of a tour: its starts in minutes after midnight. Without `seats` it is sold without a limit."""

    option_id: str
    name: str
    starts: tuple[int, ...]
    minutes: int
    seats: int | None


@dataclass(frozen=True, slots=True)
class Tour:
    """One tour. `is_by_group`: it is sold to groups of a size, and not by person."""

    number: int
    name: str
    place: Place
    price: int
    units: tuple[Unit, ...]
    options: tuple[Option, ...]
    is_by_group: bool = False

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.place.zone)


PLACES = tuple(Place(city, *told) for city, told in WORLD["places"].items())

_KINDS = ("river cruise", "old town walk", "food tour", "museum entry", "bicycle tour", "harbour by night")
_ADULT = Unit("adult", "ADULT", "Adult", (13, None), 100)
_UNITS = (
    _ADULT,
    Unit("child", "CHILD", "Child", (4, 12), 50),
    Unit("senior", "SENIOR", "Senior", (65, None), 80),
)
_FAMILY = Unit("family", "FAMILY", "Family of four", (None, None), 260, pax=4)
_GROUPS = (
    Unit("group4", "OTHER", "Group of 1 to 4", (None, None), 320, pax=4),
    Unit("group8", "OTHER", "Group of 5 to 8", (None, None), 560, pax=8),
)
_NIGHT = "harbour by night"


def tour_of(number: int) -> Tour | None:
    """The tour of a number, as it is until somebody changes it; None outside the catalogue."""
    if not 1 <= number <= MOST_TOURS:
        return None
    place, kind = PLACES[(number - 1) % len(PLACES)], _KINDS[(number - 1) % len(_KINDS)]
    is_by_group = number % 9 == 0
    units = _GROUPS if is_by_group else (*_UNITS, *([_FAMILY] if number % 4 == 0 else []))
    return Tour(
        number=number,
        name=f"{place.city}: {kind}",
        place=place,
        price=place.price * pick(f"tour:{number}:price", 70, 160) // 100,
        units=units,
        options=_options(number, kind),
        is_by_group=is_by_group,
    )


def _options(number: int, kind: str) -> tuple[Option, ...]:
    """One to three variants with ten starts a day together; one of a harbour by night starts while clocks change."""
    count = 1 + number % 3
    seats = None if number % 7 == 0 else pick(f"tour:{number}:seats", 6, 40)
    starts = tuple(9 * 60 + 60 * n for n in range(SLOTS_A_DAY))
    if kind == _NIGHT:
        starts = tuple(30 * n for n in range(1, 6)) + starts[5:]
    names = ("Standard", "With a guide", "Small group")
    return tuple(
        Option(
            option_id="DEFAULT" if n == 0 else f"OPTION_{n}",
            name=names[n],
            starts=starts[n::count],
            minutes=(60, 90, 150)[n],
            seats=seats if n == 0 else pick(f"tour:{number}:{n}:seats", 4, 20),
        )
        for n in range(count)
    )
