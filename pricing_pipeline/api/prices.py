"""`/v1/prices` and `/v1/why`: the latest prices as they are stored. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from pricing_pipeline.api.access import Caller, Database, Reader
from pricing_pipeline.api.problems import Refused
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.price_reader import LatestPrice
from pricing_pipeline.registry import data_type_registry

router = APIRouter(tags=["prices"])

_MOST_SYMBOLS = 500
_LONGEST_SYMBOL = 40

Symbols = Annotated[
    str,
    Query(
        min_length=1,
        max_length=_MOST_SYMBOLS * (_LONGEST_SYMBOL + 1),
        description=f"Symbols with commas between them, at most {_MOST_SYMBOLS}.",
        examples=["AAPL,MSFT"],
    ),
]
DataType = Annotated[
    str | None,
    Query(max_length=63, description="One data type; else all that apply.", examples=["equity_quote"]),
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


@router.get("/prices")
def read_prices(database: Database, caller: Reader, symbols: Symbols, data_type: DataType = None) -> Prices:
    """The latest prices of symbols, at once: what is missing or stale is asked for, and comes a moment later.

    A price that is not fresh says why. A symbol that is no instrument is listed as missing.
    """
    with database.connect() as connection:
        wanted = _spelled(connection, symbols)
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        missing = price_reader.unpriced(connection, wanted, data_type)
        found = price_reader.latest(connection, *wanted, data_type=data_type)
        stale = [(price.data_type, price.symbol) for price in found if not price.fresh]
        # Asked before anything is asked for: what has failed is known to fail.
        reasons = _reasons(connection, [*missing, *stale])
        _ask(connection, caller, wanted, data_type)
        connection.commit()
    known = {symbol for _, symbol in missing} | {price.symbol for price in found}
    return Prices(
        prices=[_price(price, reasons.get((price.data_type, price.symbol))) for price in found],
        missing=[
            *(MissingPrice(data_type=pair[0], symbol=pair[1], why=reasons[pair]) for pair in missing),
            *(_unknown(symbol, data_type) for symbol in wanted if symbol not in known),
        ],
    )


@router.get("/why")
def explain(database: Database, caller: Reader, symbols: Symbols, data_type: DataType = None) -> Reasons:
    """Why the prices of symbols are as old as they are. It asks for nothing."""
    with database.connect() as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        found = []
        for symbol in _spelled(connection, symbols):
            reasons = freshness.why(connection, symbol, data_type)
            if not reasons:
                raise UnknownSymbol(f"no instrument is called {symbol!r}. Watching it makes it known.")
            found += reasons
    return Reasons(reasons=[PairReason.model_validate(reason, from_attributes=True) for reason in found])


def _spelled(connection: Connection, symbols: str) -> list[str]:
    """The symbols of a request, each once, in the spelling of their instruments. Raises Refused."""
    given = list(dict.fromkeys(symbols.split(",")))
    if not all(0 < len(symbol) <= _LONGEST_SYMBOL for symbol in given):
        raise Refused(
            422,
            "invalid-request",
            f"each of symbols has 1 to {_LONGEST_SYMBOL} characters, with a comma between two",
        )
    if len(given) > _MOST_SYMBOLS:
        raise Refused(
            422, "invalid-request", f"symbols has {len(given)} of them, and a request at most {_MOST_SYMBOLS}"
        )
    if all(symbol == symbol.upper() for symbol in given):
        return given
    return list(dict.fromkeys(instruments.all_spelled_anywhere(connection, given)))


def _ask(connection: Connection, caller: Caller, symbols: Sequence[str], data_type: str | None) -> None:
    user = caller.user_or_none
    if user is None:
        price_reader.request(connection, symbols, data_type)
    else:
        price_reader.request_for(connection, user, symbols, data_type)


def _reasons(connection: Connection, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Reason]:
    return {
        (why.data_type, why.symbol): Reason.model_validate(why, from_attributes=True)
        for why in (freshness.why_pairs(connection, pairs) if pairs else [])
    }


def _price(price: LatestPrice, why: Reason | None) -> Price:
    return Price(**{name: getattr(price, name) for name in price.__slots__}, why=why)


def _unknown(symbol: str, data_type: str | None) -> MissingPrice:
    kind = "instrument of this data type" if data_type else "instrument"
    sentence = f"no {kind} is called {symbol!r}; watching it makes it known"
    return MissingPrice(
        data_type=data_type,
        symbol=symbol,
        why=Reason(state="unknown_symbol", sentence=sentence, since=None, next_at=None),
    )
