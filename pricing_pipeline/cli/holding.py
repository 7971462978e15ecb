"""`holding open|import|close|list`: what users hold.

The database decides what that means (db/functions/demand/demand.sql).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated

import typer

from pricing_pipeline.cli import holding_import, pair_answers, reads
from pricing_pipeline.cli.arguments import number
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.options import (
    AllOrNothing,
    AnySymbols,
    AnyType,
    AnyUser,
    Json,
    Limit,
    Symbols,
    Type,
    User,
)
from pricing_pipeline.cli.output import (
    decimal,
    duration,
    listed,
    login,
    moment,
    print_json,
    print_table,
)
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import in_zone, listing
from pricing_pipeline.demand import instruments, viewers
from pricing_pipeline.domain.prices import Price
from pricing_pipeline.prices import price_reader
from pricing_pipeline.registry import data_type_registry

noun = typer.Typer()


@noun.command("open")
def open_(
    symbols: Symbols,
    data_type: Type,
    user: User = None,
    quantity: Annotated[
        str | None,
        typer.Option(
            "--quantity", metavar="NUMBER", help="Quantity held of the one symbol named; replaces the stored one."
        ),
    ] = None,
    all_or_nothing: AllOrNothing = False,
    as_json: Json = False,
) -> None:
    """Hold instruments for a user: their prices are fetched, and kept fresh by the background TTL.

    This lasts until `holding close`, also while nobody watches. A symbol that is new here is added to the instruments,
    as by `subscription watch`. Symbols that are refused are named with the reason, and the others are held; then the
    exit code is 1.

    \b
    Example: pricing-pipeline holding open AAPL MSFT --type equity_quote --user alice
    """
    user = login() if user is None else user
    pairs = [(data_type, symbol) for symbol in symbols]
    quantities = None if quantity is None else [_quantity(quantity, symbols)]
    with open_engine() as engine, engine.begin() as connection:
        type_ = data_type_registry.active_data_type(connection, data_type)
        answer = viewers.hold(connection, user, pairs, quantities=quantities, all_or_nothing=all_or_nothing)
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
    elif not as_json and held and quantity is not None:
        typer.echo(f"{user} holds {data_type} {listed(held)} already; its quantity is now {quantity}.")
    elif not as_json and held:
        typer.echo(f"{user} holds {data_type} {listed(held)} already; nothing has changed.")
    pair_answers.require_all(answer)


noun.command("import")(holding_import.import_)


@noun.command()
def close(symbols: Symbols, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """Close holdings of a user. Pairs that nobody else wants are no longer fetched.

    \b
    Example: pricing-pipeline holding close AAPL MSFT --type equity_quote --user alice
    """
    pair_answers.end(viewers.release, user, data_type, symbols, words=("holds", "holding"), as_json=as_json)


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    user: AnyUser = None,
    closed_too: Annotated[
        bool, typer.Option("--closed", help="Also holdings that were closed, which stay as a record.")
    ] = False,
    at_most: Limit = 100,
    as_json: Json = False,
) -> None:
    """List holdings: who holds what, its quantity and latest price, and since when.

    `price show` also queues stale prices; `price why` says why they are stale.

    \b
    Example: pricing-pipeline holding list --user alice
    """
    with open_connection() as connection:
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
        ["user", "data type", "symbol", "quantity", "price", "", "age", in_zone("since"), *closed],
        [
            (
                holding.user_id,
                holding.data_type,
                holding.symbol,
                "" if holding.quantity is None else decimal(holding.quantity),
                *_priced(prices.get((holding.data_type, holding.symbol))),
                moment(holding.since),
                *([moment(holding.closed_at)] if closed_too else []),
            )
            for holding in holdings[:at_most]
        ],
        right=["quantity", "price", "age"],
        spare=[in_zone("since")],
    )
    if not holdings:
        typer.echo("no such holdings.")
    elif len(holdings) > at_most:
        hint(f"There are more; --limit shows more than {at_most}.")


def _quantity(given: str, symbols: Sequence[str]) -> Decimal:
    if len(symbols) > 1:
        raise typer.BadParameter(f"--quantity takes one symbol, but {len(symbols)} are named")
    found = number(given, "--quantity")
    exponent = found.as_tuple().exponent
    if abs(found) > viewers.MOST_HELD or (isinstance(exponent, int) and exponent < -viewers.MOST_DECIMALS):
        raise typer.BadParameter(
            f"--quantity {given!r} is larger than 10^30, or has more than {viewers.MOST_DECIMALS} decimals"
        )
    return found


def _priced(price: Price | None) -> tuple[str, str | None, str]:
    return (
        ("none yet", None, "") if price is None else (decimal(price.price), price.currency, duration(price.age_seconds))
    )
