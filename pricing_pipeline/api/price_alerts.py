"""`/v1/price-alerts`: the price alerts of a user. Setting up their recipients needs the owner: the command
line.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import Field, field_validator

from pricing_pipeline.api.access import Database, Watcher
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.ids import Id, Ids
from pricing_pipeline.api.numbers import Exact, ExactRoute, plain_number
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_SYMBOL
from pricing_pipeline.operations import price_alerts
from pricing_pipeline.operations.price_alerts import USUAL_PACE, Wanted

router = APIRouter(prefix="/price-alerts", tags=["price alerts"], route_class=ExactRoute)

_DAYS_30 = 30 * 86400
_HIGHEST = 10**18


class NewPriceAlert(Body):
    """What a user wants to be told: when a price goes above or below the threshold, has moved by a percentage or has
    been stale for a time, or each price.
    """

    recipient: str = Field(max_length=LONGEST_NAME, examples=["shop"])
    """Who is told: a recipient for this user or for any user."""
    data_type: str = Field(max_length=LONGEST_NAME, examples=["equity_quote"])
    symbol: str = Field(max_length=LONGEST_SYMBOL, examples=["AAPL"])
    condition: Literal["above", "below", "moved", "stale", "each"]
    threshold: Decimal | None = Field(None, gt=0, le=_HIGHEST, decimal_places=12, examples=["200"])
    """Of above and below the price, of moved the percentage."""
    lasts_seconds: int | None = Field(None, ge=60, le=_DAYS_30)
    """Of stale: for how long."""
    pace_seconds: int | None = Field(None, ge=60, le=3600)
    """Of each: at most one message in this time; 60 if left out."""
    hysteresis: Decimal = Field(Decimal(0), ge=0, le=_HIGHEST, decimal_places=12, examples=["1"])
    """Of above and below: how far beyond the threshold a price must come back before a crossing is told again."""
    hysteresis_in: Literal["amount", "percent"] = "amount"
    """Whether hysteresis is an amount of the price, or percent of the threshold."""

    _read = field_validator("threshold", "hysteresis", mode="before")(plain_number)


class PriceAlert(Shape):
    """What a user is told, and what was seen for it. Prices are exact, times are UTC."""

    price_alert_id: int
    recipient: str
    recipient_is_active: bool
    """False: nothing is sent."""
    user_id: str
    data_type: str
    symbol: str
    condition: str = Field(examples=["above"])
    threshold: Exact | None = Field(examples=["200"])
    hysteresis: Exact
    hysteresis_in: str = Field(examples=["amount"])
    lasts_seconds: int | None
    pace_seconds: int | None
    is_beyond: bool
    """Whether the last price was beyond the threshold, or the pair was stale for too long: that was told."""
    seen: Exact | None
    """The last price that was looked at."""
    seen_at: datetime | None
    """Its time at the source."""
    reference: Exact | None
    """Of moved: the price from which the move counts."""
    reference_at: datetime | None
    told_at: datetime | None
    """When its recipient was last told."""
    created_at: datetime
    created_by: str
    """The token with which it was added."""
    is_fetched: bool
    """False: nobody watches or holds the pair, so no price comes. A price alert alone keeps none fresh."""


class PriceAlerts(Shape):
    """The price alerts of a user."""

    price_alerts: list[PriceAlert]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Removed(Shape):
    """The price alerts that have ended."""

    removed: list[int]


_PRICE_ALERTS: Keyset[price_alerts.PriceAlert] = Keyset("price_alerts", (int,), lambda row: (row.price_alert_id,))


@router.get("")
def list_price_alerts(
    database: Database, caller: Watcher, page: Annotated[Page, Depends(_PRICE_ALERTS)]
) -> PriceAlerts:
    """The price alerts of a user, in the order in which they were added."""
    user = caller.user
    with database.connect() as connection:
        rows = price_alerts.listed(connection, None, page.at_most, page.after_id, user)
    shown, following = page.cut(rows)
    return PriceAlerts(price_alerts=[_model(row) for row in shown], next=following)


@router.get("/{price_alert_id:int}")
def show_price_alert(database: Database, caller: Watcher, price_alert_id: Id) -> PriceAlert:
    """One price alert of a user, and what it has seen."""
    user = caller.user
    with database.connect() as connection:
        return _model(price_alerts.find(connection, price_alert_id, user))


@router.post("", status_code=201)
def add_price_alert(database: Database, caller: Watcher, body: NewPriceAlert) -> PriceAlert:
    """Add a price alert of a user."""
    pace = body.pace_seconds or USUAL_PACE if body.condition == "each" else body.pace_seconds
    with database.begin() as connection:
        added = price_alerts.add(
            connection,
            Wanted(
                body.recipient,
                body.data_type,
                body.symbol,
                body.condition,
                body.threshold,
                body.lasts_seconds,
                pace,
                caller.user,
                body.hysteresis,
                body.hysteresis_in,
            ),
            caller.token.name,
        )
    return _model(added)


@router.post("/remove")
def remove_price_alerts(database: Database, caller: Watcher, body: Ids) -> Removed:
    """End price alerts of a user: all of them, or none. Messages that wait already are sent."""
    user = caller.user
    ids = sorted(set(body.ids))
    with database.begin() as connection:
        for price_alert_id in ids:
            price_alerts.remove(connection, price_alert_id, user)
    return Removed(removed=ids)


def _model(alert: price_alerts.PriceAlert) -> PriceAlert:
    return PriceAlert.model_validate(alert.content)
