"""The commands of `limit` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import AnyProvider, Json, Provider
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Say how much a provider may be asked, and how much a user may ask for.")

Name = Annotated[str, typer.Argument(metavar="LIMIT", help="Its name, such as minute or day.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="NAME", help="Only of this key; else of each of its keys.")
]


@noun.command("list")
@listing
def list_(provider: AnyProvider = None, as_json: Json = False) -> None:
    """List rate limits: units that each key of a provider may use in a window, and keys that have others.

    Without a provider also the caps of users: pairs that each may watch, hold and begin, and price alerts.

    \b
    Example: pricing-pipeline limit list twelvedata
    """
    from pricing_pipeline.cli import limit

    limit.list_(provider, as_json=as_json)


@noun.command()
@listing
def show(provider: Provider, name: Name, as_json: Json = False) -> None:
    """Show one limit: what it allows to each key, and how much of it each has used now.

    \b
    Example: pricing-pipeline limit show twelvedata minute
    """
    from pricing_pipeline.cli import limit

    limit.show(provider, name, as_json=as_json)


@noun.command("set")
def set_(
    provider: Provider,
    name: Name,
    units: Annotated[int, typer.Argument(metavar="UNITS", help="In its own units: credits or calls.")],
    seconds: Annotated[
        int | None, typer.Option("--seconds", help="Length of the window of a new limit.")
    ] = None,
    day: Annotated[
        str | None,
        typer.Option("--day", metavar="ZONE", help="In a calendar day of this time zone, such as UTC."),
    ] = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Write what a plan allows. An existing limit keeps its window; a new limit needs --seconds or --day.

    Running drains keep to it from their next claim on. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline limit set twelvedata day 800 --day UTC
    """
    if seconds is not None and day is not None:
        raise typer.BadParameter("give either --seconds or --day")
    if key is not None and (seconds is not None or day is not None):
        raise typer.BadParameter(
            "a key has the window of the provider's limit; leave out --seconds and --day"
        )
    from pricing_pipeline.cli import limit

    limit.set_(provider, name, units, seconds, day, key, as_json=as_json)


@noun.command()
def remove(provider: Provider, name: Name, key: Key = None, as_json: Json = False) -> None:
    """Take a limit away. With --key the key has that of the others again.

    \b
    Example: pricing-pipeline limit remove twelvedata day
    """
    from pricing_pipeline.cli import limit

    limit.remove(provider, name, key, as_json=as_json)


@noun.command("set-caps")
@listing
def set_caps(
    pairs: Annotated[
        int | None,
        typer.Option("--pairs", help="Pairs that one user may watch at once; as many may be held."),
    ] = None,
    new_pairs: Annotated[
        int | None,
        typer.Option("--new-pairs", help="Pairs that one user may begin to watch or hold in a minute."),
    ] = None,
    price_alerts: Annotated[
        int | None, typer.Option("--price-alerts", help="Price alerts that one user may have over HTTP.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change how many pairs each user may watch, hold and begin, and have price alerts. What no option names stays.

    It counts at once, and ends nothing that is watched already. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline limit set-caps --pairs 20000 --new-pairs 10000
    """
    if pairs is None and new_pairs is None and price_alerts is None:
        raise typer.BadParameter("give --pairs, --new-pairs or --price-alerts")
    from pricing_pipeline.cli import limit

    limit.set_caps(pairs, new_pairs, price_alerts, as_json=as_json)
