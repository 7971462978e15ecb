"""`/v1/heartbeat`, `unsubscribe`, `hold`, `release`, and who watches and holds what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import ConfigDict, Field, field_validator

from pricing_pipeline.api.access import Database, Watcher
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_SYMBOL
from pricing_pipeline.demand import viewers

router = APIRouter(tags=["watching"])

_MOST_PAIRS = 10_000


class Pair(Shape):
    """A data type and a symbol."""

    model_config = ConfigDict(extra="forbid")

    data_type: str = Field(max_length=LONGEST_NAME, examples=["equity_quote"])
    symbol: str = Field(max_length=LONGEST_SYMBOL, examples=["AAPL"])


class Pairs(Body):
    """The pairs that a request is about."""

    pairs: list[Pair] = Field(min_length=1, max_length=_MOST_PAIRS, fail_fast=True)

    @field_validator("pairs", mode="before")
    @classmethod
    def _have_no_more_keys(cls, pairs: Any) -> Any:
        if isinstance(pairs, list) and any(isinstance(pair, dict) and len(pair) > 2 for pair in pairs):
            raise ValueError("a pair has a data_type and a symbol, and nothing else")
        return pairs

    def as_tuples(self) -> list[tuple[str, str]]:
        """The pairs as the functions of demand take them."""
        return [(pair.data_type, pair.symbol) for pair in self.pairs]


class Changed(Shape):
    """How many subscriptions or holdings began or ended."""

    changed: int


class Subscription(Shape):
    """A pair that a user watches; times are UTC."""

    user_id: str
    data_type: str
    symbol: str
    subscribed_at: datetime
    last_seen_at: datetime


class Subscriptions(Shape):
    """What a user watches."""

    subscriptions: list[Subscription]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Holding(Shape):
    """A pair that a user holds, or held until `closed_at`; times are UTC."""

    user_id: str
    data_type: str
    symbol: str
    status: str
    since: datetime
    closed_at: datetime | None


class Holdings(Shape):
    """What a user holds."""

    holdings: list[Holding]
    next: str | None
    """The cursor of the next page; null on the last one."""


@router.post("/heartbeat")
def heartbeat(database: Database, caller: Watcher, pairs: Pairs) -> Changed:
    """Say that a user looks at these pairs now. Send it once a minute; after five silent minutes a subscription ends.

    What is missing or stale of new pairs is queued at once. `changed` is the number of new ones.
    """
    user = caller.user
    with database.begin() as connection:
        return Changed(changed=viewers.heartbeat(connection, user, pairs.as_tuples()))


@router.post("/unsubscribe")
def unsubscribe(database: Database, caller: Watcher, pairs: Pairs) -> Changed:
    """Say that a user has left these pairs. `changed` is the number of subscriptions that ended."""
    user = caller.user
    with database.begin() as connection:
        return Changed(changed=viewers.unsubscribe(connection, user, pairs.as_tuples()))


@router.post("/hold")
def hold(database: Database, caller: Watcher, pairs: Pairs) -> Changed:
    """Say that a user holds these pairs from now on. `changed` is the number of new holdings."""
    user = caller.user
    with database.begin() as connection:
        return Changed(changed=viewers.hold(connection, user, pairs.as_tuples()))


@router.post("/release")
def release(database: Database, caller: Watcher, pairs: Pairs) -> Changed:
    """Say that a user no longer holds these pairs. `changed` is the number of holdings that ended."""
    user = caller.user
    with database.begin() as connection:
        return Changed(changed=viewers.release(connection, user, pairs.as_tuples()))


_SUBSCRIPTIONS: Keyset[viewers.Subscription] = Keyset(
    "subscriptions", (str, str, str), lambda row: (row.user_id, row.data_type, row.symbol)
)
_HOLDINGS: Keyset[viewers.Holding] = Keyset(
    "holdings", (str, str, str), lambda row: (row.user_id, row.data_type, row.symbol)
)


@router.get("/subscriptions")
def list_subscriptions(
    database: Database, caller: Watcher, page: Annotated[Page, Depends(_SUBSCRIPTIONS)]
) -> Subscriptions:
    """What a user watches, by data type and symbol."""
    user = caller.user
    with database.connect() as connection:
        rows = viewers.subscriptions(connection, user, None, None, page.at_most, page.after)
    shown, following = page.cut(rows)
    return Subscriptions(
        subscriptions=[Subscription.model_validate(row, from_attributes=True) for row in shown],
        next=following,
    )


@router.get("/holdings")
def list_holdings(
    database: Database,
    caller: Watcher,
    page: Annotated[Page, Depends(_HOLDINGS)],
    closed_too: bool = False,
) -> Holdings:
    """What a user holds, by data type and symbol."""
    user = caller.user
    with database.connect() as connection:
        rows = viewers.holdings(
            connection, user, None, None, page.at_most, closed_too=closed_too, after=page.after
        )
    shown, following = page.cut(rows)
    return Holdings(
        holdings=[Holding.model_validate(row, from_attributes=True) for row in shown], next=following
    )
