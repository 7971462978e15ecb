"""`/v1/heartbeat`, `unsubscribe`, `hold`, `release`, and who watches and holds what."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends
from pydantic import ConfigDict, Field, field_validator

from pricing_pipeline.api.access import Database, Watcher
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.numbers import Exact, ExactRoute, plain_number
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.demand import viewers

router = APIRouter(tags=["watching"], route_class=ExactRoute)

_MOST_PAIRS = 10_000
_LONGEST_TEXT = 1000


class Pair(Shape):
    """A data type and a symbol."""

    model_config = ConfigDict(extra="forbid")

    # Longer than a name may be: the database answers for each pair, and a long one keeps no other one out.
    data_type: str = Field(max_length=_LONGEST_TEXT, examples=["equity_quote"])
    symbol: str = Field(max_length=_LONGEST_TEXT, examples=["AAPL"])


class Pairs(Body):
    """The pairs that a request is about."""

    pairs: list[Pair] = Field(min_length=1, max_length=_MOST_PAIRS, fail_fast=True)

    @field_validator("pairs", mode="before")
    @classmethod
    def _have_no_more_keys(cls, pairs: Any) -> Any:
        (shape,) = get_args(cls.model_fields["pairs"].annotation)
        keys = shape.model_fields
        if isinstance(pairs, list) and any(isinstance(pair, dict) and len(pair) > len(keys) for pair in pairs):
            raise ValueError(f"a pair has only the keys {', '.join(keys)}")
        return pairs

    def as_tuples(self) -> list[tuple[str, str]]:
        """The pairs as the functions of demand take them."""
        return [(pair.data_type, pair.symbol) for pair in self.pairs]


class Wanted(Pairs):
    """Pairs that a user watches or holds from now on."""

    all_or_nothing: bool = False
    """Refuse the whole request if one of its pairs is refused."""


class HeldPair(Pair):
    """A data type and a symbol, and how much of it is held."""

    quantity: Decimal | None = Field(
        None, ge=-viewers.MOST_HELD, le=viewers.MOST_HELD, decimal_places=viewers.MOST_DECIMALS, examples=["12.5"]
    )
    """Number of shares, fund units or coins, or for a currency pair the amount of its first currency. It replaces the
    stored quantity; null, or no quantity, keeps the stored one."""

    _read = field_validator("quantity", mode="before")(plain_number)


class Held(Wanted):
    """Pairs that a user holds from now on."""

    pairs: list[HeldPair] = Field(min_length=1, max_length=_MOST_PAIRS, fail_fast=True)  # type: ignore[assignment]


class Changed(Shape):
    """How many subscriptions or holdings ended."""

    changed: int


class PairAnswer(Shape):
    """What became of a pair."""

    data_type: str
    given: str
    """The symbol as the request has it."""
    symbol: str | None
    """The symbol as its instrument is spelled; null if the pair is refused."""
    outcome: Literal["accepted", "doubtful", "refused"]
    """A doubtful pair is accepted, with a warning."""
    code: str | None = Field(examples=["symbol_refused"])
    """The kind of doubt or refusal: symbol_doubtful, symbol_refused, unknown_type, retired_type, pairs_per_user or
    new_pairs_per_minute."""
    reason: str | None
    proposal: str | None
    """Another spelling or data type that would do."""
    retry_after: int | None
    """Seconds after which the same pair may be accepted; null if waiting does not help."""


class Fault(Shape):
    """The doubts or refusals of one kind, in one sentence."""

    outcome: Literal["doubtful", "refused"]
    code: str
    pairs: int
    sentence: str
    """Says how many pairs these are, names some, and says why."""


class Answer(Shape):
    """What became of the pairs of a request. The numbers are of pairs, each counted once."""

    changed: int
    """How many are new."""
    accepted: int
    doubtful: int
    refused: int
    pairs: list[PairAnswer]
    """Those that are not accepted as they are written, in the order of the request."""
    faults: list[Fault]


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
    quantity: Exact | None
    """Number of shares, fund units or coins, or for a pair the amount of its first currency; null if unknown."""
    status: str
    since: datetime
    closed_at: datetime | None


class Holdings(Shape):
    """What a user holds."""

    holdings: list[Holding]
    next: str | None
    """The cursor of the next page; null on the last one."""


@router.post("/heartbeat")
def heartbeat(database: Database, caller: Watcher, pairs: Wanted) -> Answer:
    """Say that a user looks at these pairs now. Send it once a minute; after five silent minutes a subscription ends.

    New pairs without a fresh price are queued at once. Each pair is accepted or refused separately.
    """
    user = caller.user
    with database.begin() as connection:
        answer = viewers.heartbeat(connection, user, pairs.as_tuples(), all_or_nothing=pairs.all_or_nothing)
    return Answer.model_validate(answer, from_attributes=True)


@router.post("/unsubscribe")
def unsubscribe(database: Database, caller: Watcher, pairs: Pairs) -> Changed:
    """Say that a user has left these pairs. `changed` is the number of subscriptions that ended."""
    user = caller.user
    with database.begin() as connection:
        return Changed(changed=viewers.unsubscribe(connection, user, pairs.as_tuples()))


@router.post("/hold")
def hold(database: Database, caller: Watcher, pairs: Held) -> Answer:
    """Say that a user holds these pairs from now on, and in which quantity. Each is accepted or refused separately."""
    user = caller.user
    with database.begin() as connection:
        answer = viewers.hold(
            connection,
            user,
            pairs.as_tuples(),
            quantities=[pair.quantity for pair in pairs.pairs],
            all_or_nothing=pairs.all_or_nothing,
        )
    return Answer.model_validate(answer, from_attributes=True)


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
        rows = viewers.holdings(connection, user, None, None, page.at_most, closed_too=closed_too, after=page.after)
    shown, following = page.cut(rows)
    return Holdings(holdings=[Holding.model_validate(row, from_attributes=True) for row in shown], next=following)
