"""`type list|show|add|change|set-ttl|refresh|retire|revive`: the registry of data types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import day, whole_number
from pricing_pipeline.cli.database import open_connection, open_engine, open_owner
from pricing_pipeline.cli.options import (
    Highest,
    Json,
    Lowest,
    TrustJumpsUntil,
    TypeName,
    given,
    given_bounds,
    symbols_argument,
)
from pricing_pipeline.cli.output import (
    bounds_words,
    duration,
    listed,
    print_change,
    print_json,
    print_lines,
    print_table,
)
from pricing_pipeline.cli.style import listing
from pricing_pipeline.db import errors as database_errors
from pricing_pipeline.demand import instruments, schedules
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.words import counted
from pricing_pipeline.errors import PricingError, UnknownSymbol
from pricing_pipeline.registry import data_type_registry, provider_rules

if TYPE_CHECKING:
    from sqlalchemy import Connection


DaysAhead = Annotated[
    int | None,
    typer.Option(metavar="DAYS", help="For how many days slots are requested, today included; only for slots."),
]
noun = typer.Typer()

_SETTINGS = (
    "description",
    "owner",
    "staleness_function",
    "schedule",
    "timezone",
    "history_from",
    "thin_after_days",
    "thin_to_minutes",
    "keep_months",
    "days_ahead",
)
_JUDGES = {None: "", True: "is_market_stale", False: "is_data_stale"}


@noun.command("list")
@listing
def list_(
    retired: Annotated[bool, typer.Option("--retired", help="Also those that are retired.")] = False,
    as_json: Json = False,
) -> None:
    """List the active data types.

    \b
    Example: pricing-pipeline type list --json
    """
    with open_connection() as connection:
        types = data_type_registry.active_data_types(connection)
        old = data_type_registry.retired_data_types(connection) if retired else []
        no_provider = provider_rules.no_provider(connection)
    if as_json:
        retired_types = {"retired": [data_type_registry.content_of(type_) for type_ in old]} if retired else {}
        print_json({"data_types": [data_type_registry.content_of(type_) for type_ in types], **retired_types})
        return
    print_table(
        ["data type", "fetcher", "asset class", "TTL", "refreshed", "history from", "description"],
        [
            (
                type_.data_type,
                type_.fetcher.value,
                type_.asset_class,
                duration(type_.default_ttl_minutes * 60),
                "retired" if type_ in old else _refreshed(type_.refresh_schedule, type_.schedule_timezone),
                type_.history_from,
                type_.description,
            )
            for type_ in [*types, *old]
        ],
        right=["TTL"],
        spare=["description", "history from", "fetcher"],
    )
    if not types and not old:
        way = no_provider or "`pricing-pipeline type add --help` shows how to fill it"
        typer.echo(f"the registry is empty; {way}.")


@noun.command()
def add(
    data_type: Annotated[str, typer.Argument(metavar="TYPE", help="Its name: small letters, digits, _.")],
    fetcher: Annotated[Fetcher, typer.Option(help="The kind of request.")],
    ttl: Annotated[int, typer.Option(metavar="MINUTES", help="Age at which a watched price is due again.")],
    asset_class: Annotated[str, typer.Option(help="The instruments it applies to.")] = "equity",
    schedule: Annotated[
        str | None, typer.Option(metavar="CRON", help="Refresh all its instruments at these times.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Time zone of the schedule, such as Asia/Kolkata.")] = "UTC",
    history_from: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day that a backfill may ask for; not of quotes.")
    ] = None,
    background_ttl: Annotated[
        int, typer.Option(metavar="MINUTES", help="Age at which a held, unwatched price is due again.")
    ] = 1440,
    description: Annotated[str, typer.Option(metavar="TEXT", help="One sentence for people.")] = "",
    follow_market: Annotated[
        bool | None,
        typer.Option(help="Make no call while a market is closed; the default for daily values."),
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="EMAIL", help="Who is responsible; a team as team:NAME.")] = None,
    days_ahead: DaysAhead = None,
    as_json: Json = False,
) -> None:
    """Add a data type. Its storage, assets, freshness policy and refresh follow automatically.

    \b
    Example: pricing-pipeline type add crypto_quote --fetcher quote --ttl 5 --asset-class crypto
    """
    with open_owner() as engine:
        try:
            with engine.begin() as connection:
                data_type_registry.add_data_type(
                    connection,
                    data_type,
                    fetcher=fetcher.value,
                    ttl_minutes=ttl,
                    asset_class=asset_class,
                    description=description,
                    schedule=schedule,
                    timezone=timezone,
                    history_from=None if history_from is None else day(history_from, "--history-from"),
                    background_ttl_minutes=background_ttl,
                    staleness_function=_JUDGES[follow_market],
                    owner=owner,
                    days_ahead=days_ahead,
                )
                type_ = data_type_registry.active_data_type(connection, data_type)
        except PricingError as error:
            refusal = error.__cause__
            if isinstance(refusal, database_errors.statement_error()):
                raise PricingError(f"{data_type!r} is not added: {database_errors.sentence(refusal)}") from refusal
            raise
    if as_json:
        print_json(data_type_registry.content_of(type_))
    else:
        typer.echo(f"{data_type} is added; a running pipeline shows its assets within half a minute.")


@noun.command()
def show(name: TypeName, as_json: Json = False) -> None:
    """Show one data type, active or retired: its TTLs, its schedule, and who serves it.

    \b
    Example: pricing-pipeline type show equity_quote
    """
    with open_connection() as connection:
        type_ = reads.any_data_type(connection, name)
        routes = provider_rules.routes(connection, name)
        bounds = instruments.bounds_of_type(connection, name)
    if as_json:
        print_json({**type_, **bounds, "routes": [asdict(route) for route in routes]})
        return
    thinned = type_["thin_after_days"]
    counting = [route for route in routes if route.is_active and route.provider_active]
    print_lines(
        {
            "data type": name if type_["is_active"] else f"{name} (retired)",
            "what": type_["description"],
            "fetcher": type_["fetcher"],
            "days ahead": type_["days_ahead"],
            "of": f"{type_['asset_class']}, {counted(type_['instruments'], 'instrument')}",
            "TTL": duration(type_["ttl_minutes"] * 60),
            "held": f"{duration(type_['background_ttl_minutes'] * 60)} while nobody watches",
            "refreshed": _refreshed(type_["schedule"], type_["timezone"]),
            "judged by": type_["staleness_function"],
            "history": f"from {type_['history_from']}" if type_["history_from"] else "none to backfill",
            "thinned": f"to one for {duration(type_['thin_to_minutes'] * 60)} after {thinned} days" if thinned else "",
            "kept": f"{type_['keep_months']} months in the database, older ones in files"
            if type_["keep_months"]
            else "",
            "bounds": bounds_words(**bounds),
            "owner": type_["owner"],
            "served by": ", ".join(route.provider for route in counting if route.symbol is None),
            "symbols by": ", ".join(f"{route.symbol} by {route.provider}" for route in counting if route.symbol),
        }
    )


@noun.command("set-ttl")
def set_ttl(
    name: TypeName,
    symbols: Annotated[list[str] | None, symbols_argument("Only these symbols; default: the whole type.")] = None,
    ttl: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="Age at which a watched price is due again.")
    ] = None,
    background_ttl: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="Age at which a held, unwatched price is due again.")
    ] = None,
    as_type: Annotated[bool, typer.Option("--as-type", help="Use the type's TTL again.")] = False,
    as_json: Json = False,
) -> None:
    """Change the TTL of a data type, or of some of its symbols.

    Prices due by the new TTL are fetched within seconds. It needs the owner's URL.

    \b
    Example: pricing-pipeline type set-ttl equity_quote --ttl 15 --background-ttl 720
    """
    if symbols and (background_ttl is not None or as_type == (ttl is not None)):
        raise typer.BadParameter("symbols take either --ttl or --as-type")
    if not symbols and (as_type or (ttl is None and background_ttl is None)):
        raise typer.BadParameter("give --ttl, --background-ttl, or both")
    if symbols:
        _set_own_ttl(name, symbols, ttl, as_json=as_json)
    else:
        _set_type_ttl(name, ttl, background_ttl, as_json=as_json)


@noun.command()
@listing
def change(
    name: TypeName,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="One sentence for people.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="EMAIL", help="Who is responsible; a team as team:NAME.")] = None,
    follow_market: Annotated[bool | None, typer.Option(help="Make no call while a market is closed.")] = None,
    schedule: Annotated[
        str | None, typer.Option(metavar="CRON", help="Refresh all its instruments at these times.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="Time zone of the schedule, such as Asia/Kolkata.")] = None,
    history_from: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day that a backfill may ask for; not of quotes.")
    ] = None,
    thin_after: Annotated[
        str | None,
        typer.Option(metavar="DAYS", help="Keep only the last older quote of each span of --thin-to."),
    ] = None,
    thin_to: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="The length of such a span; it divides a day.")
    ] = None,
    keep_months: Annotated[
        str | None,
        typer.Option(metavar="N", help="Months that stay in the database; older ones move to files."),
    ] = None,
    days_ahead: DaysAhead = None,
    lowest: Lowest = None,
    highest: Highest = None,
    trust_jumps_until: TrustJumpsUntil = None,
    as_json: Json = False,
) -> None:
    """Change a data type, or bound the prices of its symbols without their own bounds.

    Only the named options change. The word none removes a value, as in --thin-after none. `type set-ttl` changes its
    TTLs. It needs the owner's URL.

    \b
    Example: pricing-pipeline type change equity_quote --thin-after 30 --thin-to 60
    """
    columns = given(
        description=(description, str),
        owner=(owner, str),
        refresh_schedule=(schedule, str),
        schedule_timezone=(timezone, str),
        history_from=(history_from, lambda text: day(text, "--history-from")),
        thin_after_days=(thin_after, lambda text: whole_number(text, "--thin-after")),
        thin_to_minutes=(thin_to, int),
        keep_months=(keep_months, lambda text: whole_number(text, "--keep-months")),
        days_ahead=(days_ahead, int),
    )
    bounds = given_bounds(lowest, highest, trust_jumps_until)
    if not (columns or bounds or follow_market is not None):
        raise typer.BadParameter("say what changes, such as --thin-after 30")
    columns = dict(columns)
    if "refresh_schedule" in columns:
        columns["refresh_strategy"] = "on-demand" if columns["refresh_schedule"] is None else "scheduled"
    if follow_market is not None:
        columns["staleness_function"] = _JUDGES[follow_market]
    with open_owner() as engine, engine.begin() as connection:
        before = _settings(connection, name)
        if columns:
            data_type_registry.change(connection, name, columns)
        if bounds:
            instruments.change_bounds(connection, name, None, bounds)
        after = _settings(connection, name)
    print_change({"data_type": name}, before, after, as_json=as_json)


@noun.command()
def refresh(name: TypeName, as_json: Json = False) -> None:
    """Queue the stale instruments of a scheduled type now, behind watched and held pairs.

    \b
    Example: pricing-pipeline type refresh mf_nav
    """
    with open_engine() as engine, engine.begin() as connection:
        queued = schedules.refresh(connection, name)
    if as_json:
        print_json({"data_type": name, "queued": queued})
    elif queued:
        typer.echo(f"queued {counted(queued, 'task')} of {name}; if there are more instruments, they follow.")
    else:
        typer.echo(
            f"Nothing new of {name} is queued: its instruments are fresh, back off or wait in the queue, or its "
            "providers can take no more. `pricing-pipeline price why SYMBOL` says which."
        )


@noun.command()
def retire(name: TypeName, as_json: Json = False) -> None:
    """Stop fetching a data type. Its prices and its history stay, and can be read.

    It needs the owner's URL.

    \b
    Example: pricing-pipeline type retire fx_rate
    """
    _set_active(name, is_active=False, as_json=as_json)


@noun.command()
def revive(name: TypeName, as_json: Json = False) -> None:
    """Fetch a retired data type again, as it was.

    It needs the owner's URL.

    \b
    Example: pricing-pipeline type revive fx_rate
    """
    _set_active(name, is_active=True, as_json=as_json)


def _refreshed(schedule: str | None, timezone: str) -> str:
    return f"{schedule} ({timezone})" if schedule else "on demand"


def _set_type_ttl(name: str, ttl: int | None, background_ttl: int | None, *, as_json: bool) -> None:
    """Change TTLs, as the owner. Raises UnknownDataType; the database refuses what is no TTL."""
    with open_owner() as engine, engine.begin() as connection:
        data_type_registry.set_ttl(connection, name, ttl, background_ttl)
        type_ = reads.any_data_type(connection, name)
    if as_json:
        print_json({key: type_[key] for key in ("data_type", "ttl_minutes", "background_ttl_minutes")})
        return
    typer.echo(
        f"{name} grows at most {duration(type_['ttl_minutes'] * 60)} old while it is watched, and "
        f"{duration(type_['background_ttl_minutes'] * 60)} while it is held and not watched."
    )


def _set_own_ttl(name: str, symbols: Sequence[str], ttl: int | None, *, as_json: bool) -> None:
    """Give symbols a TTL of their own, or with None their type's. Raises UnknownSymbol where nothing is stored."""
    with open_owner() as engine, engine.begin() as connection:
        type_ = reads.any_data_type(connection, name)
        symbols = list(dict.fromkeys(instruments.spelled(connection, name, symbols)))
        changed = data_type_registry.set_own_ttl(connection, name, symbols, ttl)
        missing = [symbol for symbol in symbols if symbol not in changed]
        if missing:
            raise UnknownSymbol(
                f"nothing is stored of {name} {listed(missing)} yet, and a pair's own TTL is stored with its price. "
                "Nothing has changed."
            )
    if as_json:
        print_json({"data_type": name, "symbols": symbols, "ttl_minutes": ttl})
        return
    how = "as its type's do" if ttl is None else "by a TTL of its own"
    typer.echo(f"{name} {listed(symbols)} grows at most {duration((ttl or type_['ttl_minutes']) * 60)} old, {how}.")


def _settings(connection: Connection, name: str) -> dict[str, Any]:
    about = reads.any_data_type(connection, name)
    return {setting: about[setting] for setting in _SETTINGS} | instruments.bounds_of_type(connection, name)


def _set_active(name: str, *, is_active: bool, as_json: bool) -> None:
    """Retire or revive a data type, as the owner. Raises UnknownDataType."""
    with open_owner() as engine, engine.begin() as connection:
        reads.any_data_type(connection, name)
        changed = data_type_registry.set_active(connection, name, is_active=is_active)
    if as_json:
        print_json({"data_type": name, "is_active": is_active, "changed": changed})
    elif not changed:
        typer.echo(f"{name} is {'active' if is_active else 'retired'} already; nothing has changed.")
    elif is_active:
        typer.echo(f"{name} is active again; its watched pairs are due.")
    else:
        typer.echo(f"{name} is retired: it is no longer fetched, and its prices stay. `type revive` undoes this.")
