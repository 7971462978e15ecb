"""`price show|why`: the latest prices, read at once. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC
from pathlib import Path

import typer

from pricing_pipeline.cli import export, reads
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
from pricing_pipeline.cli.style import in_zone, is_wide
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.demand.freshness import Why
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.price_reader import LatestPrice, Reading
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import load_settings

_COLUMNS = (
    *("symbol", "data_type", "price", "currency", "observed_at", "fetched_at", "provider"),
    *("age_seconds", "fresh", "paused", "provider_active", "frozen_since"),
)
_IS_FETCHED = "A newer price is asked for; a running pipeline fetches it in a moment."
_FAULTS = frozenset(
    {"unknown_symbol", "plan_restricted", "failed", "misconfigured", "endpoint_restricted", "quarantined"}
)
"""States of `why` in which no price comes until somebody does something."""


def show(
    symbols: Sequence[str],
    data_type: str | None,
    csv: Path | None,
    parquet: Path | None,
    *,
    as_json: bool,
) -> None:
    """Tell every latest price of some symbols, and ask for what is missing or stale.

    Raises UnknownDataType, and UnknownSymbol for one that is no instrument.
    """
    with open_connection(load_settings()) as connection:
        if data_type is not None:
            type_ = data_type_registry.active_data_type(connection, data_type)
        types = {known.data_type: known for known in data_type_registry.active_data_types(connection)}
        readings: dict[str, tuple[Reading, list[Why]]] = {}
        stops: dict[str, list[Why]] = {}
        for given in symbols:
            symbol = instruments.spelled_anywhere(connection, given)
            if data_type is not None:
                reads.require_instruments(connection, type_, [symbol])
            # Asked before the read asks for anything: what has failed is known to fail.
            reasons = freshness.why(connection, symbol, data_type)
            readings[symbol] = price_reader.read(connection, symbol, data_type), reasons
            # Asked after it: only of what waits is it known that its provider is stopped.
            stops[symbol] = [why for why in freshness.why(connection, symbol, data_type) if why.is_stopped]
            if not readings[symbol][0].prices and not price_reader.is_known(connection, symbol):
                raise _unknown(symbol)
        connection.commit()
    prices = [price for reading, _ in readings.values() for price in reading.prices]
    if as_json:
        print_json({"symbols": list(readings), "prices": [price_content(price) for price in prices]})
    elif not export.write(_COLUMNS, [asdict(price) for price in prices], csv, parquet) and prices:
        _list(prices, {name for name, type_ in types.items() if type_.fetcher.is_daily})
    for symbol, (reading, reasons) in readings.items():
        if not reading.prices:
            others = [types[reason.data_type] for reason in reasons if reason.data_type in types]
            if others and all(type_.contents is not Contents.PRICES for type_ in others):
                hint(f"{symbol} has no prices. It has {reads.read_by(others[0], symbol)}")
                continue
            words = _what_will_come(symbol, reading.requested, reasons, stops[symbol])
            hint(f"{symbol} has no price yet. {words}")
    if as_json:
        return
    for symbol, (reading, _) in readings.items():
        if reading.prices and stops[symbol]:
            hint(f"no newer price of {symbol} comes now. {sentences_of(stops[symbol])}")
    if any(
        reading.prices and reading.requested and not stops[symbol]
        for symbol, (reading, _) in readings.items()
    ):
        hint(_IS_FETCHED)


def _list(prices: Sequence[LatestPrice], daily: Collection[str]) -> None:
    """A table of prices; the time of a daily value is its trading day."""
    several = len({price.symbol for price in prices}) > 1
    # The age says when a price was fetched, in less room.
    fetched = [in_zone("fetched")] if is_wide() else []
    headings = ["data type", "price", "", in_zone("observed"), *fetched, "age", "state", "provider"]
    print_table(
        [*(["symbol"] if several else []), *headings],
        [
            (
                *([price.symbol] if several else []),
                price.data_type,
                decimal(price.price),
                price.currency,
                price.observed_at.astimezone(UTC).date()
                if price.data_type in daily
                else moment(price.observed_at),
                *([moment(price.fetched_at)] if fetched else []),
                duration(price.age_seconds),
                _state(price),
                price.provider if price.provider_active else f"{price.provider} (switched off)",
            )
            for price in prices
        ],
        right=["price", "age"],
        spare=["provider"],
    )


def why(symbol: str, data_type: str | None, *, as_json: bool) -> None:
    """Tell why prices are as old as they are. Raises UnknownDataType, and UnknownSymbol for what is no instrument."""
    with open_connection(load_settings()) as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        if data_type is not None:
            type_ = data_type_registry.active_data_type(connection, data_type)
            reads.require_instruments(connection, type_, [symbol])
        reasons = freshness.why(connection, symbol, data_type)
    if not reasons:
        raise _unknown(symbol)
    if as_json:
        print_json({"symbol": symbol, "reasons": [asdict(reason) for reason in reasons]})
        return
    for reason in reasons:
        typer.echo(
            f"{reason.data_type}: {reason.state.replace('_', ' ')}. {reason.sentence[:1].upper()}{reason.sentence[1:]}."
        )


def sentences_of(reasons: Sequence[Why]) -> str:
    """Why there is nothing newer, for each data type."""
    return "; ".join(f"{reason.data_type}: {reason.sentence}" for reason in reasons) + "."


def _unknown(symbol: str, instead: str = "") -> UnknownSymbol:
    return UnknownSymbol(
        f"no instrument is called {symbol!r}.{instead} Watching it makes it known: "
        f"pricing-pipeline subscription watch {symbol} --type TYPE"
    )


def _state(price: LatestPrice) -> str:
    state = "paused" if price.paused else "fresh" if price.fresh else "stale"
    return state if price.frozen_since is None else f"{state}, the same since {moment(price.frozen_since)}"


def _what_will_come(symbol: str, requested: int, reasons: Sequence[Why], stops: Sequence[Why]) -> str:
    if not reasons:
        return f"No active data type has prices of it: pricing-pipeline type list. {_remedy(symbol)}"
    if all(reason.state == "paused" for reason in reasons):
        return f"It is paused; this resumes it: pricing-pipeline instrument resume {symbol}"
    failed = [reason for reason in reasons if reason.state in _FAULTS]
    if failed:
        return f"{sentences_of(failed)} {_remedy(symbol)}"
    if stops:
        return sentences_of(stops)
    if requested:
        return _IS_FETCHED
    return f"It is on its way, or its provider has none: pricing-pipeline price why {symbol} tells which"


def _remedy(symbol: str) -> str:
    return f"If there is no such instrument: pricing-pipeline instrument remove {symbol}"
