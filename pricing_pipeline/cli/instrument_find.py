"""`instrument find`: search at a provider, and add the instruments that it finds."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import load_settings, open_engine
from pricing_pipeline.cli.options import (
    Json,
    Limit,
)
from pricing_pipeline.cli.output import duration, listed, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.remembered_searches import recall, remember
from pricing_pipeline.cli.style import listing
from pricing_pipeline.demand import instruments
from pricing_pipeline.errors import PricingError
from pricing_pipeline.keys import clients as provider_clients
from pricing_pipeline.keys import credentials
from pricing_pipeline.queue import searches
from pricing_pipeline.registry import data_type_registry, provider_rules

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from pricing_pipeline.demand.instruments import NewInstrument
    from pricing_pipeline.providers.client import ProviderClient
    from pricing_pipeline.providers.searches import Listing
    from pricing_pipeline.settings import Settings


@listing
def find(
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="Parts of a name, a ticker, an ISIN or a FIGI.")],
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="PROVIDER", help="The provider to ask: twelvedata, fmp or mfapi."),
    ] = None,
    data_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Only for this data type, asked of its first provider."),
    ] = None,
    chosen: Annotated[
        str | None, typer.Option("--add", metavar="N[,M]", help="Add the rows with these numbers.")
    ] = None,
    at_most: Limit = 30,
    as_json: Json = False,
) -> None:
    """Search for instruments at a provider, and add those that you choose. On a terminal it asks which.

    It is one call of one unit, within the provider's limits. --add within ten minutes of the same search makes no call.

    \b
    Example: pricing-pipeline instrument find vodafone --provider twelvedata --add 1
    """
    if not 0 < len(" ".join(words).strip()) <= 100:
        raise typer.BadParameter("name what to search for in at most 100 characters, such as vodafone")
    numbers = None if chosen is None else _numbers(chosen)
    settings = load_settings()
    with open_engine(settings) as engine, provider_clients.open_clients(settings, engine) as clients:
        with engine.connect() as connection:
            asset_class = reads.any_data_type(connection, data_type)["asset_class"] if data_type else None
            name, type_ = _whom(connection, clients, provider, data_type)
        client, phrase = clients[name], " ".join(words)
        # The numbers come from a table that was shown.
        remembered = None if numbers is None else recall(settings.home, client.base_url, phrase)
        listings = remembered[0] if remembered else _search(settings, engine, client, type_, phrase)
        listings = [listing for listing in listings if asset_class in (None, listing.asset_class)][:at_most]
        known = _known(engine, listings)
        if not as_json:
            _print(name, listings, known)
            if numbers is None and listings and sys.stdin.isatty() and sys.stdout.isatty():
                numbers = _numbers(typer.prompt("Numbers to add, such as 1,3", default="", show_default=False))
        added = _add(engine, listings, numbers or [], phrase)
    if as_json:
        print_json(
            {
                "provider": name,
                "is_remembered": remembered is not None,
                "found": [
                    {
                        "number": number,
                        **asdict(listing),
                        "known": (listing.asset_class, listing.symbol) in known,
                    }
                    for number, listing in enumerate(listings, 1)
                ],
                "added": [asdict(listing) | {"new": is_new} for listing, is_new in added],
            }
        )
        return
    if remembered is not None:
        hint(f"these are the rows of the search {duration(remembered[1])} ago; no call was made for them.")
    for one, is_new in added:
        typer.echo(f"{one.symbol} ({one.asset_class}) {'is added' if is_new else 'was known already'}.")
    if listings and not added:
        hint("nothing is added; --add 1,3 adds the rows with these numbers.")


def searched(settings: Settings, engine: Engine, phrase: str) -> list[Listing]:
    """What the first provider that can be asked has for a phrase, or had some minutes ago. Raises PricingError."""
    with provider_clients.open_clients(settings, engine) as clients:
        with engine.connect() as connection:
            name, type_ = _whom(connection, clients, None, None)
        remembered = recall(settings.home, clients[name].base_url, phrase)
        return remembered[0] if remembered else _search(settings, engine, clients[name], type_, phrase)


def _search(settings: Settings, engine: Engine, client: ProviderClient, type_: str, phrase: str) -> list[Listing]:
    """Search at the provider in one counted call, and remember the rows for a while."""
    listings = searches.search(engine, client, type_, phrase, f"{socket.gethostname()}:{os.getpid()}")
    remember(settings.home, client.base_url, phrase, listings)
    return listings


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of numbers, such as 1,3")
    return [int(part) for part in parts]


def _whom(
    connection: Connection, clients: Mapping[str, ProviderClient], provider: str | None, data_type: str | None
) -> tuple[str, str]:
    """The provider that is asked, and a data type that it serves."""
    from pricing_pipeline.providers.searches import SEARCHES

    if provider is not None:
        credentials.require_provider(connection, provider)
        if provider not in SEARCHES:
            raise PricingError(f"{provider} has no search; {listed(list(SEARCHES))} have one.")
        candidates = [provider]
    elif data_type is not None:
        routes = provider_rules.routes(connection, data_type)
        candidates = [route.provider for route in routes if route.symbol is None and route.is_active]
    else:
        candidates = list(SEARCHES)
    for name in candidates:
        if name not in SEARCHES or name not in clients or not clients[name].has_key:
            continue
        served = data_type or _served(connection, name)
        if served is not None:
            return name, served
    raise PricingError(
        f"no provider with a search can be asked: {listed(list(SEARCHES))} have one. It must be switched on "
        "(`pricing-pipeline provider list`) and have its key (`pricing-pipeline key list`)."
    )


def _served(connection: Connection, provider: str) -> str | None:
    """A data type that a provider serves, or at least could."""
    (about,) = provider_rules.providers(connection, provider)
    able = [
        type_.data_type for type_ in data_type_registry.active_data_types(connection) if type_.fetcher in about.fetchers
    ]
    return next(iter((*about.data_types, *able)), None)


def _known(engine: Engine, listings: Sequence[Listing]) -> set[tuple[str, str]]:
    if not listings:
        return set()
    with engine.connect() as connection:
        symbols = [listing.symbol for listing in listings]
        return {
            (listing.asset_class, listing.symbol)
            for listing in instruments.listed(connection, symbols, None, 10 * len(symbols))
        }


def _print(provider: str, listings: Sequence[Listing], known: set[tuple[str, str]]) -> None:
    if not listings:
        typer.echo(f"{provider} has found nothing. It searches names and beginnings of tickers.")
        return
    print_table(
        ["number", "symbol", "name", "exchange", "currency", "class", ""],
        [
            (
                number,
                listing.symbol,
                listing.name,
                listing.exchange,
                listing.currency,
                listing.asset_class,
                "known" if (listing.asset_class, listing.symbol) in known else "",
            )
            for number, listing in enumerate(listings, 1)
        ],
        right=["number"],
        spare=["exchange", "currency"],
        long="name",
    )


def _add(
    engine: Engine, listings: Sequence[Listing], numbers: Sequence[int], phrase: str
) -> list[tuple[NewInstrument, bool]]:
    strange = [str(number) for number in numbers if not 1 <= number <= len(listings)]
    if strange:
        raise PricingError(
            f"{listed(strange)} is not a number of this search, which has found {len(listings)}. Nothing is added."
        )
    chosen = [listings[number - 1] for number in dict.fromkeys(numbers)]
    if not chosen:
        return []
    with engine.begin() as connection:
        # What was found by an ISIN has it.
        identifier = instruments.identifier(connection, phrase)
        wanted = [
            instruments.NewInstrument(
                listing.asset_class,
                listing.symbol,
                listing.name or None,
                listing.currency,
                isin=identifier["isin"],
                figi=identifier["figi"],
            )
            for listing in chosen
        ]
        return instruments.add(connection, wanted, are_listed=True)
