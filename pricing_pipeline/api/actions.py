"""`/v1/actions`: corporate actions, as they are or were believed. Entering one needs the owner: the command line."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.parameters import AssetClass, Moment, SymbolName
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import instruments
from pricing_pipeline.prices import actions

router = APIRouter(tags=["actions"], route_class=TaggedRoute)


class Action(Shape):
    """A split or spin-off has shares, a dividend or capital gain an amount for one share.

    Numbers are exact, as strings. A day may have several payments of one kind.
    """

    ex_on: date
    """The first trading day without it."""
    kind: str = Field(examples=["split"])
    """split, spin_off (divides prices like a split, but multiplies no volume), dividend or capital_gain."""
    new_shares: str | None = Field(default=None, examples=["4"])
    old_shares: str | None = Field(default=None, examples=["1"])
    amount: str | None = None
    currency: str | None = None
    """The currency of the amount; null = the currency of the prices."""
    provider: str | None
    call_id: int | None
    recorded_at: datetime
    """Since when it is believed."""
    entered_by: str | None
    """The person who entered it; null if its provider reported it."""
    reason: str | None


class Actions(Shape):
    """The corporate actions of an instrument, the newest first."""

    symbol: str
    asset_class: str
    as_of: datetime | None
    actions: list[Action]


@router.get("/actions/{symbol:path}")
def read_actions(
    database: Database,
    caller: Reader,
    symbol: SymbolName,
    asset_class: AssetClass = None,
    as_of: Annotated[Moment | None, Query(description="As they were believed at this time.")] = None,
) -> Actions:
    """The splits, spin-offs, dividends and capital gains of a symbol, the newest first."""
    with database.connect() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        of_class = actions.class_of(connection, symbol, asset_class)
        known = actions.read(connection, of_class, symbol, as_of)
    return Actions(
        symbol=symbol,
        asset_class=of_class,
        as_of=as_of,
        actions=[Action.model_validate(actions.content_of(stored)) for stored in known],
    )
