"""Instruments for people: spell, list, change, pause and remove them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import PricingError, UnknownDataType

if TYPE_CHECKING:
    from sqlalchemy import Connection


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


@dataclass(frozen=True, slots=True)
class NewInstrument:
    """An instrument that is to be known. What is None is learned from the first answer, or chosen by rules."""

    asset_class: str
    symbol: str
    name: str | None = None
    currency: str | None = None
    calendar: str | None = None
    listed_on: date | None = None
    scale: int | None = None
    isin: str | None = None
    figi: str | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Prices outside these are quarantined; `is_own` is False for those that all symbols of the type have.

    Until `jumps_trusted_until` no price is quarantined for being far from the last one.
    """

    data_type: str
    lowest: Decimal | None
    highest: Decimal | None
    jumps_trusted_until: datetime | None
    is_own: bool


def add(
    connection: Connection, wanted: Sequence[NewInstrument], *, are_listed: bool = False
) -> list[tuple[NewInstrument, bool]]:
    """Add instruments, unverified until a provider's first valid answer.

    Existing instruments only get identifiers that they lack. A symbol from a provider's list is not judged, because its
    exchange may be missing from our table. Returns each instrument as it is spelled, and whether it is new. Raises
    UnknownDataType for a class that no data type is for, and PricingError for a symbol that a provider would spell like
    another one, or for a known instrument with a different identifier. The database refuses, with a sentence, a symbol
    that no instrument of its class can have.
    """
    from pricing_pipeline.registry import spellings  # with all providers, which reading a price need not load

    spelled_: dict[tuple[str, str], NewInstrument] = {}
    for asset_class in dict.fromkeys(instrument.asset_class for instrument in wanted):
        data_type = _type_of(connection, asset_class)
        of_class = [instrument for instrument in wanted if instrument.asset_class == asset_class]
        symbols = spelled(connection, data_type, [instrument.symbol for instrument in of_class])
        if not are_listed:
            connection.execute(query("demand.check_new"), {"data_type": data_type, "symbols": symbols})
        for instrument, symbol in zip(of_class, symbols, strict=True):
            spelled_[asset_class, symbol] = replace(instrument, symbol=symbol)
    for instrument in spelled_.values():
        call_sql(connection, "check_identifiers", instrument.isin, instrument.figi)
    rows = json.dumps([asdict(instrument) for instrument in spelled_.values()], default=str)
    made = connection.execute(query("demand.add_instruments"), {"rows": rows})
    new = {(row.asset_class, row.symbol) for row in made}
    for asset_class in {asset_class for asset_class, _ in new}:
        spellings.require_free(connection, asset_class, [symbol for name, symbol in new if name == asset_class])
    for instrument in spelled_.values():
        _identify(connection, instrument)
    return [(instrument, key in new) for key, instrument in spelled_.items()]


def _identify(connection: Connection, wanted: NewInstrument) -> None:
    if wanted.isin is None and wanted.figi is None:
        return
    has = connection.execute(query("demand.identify"), asdict(wanted)).one()
    for name, given, known in (("ISIN", wanted.isin, has.isin), ("FIGI", wanted.figi, has.figi)):
        if given is not None and given != known:
            raise PricingError(
                f"{wanted.symbol} has the {name} {known}, not {given}. `pricing-pipeline instrument change "
                f"{wanted.symbol} --{name.lower()} {given}` corrects it. Nothing is added."
            )


def identifier(connection: Connection, words: str) -> dict[str, str | None]:
    """Words as `isin` or `figi`, each None if they are not one."""
    return dict(connection.execute(query("demand.read_identifier"), {"words": words}).mappings().one())


def doubts(connection: Connection, wanted: Sequence[NewInstrument]) -> list[str]:
    """What is doubtful about new instruments, before they are added: a sentence for each, without its end."""
    found = []
    for instrument in wanted:
        parameters = {
            "data_type": _type_of(connection, instrument.asset_class),
            "symbols": [instrument.symbol],
        }
        found += [f"{row.symbol}: {row.reason}" for row in connection.execute(query("demand.doubts"), parameters)]
    return found


def _type_of(connection: Connection, asset_class: str) -> str:
    data_type = connection.execute(query("demand.type_of_class"), {"asset_class": asset_class}).scalar_one()
    if data_type is None:
        known = connection.execute(query("demand.asset_classes")).scalars()
        raise UnknownDataType(
            f"no data type is for instruments of class {asset_class!r}; there are: {', '.join(known) or 'none yet'}."
        )
    return str(data_type)


def about(connection: Connection, symbol: str, asset_class: str | None) -> list[Mapping[str, Any]]:
    """Everything about the instruments of a symbol, of one class or of all that have it."""
    parameters = {"symbol": symbol, "asset_class": asset_class}
    return [dict(row) for row in connection.execute(query("demand.about_instruments"), parameters).mappings()]


def change(connection: Connection, asset_class: str, symbol: str, changes: Mapping[str, Any]) -> None:
    """Change what is known of an instrument: columns of pricing.instruments by their names; others stay."""
    call_sql(connection, "check_identifiers", changes.get("isin"), changes.get("figi"))
    parameters = {"asset_class": asset_class, "symbol": symbol, "changes": json.dumps(changes, default=str)}
    connection.execute(query("demand.change_instrument"), parameters)


def bounds(connection: Connection, asset_class: str, symbol: str) -> list[Bounds]:
    """The bounds that people set for an instrument's prices, in each data type with bounds for it or for all its
    symbols."""
    parameters = {"asset_class": asset_class, "symbol": symbol}
    return [Bounds(**row) for row in connection.execute(query("demand.bounds"), parameters).mappings()]


def bounds_of_type(connection: Connection, data_type: str) -> dict[str, Any]:
    """The lowest and highest price, and until when jumps are trusted, of symbols without bounds of their own."""
    row = connection.execute(query("demand.bounds_of_type"), {"data_type": data_type}).mappings().one_or_none()
    return dict.fromkeys(("lowest", "highest", "jumps_trusted_until")) if row is None else dict(row)


def change_bounds(connection: Connection, data_type: str, symbol: str | None, changes: Mapping[str, Any]) -> None:
    """Give a symbol bounds of its own, or with None all symbols of the type that have none of their own.

    Bounds that are not named keep their present value: for a symbol without its own, that of its type.
    """
    parameters = {"data_type": data_type, "symbol": symbol, "changes": json.dumps(changes, default=str)}
    connection.execute(query("demand.change_bounds"), parameters)


def remove_bounds(connection: Connection, data_type: str, symbol: str) -> None:
    """Have a symbol go by the bounds of its data type again."""
    connection.execute(query("demand.remove_bounds"), {"data_type": data_type, "symbol": symbol})


def pause_instruments(
    connection: Connection, symbols: Sequence[str], *, paused: bool, asset_class: str | None = None
) -> list[Paused]:
    """Pause or resume the instruments of these symbols, of one class or of all; returns those that exist.

    A paused instrument is not fetched, and its tasks are cancelled. The watched pairs of a resumed one are due at once.
    """
    rows = call_sql(connection, "pause_instruments", sorted(set(symbols)), paused, asset_class)
    return [Paused(row.asset_class, row.symbol, row.changed) for row in rows]


def listed(
    connection: Connection,
    symbols: Sequence[str] | None,
    asset_class: str | None,
    at_most: int,
    *,
    after: tuple[str, str] | None = None,
) -> list[Instrument]:
    """Instruments by class and symbol: of one class or all, of some symbols or all; those after a class and symbol."""
    after_class, after_symbol = after or (None, None)
    parameters = {
        "symbols": symbols,
        "asset_class": asset_class,
        "at_most": at_most,
        "after_class": after_class,
        "after_symbol": after_symbol,
    }
    return [Instrument(**row) for row in connection.execute(query("demand.instruments"), parameters).mappings()]


def exists(connection: Connection, asset_class: str, symbol: str) -> bool:
    """Whether there is an instrument of this class and symbol."""
    parameters = {"asset_class": asset_class, "symbol": symbol}
    return bool(connection.execute(query("demand.is_instrument"), parameters).scalar_one())


def remove_instruments(connection: Connection, symbols: Sequence[str], asset_class: str | None = None) -> list[Removed]:
    """Remove instruments of these symbols that have no history, and retire the others; returns those that exist.

    Their subscriptions and holdings end, and their tasks are cancelled.
    """
    rows = call_sql(connection, "remove_instruments", sorted(set(symbols)), asset_class)
    return [Removed(**row) for row in rows.mappings()]


@dataclass(frozen=True, slots=True)
class Merged:
    """Rows of a table that were moved to the other instrument, and rows dropped because it had its own."""

    rows_of: str
    moved: int
    dropped: int


def merge(connection: Connection, asset_class: str, old: str, new: str) -> list[Merged]:
    """Merge two instruments of a class, as the owner. The database refuses, with a sentence, instruments that cannot be
    merged."""
    rows = call_sql(connection, "merge_instruments", asset_class, old, new)
    return [Merged(**row) for row in rows.mappings()]


def name_for(connection: Connection, asset_class: str, old: str, wanted: str) -> str:
    """The instrument that another one is to become, or the symbol of one that is not known yet.

    The database refuses, with a sentence, what no instrument of the class can be called.
    """
    if exists(connection, asset_class, wanted):
        return wanted
    data_type = _type_of(connection, asset_class)
    (symbol,) = spelled(connection, data_type, [wanted])
    if symbol == old:  # whose spelling differs from ours
        parameters = {"asset_class": asset_class, "symbol": wanted}
        return connection.execute(query("demand.read_symbol"), parameters).scalar_one() or old
    connection.execute(query("demand.check_new"), {"data_type": data_type, "symbols": [symbol]})
    return symbol


def spelled(connection: Connection, data_type: str, symbols: Sequence[str]) -> list[str]:
    """Symbols of a data type in the spelling of their instruments: aapl becomes AAPL if no instrument is named aapl."""
    parameters = {"data_type": data_type, "symbols": list(symbols)}
    return list(connection.execute(query("demand.spelled"), parameters).scalar_one())


def symbols_by_type(connection: Connection, data_types: Sequence[str], symbols: Sequence[str]) -> dict[str, list[str]]:
    """The symbols that each data type has, in the spelling of its instruments; empty for types that have none of them.

    The database refuses, with a sentence, a symbol that none of the data types has.
    """
    known: dict[str, list[str]] = {data_type: [] for data_type in data_types}
    for row in call_sql(connection, "symbols_by_type", list(data_types), list(symbols)):
        known[row.data_type].append(row.symbol)
    return known


def spelled_anywhere(connection: Connection, symbol: str) -> str:
    """A symbol in the spelling of its instruments, of any class."""
    return all_spelled_anywhere(connection, [symbol])[0]


def all_spelled_anywhere(connection: Connection, symbols: Sequence[str]) -> list[str]:
    """Symbols in the spelling of their instruments, of any class."""
    return list(connection.execute(query("demand.spelled_anywhere"), {"symbols": list(symbols)}).scalar_one())
