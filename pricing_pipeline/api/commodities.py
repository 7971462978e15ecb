"""`/v1/commodities`, `/v1/terminals`, `/v1/trade-routes`: what commodities of a game cost, and what can be earned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.numbers import Exact, Whole
from pricing_pipeline.api.parameters import Moment
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.commodities import reads

router = APIRouter(tags=["commodities"])
_tagged = APIRouter(tags=["commodities"], route_class=TaggedRoute)

_LONGEST_NAME = 200
USUAL_ROUTES, MOST_ROUTES = 20, 1000
Name = Annotated[str, Path(min_length=1, max_length=_LONGEST_NAME, examples=["gold"])]


class Commodity(Shape):
    """A commodity, and where it is traded in the version of the game that people play."""

    commodity_id: int
    name: str = Field(examples=["Gold"])
    code: str | None = Field(examples=["GOLD"])
    slug: str | None = Field(examples=["gold"])
    kind: str | None = Field(examples=["Metal"])
    is_available: bool
    sold_at: int
    """Terminals that sell it to players."""
    cheapest: Exact | None = Field(examples=["4988"])
    """The lowest price for one SCU there."""
    bought_at: int
    """Terminals that take it."""
    dearest: Exact | None = Field(examples=["6329"])
    """The highest price for one SCU there."""
    newest_at: datetime | None
    """The source's time of the newest of these prices."""


class Commodities(Shape):
    """All commodities, by name."""

    game_version: str | None = Field(examples=["4.1"])
    """The version of the game that people play; prices are of it."""
    fetched_at: datetime | None
    """When a provider last confirmed the prices of a terminal."""
    commodities: list[Commodity]


class CommodityPrice(Shape):
    """What one terminal says about a commodity. Prices are for one SCU; null = not traded in this direction."""

    commodity: str = Field(examples=["Gold"])
    slug: str | None = Field(examples=["gold"])
    symbol: str = Field(examples=["UEX:12"])
    terminal: str = Field(examples=["TDD Area 18"])
    code: str | None
    system: str | None
    place: str | None
    is_available: bool
    quality: str = Field(examples=["500"])
    """The quality that the price is for, in the source's word; empty if it names none."""
    buy: Exact | None = Field(examples=["5249"])
    """What a player pays."""
    sell: Exact | None
    """What a player gets."""
    stock: Whole | None = Field(examples=["500"])
    """How much a player can buy; null = not reported."""
    demand: Whole | None
    """How much a player can sell; null = not reported."""
    game_version: str | None
    is_of_other_version: bool
    """Whether the price is not of the version of the game that people play now."""
    modified_at: datetime | None
    """The source's time of the price; null = it has none."""
    recorded_at: datetime
    """Since when it is believed."""
    age_seconds: float
    """How old it is, by the source's time if it has one; with `as_of`, how old it was then."""
    provider: str


class CommodityPrices(Shape):
    """Where a commodity is traded: the version that people play first, then by price."""

    commodity_id: int
    name: str
    slug: str | None
    as_of: datetime | None
    """As it was believed then; null = as it is now."""
    prices: list[CommodityPrice]


class TerminalPrices(Shape):
    """What a terminal trades: the version that people play first, then by the name of the commodity."""

    symbol: str = Field(examples=["UEX:12"])
    as_of: datetime | None
    """As it was believed then; null = as it is now."""
    prices: list[CommodityPrice]


class TradeRoute(Shape):
    """Buy a commodity at one terminal and sell it at another. Prices and margin are for one SCU."""

    commodity: str = Field(examples=["Gold"])
    slug: str | None
    quality: str
    """The quality that both prices are for; empty if the source names none."""
    from_symbol: str = Field(examples=["UEX:79"])
    from_terminal: str
    from_system: str | None
    to_symbol: str = Field(examples=["UEX:89"])
    to_terminal: str
    to_system: str | None
    buy: Exact = Field(examples=["5249"])
    sell: Exact = Field(examples=["6329"])
    margin: Exact = Field(examples=["1080"])
    margin_percent: Exact = Field(examples=["20.6"])
    stock: Whole | None
    demand: Whole | None
    quantity: Whole | None
    """The smaller of stock and demand; null = neither is reported."""
    total: Exact | None = Field(examples=["540000"])
    """What the whole quantity earns."""
    game_version: str | None
    age_seconds: float
    """How old the older of both prices is."""


class TradeRoutes(Shape):
    """The best routes first."""

    from_symbol: str | None
    """The terminal that they begin at; null = any."""
    routes: list[TradeRoute]


@_tagged.get("/commodities")
def list_commodities(database: Database, caller: Reader) -> Commodities:
    """All commodities, and the best prices of each."""
    with database.connect() as connection:
        state = reads.state(connection)
        lines = reads.commodities(connection)
    return Commodities(
        game_version=state.game_version,
        fetched_at=state.fetched_at,
        commodities=[Commodity.model_validate(line, from_attributes=True) for line in lines],
    )


@router.get("/commodities/{slug:path}/prices")
def read_commodity_prices(
    database: Database,
    caller: Reader,
    slug: Name,
    as_of: Annotated[Moment | None, Query(description="As they were believed at this time.")] = None,
) -> CommodityPrices:
    """Where a commodity is traded. Queues nothing: watch a terminal to keep its prices fresh."""
    with database.connect() as connection:
        found = reads.find(connection, slug)
        lines = reads.prices(connection, found.commodity_id, as_of)
    return CommodityPrices(
        commodity_id=found.commodity_id,
        name=found.name,
        slug=found.slug,
        as_of=as_of,
        prices=[CommodityPrice.model_validate(line, from_attributes=True) for line in lines],
    )


@router.get("/terminals/{terminal:path}/prices")
def read_terminal_prices(
    database: Database,
    caller: Reader,
    terminal: Annotated[str, Path(min_length=1, max_length=_LONGEST_NAME, examples=["UEX:12"])],
    as_of: Annotated[Moment | None, Query(description="As they were believed at this time.")] = None,
) -> TerminalPrices:
    """What a terminal (its symbol, code or name) trades. Queues nothing: watch it to keep its prices fresh."""
    with database.connect() as connection:
        symbol = reads.find_terminal(connection, terminal)
        lines = reads.prices_at(connection, symbol, as_of)
    return TerminalPrices(
        symbol=symbol,
        as_of=as_of,
        prices=[CommodityPrice.model_validate(line, from_attributes=True) for line in lines],
    )


@router.get("/trade-routes")
def list_trade_routes(
    database: Database,
    caller: Reader,
    terminal: Annotated[
        str | None,
        Query(
            alias="from",
            min_length=1,
            max_length=_LONGEST_NAME,
            description="The symbol, code or name of the terminal where they begin.",
            examples=["UEX:79"],
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ROUTES, description="The most routes to list.")] = USUAL_ROUTES,
) -> TradeRoutes:
    """What to buy where, and where to sell it: the routes that earn most."""
    with database.connect() as connection:
        symbol = None if terminal is None else reads.find_terminal(connection, terminal)
        found = reads.trade_routes(connection, symbol, limit)
    return TradeRoutes(
        from_symbol=symbol,
        routes=[TradeRoute.model_validate(route, from_attributes=True) for route in found],
    )


router.include_router(_tagged)
