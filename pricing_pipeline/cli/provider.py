"""`provider list|show|change|probe`: the sources of prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import provider_declare, provider_plan, provider_record, provider_symbols
from pricing_pipeline.cli.arguments import byte_count, whole_number
from pricing_pipeline.cli.database import load_settings, open_connection, open_owner, with_sandbox
from pricing_pipeline.cli.limit import print_limits
from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.output import print_change, print_json, print_lines, print_table
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import UnknownRule
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.configured import call_url
from pricing_pipeline.queue import forecast, limits
from pricing_pipeline.registry import plans, provider_rules
from pricing_pipeline.registry.declarations import provider_named

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pricing_pipeline.registry.provider_rules import Batch

noun = typer.Typer()

BatchSizes = Annotated[
    list[str] | None,
    typer.Option(
        "--batch-size",
        metavar="FETCHER=SYMBOLS",
        help="Most symbols of one call for latest prices, such as quote=1; repeatable.",
    ),
]
BatchFroms = Annotated[
    list[str] | None,
    typer.Option(
        "--batch-from",
        metavar="FETCHER=SYMBOLS",
        help="Fewest symbols that share such a call; fewer are asked for one by one. Repeatable.",
    ),
]
WindowBatchSizes = Annotated[
    list[str] | None,
    typer.Option(
        "--window-batch-size",
        metavar="FETCHER=SYMBOLS",
        help="Most symbols of one call for a span of days; repeatable.",
    ),
]
WindowDays = Annotated[
    list[str] | None,
    typer.Option(
        "--window-days",
        metavar="FETCHER=DAYS",
        help="Most days of one call for spans, over all its symbols, or any; repeatable.",
    ),
]
_SETTINGS = ("is_active", "max_in_flight", "request_delay_ms", "throttle_pause_seconds", "quota_bytes")
_BATCH_SETTINGS = ("batch_size", "batch_from", "window_batch_size", "window_days_per_call")


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List providers: what each can fetch, and what it serves.

    \b
    Example: pricing-pipeline provider list
    """
    with open_connection() as connection:
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
        typer.echo("no provider is known; docs/adding-a-provider.md says how to add one.")


@noun.command()
@listing
def show(provider: Provider, as_json: Json = False) -> None:
    """Show one provider: whether it may be called now, its limits and quota, its keys, and what it serves.

    \b
    Example: pricing-pipeline provider show twelvedata
    """
    settings = load_settings()
    with open_connection(settings) as connection:
        credentials.require_provider(connection, provider)
        (about,) = provider_rules.providers(connection, provider)
        (standing,) = limits.standings(connection, [provider])
        rules = provider_rules.limits(connection, provider)
        batches = provider_rules.batches(connection, provider)
        routes = provider_rules.routes(connection, provider=provider)
        ahead = next(iter(forecast.forecasts(connection, [provider])), None)
        plan = plans.in_use(connection).get(provider)
        service = provider_named(connection, provider)
    address = about.base_url if service is None else call_url(with_sandbox(settings), service, about.base_url)
    if as_json:
        print_json(
            {
                **asdict(about),
                "call_url": address,
                "is_sandbox": settings.sandbox,
                "plan": plan,
                "standing": standing.words,
                "units_used": standing.units_words,
                "quota_used": standing.quota_words,
                "forecast": ahead.content if ahead else None,
                "limits": [asdict(rule) for rule in rules],
                "batches": [asdict(batch) for batch in batches],
                "keys": [asdict(key) for key in standing.keys],
                "routes": [asdict(route) for route in routes],
            }
        )
        return
    print_lines(
        {
            "provider": f"{about.provider}{'' if about.is_active else ' (switched off)'}",
            "what": about.description,
            "address": _address_words(address, about.base_url, is_sandbox=settings.sandbox),
            "plan": plan,
            "now": standing.words,
            "used": standing.units_words,
            "quota": standing.quota_words,
            "how long": f"{ahead.words} ({ahead.basis_words})" if ahead else "",
            "today": ahead.day.words if ahead and ahead.day else "",
            "stretched": (ahead.stretch_words or "") if ahead else "",
            "at once": f"{about.max_in_flight} calls of all workers together",
            "delay": f"{about.request_delay_ms} ms between calls" if about.request_delay_ms else "",
            "keys": ", ".join(f"{key.key_name}{'' if key.is_active else ' (not used)'}" for key in standing.keys),
            "can": ", ".join(about.fetchers),
            "serves": ", ".join(about.data_types),
            "symbols": ", ".join(f"{route.symbol} ({route.data_type})" for route in routes if route.symbol),
        }
    )
    if rules:
        typer.echo()
        print_limits(rules)
    if batches:
        typer.echo()
        _print_batches(batches)


noun.command()(provider_plan.use)
noun.command()(provider_plan.undo)
noun.command()(provider_declare.draft)
noun.command()(provider_declare.declare)
noun.command()(provider_declare.undeclare)
noun.command()(provider_symbols.symbols)
noun.command("try")(provider_declare.try_)
noun.command()(provider_record.record)


@noun.command()
@listing
def change(
    provider: Provider,
    is_active: Annotated[bool | None, typer.Option("--active/--inactive", help="Whether it is called at all.")] = None,
    max_in_flight: Annotated[
        int | None,
        typer.Option(metavar="CALLS", help="Calls of all workers together that may be in flight at once."),
    ] = None,
    delay_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="Least time between two calls of all workers together.")
    ] = None,
    pause_seconds: Annotated[
        int | None,
        typer.Option(metavar="SECONDS", help="First pause after a refusal for speed that names no time."),
    ] = None,
    quota: Annotated[str | None, typer.Option(metavar="SIZE", help="Bytes allowed in 30 days, such as 40GB.")] = None,
    batch_sizes: BatchSizes = None,
    batch_froms: BatchFroms = None,
    window_batch_sizes: WindowBatchSizes = None,
    window_days: WindowDays = None,
    as_json: Json = False,
) -> None:
    """Change how a provider is called; only the named options change. `limit set` changes its rate limits.

    Tasks that only an inactive provider serves fail until it is active again or another one serves them. Other
    changes apply from a drain's next claim. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider change mfapi --delay-ms 500
    """
    given = {
        "is_active": is_active,
        "max_in_flight": max_in_flight,
        "request_delay_ms": delay_ms,
        "throttle_pause_seconds": pause_seconds,
        "quota_bytes": None if quota is None else byte_count(quota, "--quota"),
    }
    changes = {column: value for column, value in given.items() if value is not None}
    batches = _batches(
        {
            "--batch-size": batch_sizes or [],
            "--batch-from": batch_froms or [],
            "--window-batch-size": window_batch_sizes or [],
            "--window-days": window_days or [],
        }
    )
    if not (changes or batches):
        raise typer.BadParameter("say what changes, such as --delay-ms 500 or --inactive")
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        before = _settings(connection, provider)
        provider_rules.change_provider(connection, provider, changes)
        for fetcher, sizes in batches.items():
            if not provider_rules.change_batch(connection, provider, fetcher, sizes):
                raise UnknownRule(
                    f"{provider} cannot be asked for {fetcher!r}. `pricing-pipeline provider show {provider}` shows "
                    "what it can be asked for."
                )
        for batch in provider_rules.batches(connection, provider):
            if batch.fetcher in batches:
                _check_batch(connection, provider, batch, batches[batch.fetcher].keys())
        after = _settings(connection, provider)
    print_change({"provider": provider}, before, after, as_json=as_json)


@noun.command()
def probe(provider: Provider, as_json: Json = False) -> None:
    """Let the next task of a provider with an open breaker be its probe, without waiting.

    If it is answered, the breaker closes. It needs the owner's URL.

    \b
    Example: pricing-pipeline provider probe twelvedata
    """
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        is_open = provider_rules.probe(connection, provider)
    if as_json:
        print_json({"provider": provider, "probed": is_open})
    elif is_open:
        typer.echo(f"The next task of {provider} is the probe. If it is answered, the breaker closes.")
    else:
        typer.echo(f"The breaker of {provider} is not open; nothing has changed.")


def _address_words(address: str | None, base_url: str, *, is_sandbox: bool) -> str:
    if address is None:
        return f"{base_url}, not asked while PRICING_SANDBOX is on: the sandbox does not know it"
    return f"{address} (the sandbox answers in place of {base_url})" if is_sandbox else address


def _print_batches(batches: Sequence[Batch]) -> None:
    numbers = ["symbols in a call", "at least", "for a span", "days in all"]
    print_table(
        ["fetcher", *numbers],
        [
            (
                batch.fetcher,
                batch.batch_size,
                batch.batch_from,
                batch.window_batch_size,
                "any" if batch.window_days_per_call is None else batch.window_days_per_call,
            )
            for batch in batches
        ],
        right=numbers,
    )


def _check_batch(connection: Connection, provider: str, batch: Batch, changed: Set[str]) -> None:
    """Raise UnknownRule for more symbols than a provider's API takes: such a call would fail before it is made."""
    service = provider_named(connection, provider)
    if service is None or batch.fetcher not in {known.value for known in service.fetchers}:
        return
    fetcher = Fetcher(batch.fetcher)
    most = service.batch_limit(fetcher, None)
    if "batch_size" in changed and batch.batch_size > most:
        raise UnknownRule(
            f"one call to {provider} for {fetcher} takes {most} symbols at most, and {batch.batch_size} are wanted."
        )
    if not changed & {"window_batch_size", "window_days_per_call"}:
        return
    first = date(2000, 1, 1)
    for days in range(1, batch.max_window_days + 1):
        size = batch.window_batch_size
        if batch.window_days_per_call is not None:
            size = min(size, max(1, batch.window_days_per_call // days))
        most = service.batch_limit(fetcher, Window(first, first + timedelta(days=days - 1)))
        if size > most:
            raise UnknownRule(
                f"one call to {provider} for {fetcher} of {days} days takes {most} symbols at most, and {size} would "
                "share one. Lower --window-batch-size or --window-days."
            )


def _settings(connection: Connection, provider: str) -> dict[str, object]:
    (about,) = provider_rules.providers(connection, provider)
    return {name: getattr(about, name) for name in _SETTINGS} | {
        f"{name}_{batch.fetcher}": getattr(batch, name)
        for batch in provider_rules.batches(connection, provider)
        for name in _BATCH_SETTINGS
    }


def _batches(words: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int | None]]:
    """How large a call may be, by fetcher and column, from each option's words such as quote=1. Else a usage error."""
    settings: defaultdict[str, dict[str, int | None]] = defaultdict(dict)
    for option, column in zip(words, _BATCH_SETTINGS, strict=True):
        for typed in words[option]:
            fetcher, _, size = typed.partition("=")
            if not fetcher:
                raise typer.BadParameter(f"{option} {typed!r} names no fetcher. Write it like quote=1")
            is_any = column == "window_days_per_call" and size == "any"
            settings[fetcher][column] = None if is_any else whole_number(size, f"{option} {fetcher}")
    return settings
