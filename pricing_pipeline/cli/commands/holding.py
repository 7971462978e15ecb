"""The commands of `holding` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.options import (
    AllOrNothing,
    AnySymbols,
    AnyType,
    AnyUser,
    Json,
    Limit,
    Symbol,
    Symbols,
    Type,
    User,
    pairs_of,
)
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Say what users hold, or see who holds what.")


@noun.command("open")
def open_(
    symbols: Symbols,
    data_type: Type,
    user: User = None,
    all_or_nothing: AllOrNothing = False,
    as_json: Json = False,
) -> None:
    """Say that a user holds instruments: their prices are fetched, and kept fresh by the background TTL.

    This lasts until `holding close`, also while nobody watches. A symbol that is new here is added to the instruments,
    as by `subscription watch`. Symbols that are refused are named with the reason, and the others are held; then the
    exit code is 1.

    \b
    Example: pricing-pipeline holding open AAPL MSFT --type equity_quote --user alice
    """
    from pricing_pipeline.cli import holding

    holding.open_(user, data_type, symbols, all_or_nothing=all_or_nothing, as_json=as_json)


@noun.command("import")
def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or XML file; - is standard input.")],
    user: User = None,
    data_types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Hold what is of its class by this data type; else by that with the freshest prices.",
        ),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="Its format; else its header tells.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=NAME",
            help="A column of any other table, by its name or as #3: symbol, isin, exchange, currency, name, quantity, "
            "action (buy or sell) or time.",
        ),
    ] = None,
    own_names: Annotated[
        list[str] | None,
        typer.Option(
            "--as", metavar="NAME=SYMBOL", help="What an ISIN, ticker or title of the file is here."
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar="MARK", help="point or comma; else the numbers show it."),
    ] = None,
    searches: Annotated[
        bool,
        typer.Option(
            "--find", help="Look up unknown ISINs at a provider, as `instrument find`: a call for each."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Hold what is new without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Hold what a broker's file says that a user holds.

    It shows first what each line would become, and opens nothing without --yes or a yes at the terminal. Files of
    Portfolio Performance, Interactive Brokers (Flex), Trading 212 and Degiro are known by their header.

    \b
    Example: pricing-pipeline holding import transactions.csv --user alice
    """
    from pricing_pipeline.cli import holding_import
    from pricing_pipeline.holdings_files.numbers import Mark

    if decimal not in (None, *Mark):
        raise typer.BadParameter(f"{decimal!r} is no decimal mark: point or comma")
    complete = holding_import.import_(
        path,
        user,
        data_types or [],
        format_,
        pairs_of("--column", columns),
        pairs_of("--as", own_names),
        None if decimal is None else Mark(decimal),
        searches=searches,
        yes=yes,
        as_json=as_json,
    )
    if not complete:
        raise typer.Exit(1)


@noun.command()
def close(symbols: Symbols, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """Say that a user no longer holds instruments. What nobody else wants is no longer fetched.

    \b
    Example: pricing-pipeline holding close AAPL MSFT --type equity_quote --user alice
    """
    from pricing_pipeline.cli import holding

    holding.close(user, data_type, symbols, as_json=as_json)


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    user: AnyUser = None,
    closed_too: Annotated[
        bool, typer.Option("--closed", help="Also holdings that were closed, which stay as a record.")
    ] = False,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List who holds what, at which price, and since when. `price show` asks for what is stale, `price why` says why.

    \b
    Example: pricing-pipeline holding list --user alice
    """
    from pricing_pipeline.cli import holding

    holding.list_(symbols, data_type, user, limit, closed_too=closed_too, as_json=as_json)


@noun.command()
@zoned
def show(symbol: Symbol, data_type: Type, user: User = None, as_json: Json = False) -> None:
    """Show one holding, a closed one too: since when, how old its price may grow, and why it is as old as it is.

    \b
    Example: pricing-pipeline holding show AAPL --type equity_quote --user alice
    """
    from pricing_pipeline.cli import holding

    holding.show(symbol, data_type, user, as_json=as_json)
