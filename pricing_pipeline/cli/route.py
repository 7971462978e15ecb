"""`route list|show|add|remove`: which provider serves what. What routes do is decided in queue/routing.sql."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer
from sqlalchemy import Connection

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.output import print_json, print_lines, print_table
from pricing_pipeline.demand import instruments
from pricing_pipeline.errors import PricingError, UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.queue import limits
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.registry.provider_rules import Route
from pricing_pipeline.settings import load_settings


def list_(
    symbols: Sequence[str] | None, data_type: str | None, provider: str | None, *, as_json: bool
) -> None:
    """Tell who serves what. Raises UnknownDataType and UnknownProvider."""
    with open_connection(load_settings()) as connection:
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


def show(provider: str, data_type: str, symbol: str | None, *, as_json: bool) -> None:
    """Tell everything about one route. Raises UnknownDataType, UnknownProvider, and UnknownRule when there is none."""
    with open_connection(load_settings()) as connection:
        symbol = _checked(connection, provider, data_type, symbol)
        routes = [route for route in provider_rules.routes(connection, data_type) if route.symbol == symbol]
        named = [route for route in routes if route.provider == provider]
        if not named:
            raise _unknown(provider, data_type, symbol)
        (standing,) = limits.standings(connection, [provider])
    (route,) = named
    before = [other.provider for other in routes if other.rank < route.rank and not _state(other)]
    if as_json:
        print_json({**asdict(route), "asked_after": before, "standing": standing.words})
        return
    print_lines(
        {
            "route": f"{provider} serves {_scope(data_type, symbol)}",
            "for": "every symbol without routes of its own" if symbol is None else symbol,
            "rank": route.rank,
            "asked": f"after {', '.join(before)}" if before else "first",
            "state": _state(route) or "active",
            "provider now": standing.words,
        }
    )


def _state(route: Route) -> str:
    """Why a route is not used; empty for one that is."""
    if not route.is_active:
        return "does not count"
    return "" if route.provider_active else "switched off"


def _unknown(provider: str, data_type: str, symbol: str | None) -> UnknownRule:
    return UnknownRule(
        f"no route says that {provider} serves {_scope(data_type, symbol)}. "
        f"`pricing-pipeline route list --type {data_type}` shows those there are."
    )


def add(provider: str, data_type: str, symbol: str | None, rank: int | None, *, as_json: bool) -> None:
    """Have a provider serve something. Raises UnknownDataType, UnknownProvider and UnknownSymbol.

    Raises PricingError if the provider cannot be asked for the data type.
    """
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        symbol = _checked(connection, provider, data_type, symbol)
        _require_able(connection, provider, data_type)
        rank = provider_rules.add_route(connection, provider, data_type, symbol, rank)
    if as_json:
        print_json({"provider": provider, "data_type": data_type, "symbol": symbol, "rank": rank})
    else:
        typer.echo(f"{provider} serves {_scope(data_type, symbol)}, as number {rank}.")


def remove(provider: str, data_type: str, symbol: str | None, *, as_json: bool) -> None:
    """Take a route away. Raises UnknownRule when there is none."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        symbol = _checked(connection, provider, data_type, symbol)
        removed = provider_rules.remove_route(connection, provider, data_type, symbol)
        left = provider_rules.routes(connection, data_type)
    if not removed:
        raise _unknown(provider, data_type, symbol)
    if as_json:
        print_json({"provider": provider, "data_type": data_type, "symbol": symbol, "removed": True})
        return
    typer.echo(f"{provider} serves {_scope(data_type, symbol)} no more by a rule.")
    if not any(route.symbol is None and route.is_active and route.provider_active for route in left):
        typer.echo(f"No provider is left for {data_type}: what is due of it fails until a route is added.")


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
