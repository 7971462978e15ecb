"""`provider symbols`: take a declared provider's own names of instruments from its list."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.arguments import chosen
from pricing_pipeline.cli.database import load_settings, open_owner
from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.output import listed, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.provider_access import access_to
from pricing_pipeline.cli.style import listing
from pricing_pipeline.errors import PricingError
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.queue import searches
from pricing_pipeline.registry import data_type_registry, spellings

if TYPE_CHECKING:
    from sqlalchemy import Engine

_MOST_LEFT = 20


@listing
def symbols(
    name: Provider,
    asset_class: Annotated[
        str | None,
        typer.Option("--asset-class", metavar="CLASS", help="The asset class, if the file has several lists."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a declared provider for the list of its own names, and use them for the instruments that are known.

    It is one call within the provider's limits. A spelling that a person has given stays, and where the list has
    several names for a symbol, you choose with `instrument spell`. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider symbols coingecko
    """
    settings = load_settings()
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            credentials.require_provider(connection, name)
        access = access_to(engine, settings, name)
        service = access.service
        lists = list(service.lists) if isinstance(service, DeclaredProvider) else []
        if not isinstance(service, DeclaredProvider) or not lists:
            raise PricingError(f"{name} has no list of names: its declaration has no `list` under `symbols`.")
        of_class = chosen("--asset-class", asset_class, lists)
        with ProviderClient(service, access.base_url, access.keys, user_agent=settings.user_agent) as client:
            data_type = _served(engine, of_class, service)
            worker = f"{socket.gethostname()}:{os.getpid()}"
            names = searches.names(engine, client, data_type, of_class, worker)
        with engine.begin() as connection:
            filled = spellings.fill(connection, service, of_class, names)
    if as_json:
        print_json(
            {
                "provider": name,
                "asset_class": of_class,
                "names": len(names),
                "given": filled.given,
                "left": filled.left,
            }
        )
        return
    print_table(["symbol", f"at {name}"], list(filled.given.items()))
    typer.echo(
        f"{len(filled.given)} instruments of {of_class} are asked for by names of the list, which has {len(names)}."
    )
    for symbol, why in list(filled.left.items())[:_MOST_LEFT]:
        typer.echo(f"left as it is: {symbol}: {why}")
    if len(filled.left) > _MOST_LEFT:
        typer.echo(f"and {len(filled.left) - _MOST_LEFT} more")
    if filled.left:
        hint(f"to choose yourself: pricing-pipeline instrument spell {next(iter(filled.left))} --at {name} --as NAME")


def _served(engine: Engine, asset_class: str, service: DeclaredProvider) -> str:
    """A data type that the provider could serve, for the log of calls."""
    with engine.connect() as connection:
        types = data_type_registry.active_data_types(connection)
    fetchers = {fetcher.value for fetcher in service.fetchers}
    for type_ in types:
        if type_.asset_class == asset_class and type_.fetcher in fetchers:
            return str(type_.data_type)
    raise PricingError(
        f"no data type of {asset_class} can be served by {service.name} ({listed(sorted(fetchers))}). Add one first: "
        "pricing-pipeline type add"
    )
