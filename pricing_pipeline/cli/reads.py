"""Typed reads that only commands need, over `db/queries/cli.sql`; raises what a person's request deserves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Fault:
    """A symbol that backs off (until `backoff_until`, UTC), and why it failed."""

    symbol: str
    reason: str
    backoff_until: datetime


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A symbol whose values a provider last confirmed at `fetched_at` (UTC)."""

    symbol: str
    fetched_at: datetime
    provider: str


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning of the last 24 hours: its minimum count, its last time and its last message."""

    source: str
    subject: str
    times: int
    last_at: datetime
    sqlstate: str | None
    message: str


def revision(connection: Connection) -> str:
    """The migration that the database is at."""
    return str(connection.execute(query("cli.revision")).scalar_one())


def any_data_type(connection: Connection, name: str) -> Mapping[str, Any]:
    """Everything about the data type of this name, active or retired. Raises UnknownDataType."""
    about = data_type_registry.about(connection, name)
    if about is None:
        raise UnknownDataType(f"no data type is called {name!r}. `pricing-pipeline type list --retired` lists them.")
    return about


def require_instruments(connection: Connection, type_: DataType, symbols: Sequence[str]) -> None:
    """Raise, with the database's sentence, for symbols that are not instruments of the data type."""
    instruments.symbols_by_type(connection, [type_.data_type], symbols)


def read_by(type_: DataType, symbol: str) -> str:
    """The contents of a symbol in a data type that is not of prices, and the command that reads them."""
    command = {
        Contents.DOCUMENTS: f"document show {symbol} --type {type_.data_type}",
        Contents.INVENTORY: f"product availability {symbol}",
        Contents.COMMODITIES: f"commodity terminal {symbol}",
    }[type_.contents]
    return f"{type_.contents}: pricing-pipeline {command}"


def confirmed(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[Confirmed]:
    """Which of the symbols were ever confirmed, for a type without prices and documents, such as slots."""
    rows = connection.execute(query("cli.confirmed"), {"data_type": data_type, "symbols": list(symbols)})
    return [Confirmed(**row) for row in rows.mappings()]


def faults(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[Fault]:
    """Which of the symbols back off because their last task failed, and why."""
    rows = connection.execute(query("cli.faults"), {"data_type": data_type, "symbols": list(symbols)})
    return [Fault(**row) for row in rows.mappings()]


def warnings(connection: Connection) -> list[Warned]:
    """What went wrong in the last 24 hours without stopping anything else, the newest first."""
    return [Warned(**row) for row in connection.execute(query("cli.warnings")).mappings()]


def first_price(connection: Connection, since: datetime) -> datetime | None:
    """When a call that a run made first stored a latest price, at or after `since`; None when none has."""
    at: datetime | None = connection.execute(query("prices.first_price"), {"since": since}).scalar_one()
    return at


def types_of_prices(connection: Connection, names: Sequence[str] | None) -> list[str]:
    """The active data types of prices, or those of them that are named. Raises UnknownDataType and BadParameter."""
    active = data_type_registry.active_data_types(connection)
    of_prices = [type_.data_type for type_ in active if type_.contents is Contents.PRICES]
    for name in names or ():
        data_type_registry.active_data_type(connection, name)
        if name not in of_prices:
            raise typer.BadParameter(f"{name} has no prices")
    return list(names or of_prices)


def pairs_of_prices(
    connection: Connection, symbols: Sequence[str], types: Sequence[str] | None
) -> list[tuple[str, str]]:
    """The pairs that symbols of known instruments mean, in each data type of prices or in those that are named."""
    known = instruments.symbols_by_type(connection, types_of_prices(connection, types), symbols)
    return [(data_type, symbol) for data_type, each in known.items() for symbol in each]
