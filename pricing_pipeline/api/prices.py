"""`/v1/prices` and `/v1/why`: the latest prices as they are stored. Nothing here waits for a provider."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated
from urllib.parse import parse_qsl

from anyio import to_thread
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.types import ASGIApp, Receive, Scope, Send

from pricing_pipeline.api.access import LONGEST_USER, Caller, Database, Reader, Sessions, caller_with
from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_SYMBOLS, Symbols, each_of, type_of_prices
from pricing_pipeline.db.engine import KeptSessions
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.domain.scopes import Scope as TokenScope
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.keys.api_tokens import ApiToken
from pricing_pipeline.prices import price_reader
from pricing_pipeline.registry import data_type_registry

router = APIRouter(tags=["prices"])

_LONGEST = {"symbols": LONGEST_SYMBOLS, "data_type": LONGEST_NAME, "user": LONGEST_USER}

DataType = Annotated[
    str | None,
    Query(
        max_length=LONGEST_NAME, description="One data type; else all that apply.", examples=["equity_quote"]
    ),
]


class Reason(BaseModel):
    """Why a price is as old as it is, or missing."""

    state: str = Field(examples=["rate_limited"])
    sentence: str
    since: datetime | None
    next_at: datetime | None
    """When it may change, if that is known."""


class Price(BaseModel):
    """The newest known price of a symbol in a data type. Times are UTC."""

    data_type: str = Field(examples=["equity_quote"])
    symbol: str = Field(examples=["AAPL"])
    price: Decimal = Field(examples=["189.95"])
    """Exact, as a string."""
    currency: str | None = Field(examples=["USD"])
    observed_at: datetime
    """The source's own time of the price."""
    fetched_at: datetime
    """When a provider last confirmed it."""
    age_seconds: float
    """Since `fetched_at`."""
    fresh: bool
    """Whether that is within its TTL."""
    paused: bool
    provider: str
    provider_active: bool
    frozen_since: datetime | None
    """Since when the value is suspiciously the same."""
    why: Reason | None
    """Of a price that is not fresh."""


class MissingPrice(BaseModel):
    """A pair without a price."""

    data_type: str | None
    symbol: str
    why: Reason


class Prices(BaseModel):
    """The prices that are stored, and those that are not."""

    prices: list[Price]
    missing: list[MissingPrice]


class PairReason(Reason):
    """Why the price of a pair is as old as it is."""

    data_type: str
    symbol: str
    observed_at: datetime | None
    fetched_at: datetime | None


class Reasons(BaseModel):
    """Why prices are as old as they are."""

    reasons: list[PairReason]


@router.get("/prices", response_model=Prices)
def read_prices(sessions: Sessions, caller: Reader, symbols: Symbols, data_type: DataType = None) -> Response:
    """The latest prices of symbols, at once: what is missing or stale is asked for, and comes a moment later.

    A price that is not fresh says why. A symbol that is no instrument is listed as missing.
    """
    return stored(sessions, caller, symbols, data_type)


@router.get("/why")
def explain(database: Database, caller: Reader, symbols: Symbols, data_type: DataType = None) -> Reasons:
    """Why the prices of symbols are as old as they are. It asks for nothing."""
    with database.connect() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        wanted = dict.fromkeys(instruments.all_spelled_anywhere(connection, each_of(symbols)))
        reasons = freshness.why_symbols(connection, list(wanted), data_type)
    unknown = sorted(wanted.keys() - {reason.symbol for reason in reasons})
    if unknown:
        raise UnknownSymbol(f"no instrument is called {unknown[0]!r}. Watching it makes it known.")
    return Reasons(reasons=[PairReason.model_validate(reason, from_attributes=True) for reason in reasons])


def stored(sessions: KeptSessions, caller: Caller, symbols: str, data_type: str | None) -> Response:
    """The stored prices of symbols, as `read_prices` answers them. Raises Refused and UnknownDataType."""
    wanted = each_of(symbols)
    user = caller.user_or_none

    def read(connection: Connection) -> str | None:
        answer = price_reader.read_as_json(connection, wanted, data_type, user)
        if answer is None:
            type_of_prices(connection, data_type or "")  # which it is not, and says why
        return answer

    # The database writes the answer: a model of each price would take longer than all the rest.
    return Response(sessions.run(read), media_type="application/json")


class PriceReads:
    """An ASGI application that answers `GET /v1/prices` ahead of `app`, which is FastAPI.

    Applications read prices hundreds of times a second, and FastAPI takes longer to find the route and its parameters
    than all the rest does. Whatever is unusual about a request is left to it: it alone refuses.
    """

    def __init__(self, app: ASGIApp, *, sessions: KeptSessions, shares: Shares) -> None:
        self._app, self._sessions, self._shares = app, sessions, shares
        (self._route,) = [route for route in router.routes if getattr(route, "endpoint", None) is read_prices]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have the application do so."""
        asked = _usual_read(scope)
        if asked is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route  # as the times of requests are counted by it
        token: ApiToken = scope["state"]["token"]
        async with self._shares.of(token.token_id).threads:
            caller = caller_with(token, TokenScope.READ, asked.get("user"))
            response = await to_thread.run_sync(
                stored, self._sessions, caller, asked["symbols"], asked.get("data_type")
            )
        await response(scope, receive, send)


def _usual_read(scope: Scope) -> dict[str, str] | None:
    """The parameters of a read of prices, if nothing about them needs a second look."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/v1/prices":
        return None
    given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    asked = dict(given)
    is_usual = (
        len(asked) == len(given)
        and asked.keys() <= _LONGEST.keys()
        and "symbols" in asked
        and all(0 < len(text) <= _LONGEST[name] for name, text in given)
    )
    return asked if is_usual else None
