"""`route list|add|remove`: which provider serves what. queue/routing.sql decides what routes do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import AnySymbol, AnySymbols, AnyType, Json, Provider, Type
from pricing_pipeline.cli.output import print_json, print_table
from pricing_pipeline.cli.style import listing
from pricing_pipeline.demand import instruments
from pricing_pipeline.errors import PricingError, UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.registry import provider_rules

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.registry.provider_rules import Route

noun = typer.Typer()


@noun.command("list")
@listing
def list_(
    symbols: AnySymbols = None,
    data_type: AnyType = None,
    provider: Annotated[
        str | None, typer.Option("--provider", metavar="PROVIDER", help="Only this provider; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the routes of each data type, and of each symbol with its own rule, the lowest rank first.

    \b
    Example: pricing-pipeline route list --type equity_quote
    """
    with open_connection() as connection:
        if data_type is not None:
            reads.any_data_type(connection, data_type)
        if provider is not None:
            credentials.require_provider(connection, provider)
        named = [instruments.spelled_anywhere(connection, symbol) for symbol in symbols] if symbols else None
        routes = provider_rules.routes(connection, data_type, provider, named)
    if as_json:
        print_json({"routes": [asdict(route) for route in routes]})
        return
    print_table(
        ["data type", "symbol", "rank", "provider", ""],
        [
            (
                route.data_type,
                route.symbol or "all",
                route.rank,
                route.provider,
                _state(route),
            )
            for route in routes
        ],
        right=["rank"],
    )
    if not routes:
        typer.echo("there is no such route; `pricing-pipeline route add --help` shows how to add one.")


@noun.command()
def add(
    provider: Provider,
    data_type: Type,
    symbol: AnySymbol = None,
    rank: Annotated[
        int | None, typer.Option(min=1, help="The lowest is asked first; default: after all others.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let a provider serve a data type, or one of its symbols. A symbol's own rules replace those of its type.

    Another rank moves an existing rule. It needs the owner's URL.

    \b
    Example: pricing-pipeline route add yahoo AAPL --type equity_quote --rank 2
    """
    with open_owner() as engine, engine.begin() as connection:
        symbol = _checked(connection, provider, data_type, symbol)
        _require_able(connection, provider, data_type)
        rank = provider_rules.add_route(connection, provider, data_type, symbol, rank)
    if as_json:
        print_json({"provider": provider, "data_type": data_type, "symbol": symbol, "rank": rank})
    else:
        typer.echo(f"{provider} serves {_scope(data_type, symbol)}, as number {rank}.")


@noun.command()
def remove(provider: Provider, data_type: Type, symbol: AnySymbol = None, as_json: Json = False) -> None:
    """Stop a provider from serving a data type, or one of its symbols.

    Its waiting tasks use the remaining routes.

    \b
    Example: pricing-pipeline route remove yahoo AAPL --type equity_quote
    """
    with open_owner() as engine, engine.begin() as connection:
        symbol = _checked(connection, provider, data_type, symbol)
        removed = provider_rules.remove_route(connection, provider, data_type, symbol)
        left = provider_rules.routes(connection, data_type)
    if not removed:
        raise _unknown(provider, data_type, symbol)
    if as_json:
        print_json({"provider": provider, "data_type": data_type, "symbol": symbol, "removed": True})
        return
    typer.echo(f"{provider} no longer has a route for {_scope(data_type, symbol)}.")
    if not any(route.symbol is None and route.is_active and route.provider_active for route in left):
        typer.echo(f"No provider is left for {data_type}: its due pairs fail until a route is added.")


def _state(route: Route) -> str:
    """Why a route is not used; empty for one that is."""
    if not route.is_active:
        return "does not count"
    return "" if route.provider_active else "switched off"


def _unknown(provider: str, data_type: str, symbol: str | None) -> UnknownRule:
    return UnknownRule(
        f"no route says that {provider} serves {_scope(data_type, symbol)}. "
        f"`pricing-pipeline route list --type {data_type}` lists them."
    )


def _checked(connection: Connection, provider: str, data_type: str, symbol: str | None) -> str | None:
    """The symbol as it is spelled, of a provider and a data type that exist."""
    credentials.require_provider(connection, provider)
    reads.any_data_type(connection, data_type)
    return None if symbol is None else instruments.spelled(connection, data_type, [symbol])[0]


def _require_able(connection: Connection, provider: str, data_type: str) -> None:
    fetcher = reads.any_data_type(connection, data_type)["fetcher"]
    (about,) = provider_rules.providers(connection, provider)
    if fetcher not in about.fetchers:
        raise PricingError(
            f"{provider} cannot serve {data_type}: it can be asked for {', '.join(about.fetchers) or 'nothing'}, and "
            f"{data_type} needs {fetcher}. `pricing-pipeline provider list` shows what each provider can."
        )


def _scope(data_type: str, symbol: str | None) -> str:
    return data_type if symbol is None else f"{symbol} of {data_type}"
