"""Commodities of a game: where they are traded, at which prices. Frozen values, checked but not yet stored.

Prices are units of the game's own money, amounts are whole SCU (standard cargo units). None in place of a price
means that the terminal does not trade the commodity in this direction; 0 is never a price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Generic, TypeVar

RowT = TypeVar("RowT")

PREFIX = "UEX:"
"""Before the number of a terminal, in its canonical symbol: UEX:12."""


def symbol_of(terminal_id: int) -> str:
    """The canonical symbol of a terminal. Its number never changes; its code and its name do."""
    return f"{PREFIX}{terminal_id}"


@dataclass(frozen=True, slots=True)
class CommodityPrice:
    """What one terminal says about one commodity.

    `buy` is what a player pays there, `sell` what a player gets. `stock` is how much a player can buy, `demand` how
    much a player can sell, both None if nobody has reported it. `game_version` is None where the source does not name
    it. `modified_at` (UTC) is the source's time, None if it was never modified. `quality` is the source's word, empty
    if it names none: a commodity has a price for each.
    """

    commodity_id: int
    name: str
    code: str | None
    slug: str | None
    buy: Decimal | None
    sell: Decimal | None
    stock: int | None
    demand: int | None
    game_version: str | None
    modified_at: datetime | None
    quality: str = ""


@dataclass(frozen=True, slots=True)
class TerminalPrices:
    """All that a terminal trades, by one answer. `name` and `code` are its own, None where the answer lacks them.

    `is_whole`: every row could be read, so that a commodity that is not listed is not traded there any more.
    """

    symbol: str
    prices: tuple[CommodityPrice, ...]
    name: str | None = None
    code: str | None = None
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Terminal:
    """A place where commodities are traded. `place` is the station, outpost or city. `modified_at` None means never."""

    terminal_id: int
    name: str
    code: str | None
    system: str | None
    planet: str | None
    moon: str | None
    place: str | None
    is_available: bool
    modified_at: datetime | None

    @property
    def symbol(self) -> str:
        return symbol_of(self.terminal_id)


@dataclass(frozen=True, slots=True)
class Commodity:
    """A good. `kind` is the source's word, such as Metal."""

    commodity_id: int
    name: str
    code: str | None
    slug: str | None
    kind: str | None
    is_available: bool


@dataclass(frozen=True, slots=True)
class Listed(Generic[RowT]):
    """The rows of a list that could be read, and why the others could not."""

    rows: Sequence[RowT]
    faults: Sequence[str] = ()
