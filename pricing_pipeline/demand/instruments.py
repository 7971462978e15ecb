"""Instruments as people handle them: how they are spelled, listed, paused and removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query


@dataclass(frozen=True, slots=True)
class Paused:
    """An instrument that was paused or resumed; `changed` is False when it was so before."""

    asset_class: str
    symbol: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument and who wants it. `state`: active, unverified (no provider has known it yet), paused or retired."""

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
    """An instrument that was taken out, and how many users watched or held it.

    `outcome` is removed; retired, where its history stays; or retired_already.
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

    Of a paused instrument nothing is fetched and what waits is cancelled; of a resumed one what is watched
    is due at once.
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

    What is watched and held of them ends, and what waits is cancelled.
    """
    parameters = {"symbols": sorted(set(symbols)), "asset_class": asset_class}
    rows = connection.execute(query("demand.remove_instruments"), parameters).mappings()
    return [Removed(**row) for row in rows]


def spelled(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[str]:
    """Symbols of a data type as their instruments are spelled: aapl is AAPL where nothing is called aapl."""
    parameters = {"data_type": data_type, "symbols": list(symbols)}
    return list(connection.execute(query("demand.spelled"), parameters).scalar_one())


def known_symbols(
    connection: Connection, data_types: Sequence[str], symbols: Sequence[str]
) -> dict[str, list[str]]:
    """The instruments of each data type that are meant by symbols, as they are spelled; none of those that have none.

    The database refuses, in a sentence, a symbol that no one of the data types has.
    """
    parameters = {"data_types": list(data_types), "symbols": list(symbols)}
    known: dict[str, list[str]] = {data_type: [] for data_type in data_types}
    for row in connection.execute(query("demand.known_symbols"), parameters):
        known[row.data_type].append(row.symbol)
    return known


def spelled_anywhere(connection: Connection, symbol: str) -> str:
    """A symbol as its instruments are spelled, whatever class they are of."""
    return str(connection.execute(query("demand.spelled_anywhere"), {"symbol": symbol}).scalar_one())
