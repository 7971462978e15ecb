"""`price show|why`: the latest prices, read at once. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    moment,
    price_content,
    print_json,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.demand.freshness import Why
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.price_reader import LatestPrice
from pricing_pipeline.settings import load_settings

_DEFAULT_DAYS = 30
_IS_FETCHED = "A newer price is asked for; a running pipeline fetches it in a moment."
_FAULTS = frozenset(
    {"unknown_symbol", "plan_restricted", "failed", "misconfigured", "endpoint_restricted", "quarantined"}
)
"""States of `why` in which no price comes until somebody does something."""


def show(symbol: str, *, as_json: bool) -> None:
    """Tell every latest price of a symbol, and ask for what is missing or stale.

    Raises UnknownSymbol for one that is no instrument.
    """
    with open_connection(load_settings()) as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        # Asked before the read asks for anything: what has failed is known to fail.
        reasons = freshness.why(connection, symbol)
        reading = price_reader.read(connection, symbol)
        found = reading.prices
        if not found and not price_reader.is_known(connection, symbol):
            raise _unknown(symbol)
        connection.commit()
    if as_json:
        print_json({"symbol": symbol, "prices": [price_content(one) for one in found]})
    elif found:
        print_table(
            ["data type", "price", "currency", "observed (UTC)", "fetched (UTC)", "age", "", "provider"],
            [
                (
                    one.data_type,
                    decimal(one.price),
                    one.currency,
                    moment(one.observed_at),
                    moment(one.fetched_at),
                    duration(one.age_seconds),
                    _state(one),
                    one.provider if one.provider_active else f"{one.provider} (switched off)",
                )
                for one in found
            ],
            right=["price", "age"],
        )
    if not found:
        hint(f"{symbol} has no price yet. {_what_will_come(symbol, reading.requested, reasons)}")
    elif reading.requested and not as_json:
        hint(_IS_FETCHED)


def why(symbol: str, data_type: str | None, *, as_json: bool) -> None:
    """Tell why prices are as old as they are. Raises UnknownDataType, and UnknownSymbol for what is no instrument."""
    with open_connection(load_settings()) as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        if data_type is not None:
            kind = reads.data_type(connection, data_type)
            reads.require_instruments(connection, kind, [symbol])
        found = freshness.why(connection, symbol, data_type)
    if not found:
        raise _unknown(symbol)
    if as_json:
        print_json({"symbol": symbol, "reasons": [asdict(one) for one in found]})
        return
    for one in found:
        typer.echo(
            f"{one.data_type}: {one.state.replace('_', ' ')}. {one.sentence[:1].upper()}{one.sentence[1:]}."
        )


def _unknown(symbol: str, instead: str = "") -> UnknownSymbol:
    return UnknownSymbol(
        f"no instrument is called {symbol!r}.{instead} Watching it makes it known: "
        f"pricing-pipeline subscription watch {symbol} --type TYPE"
    )


def _state(one: LatestPrice) -> str:
    state = "paused" if one.paused else "fresh" if one.fresh else "stale"
    return state if one.frozen_since is None else f"{state}, the same since {moment(one.frozen_since)}"


def _what_will_come(symbol: str, requested: int, reasons: Sequence[Why]) -> str:
    if not reasons:
        return f"No active data type has prices of it: pricing-pipeline type list. {_remedy(symbol)}"
    if all(one.state == "paused" for one in reasons):
        return f"It is paused; this resumes it: pricing-pipeline instrument resume {symbol}"
    failed = [one for one in reasons if one.state in _FAULTS]
    if failed:
        said = "; ".join(f"{one.data_type}: {one.sentence}" for one in failed)
        return f"{said}. {_remedy(symbol)}"
    if requested:
        return _IS_FETCHED
    return f"It is on its way, or its provider has none: pricing-pipeline price why {symbol} tells which"


def _remedy(symbol: str) -> str:
    return f"If there is no such instrument: pricing-pipeline instrument remove {symbol}"
