"""Parameters that several routes have. What only the database can judge is judged there."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator, Field
from sqlalchemy import Connection

from pricing_pipeline.api.problems import Refused
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownDataType, UnknownSymbol
from pricing_pipeline.registry import data_type_registry

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")


def _day(value: object) -> object:
    # A bare number would count as seconds since 1970.
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("write a day like 2013-02-28")
    return value


def _moment(value: object) -> object:
    if isinstance(value, str) and not _TIME.fullmatch(value):
        raise ValueError("write a time like 2026-11-20T15:00:00Z")
    return value


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(
            "give the time its zone, such as the Z of 2026-11-20T15:00:00Z; in a URL a plus is %2B"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("give a time of the years 1 to 9999 in UTC") from None


Day = Annotated[date, BeforeValidator(_day)]
"""A UTC day."""
Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_utc)]
"""A time in UTC. A request writes it with its zone."""
LONGEST_NAME = 63
"""Characters of the name of a data type or a provider."""
LONGEST_CLASS = 48
LONGEST_SYMBOL = 40
MOST_SYMBOLS = 500
"""Symbols of a request."""
LONGEST_SYMBOLS = MOST_SYMBOLS * (LONGEST_SYMBOL + 1)
"""Characters of them in a URL, with a comma after each."""
TypeName = Annotated[str, Path(max_length=LONGEST_NAME, examples=["equity_daily"])]
SymbolName = Annotated[str, Path(max_length=LONGEST_SYMBOL, examples=["AAPL", "BTC/USD"])]
"""The rest of its path, because a symbol may have a slash."""
Symbols = Annotated[
    str,
    Query(
        min_length=1,
        max_length=LONGEST_SYMBOLS,
        description=f"Symbols separated by commas, at most {MOST_SYMBOLS}.",
        examples=["AAPL,MSFT"],
    ),
]
"""Symbols in a URL; `each_of` separates them."""
SymbolList = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_SYMBOL)]],
    Field(min_length=1, max_length=MOST_SYMBOLS, examples=[["AAPL"]]),
]
"""Symbols in a body."""
AssetClass = Annotated[
    str | None,
    Query(max_length=LONGEST_CLASS, description="Instruments of this class only.", examples=["equity"]),
]


def each_of(symbols: str) -> list[str]:
    """The symbols of a request, each once. Raises Refused."""
    each = list(dict.fromkeys(symbols.split(",")))
    if not all(0 < len(symbol) <= LONGEST_SYMBOL for symbol in each):
        raise Refused(
            422,
            "invalid-request",
            f"symbols: each has 1 to {LONGEST_SYMBOL} characters; separate them with commas",
        )
    if len(each) > MOST_SYMBOLS:
        raise Refused(
            422, "invalid-request", f"symbols: these are {len(each)}, and a request may name {MOST_SYMBOLS}"
        )
    return each


def type_of_prices(connection: Connection, name: str) -> DataType:
    """An active data type of prices. Raises UnknownDataType."""
    type_ = data_type_registry.active_data_type(connection, name)
    if type_.contents is not Contents.PRICES:
        where = {
            Contents.DOCUMENTS: f"documents/{name}/SYMBOL",
            Contents.INVENTORY: "products/SYMBOL/availability",
            Contents.COMMODITIES: "commodities",
        }[type_.contents]
        raise UnknownDataType(
            f"{name} is a type of {type_.contents}, not of prices: GET /v1/{where} reads them."
        )
    return type_


def require_instrument(connection: Connection, type_: DataType, symbol: str) -> None:
    """Raise UnknownSymbol unless the data type applies to an instrument of this symbol."""
    if not instruments.exists(connection, type_.asset_class, symbol):
        raise UnknownSymbol(
            f"no {type_.asset_class} instrument is called {symbol!r}. Watching it as {type_.data_type} makes it known."
        )
