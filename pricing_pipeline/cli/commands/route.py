"""The commands of `route` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AnySymbol, AnySymbols, AnyType, Json, Provider, Type
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Say which provider serves what.")


RoutedSymbol = Annotated[
    str | None,
    typer.Argument(
        metavar="SYMBOL", help="The route of this symbol; else that of its type.", show_default=False
    ),
]


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="PROVIDER", help="Only this provider; else all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List who serves what: of each data type, and of each symbol with a rule of its own, the lowest rank first.

    \b
    Example: pricing-pipeline route list --type equity_quote
    """
    from pricing_pipeline.cli import route

    route.list_(symbols, data_type, provider, as_json=as_json)


@noun.command()
def show(provider: Provider, data_type: Type, symbol: RoutedSymbol = None, as_json: Json = False) -> None:
    """Show one route: its rank, whom it comes after, and whether its provider may be called now.

    \b
    Example: pricing-pipeline route show twelvedata --type equity_quote
    """
    from pricing_pipeline.cli import route

    route.show(provider, data_type, symbol, as_json=as_json)


@noun.command()
def add(
    provider: Provider,
    data_type: Type,
    symbol: AnySymbol = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="The lowest is asked first; else after all others.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Have a provider serve a data type, or one symbol of it. A symbol's own rules take the place of those of its type.

    With another rank, an existing rule moves. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline route add yahoo AAPL --type equity_quote --rank 2
    """
    from pricing_pipeline.cli import route

    route.add(provider, data_type, symbol, rank, as_json=as_json)


@noun.command()
def remove(provider: Provider, data_type: Type, symbol: AnySymbol = None, as_json: Json = False) -> None:
    """Stop a provider from serving a data type, or one symbol of it.

    Tasks that wait for it go by the routes that are left.

    \b
    Example: pricing-pipeline route remove yahoo AAPL --type equity_quote
    """
    from pricing_pipeline.cli import route

    route.remove(provider, data_type, symbol, as_json=as_json)
