"""The commands of `type` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

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
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.data_types import Fetcher

DaysAhead = Annotated[
    int | None,
    typer.Option(
        metavar="DAYS", help="For how many days slots are asked for, today included; for slots alone."
    ),
]

noun = typer.Typer(help="Look at the data types; add, change or retire one.")


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
    from pricing_pipeline.cli import data_type

    data_type.list_(retired=retired, as_json=as_json)


@noun.command()
def add(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="Its name: small letters, digits, _.")],
    fetcher: Annotated[Fetcher, typer.Option(help="What is asked of a provider.")],
    ttl: Annotated[int, typer.Option(metavar="MINUTES", help="How old a watched price may grow.")],
    asset_class: Annotated[str, typer.Option(help="The instruments it applies to.")] = "equity",
    schedule: Annotated[
        str | None, typer.Option(metavar="CRON", help="Refresh all its instruments at these times.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="Of the schedule, such as Asia/Kolkata.")] = "UTC",
    history_from: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day that a backfill may ask for.")
    ] = None,
    background_ttl: Annotated[
        int, typer.Option(metavar="MINUTES", help="Age at which a held, unwatched price is due again.")
    ] = 1440,
    description: Annotated[str, typer.Option(metavar="TEXT", help="One sentence for people.")] = "",
    follow_market: Annotated[
        bool | None,
        typer.Option(help="Make no call while a market is closed; the default for daily values."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="EMAIL", help="Who answers for it; a team as team:NAME.")
    ] = None,
    days_ahead: DaysAhead = None,
    as_json: Json = False,
) -> None:
    """Add a data type. Its storage, assets, freshness policy and refresh follow by themselves.

    \b
    Example: pricing-pipeline type add crypto_quote --fetcher quote --ttl 5 --asset-class crypto
    """
    from pricing_pipeline.cli import data_type
    from pricing_pipeline.cli.arguments import day

    data_type.add(
        name,
        fetcher=fetcher.value,
        ttl_minutes=ttl,
        asset_class=asset_class,
        schedule=schedule,
        timezone=timezone,
        history_from=None if history_from is None else day(history_from, "--history-from"),
        description=description,
        background_ttl_minutes=background_ttl,
        follow_market=follow_market,
        owner=owner,
        days_ahead=days_ahead,
        as_json=as_json,
    )


@noun.command()
def show(name: TypeName, as_json: Json = False) -> None:
    """Show one data type, active or retired: its TTLs, its schedule, and who serves it.

    \b
    Example: pricing-pipeline type show equity_quote
    """
    from pricing_pipeline.cli import data_type

    data_type.show(name, as_json=as_json)


@noun.command("set-ttl")
def set_ttl(
    name: TypeName,
    symbols: Annotated[list[str] | None, symbols_argument("Only of these; else of the type.")] = None,
    ttl: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="How old a watched price may grow.")
    ] = None,
    background_ttl: Annotated[
        int | None, typer.Option(metavar="MINUTES", help="Age at which a held, unwatched price is due again.")
    ] = None,
    as_type: Annotated[
        bool, typer.Option("--as-type", help="Have the symbols go by the type's TTL again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change how old prices of a data type may grow, or those of some symbols of it.

    What is due by the new TTL is fetched within seconds. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline type set-ttl equity_quote --ttl 15 --background-ttl 720
    """
    if symbols and (background_ttl is not None or as_type == (ttl is not None)):
        raise typer.BadParameter("symbols take either --ttl or --as-type")
    if not symbols and (as_type or (ttl is None and background_ttl is None)):
        raise typer.BadParameter("give --ttl, --background-ttl, or both")
    from pricing_pipeline.cli import data_type

    if symbols:
        data_type.set_own_ttl(name, symbols, ttl, as_json=as_json)
    else:
        data_type.set_ttl(name, ttl, background_ttl, as_json=as_json)


@noun.command()
@listing
def change(
    name: TypeName,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="One sentence for people.")] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="EMAIL", help="Who answers for it; a team as team:NAME.")
    ] = None,
    follow_market: Annotated[bool | None, typer.Option(help="Make no call while a market is closed.")] = None,
    schedule: Annotated[
        str | None, typer.Option(metavar="CRON", help="Refresh all its instruments at these times.")
    ] = None,
    timezone: Annotated[str | None, typer.Option(help="Of the schedule, such as Asia/Kolkata.")] = None,
    history_from: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day that a backfill may ask for.")
    ] = None,
    thin_after: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS", help="Of quotes that are older, keep the last one of each span of --thin-to."
        ),
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
    """Change a data type, or bound the prices of all its symbols that have no bounds of their own.

    What no option names stays. The word none takes away what an option names, as in --thin-after none. `type set-ttl`
    changes its TTLs. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline type change equity_quote --thin-after 30 --thin-to 60
    """
    from pricing_pipeline.cli import data_type
    from pricing_pipeline.cli.arguments import day, whole_number

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
    data_type.change(name, columns, bounds, follow_market=follow_market, as_json=as_json)


@noun.command()
def refresh(name: TypeName, as_json: Json = False) -> None:
    """Queue the instruments of a type with a schedule now, behind what is watched and held; not what is fresh.

    \b
    Example: pricing-pipeline type refresh mf_nav
    """
    from pricing_pipeline.cli import data_type

    data_type.refresh(name, as_json=as_json)


@noun.command()
def retire(name: TypeName, as_json: Json = False) -> None:
    """Fetch nothing more of a data type. Its prices and its history stay, and can be read.

    It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline type retire fx_rate
    """
    from pricing_pipeline.cli import data_type

    data_type.set_active(name, is_active=False, as_json=as_json)


@noun.command()
def revive(name: TypeName, as_json: Json = False) -> None:
    """Fetch a retired data type again, as it was.

    It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline type revive fx_rate
    """
    from pricing_pipeline.cli import data_type

    data_type.set_active(name, is_active=True, as_json=as_json)
