"""`provider list|show|change|probe`: the sources of prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import typer
from sqlalchemy import Connection

from pricing_pipeline.cli.arguments import whole_number
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.limit import print_limits
from pricing_pipeline.cli.output import print_change, print_json, print_lines, print_table
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.queue import limits
from pricing_pipeline.registry import plans, provider_rules
from pricing_pipeline.settings import load_settings


def list_(*, as_json: bool) -> None:
    """Tell every provider, switched off ones too."""
    with open_connection(load_settings()) as connection:
        providers = provider_rules.providers(connection)
    if as_json:
        print_json({"providers": [asdict(provider) for provider in providers]})
        return
    print_table(
        ["provider", "state", "can be asked for", "serves"],
        [
            (
                provider.provider,
                "active" if provider.is_active else "switched off",
                ", ".join(provider.fetchers),
                ", ".join(provider.data_types),
            )
            for provider in providers
        ],
        spare=["can be asked for"],
        long="serves",
    )
    if not providers:
        typer.echo("no provider is known; docs/adding-a-provider.md tells how to add one.")


def show(provider: str, *, as_json: bool) -> None:
    """Tell everything about one provider. Raises UnknownProvider."""
    with open_connection(load_settings()) as connection:
        credentials.require_provider(connection, provider)
        (about,) = provider_rules.providers(connection, provider)
        (standing,) = limits.standings(connection, [provider])
        rules = provider_rules.limits(connection, provider)
        routes = provider_rules.routes(connection, provider=provider)
        keys = [key for key in limits.keys(connection) if key.provider == provider]
        plan = plans.in_use(connection).get(provider)
    if as_json:
        print_json(
            {
                **asdict(about),
                "plan": plan,
                "standing": standing.words,
                "units_used": standing.units_words,
                "quota_used": standing.quota_words,
                "limits": [asdict(rule) for rule in rules],
                "keys": [asdict(key) for key in keys],
                "routes": [asdict(route) for route in routes],
            }
        )
        return
    print_lines(
        {
            "provider": f"{about.provider}{'' if about.is_active else ' (switched off)'}",
            "what": about.description,
            "address": about.base_url,
            "plan": plan,
            "now": standing.words,
            "used": standing.units_words,
            "quota": standing.quota_words,
            "at once": f"{about.max_in_flight} calls of a process",
            "delay": f"{about.request_delay_ms} ms between calls" if about.request_delay_ms else "",
            "keys": ", ".join(f"{key.key_name}{'' if key.is_active else ' (not used)'}" for key in keys),
            "can": ", ".join(about.fetchers),
            "serves": ", ".join(about.data_types),
            "symbols": ", ".join(f"{route.symbol} ({route.data_type})" for route in routes if route.symbol),
        }
    )
    if rules:
        typer.echo()
        print_limits(rules)


_SETTINGS = ("is_active", "max_in_flight", "request_delay_ms", "throttle_pause_seconds", "quota_bytes")


def change(
    provider: str, changes: Mapping[str, int | bool], batch_sizes: Mapping[str, int], *, as_json: bool
) -> None:
    """Change how a provider is called, as the owner. Raises UnknownProvider and UnknownRule."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        before = _settings(connection, provider)
        provider_rules.change_provider(connection, provider, changes)
        for fetcher, size in batch_sizes.items():
            _check_size(provider, fetcher, size)
            if not provider_rules.set_batch_size(connection, provider, fetcher, size):
                raise UnknownRule(
                    f"{provider} cannot be asked for {fetcher!r}. `pricing-pipeline provider show {provider}` shows "
                    "what it can be asked for."
                )
        after = _settings(connection, provider)
    print_change({"provider": provider}, before, after, as_json=as_json)


def _check_size(provider: str, fetcher: str, size: int) -> None:
    """Raise UnknownRule for more symbols than a provider's API takes: such a call would fail before it is made."""
    service = PROVIDERS.get(provider)
    if service is None or fetcher not in {known.value for known in service.fetchers}:
        return
    most = service.batch_limit(Fetcher(fetcher), None)
    if size > most:
        raise UnknownRule(
            f"one call to {provider} for {fetcher} takes {most} symbols at most, and {size} are wanted."
        )


def _settings(connection: Connection, provider: str) -> dict[str, object]:
    (about,) = provider_rules.providers(connection, provider)
    sizes = provider_rules.batch_sizes(connection, provider)
    return {name: getattr(about, name) for name in _SETTINGS} | {
        f"batch_size_{fetcher}": size for fetcher, size in sizes.items()
    }


def sizes(words: Sequence[str]) -> dict[str, int]:
    """How many symbols a call may have, by fetcher, from words such as quote=1. Else a usage error."""
    size_of = {}
    for typed in words:
        fetcher, _, size = typed.partition("=")
        if not fetcher:
            raise typer.BadParameter(f"--batch-size {typed!r} names no fetcher. Write it like quote=1")
        size_of[fetcher] = whole_number(size, f"--batch-size {fetcher}")
    return size_of


def probe(provider: str, *, as_json: bool) -> None:
    """Let the next task be the probe of an open breaker, as the owner. Raises UnknownProvider."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        is_open = provider_rules.probe(connection, provider)
    if as_json:
        print_json({"provider": provider, "probed": is_open})
    elif is_open:
        typer.echo(f"The next task of {provider} is the probe. If it is answered, the breaker closes.")
    else:
        typer.echo(f"The breaker of {provider} is not open; nothing has changed.")
