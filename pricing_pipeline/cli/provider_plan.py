"""`provider use|undo`: write the plan of a provider, with its key, and take it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli import key
from pricing_pipeline.cli.database import load_settings, open_owner
from pricing_pipeline.cli.options import Json, Provider
from pricing_pipeline.cli.output import listed, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.provider_access import Access, access_to
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import KeyRefused, PricingError, ProviderError
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.base import check_key, key_setting
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.queue import limits
from pricing_pipeline.registry import data_type_registry, plans, provider_rules

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from pricing_pipeline.providers.fetched import Fetched
    from pricing_pipeline.registry.plans import Change, Check, Plan
    from pricing_pipeline.settings import Settings

_EXAMPLES = (1, 5, 20, 100)
"""Numbers of watched symbols, to show how often each is fetched."""


def use(
    provider: Provider,
    plan_name: Annotated[
        str | None,
        typer.Option(
            "--plan", metavar="PLAN", help="Your plan there; left out, the only one, or the plans are listed."
        ),
    ] = None,
    symbols: Annotated[
        int,
        typer.Option("--symbols", metavar="N", min=1, help="How many quotes will be watched; sets their TTL."),
    ] = 20,
    minute: Annotated[
        int | None,
        typer.Option("--minute", metavar="UNITS", min=1, help="What your plan allows in a minute."),
    ] = None,
    day: Annotated[
        int | None,
        typer.Option("--day", metavar="UNITS", min=1, help="What your plan allows in a day of UTC."),
    ] = None,
    is_checked: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Try the key with one call first; default: only until the provider has answered once.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Use a provider from now on, and write the limits, batches, data types and TTLs of its plan.

    It asks for the key, without showing it, if none is stored. It says what it changed, and how often each price can
    be fetched. Another plan replaces it; `provider undo` undoes it.

    \b
    Example: pricing-pipeline provider use twelvedata --plan free
    """
    settings = load_settings()
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            credentials.require_provider(connection, provider)
            name, plan = _chosen(connection, provider, plan_name, minute, day)
        access = _access(engine, settings, provider)
        if is_checked is None:
            is_checked = not _has_worked(engine, provider, access)
        check = plan.check if is_checked and not settings.sandbox else None
        fetched = None if check is None else _try(engine, settings, provider, plan, check, access)
        with engine.begin() as connection:
            changes = plans.use(connection, provider, name, plan, symbols)
            if access.new_key is not None:
                stored = key.store_new(connection, settings, provider, access.new_key)
            if check is not None and fetched is not None:
                _count(connection, provider, access.key_name, plan, check, fetched)
            slower = _slower_types(connection, plan, symbols)
        if access.new_key is not None:
            key.hint_of_stored(provider, access.new_key, *stored)
    _hint_of_shell(settings, provider, access, is_tried=fetched is not None)
    if as_json:
        print_json(
            {
                "provider": provider,
                "plan": name,
                "symbols": symbols,
                "key_stored": access.new_key is not None,
                "is_checked": fetched is not None,
                "changes": [change._asdict() for change in changes],
                "refresh_minutes": {str(count): plan.refresh_minutes(count) for count in {*_EXAMPLES, symbols}},
            }
        )
        return
    if fetched is not None:
        typer.echo(f"{provider} answers: {_newest_value(fetched)}.")
    typer.echo(f"{provider} is in use with the plan {name}: {plan.title}.")
    _print_changes(changes)
    _print_pace(plan, symbols, slower)
    for source in plan.sources:
        typer.echo(f"source: {source.words}")
    if settings.sandbox:
        hint(
            "with PRICING_SANDBOX on, the sandbox is asked, which needs no key of yours; these limits hold for it, too."
        )


def undo(provider: Provider, as_json: Json = False) -> None:
    """Restore the settings of a provider from before `provider use`. Types that it added are retired.

    \b
    Example: pricing-pipeline provider undo twelvedata
    """
    with open_owner() as engine, engine.begin() as connection:
        credentials.require_provider(connection, provider)
        changes = plans.undo(connection, provider)
        left = plans.routes_of_symbols(connection, provider)
    if as_json:
        routes = [{"data_type": data_type, "symbol": symbol} for data_type, symbol in left]
        print_json(
            {
                "provider": provider,
                "changes": [change._asdict() for change in changes],
                "routes_of_symbols": routes,
            }
        )
        return
    typer.echo(f"The settings of {provider} are as they were before its plan. Its stored keys stay.")
    _print_changes(changes)
    if left:
        routes_ = listed([f"{symbol} ({data_type})" for data_type, symbol in left])
        data_type, symbol = left[0]
        hint(
            f"these routes of single symbols stay, because no plan made them: {routes_}. To remove one: "
            f"pricing-pipeline route remove {provider} {symbol} --type {data_type}"
        )


def _hint_of_shell(settings: Settings, provider: str, access: Access, *, is_tried: bool) -> None:
    """Name the settings of this shell that the running pipeline needs, too."""
    if is_tried and settings.user_agent is not None:
        hint("this call was made with PRICING_USER_AGENT of this shell. Set it where `up` is started, too.")
    if access.is_from_environment and not settings.sandbox:
        hint(
            f"the key comes from {key_setting(provider)} here. The pipeline needs it, too: set it where `up` is "
            f"started, or store it: pricing-pipeline key set {provider}"
        )


def _chosen(
    connection: Connection, provider: str, name: str | None, minute: int | None, day: int | None
) -> tuple[str, Plan]:
    """The plan with the limits that the user has named. Raises PricingError if one is missing."""
    name, plan = plans.plan_of(connection, provider, name)
    plan = plan.with_limits(minute=minute, day=day)
    if plan.missing:
        options = " and ".join(f"--{limit} UNITS" for limit in plan.missing)
        raise PricingError(f"the plan {name} of {provider} needs {options}. Your account at {provider} shows them.")
    return name, plan


def _access(engine: Engine, settings: Settings, provider: str) -> Access:
    """The address and the keys of a provider. Asks for a key if one is needed and none is there."""
    access = access_to(engine, settings, provider)
    if access.keys or not access.service.needs_key:
        return access
    secret = credentials.checked_secret(key.read(provider, DEFAULT_KEY_NAME))
    return replace(access, keys={DEFAULT_KEY_NAME: secret}, new_key=secret)


def _has_worked(engine: Engine, provider: str, access: Access) -> bool:
    """Whether the provider is called already and answers: another call would say nothing new."""
    with engine.connect() as connection:
        (about,) = provider_rules.providers(connection, provider)
        return access.new_key is None and about.is_active and limits.has_answered(connection, provider)


def _try(engine: Engine, settings: Settings, provider: str, plan: Plan, check: Check, access: Access) -> Fetched:
    """Make the one call that tries the key. Raises PricingError with what the provider says."""
    service, agent = access.service, settings.user_agent
    with ProviderClient(service, access.base_url, access.keys, user_agent=agent) as client:
        try:
            fetched = client.fetch(
                Fetcher(plan.types[check.type].about.fetcher),
                [check.symbol],
                key_name=access.key_name,
                asset_class=plan.types[check.type].about.asset_class,
            )
        except ProviderError as error:
            if isinstance(error, KeyRefused) and service.needs_key:
                words = str(error).replace(check_key(provider), "").rstrip()
                replaced = f"`pricing-pipeline key set {provider}` replaces the stored one. "
                raise PricingError(
                    f"{provider} does not accept the key. {words} Copy it again from your account there. "
                    f"{'' if access.new_key else replaced}Nothing has changed."
                ) from error
            with engine.connect() as connection:
                message = limits.message_of(connection, provider, error)
            raise PricingError(f"{message.rstrip('. ')}. Nothing has changed.") from error
    for failure in fetched.answer.failures:
        raise PricingError(f"{failure.message.rstrip('. ')}. Nothing has changed.")
    return fetched


def _count(connection: Connection, provider: str, key_name: str, plan: Plan, check: Check, fetched: Fetched) -> None:
    parameters = {
        "provider": provider,
        "key_name": key_name,
        "data_type": check.type,
        "symbol": check.symbol,
        "fetcher": plan.types[check.type].about.fetcher,
        "wire_bytes": [fetched.wire_bytes, *fetched.page_bytes],
        "http_status": fetched.http_status,
    }
    connection.execute(query("plans.count_check"), parameters)


def _newest_value(fetched: Fetched) -> str:
    rows = fetched.answer.observations
    if rows:
        row = max(rows, key=lambda one: one.observed_at)
        return f"{row.symbol} {row.close:f} {row.currency or ''}".rstrip() + f" of {row.observed_at:%Y-%m-%d}"
    for record in fetched.answer.records:
        return f"a record about {record.symbol}"
    return "nothing about what it was asked for"


def _print_changes(changes: list[Change]) -> None:
    if not changes:
        typer.echo("Nothing had to change.")
        return
    print_table(["setting", "before", "now"], [(c.setting, c.before or "none", c.after or "none") for c in changes])


def _slower_types(connection: Connection, plan: Plan, symbols: int) -> dict[str, int]:
    """The types of quotes whose TTL is longer than the plan would allow, with that TTL in minutes."""
    slower = {}
    for name, kind in plan.types.items():
        about = data_type_registry.about(connection, name)
        if about is not None and kind.about.fetcher == "quote":
            minutes = int(about["ttl_minutes"])
            if minutes > max(kind.at_least, plan.refresh_minutes(symbols)):
                slower[name] = minutes
    return slower


def _print_pace(plan: Plan, symbols: int, slower: Mapping[str, int]) -> None:
    if all(kind.about.fetcher != "quote" for kind in plan.types.values()):
        return
    counts = sorted({*_EXAMPLES, symbols})
    print_table(
        ["watched shares", "each quote, while New York trades, every"],
        [(str(count), f"{plan.refresh_minutes(count)} min") for count in counts],
        right=["watched shares"],
    )
    typer.echo("--symbols N sets the TTL of quotes for N watched symbols.")
    for data_type, minutes in slower.items():
        typer.echo(
            f"{data_type} keeps its TTL of {minutes} min, because another plan in use serves it, too. "
            f"`pricing-pipeline type set-ttl {data_type} --ttl N` shortens it."
        )
