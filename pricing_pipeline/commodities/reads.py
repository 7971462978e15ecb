"""Read commodities: which exist, what they cost where, and what can be earned. Nothing here queues anything.

Prices are in units of the game's money, amounts in SCU, times in UTC. Ages count from the source's time of a
price, or from when it was recorded where the source has no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import UnknownCommodity, UnknownTerminal


@dataclass(frozen=True, slots=True)
class CommodityLine:
    """A commodity, and where it is traded in the version of the game that people play.

    `sold_at` terminals sell it to players, for `cheapest` at least; `bought_at` take it, for `dearest` at most.
    """

    commodity_id: int
    name: str
    code: str | None
    slug: str | None
    kind: str | None
    is_available: bool
    sold_at: int
    cheapest: Decimal | None
    bought_at: int
    dearest: Decimal | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True)
class CommodityNames:
    """A commodity by one of its names."""

    commodity_id: int
    name: str
    code: str | None
    slug: str | None


@dataclass(frozen=True, slots=True)
class PriceLine:
    """The prices of a commodity at one terminal. `is_of_other_version`: not of the version that people play.

    `quality` is the source's word, empty if it names none.
    """

    commodity: str
    slug: str | None
    symbol: str
    terminal: str
    code: str | None
    system: str | None
    place: str | None
    is_available: bool
    quality: str
    buy: Decimal | None
    sell: Decimal | None
    stock: int | None
    demand: int | None
    game_version: str | None
    is_of_other_version: bool
    modified_at: datetime | None
    recorded_at: datetime
    provider: str
    age_seconds: float


@dataclass(frozen=True, slots=True)
class TradeRoute:
    """Buy at one terminal and sell at another what has one `quality`.

    `total` is what the whole `quantity` earns, None if that is unknown.
    """

    commodity: str
    slug: str | None
    quality: str
    from_symbol: str
    from_terminal: str
    from_system: str | None
    to_symbol: str
    to_terminal: str
    to_system: str | None
    buy: Decimal
    sell: Decimal
    margin: Decimal
    margin_percent: Decimal
    stock: int | None
    demand: int | None
    quantity: int | None
    total: Decimal | None
    game_version: str | None
    age_seconds: float


@dataclass(frozen=True, slots=True)
class State:
    """The version of the game that people play, and when a provider last confirmed prices of a terminal."""

    game_version: str | None
    fetched_at: datetime | None


def commodities(connection: Connection) -> list[CommodityLine]:
    """All commodities, by name."""
    return [CommodityLine(**row) for row in connection.execute(query("commodities.all")).mappings()]


def find(connection: Connection, word: str) -> CommodityNames:
    """The commodity of a slug, code, name or number. Raises UnknownCommodity."""
    row = connection.execute(query("commodities.find"), {"word": word}).mappings().one_or_none()
    if row is None:
        raise UnknownCommodity(
            f"no commodity is called {word!r}. `pricing-pipeline commodity list` shows all; "
            "`pricing-pipeline commodity sync` reads them."
        )
    return CommodityNames(**row)


def find_terminal(connection: Connection, word: str) -> str:
    """The symbol of the terminal of a symbol, code or name. Raises UnknownTerminal."""
    symbol = call_sql(connection, "terminal_of", word).scalar_one()
    if symbol is None:
        near = connection.execute(query("commodities.like_terminal"), {"word": word}).scalars().all()
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnknownTerminal(
            f"no terminal is called {word!r}.{meant} `pricing-pipeline instrument list --asset-class commodity` shows "
            "all."
        )
    return str(symbol)


def prices(connection: Connection, commodity_id: int, as_of: datetime | None = None) -> list[PriceLine]:
    """Where a commodity is traded, as it is believed now or was believed at a moment (aware)."""
    return _prices(connection, {"commodity_id": commodity_id, "terminal": None, "as_of": as_of})


def prices_at(connection: Connection, terminal: str, as_of: datetime | None = None) -> list[PriceLine]:
    """What the terminal of a symbol trades, by version and name, as believed now or at a moment (aware)."""
    return _prices(connection, {"commodity_id": None, "terminal": terminal, "as_of": as_of})


def _prices(connection: Connection, parameters: dict[str, object]) -> list[PriceLine]:
    rows = connection.execute(query("commodities.prices"), parameters).mappings()
    return [PriceLine(**row) for row in rows]


def trade_routes(connection: Connection, from_symbol: str | None, at_most: int) -> list[TradeRoute]:
    """The best routes, or those that begin at one terminal: the highest total first."""
    parameters = {"from_symbol": from_symbol, "at_most": at_most}
    return [TradeRoute(**row) for row in connection.execute(query("commodities.routes"), parameters).mappings()]


def state(connection: Connection) -> State:
    """The live version of the game, and when prices were last confirmed."""
    return State(**connection.execute(query("commodities.state")).mappings().one())
