"""`price show|why`: the latest prices, read at once. Nothing here waits for a provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path

import typer
from sqlalchemy import Connection

from pricing_pipeline.cli import export, reads
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    listed,
    moment,
    price_content,
    print_json,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, is_wide
from pricing_pipeline.demand import freshness, instruments
from pricing_pipeline.demand.freshness import Why
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.price_reader import LatestPrice, Reading
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import load_settings

_COLUMNS = (
    *("symbol", "data_type", "price", "currency", "observed_at", "fetched_at", "provider"),
    *("age_seconds", "fresh", "state", "paused", "provider_active", "frozen_since"),
)
_IS_FETCHED = "A newer price is asked for; a running pipeline fetches it in a moment."
_FAULTS = frozenset(
    {"unknown_symbol", "plan_restricted", "failed", "misconfigured", "endpoint_restricted", "quarantined"}
)
"""States of `why` in which no price comes until somebody does something."""
_MOST_CLASSES = 100
"""Asset classes that may have one symbol."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What is stored of a symbol, why it is old, and what stops its providers.

    `is_retired`: it has no price, because it was removed and only its history stays.
    """

    symbol: str
    reading: Reading
    reasons: Sequence[Why]
    stops: Sequence[Why]
    is_retired: bool

    @property
    def is_unwanted(self) -> bool:
        """True if nobody watches or holds it in any data type, so that nothing is asked for."""
        return bool(self.reasons) and all(reason.state == "unwatched" for reason in self.reasons)

    @property
    def is_stale(self) -> bool:
        """True if a price of it is not fresh, although it could be."""
        return any(not price.fresh and not price.paused for price in self.reading.prices)


def show(
    symbols: Sequence[str],
    data_type: str | None,
    csv: Path | None,
    parquet: Path | None,
    *,
    as_json: bool,
) -> None:
    """Tell the latest prices of symbols, or of pairs such as fx_rate:EUR/USD, and ask for what is missing or stale.

    Of a symbol without a data type, only what is watched or held is asked for. Raises UnknownDataType, and
    UnknownSymbol for one that is no instrument.
    """
    with open_connection(load_settings()) as connection:
        if data_type is not None:
            data_type_registry.active_data_type(connection, data_type)
        types = {known.data_type: known for known in data_type_registry.active_data_types(connection)}
        pairs = [(data_type, symbol) if data_type else _pair(symbol, types) for symbol in symbols]
        spelled = instruments.all_spelled_anywhere(connection, [symbol for _, symbol in pairs])
        pairs = list(dict.fromkeys(zip((named for named, _ in pairs), spelled, strict=True)))
        for named, symbol in pairs:
            if named is not None:
                reads.require_instruments(connection, types[named], [symbol])
        found = [_find(connection, symbol, named) for named, symbol in pairs]
        connection.commit()
    wanted = list(dict.fromkeys(symbol for _, symbol in pairs))
    prices = [price for one in found for price in one.reading.prices]
    if as_json:
        print_json({"symbols": wanted, "prices": [price_content(price) for price in prices]})
    elif not export.write(_COLUMNS, [asdict(price) for price in prices], csv, parquet) and prices:
        _list(prices, {name for name, type_ in types.items() if type_.fetcher.is_daily})
    for one in found:
        if not one.reading.prices:
            hint(_without_price(one, types))
    if not as_json:
        _hint_of_old(found)


def _pair(word: str, types: Collection[str]) -> tuple[str | None, str]:
    """A word of the command line as a pair, if it begins with the name of a data type, or else a symbol."""
    data_type, _, symbol = word.partition(":")
    return (data_type, symbol) if symbol and data_type in types else (None, word)


def _find(connection: Connection, symbol: str, data_type: str | None) -> _Found:
    # Asked before the read asks for anything: what has failed is known to fail.
    reasons = freshness.why(connection, symbol, data_type)
    reading = price_reader.read(connection, symbol, data_type)
    # Asked after it: only of what waits is it known that its provider is stopped.
    stops = [why for why in freshness.why(connection, symbol, data_type) if why.is_stopped]
    known = [] if reading.prices else instruments.listed(connection, [symbol], None, _MOST_CLASSES)
    if not reading.prices and not known:
        raise _unknown(connection, symbol)
    is_retired = bool(known) and all(instrument.state == "retired" for instrument in known)
    return _Found(symbol, reading, reasons, stops, is_retired)


def _hint_of_old(found: Sequence[_Found]) -> None:
    """Say what comes of prices that are shown and old."""
    with_prices = [one for one in found if one.reading.prices]
    for one in with_prices:
        if one.stops:
            hint(f"no newer price of {one.symbol} comes now. {sentences_of(one.stops)}")
    if any(one.reading.requested and not one.stops for one in with_prices):
        hint(_IS_FETCHED)
    unexplained = [
        one.symbol for one in with_prices if one.is_stale and not one.reading.requested and not one.stops
    ]
    if unexplained:
        verb = "is" if len(unexplained) == 1 else "are"
        hint(
            f"{listed(unexplained)} {verb} not fresh. This tells why: pricing-pipeline price why {unexplained[0]}"
        )


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
            raise _unknown(connection, symbol)
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


def _unknown(connection: Connection, symbol: str) -> UnknownSymbol:
    way = f"watching it makes it known: pricing-pipeline subscription watch {symbol} --type TYPE"
    return data_type_registry.unknown_symbol(connection, symbol, way)


def _state(price: LatestPrice) -> str:
    state = "paused" if price.paused else price.state.replace("_", " ")
    return state if price.frozen_since is None else f"{state}, the same since {moment(price.frozen_since)}"


def _without_price(found: _Found, types: Mapping[str, DataType]) -> str:
    symbol = found.symbol
    if found.is_retired:
        return (
            f"{symbol} has no latest price. It is retired: it was removed, and its history stays. This resumes it: "
            f"pricing-pipeline instrument resume {symbol}"
        )
    others = [types[reason.data_type] for reason in found.reasons if reason.data_type in types]
    if others and all(type_.contents is not Contents.PRICES for type_ in others):
        return f"{symbol} has no prices. It has {reads.read_by(others[0], symbol)}"
    return f"{symbol} has no price yet. {_what_will_come(found)}"


def _what_will_come(found: _Found) -> str:
    symbol, reasons = found.symbol, found.reasons
    if not reasons:
        return f"No active data type has prices of it: pricing-pipeline type list. {_remedy(symbol)}"
    if all(reason.state == "paused" for reason in reasons):
        return f"It is paused; this resumes it: pricing-pipeline instrument resume {symbol}"
    if found.is_unwanted and not found.reading.requested:
        return (
            "Nobody watches or holds it, so nothing is asked for. This asks for it once: pricing-pipeline price show "
            f"{symbol} --type {reasons[0].data_type}"
        )
    failed = [reason for reason in reasons if reason.state in _FAULTS]
    if failed:
        return f"{sentences_of(failed)} {_remedy(symbol)}"
    if found.stops:
        return sentences_of(found.stops)
    if found.reading.requested:
        return _IS_FETCHED
    return f"It is on its way, or its provider has none: pricing-pipeline price why {symbol} tells which"


def _remedy(symbol: str) -> str:
    return f"If there is no such instrument: pricing-pipeline instrument remove {symbol}"
