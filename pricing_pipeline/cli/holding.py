"""`holding open|close|list|show`: what users hold.

What that means is decided by the database (db/functions/demand/demand.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from pricing_pipeline.cli import pair_answers, reads
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    listed,
    login,
    moment,
    print_json,
    print_lines,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone
from pricing_pipeline.demand import freshness, instruments, viewers
from pricing_pipeline.errors import UnknownDemand
from pricing_pipeline.prices import price_reader
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import load_settings


def open_(
    user: str | None, data_type: str, symbols: Sequence[str], *, all_or_nothing: bool, as_json: bool
) -> None:
    """Open holdings of the symbols that are good.

    Raises UnknownDataType, and, when it is done, PairsRefused for the others. With `all_or_nothing` nothing is done if
    one is refused: then it raises PairsRefused or CapExceeded.
    """
    user = login() if user is None else user
    pairs = [(data_type, symbol) for symbol in symbols]
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        type_ = data_type_registry.active_data_type(connection, data_type)
        answer = viewers.hold(connection, user, pairs, all_or_nothing=all_or_nothing)
    held = [symbol for _, symbol in answer.taken(pairs)]
    if as_json:
        print_json({"user": user, "data_type": data_type, "symbols": held, **pair_answers.content(answer)})
    else:
        pair_answers.tell_doubts(answer)
    if not as_json and answer.changed:
        typer.echo(
            f"{user} holds {data_type} {listed(held)}. Prices are fetched in the background, "
            f"at most {type_.background_ttl_minutes} minutes old while somebody looks now and then."
        )
    elif not as_json and held:
        typer.echo(f"{user} holds {data_type} {listed(held)} already; nothing has changed.")
    pair_answers.require_all(answer)


def close(user: str | None, data_type: str, symbols: Sequence[str], *, as_json: bool) -> None:
    """Close holdings. Raises UnknownDataType for a name that nothing can be held under."""
    user = login() if user is None else user
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        ended = viewers.release(connection, user, [(data_type, symbol) for symbol in symbols])
        if not ended:  # of a type that was retired there may be some
            data_type_registry.active_data_type(connection, data_type)
    if as_json:
        print_json({"user": user, "data_type": data_type, "symbols": list(symbols), "ended": ended})
    elif ended:
        typer.echo(f"{user} no longer holds {data_type} {listed(symbols)}.")
    else:
        typer.echo(f"{user} was not holding {data_type} {listed(symbols)}; nothing has changed.")


def list_(
    symbols: Sequence[str] | None,
    data_type: str | None,
    user: str | None,
    at_most: int,
    *,
    closed_too: bool,
    as_json: bool,
) -> None:
    """Tell who holds what. Raises UnknownDataType."""
    with open_connection(load_settings()) as connection:
        if data_type is not None:
            reads.any_data_type(connection, data_type)
        named = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols] if symbols else None
        holdings = viewers.holdings(connection, user, data_type, named, at_most + 1, closed_too=closed_too)
        latest = price_reader.latest(connection, *{holding.symbol for holding in holdings[:at_most]})
        prices = {(price.data_type, price.symbol): price for price in latest}
    if as_json:
        print_json({"holdings": [asdict(holding) for holding in holdings[:at_most]]})
        return
    closed = [in_zone("closed")] if closed_too else []
    print_table(
        ["user", "data type", "symbol", "price", "", "age", in_zone("since"), *closed],
        [
            (
                holding.user_id,
                holding.data_type,
                holding.symbol,
                *_priced(prices.get((holding.data_type, holding.symbol))),
                moment(holding.since),
                *([moment(holding.closed_at)] if closed_too else []),
            )
            for holding in holdings[:at_most]
        ],
        right=["price", "age"],
        spare=[in_zone("since")],
    )
    if not holdings:
        typer.echo("nobody holds anything of that.")
    elif len(holdings) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


def show(symbol: str, data_type: str, user: str | None, *, as_json: bool) -> None:
    """Tell everything about one holding, a closed one too. Raises UnknownDataType and UnknownDemand."""
    user = login() if user is None else user
    with open_connection(load_settings()) as connection:
        type_ = reads.any_data_type(connection, data_type)
        (symbol,) = instruments.spelled(connection, data_type, [symbol])
        found = viewers.holdings(connection, user, data_type, [symbol], 1, closed_too=True)
        if not found:
            raise UnknownDemand(
                f"{user} has never held {data_type} {symbol}. "
                f"`pricing-pipeline holding list {symbol} --closed` shows who has."
            )
        (why,) = freshness.why(connection, symbol, data_type)
    background = duration(type_["background_ttl_minutes"] * 60)
    if as_json:
        print_json({**asdict(found[0]), "price": asdict(why)})
        return
    print_lines(
        {
            "user": user,
            "holds": f"{data_type} {symbol}",
            "status": found[0].status,
            "since": moment(found[0].since),
            "closed": moment(found[0].closed_at),
            "kept": f"at most {background} old while nobody watches" if found[0].status == "active" else "",
            "its price": f"{why.state}: {why.sentence}",
        }
    )


def _priced(price: price_reader.LatestPrice | None) -> tuple[str, str | None, str]:
    return (
        ("none yet", None, "")
        if price is None
        else (decimal(price.price), price.currency, duration(price.age_seconds))
    )
