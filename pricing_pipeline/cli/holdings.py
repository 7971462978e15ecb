"""`hold`, `release`, `instrument list|pause|resume|remove`: lasting wishes about instruments.

What they mean is decided by the database (db/functions/demand/demand.sql, pauses.sql and symbols.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import listed, print_json, print_table
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.demand import instruments, viewers
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.settings import load_settings


def hold(user: str, data_type: str, symbols: Sequence[str], *, as_json: bool) -> None:
    """Open holdings. Raises UnknownDataType, and CapExceeded when they are too many for the user."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        kind = reads.data_type(connection, data_type)
        symbols = instruments.spelled(connection, data_type, symbols)
        new = viewers.hold(connection, user, [(data_type, symbol) for symbol in symbols])
    if as_json:
        print_json({"user": user, "data_type": data_type, "symbols": list(symbols), "new": new})
    elif new:
        typer.echo(
            f"{user} holds {data_type} {listed(symbols)}. Prices are fetched in the background, "
            f"at most {kind.background_ttl_minutes} minutes old while somebody looks now and then."
        )
    else:
        typer.echo(f"{user} holds {data_type} {listed(symbols)} already; nothing has changed.")


def release(user: str, data_type: str, symbols: Sequence[str], *, as_json: bool) -> None:
    """Close holdings. Raises UnknownDataType for a name that nothing can be held under."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        ended = viewers.release(connection, user, [(data_type, symbol) for symbol in symbols])
        if not ended:  # of a type that was retired there may be some
            reads.data_type(connection, data_type)
    if as_json:
        print_json({"user": user, "data_type": data_type, "symbols": list(symbols), "ended": ended})
    elif ended:
        typer.echo(f"{user} no longer holds {data_type} {listed(symbols)}.")
    else:
        typer.echo(f"{user} was not holding {data_type} {listed(symbols)}; nothing has changed.")


def pause(symbols: Sequence[str], asset_class: str | None, *, paused: bool, as_json: bool) -> None:
    """Pause or resume instruments. Raises UnknownSymbol, and changes nothing, when one of them is none."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        symbols = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols]
        found = instruments.pause_instruments(connection, symbols, paused=paused, asset_class=asset_class)
        _require(symbols, [one.symbol for one in found], asset_class)
    done = "paused" if paused else "resumed"
    if as_json:
        print_json({done: [asdict(one) for one in found]})
        return
    for one in found:
        said = f"is {done}" if one.changed else "is paused already" if paused else "was not paused"
        typer.echo(f"{one.symbol} ({one.asset_class}) {said}.")
    if len(found) > len(set(symbols)) and asset_class is None:
        warn("some symbols name instruments of several classes; --asset-class picks one.")


def list_instruments(
    symbols: Sequence[str] | None, asset_class: str | None, at_most: int, *, as_json: bool
) -> None:
    """Tell which instruments there are, in what state, and how many users watch and hold each."""
    with open_connection(load_settings()) as connection:
        named = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols] if symbols else None
        found = instruments.listed(connection, named, asset_class, at_most + 1)
    if as_json:
        print_json({"instruments": [asdict(one) for one in found[:at_most]]})
        return
    print_table(
        ["symbol", "asset class", "state", "currency", "viewers", "holders", "name"],
        [
            (one.symbol, one.asset_class, one.state, one.currency, one.viewers, one.holders, one.name)
            for one in found[:at_most]
        ],
        right=["viewers", "holders"],
    )
    if not found:
        typer.echo("no such instrument is known.")
    elif len(found) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


def remove(symbols: Sequence[str], asset_class: str | None, *, as_json: bool) -> None:
    """Remove or retire instruments. Raises UnknownSymbol, and changes nothing, when one of them is none.

    Of a symbol of several classes it asks for the class.
    """
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        symbols = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols]
        found = instruments.remove_instruments(connection, symbols, asset_class)
        _require(symbols, [one.symbol for one in found], asset_class)
        twice = sorted({one.symbol for one in found if [x.symbol for x in found].count(one.symbol) > 1})
        if twice:
            classes = ", ".join(one.asset_class for one in found if one.symbol == twice[0])
            raise UnknownSymbol(
                f"{twice[0]} names instruments of several classes: {classes}. Say which by --asset-class. "
                "Nothing has changed."
            )
    if as_json:
        print_json({"instruments": [asdict(one) for one in found]})
        return
    for one in found:
        ended = (
            f" What {_users(one.viewers + one.holders)} of it has ended." if one.viewers + one.holders else ""
        )
        typer.echo(f"{one.symbol} ({one.asset_class}) {_REMOVED[one.outcome]}.{ended}")


_REMOVED = {
    "removed": "is removed: it had no history",
    "retired": "is retired: nothing is fetched of it, and its history stays. `instrument resume` takes it back",
    "retired_already": "was retired before; its history stays",
}


def _users(count: int) -> str:
    return "1 user watched or held" if count == 1 else f"{count} users watched or held"


def _require(symbols: Sequence[str], found: Sequence[str], asset_class: str | None) -> None:
    unknown = sorted(set(symbols) - set(found))
    if unknown:
        of = f"{asset_class} instrument" if asset_class else "instrument"
        raise UnknownSymbol(f"no {of} is called {listed(unknown)}. Nothing has changed.")
