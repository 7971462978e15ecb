"""Parameters that several routes share. The database checks what only it can check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Annotated, get_args, get_origin

from fastapi import Path, Query
from fastapi.dependencies.models import Dependant
from pydantic import AfterValidator, BeforeValidator, Field
from sqlalchemy import Connection
from starlette.requests import Request

from pricing_pipeline.api.problems import invalid
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.registry import data_type_registry

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}.*")
_CURRENCY = re.compile("[A-Z]{3}")
_WITH_LOST_PLUS = re.compile(r".*:\d{2}(\.\d+)? \d{2}:?\d{2}")


def _day(value: object) -> object:
    # A bare number would count as seconds since 1970.
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("write a day like 2013-02-28")
    return value


def _moment(value: object) -> object:
    if isinstance(value, str) and not _TIME.fullmatch(value):
        raise ValueError("write a time like 2026-11-20T15:00:00Z")
    if isinstance(value, str) and _WITH_LOST_PLUS.fullmatch(value):
        raise ValueError("write the plus before the offset as %2B: in a URL a plus is a space")
    return value


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("give the time its zone, such as the Z of 2026-11-20T15:00:00Z; in a URL a plus is %2B")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("give a time in the years 1 to 9999 in UTC") from None


def _currency(value: str) -> str:
    if not _CURRENCY.fullmatch(value):
        raise ValueError("write a currency as three capital letters, such as EUR")
    return value


Currency = Annotated[str, AfterValidator(_currency)]
"""A code of ISO 4217."""
Day = Annotated[date, BeforeValidator(_day)]
"""A UTC day."""
Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_utc)]
"""A time in UTC. A request writes it with its zone."""
LONGEST_NAME = 48
"""Characters of the name of a data type, a class or a provider."""
LONGEST_SYMBOL = 40
MOST_SYMBOLS = 500
"""Symbols of a request."""
LONGEST_SYMBOLS = MOST_SYMBOLS * (LONGEST_SYMBOL + 1)
"""Characters of them in a URL, with a comma after each."""
TypeName = Annotated[str, Path(max_length=LONGEST_NAME, examples=["equity_daily"])]
SymbolName = Annotated[str, Path(max_length=LONGEST_SYMBOL, examples=["AAPL", "BTC/USD"])]
"""The rest of its path, because a symbol may have a slash."""
SomeSymbols = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_SYMBOLS)]] | None,
    Query(
        min_length=1,
        max_length=MOST_SYMBOLS,
        description=f"Symbols separated by commas, at most {MOST_SYMBOLS}; may be repeated.",
        examples=[["AAPL,MSFT"]],
    ),
]
"""Symbols in a URL; `each_of` separates them."""
SymbolList = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_SYMBOL)]],
    Field(min_length=1, max_length=MOST_SYMBOLS, fail_fast=True, examples=[["AAPL"]]),
]
"""Symbols in a body."""
Pair = tuple[str, str]
"""A data type and a symbol."""
_LONGEST_PAIR = LONGEST_NAME + 1 + LONGEST_SYMBOL
LONGEST_PAIRS = MOST_SYMBOLS * (_LONGEST_PAIR + 1)
"""Characters of the pairs of a request in a URL, with a comma after each."""
SomePairs = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_PAIRS)]] | None,
    Query(
        min_length=1,
        max_length=MOST_SYMBOLS,
        description=f"Instead of symbols: `data_type:symbol`, separated by commas, at most {MOST_SYMBOLS}; "
        "may be repeated.",
        examples=[["equity_quote:AAPL,fx_rate:EUR/USD"]],
    ),
]
"""Pairs in a URL; `each_pair` separates them."""
AssetClass = Annotated[
    str | None,
    Query(max_length=LONGEST_NAME, description="Instruments of this class only.", examples=["equity"]),
]


def separated(values: Iterable[str]) -> list[str]:
    """Each entry of a parameter that takes commas and may be repeated, once."""
    entries = (entry.strip() for entry in ",".join(values).split(","))
    return list(dict.fromkeys(entry for entry in entries if entry))


ByCommas = BeforeValidator(separated)
"""For a list of words in a URL: with commas between them, or repeated."""


def each_of(symbols: Iterable[str]) -> list[str]:
    """The symbols of a request, each once. Raises Refused."""
    each = separated(symbols)
    odd = next((symbol for symbol in each if len(symbol) > LONGEST_SYMBOL or "\0" in symbol), "")
    if odd or not each:
        raise invalid(
            f"the parameter symbols: {odd[:60]!r} is not a symbol; each has 1 to {LONGEST_SYMBOL} characters, with "
            "commas between them"
        )
    if len(each) > MOST_SYMBOLS:
        raise invalid(f"the parameter symbols: these are {len(each)}, and a request may name {MOST_SYMBOLS}")
    return each


def each_pair(values: Iterable[str], most: int = MOST_SYMBOLS) -> list[Pair]:
    """The pairs of a request, each once. Raises Refused."""
    each = separated(values)
    pairs = [(data_type.strip(), symbol.strip()) for data_type, _, symbol in (part.partition(":") for part in each)]
    odd = next(
        (
            part
            for part, (data_type, symbol) in zip(each, pairs, strict=True)
            if not (0 < len(data_type) <= LONGEST_NAME and 0 < len(symbol) <= LONGEST_SYMBOL) or "\0" in part
        ),
        "",
    )
    if odd or not pairs:
        raise invalid(
            f"the parameter pairs: {odd[:60]!r} is not a pair; write each as data_type:symbol, the symbol with 1 to "
            f"{LONGEST_SYMBOL} characters, separated by commas, as in equity_quote:AAPL,fx_rate:EUR/USD"
        )
    if len(pairs) > most:
        raise invalid(f"the parameter pairs: these are {len(pairs)}, and a request may name {most}")
    return list(dict.fromkeys(pairs))


def type_of_prices(connection: Connection, name: str) -> DataType:
    """An active data type of prices. Raises UnknownDataType."""
    type_ = data_type_registry.active_data_type(connection, name)
    if type_.contents is not Contents.PRICES:
        where = {
            Contents.DOCUMENTS: f"documents/{name}/SYMBOL",
            Contents.INVENTORY: "products/SYMBOL/availability",
            Contents.COMMODITIES: "terminals/SYMBOL/prices",
        }[type_.contents]
        raise UnknownDataType(f"{name} is a type of {type_.contents}, not of prices: GET /v1/{where} reads them.")
    return type_


def require_instrument(connection: Connection, type_: DataType, symbol: str) -> None:
    """Raise UnknownSymbol unless the data type applies to an instrument of this symbol."""
    if not instruments.exists(connection, type_.asset_class, symbol):
        way = f"watching it as {type_.data_type} adds it"
        raise data_type_registry.unknown_symbol(
            connection, symbol, way, data_type=type_.data_type, asset_class=type_.asset_class
        )


async def known_only(request: Request) -> None:
    """Raise Refused for a parameter that the route does not take, or takes only once: it would change no answer, and
    nobody would notice.
    """
    takes_many = _takes_many(request.scope["route"].dependant)
    given = [name for name, _ in request.query_params.multi_items()]
    for name in dict.fromkeys(given):
        if name not in takes_many:
            raise invalid(_unknown(name[:LONGEST_NAME], list(takes_many)))
        if not takes_many[name] and given.count(name) > 1:
            raise invalid(
                f"the parameter {name} is given {given.count(name)} times, and takes one value",
            )


def _takes_many(dependant: Dependant) -> Mapping[str, bool]:
    """The parameters in the URL that a route takes, and whether each may be repeated."""
    own = {field.alias: _is_list(field.field_info.annotation) for field in dependant.query_params}
    for dependency in dependant.dependencies:
        own |= _takes_many(dependency)
    return own


def _is_list(annotation: object) -> bool:
    return list in (get_origin(annotation), *map(get_origin, get_args(annotation)))


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    meant = f" Did you mean {near[0]}?" if near else ""
    taken = f"It takes {', '.join(known)}" if known else "It takes none"
    return f"there is no parameter {name!r} at this path.{meant} {taken}"
