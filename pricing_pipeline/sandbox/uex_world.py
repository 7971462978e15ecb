"""The world behind the sandbox's UEX: terminals, commodities, and what they cost there at a time.

Everything follows from a seed and the time. Players report each price every ten minutes to two hours. What a terminal
has little of is dear; what it has much of it pays less for. With a new version of the game all prices are others, and
none is known until somebody has reported it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.venues import WORLD

_FIRST_PATCH = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
_PATCH_SECONDS = 90 * 86_400


class Place(NamedTuple):
    """One terminal. A kind of `item` is a shop, which trades no commodities."""

    number: int
    kind: str
    name: str
    system: str
    planet: str
    moon: str | None = None
    station: str | None = None
    outpost: str | None = None
    city: str | None = None

    @property
    def code(self) -> str:
        return f"{''.join(char for char in self.name.upper() if char.isalnum())[:3]}{self.number:02d}"

    @property
    def is_available(self) -> bool:
        return pick(f"available:{self.number}", 0, 20) > 0


class Good(NamedTuple):
    """One commodity, and what one SCU is worth."""

    number: int
    code: str
    name: str
    kind: str
    worth: int

    @property
    def slug(self) -> str:
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Offer:
    """A terminal's report about a commodity. 0 stands for nothing, as in the provider's answers."""

    place: Place
    good: Good
    buy: int
    sell: int
    stock: int
    demand: int
    status: int
    modified: int


_SYSTEMS = {
    "Stanton": ("Hurston", "Crusader", "ArcCorp", "microTech"),
    "Pyro": ("Monox", "Bloom", "Terminus"),
}
_MOONS = [
    "Lyria",
    "Wala",
    "Daymar",
    "Cellin",
    "Yela",
    "Aberdeen",
    "Arial",
    "Ita",
    "Magda",
    "Calliope",
    "Clio",
]
_CITIES = {"Hurston": "Lorville", "Crusader": "Orison", "ArcCorp": "Area 18", "microTech": "New Babbage"}
_OUTPOSTS = ("Mining Area", "Salvage Yard", "Farm", "Research Outpost", "Shubin Facility")
GOODS = tuple(Good(number, code, *good) for number, (code, good) in enumerate(WORLD["commodities"].items(), 1))


def _places() -> Iterator[Place]:
    numbers = count(1)
    for system, planets in _SYSTEMS.items():
        for planet in planets:
            for number in range(1, 6):
                station = f"{planet} L{number}"
                yield Place(next(numbers), "commodity", f"Admin - {station}", system, planet, station=station)
            if city := _CITIES.get(planet):
                yield Place(next(numbers), "commodity", f"TDD - {city}", system, planet, city=city)
                yield Place(next(numbers), "item", f"Shop - {city}", system, planet, city=city)
            for number in range(2):
                moon = _MOONS[pick(f"moon:{planet}:{number}", 0, len(_MOONS))]
                outpost = f"{moon} {_OUTPOSTS[pick(f'outpost:{planet}:{number}', 0, len(_OUTPOSTS))]}"
                yield Place(next(numbers), "commodity", outpost, system, planet, moon=moon, outpost=outpost)


PLACES = tuple(_places())
TRADING = {place.number: place for place in PLACES if place.kind == "commodity"}


class World:
    """The world of one sandbox."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def version(self, at: int) -> str:
        """The version of the game that people play."""
        number = _patch(at)
        return f"4.{number // 3}.{number % 3}" if number % 3 else f"4.{number // 3}"

    def offers(self, place: Place, at: int) -> list[Offer]:
        """The known offers of a terminal at a time, by number of the commodity."""
        found = (self._offer(place, good, at) for good in GOODS)
        return [offer for offer in found if offer is not None]

    def _offer(self, place: Place, good: Good, at: int) -> Offer | None:
        """A report lasts until the next one. None: not traded there, or not yet reported in this version."""
        pair = f"{self._seed}:{place.number}:{good.number}"
        side = pick(f"side:{pair}", 0, 5)
        if side > 1:
            return None
        every = 600 * pick(f"every:{pair}", 1, 13)
        reported = at - (at + pick(f"phase:{pair}", 0, every)) % every
        patch = _patch(at)
        if patch and reported < _FIRST_PATCH + patch * _PATCH_SECONDS:
            return None
        base = good.worth * pick(f"patch:{self._seed}:{patch}:{good.number}", 80, 121) // 100
        base = base * pick(f"place:{pair}:{patch}", 90, 111) // 100
        fill = pick(f"fill:{pair}:{reported}", 0, 1001) / 1000
        room = pick(f"room:{pair}", 2, 80) * 16
        amount = round(room * fill)
        status = 1 + round(6 * fill)
        if side == 0:
            # It sells: the less there is, the dearer.
            price = max(1, round(base * (1.05 - 0.25 * fill)))
            return Offer(place, good, price, 0, amount, 0, 1 if amount == 0 else max(status, 2), reported)
        # It takes: the fuller, the less it pays.
        price = max(1, round(base * (1.35 - 0.25 * fill)))
        demand = room - amount
        return Offer(place, good, 0, price, 0, demand, 7 if demand == 0 else min(status, 6), reported)


def _patch(at: int) -> int:
    return max(at - _FIRST_PATCH, 0) // _PATCH_SECONDS
