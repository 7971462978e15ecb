"""`limit list|set|remove|set-caps`: how much providers may be asked, and how much a user may ask for.

How limits and caps are kept is decided by the database.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import AnyProvider, Json, Provider
from pricing_pipeline.cli.output import duration, print_change, print_json, print_table
from pricing_pipeline.cli.style import listing
from pricing_pipeline.errors import UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.registry import provider_rules

if TYPE_CHECKING:
    from pricing_pipeline.registry.provider_rules import Limit


noun = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="LIMIT", help="Its name, such as minute or day.")]
Key = Annotated[str | None, typer.Option("--key", metavar="NAME", help="Only this key; default: each of its keys.")]


@noun.command("list")
@listing
def list_(provider: AnyProvider = None, as_json: Json = False) -> None:
    """List rate limits: units that each key of a provider may use in a window, and keys that have others.

    Without a provider also the caps of users: pairs that each may watch, hold and begin, and price alerts.

    \b
    Example: pricing-pipeline limit list twelvedata
    """
    with open_connection() as connection:
        if provider is not None:
            credentials.require_provider(connection, provider)
        limits = provider_rules.limits(connection, provider)
        caps = provider_rules.caps(connection) if provider is None else None
    if as_json:
        caps_content = {} if caps is None else {"caps": asdict(caps)}
        print_json({"limits": [asdict(limit) for limit in limits], **caps_content})
        return
    print_limits(limits)
    if not limits:
        typer.echo("there is no such limit; `pricing-pipeline limit set --help` shows how to add one.")
    if caps is not None:
        typer.echo(
            f"each user: {caps.pairs_per_user} pairs watched, as many held, "
            f"{caps.new_pairs_per_minute} new in a minute; {caps.price_alerts_per_user} price alerts over HTTP"
        )


@noun.command("set")
def set_(
    provider: Provider,
    name: Name,
    units: Annotated[int, typer.Argument(metavar="UNITS", help="In its own units: credits or calls.")],
    seconds: Annotated[int | None, typer.Option("--seconds", help="Length of the window of a new limit.")] = None,
    day: Annotated[
        str | None,
        typer.Option("--day", metavar="ZONE", help="In a calendar day of this time zone, such as UTC."),
    ] = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Set a rate limit. An existing limit keeps its window; a new limit needs --seconds or --day.

    It applies from a drain's next claim. It needs the owner's URL.

    \b
    Example: pricing-pipeline limit set twelvedata day 800 --day UTC
    """
    if seconds is not None and day is not None:
        raise typer.BadParameter("give either --seconds or --day")
    if key is not None and (seconds is not None or day is not None):
        raise typer.BadParameter("a key has the window of the provider's limit; leave out --seconds and --day")
    limit = provider_rules.Limit(provider, name, key, units, seconds, day)
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        if not provider_rules.set_limit(connection, limit):
            raise UnknownRule(
                f"{provider} has no limit {name!r} yet. For a new one give --seconds, or --day with a time zone."
            )
        (limit,) = [
            row for row in provider_rules.limits(connection, provider) if (row.name, row.key_name) == (name, key)
        ]
    if as_json:
        print_json(asdict(limit))
    else:
        keys = "each key" if key is None else f"key {key}"
        typer.echo(f"{provider} allows {keys} {units} units in {_window(limit)} ({name}).")


@noun.command()
def remove(provider: Provider, name: Name, key: Key = None, as_json: Json = False) -> None:
    """Remove a limit. With --key, the key gets the common limit again.

    \b
    Example: pricing-pipeline limit remove twelvedata day
    """
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        removed = provider_rules.remove_limit(connection, provider, name, key)
    if not removed:
        raise _unknown(provider, name, key)
    if as_json:
        print_json({"provider": provider, "name": name, "key_name": key, "removed": True})
    elif key is None:
        typer.echo(f"The limit {name} of {provider} is removed.")
    else:
        typer.echo(f"Key {key} of {provider} has the limit {name} that all its keys have.")


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

    This applies at once, and ends no subscription. It needs the owner's URL.

    \b
    Example: pricing-pipeline limit set-caps --pairs 20000 --new-pairs 10000
    """
    if pairs is None and new_pairs is None and price_alerts is None:
        raise typer.BadParameter("give --pairs, --new-pairs or --price-alerts")
    with open_owner() as engine, engine.begin() as connection:
        before = provider_rules.caps(connection)
        provider_rules.set_caps(connection, pairs, new_pairs, price_alerts)
        after = provider_rules.caps(connection)
    print_change({"of": "each user"}, asdict(before), asdict(after), as_json=as_json)


def _unknown(provider: str, name: str, key: str | None = None) -> UnknownRule:
    whose = provider if key is None else f"key {key} of {provider}"
    return UnknownRule(
        f"{whose} has no limit {name!r} of its own. `pricing-pipeline limit list {provider}` lists them."
    )


def print_limits(limits: list[Limit]) -> None:
    """A table of limits; nothing without any."""
    if limits:
        print_table(
            ["provider", "limit", "key", "units", "in"],
            [(limit.provider, limit.name, limit.key_name or "each", limit.units, _window(limit)) for limit in limits],
            right=["units"],
        )


def _window(limit: Limit) -> str:
    return f"a day of {limit.day_timezone}" if limit.window_seconds is None else duration(limit.window_seconds)
