"""Instruments for people: spell, list, pause and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query


@dataclass(frozen=True, slots=True)
class Paused:
    """An instrument that was paused or resumed; `changed` is False if it already was."""

    asset_class: str
    symbol: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument with its viewers and holders. `state`: active, unverified (never fetched), paused or retired."""

    asset_class: str
    symbol: str
    name: str | None
    currency: str | None
    verified_at: datetime | None
    state: str
    viewers: int
    holders: int


@dataclass(frozen=True, slots=True)
class Removed:
    """A removed instrument, and how many users watched or held it.

    `outcome` is removed; retired, if its history stays; or retired_already.
    """

    asset_class: str
    symbol: str
    outcome: str
    viewers: int
    holders: int


def pause_instruments(
    connection: Connection, symbols: Sequence[str], *, paused: bool, asset_class: str | None = None
) -> list[Paused]:
    """Pause or resume the instruments of these symbols, of one class or of all; returns those that exist.

    A paused instrument is not fetched, and its tasks are cancelled. The watched pairs of a resumed one are due at once.
    """
    parameters = {"symbols": sorted(set(symbols)), "paused": paused, "asset_class": asset_class}
    rows = connection.execute(query("demand.pause_instruments"), parameters)
    return [Paused(row.asset_class, row.symbol, row.changed) for row in rows]


def listed(
    connection: Connection, symbols: Sequence[str] | None, asset_class: str | None, at_most: int
) -> list[Instrument]:
    """Instruments by class and symbol: of one class or all, of some symbols or all."""
    parameters = {"symbols": symbols, "asset_class": asset_class, "at_most": at_most}
    return [
        Instrument(**row) for row in connection.execute(query("demand.instruments"), parameters).mappings()
    ]


def remove_instruments(
    connection: Connection, symbols: Sequence[str], asset_class: str | None = None
) -> list[Removed]:
    """Remove instruments of these symbols that have no history, and retire the others; returns those that exist.

    Their subscriptions and holdings end, and their tasks are cancelled.
    """
    parameters = {"symbols": sorted(set(symbols)), "asset_class": asset_class}
    rows = connection.execute(query("demand.remove_instruments"), parameters).mappings()
    return [Removed(**row) for row in rows]


def spelled(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[str]:
    """Symbols of a data type in the spelling of their instruments: aapl becomes AAPL if no instrument is named aapl."""
    parameters = {"data_type": data_type, "symbols": list(symbols)}
    return list(connection.execute(query("demand.spelled"), parameters).scalar_one())


def known_symbols(
    connection: Connection, data_types: Sequence[str], symbols: Sequence[str]
) -> dict[str, list[str]]:
    """The symbols that each data type has, in the spelling of its instruments; empty for types that have none of them.

    The database refuses, with a sentence, a symbol that none of the data types has.
    """
    parameters = {"data_types": list(data_types), "symbols": list(symbols)}
    known: dict[str, list[str]] = {data_type: [] for data_type in data_types}
    for row in connection.execute(query("demand.known_symbols"), parameters):
        known[row.data_type].append(row.symbol)
    return known


def spelled_anywhere(connection: Connection, symbol: str) -> str:
    """A symbol in the spelling of its instruments, of any class."""
    return str(connection.execute(query("demand.spelled_anywhere"), {"symbol": symbol}).scalar_one())
