"""`limit list|show|set|remove|set-caps`: how much providers may be asked, and how much a user may ask for.

How limits and caps are kept is decided by the database.
"""

from __future__ import annotations

from dataclasses import asdict

import typer

from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.output import duration, print_change, print_json, print_lines, print_table
from pricing_pipeline.errors import UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.registry.provider_rules import Limit
from pricing_pipeline.settings import load_settings


def list_(provider: str | None, *, as_json: bool) -> None:
    """Tell the rate limits of a provider, or of all. Raises UnknownProvider."""
    with open_connection(load_settings()) as connection:
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


def show(provider: str, name: str, *, as_json: bool) -> None:
    """Tell a limit and how much of it each key has used. Raises UnknownProvider, and UnknownRule if there is none."""
    with open_connection(load_settings()) as connection:
        credentials.require_provider(connection, provider)
        shared = [
            limit
            for limit in provider_rules.limits(connection, provider)
            if limit.name == name and limit.key_name is None
        ]
        if not shared:
            raise _unknown(provider, name)
        uses = provider_rules.uses_of_limit(connection, provider, name)
    (limit,) = shared
    if as_json:
        content = {key: value for key, value in asdict(limit).items() if key != "key_name"}
        print_json({**content, "keys": [asdict(use) for use in uses]})
        return
    print_lines(
        {"limit": f"{name} of {provider}", "allows": f"{limit.units} units in {_window(limit)} to each key"}
    )
    typer.echo()
    print_table(
        ["key", "used", "units"],
        [(use.key_name, use.used, use.units) for use in uses],
        right=["used", "units"],
    )


def _unknown(provider: str, name: str, key: str | None = None) -> UnknownRule:
    whose = provider if key is None else f"key {key} of {provider}"
    return UnknownRule(
        f"{whose} has no limit {name!r} of its own. `pricing-pipeline limit list {provider}` shows those there are."
    )


def set_caps(pairs: int | None, new_pairs: int | None, price_alerts: int | None, *, as_json: bool) -> None:
    """Change how much a user may ask for, as the owner."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        before = provider_rules.caps(connection)
        provider_rules.set_caps(connection, pairs, new_pairs, price_alerts)
        after = provider_rules.caps(connection)
    print_change({"of": "each user"}, asdict(before), asdict(after), as_json=as_json)


def print_limits(limits: list[Limit]) -> None:
    """A table of limits; nothing where there are none."""
    if limits:
        print_table(
            ["provider", "limit", "key", "units", "in"],
            [
                (limit.provider, limit.name, limit.key_name or "each", limit.units, _window(limit))
                for limit in limits
            ],
            right=["units"],
        )


def set_(
    provider: str,
    name: str,
    units: int,
    seconds: int | None,
    day: str | None,
    key: str | None,
    *,
    as_json: bool,
) -> None:
    """Write a limit. Raises UnknownProvider, and UnknownRule for a new one without a window."""
    limit = Limit(provider, name, key, units, seconds, day)
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        if not provider_rules.set_limit(connection, limit):
            raise UnknownRule(
                f"{provider} has no limit {name!r} yet. For a new one give --seconds, or --day with a time zone."
            )
        (limit,) = [
            row
            for row in provider_rules.limits(connection, provider)
            if (row.name, row.key_name) == (name, key)
        ]
    if as_json:
        print_json(asdict(limit))
    else:
        keys = "each key" if key is None else f"key {key}"
        typer.echo(f"{provider} allows {keys} {units} units in {_window(limit)} ({name}).")


def remove(provider: str, name: str, key: str | None, *, as_json: bool) -> None:
    """Take a limit away. Raises UnknownProvider, and UnknownRule when there is none."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        removed = provider_rules.remove_limit(connection, provider, name, key)
    if not removed:
        raise _unknown(provider, name, key)
    if as_json:
        print_json({"provider": provider, "name": name, "key_name": key, "removed": True})
    elif key is None:
        typer.echo(f"The limit {name} of {provider} is gone.")
    else:
        typer.echo(f"Key {key} of {provider} has the limit {name} that all its keys have.")


def _window(limit: Limit) -> str:
    return (
        f"a day of {limit.day_timezone}" if limit.window_seconds is None else duration(limit.window_seconds)
    )
