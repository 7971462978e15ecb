"""The commands of `holding` as they are typed."""

from __future__ import annotations

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
    """List who holds what, and since when.

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
