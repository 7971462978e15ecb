"""Parameters that several routes have. What only the database can judge is judged there."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator
from sqlalchemy import Connection

from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.errors import UnknownDataType, UnknownSymbol
from pricing_pipeline.registry import data_type_registry

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")


def _day(given: object) -> object:
    # A bare number would count as seconds since 1970.
    if isinstance(given, str) and not _DAY.fullmatch(given):
        raise ValueError("write a day like 2013-02-28")
    return given


def _moment(given: object) -> object:
    if isinstance(given, str) and not _TIME.fullmatch(given):
        raise ValueError("write a time like 2026-11-20T15:00:00Z")
    return given


def _in_utc(given: datetime) -> datetime:
    if given.tzinfo is None:
        raise ValueError(
            "give the time its zone, such as the Z of 2026-11-20T15:00:00Z; in a URL a plus is %2B"
        )
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise ValueError("give a time of the years 1 to 9999 in UTC") from None


Day = Annotated[date, BeforeValidator(_day)]
"""A UTC day."""
Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_utc)]
"""A time, which is given with its zone; in UTC."""
TypeName = Annotated[str, Path(max_length=63, examples=["equity_daily"])]
SymbolName = Annotated[str, Path(max_length=40, examples=["AAPL", "BTC/USD"])]
"""The rest of its path, because a symbol may have a slash."""
AssetClass = Annotated[
    str | None, Query(max_length=48, description="Instruments of this class only.", examples=["equity"])
]


def type_of_prices(connection: Connection, name: str) -> DataType:
    """An active data type of prices. Raises UnknownDataType."""
    kind = data_type_registry.active_data_type(connection, name)
    if kind.fetcher.is_document:
        raise UnknownDataType(f"{name} is a type of documents: GET /v1/documents/{name}/SYMBOL reads them.")
    return kind


def require_instrument(connection: Connection, kind: DataType, symbol: str) -> None:
    """Raise UnknownSymbol unless the data type applies to an instrument of this symbol."""
    if not instruments.listed(connection, [symbol], kind.asset_class, 1):
        raise UnknownSymbol(
            f"no {kind.asset_class} instrument is called {symbol!r}. Watching it as {kind.data_type} makes it known."
        )
