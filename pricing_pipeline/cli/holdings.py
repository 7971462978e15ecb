"""`hold`, `release`, `instrument pause` and `instrument resume`: lasting wishes about instruments.

What they mean is decided by the database (db/functions/demand.sql and pauses.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from pricing_pipeline import demand
from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_engine
from pricing_pipeline.cli.output import listed, print_json
from pricing_pipeline.cli.program import warn
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.settings import load_settings


def hold(user: str, data_type: str, symbols: Sequence[str], *, as_json: bool) -> None:
    """Open holdings. Raises UnknownDataType, and CapExceeded when they are too many for the user."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        kind = reads.data_type(connection, data_type)
        new = demand.hold(connection, user, [(data_type, symbol) for symbol in symbols])
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
        ended = demand.release(connection, user, [(data_type, symbol) for symbol in symbols])
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
        found = demand.pause_instruments(connection, symbols, paused=paused, asset_class=asset_class)
        unknown = sorted(set(symbols) - {one.symbol for one in found})
        if unknown:
            of = f"{asset_class} instrument" if asset_class else "instrument"
            raise UnknownSymbol(f"no {of} is called {listed(unknown)}. Nothing has changed.")
    done = "paused" if paused else "resumed"
    if as_json:
        print_json({done: [asdict(one) for one in found]})
        return
    for one in found:
        said = f"is {done}" if one.changed else "is paused already" if paused else "was not paused"
        typer.echo(f"{one.symbol} ({one.asset_class}) {said}.")
    if len(found) > len(set(symbols)) and asset_class is None:
        warn("some symbols name instruments of several classes; --asset-class picks one.")
