"""The commands of `calendar` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Reason
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Look at trading calendars, and correct days that the library has wrong.")

Calendar = Annotated[
    str, typer.Argument(metavar="CALENDAR", help="A calendar of `calendar list`, or the MIC of an exchange.")
]
AnyCalendar = Annotated[
    str | None,
    typer.Argument(metavar="CALENDAR", help="Show the corrections of this calendar.", show_default=False),
]
Day = Annotated[str, typer.Argument(metavar="DAY", help="The day at the exchange, like 2026-11-08.")]
Opens = Annotated[
    str | None,
    typer.Option("--opens", metavar="HH:MM", help="When trading begins, local time; else the usual hours."),
]
Closes = Annotated[
    str | None, typer.Option("--closes", metavar="HH:MM", help="When trading ends, local time.")
]
Source = Annotated[
    str | None, typer.Option("--source", metavar="TEXT", help="Where this is published, such as a URL.")
]
Who = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who enters it; else your login.")]


@noun.command("list")
@listing
def list_(
    calendar: AnyCalendar = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DATE", help="First day; else a year ago.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DATE", help="Last day; else all that are known.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List calendars and how far their days are known, or the corrections of one of them.

    Days about which the two sources of trading days disagree are listed as undecided.

    \b
    Example: pricing-pipeline calendar list XBOM --from 2025-01-01
    """
    from pricing_pipeline.cli import calendar as commands
    from pricing_pipeline.cli.arguments import day

    commands.list_(
        calendar,
        None if first is None else day(first, "--from"),
        None if last is None else day(last, "--to", last=True),
        as_json=as_json,
    )


@noun.command("add-session")
def add_session(
    calendar: Calendar,
    on: Day,
    opens: Opens = None,
    closes: Closes = None,
    reason: Reason = None,
    source: Source = None,
    user: Who = None,
    as_json: Json = False,
) -> None:
    """Say that an exchange trades on a day, or at unusual hours. It counts at once, for all instruments there.

    Quarantined bars of the day are then believed. It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline calendar add-session XNSE 2026-11-08 --opens 18:00 --closes 19:00 --reason Muhurat
    """
    from pricing_pipeline.cli import calendar as commands
    from pricing_pipeline.cli.arguments import day, time_of_day

    if (opens is None) != (closes is None):
        raise typer.BadParameter("give --opens and --closes, or neither")
    hours = (
        None
        if opens is None or closes is None
        else (time_of_day(opens, "--opens"), time_of_day(closes, "--closes"))
    )
    if hours is not None and hours[0] >= hours[1]:
        raise typer.BadParameter("--opens must be before --closes")
    commands.correct(calendar, day(on, "DAY"), hours, reason, source, user, is_open=True, as_json=as_json)


@noun.command("close-day")
def close_day(
    calendar: Calendar,
    on: Day,
    reason: Reason = None,
    source: Source = None,
    user: Who = None,
    as_json: Json = False,
) -> None:
    """Say that an exchange does not trade on a day: no value of it is missing, and no quote is late.

    It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline calendar close-day XKRX 2026-07-17 --reason "Constitution Day"
    """
    from pricing_pipeline.cli import calendar as commands
    from pricing_pipeline.cli.arguments import day

    commands.correct(calendar, day(on, "DAY"), None, reason, source, user, is_open=False, as_json=as_json)


@noun.command()
def undo(calendar: Calendar, on: Day, as_json: Json = False) -> None:
    """Undo what a person entered or bars proved about a day: the library and the shipped corrections count again.

    It needs the owner's URL, as `type add` does.

    \b
    Example: pricing-pipeline calendar undo XKRX 2026-07-17
    """
    from pricing_pipeline.cli import calendar as commands
    from pricing_pipeline.cli.arguments import day

    commands.undo(calendar, day(on, "DAY"), as_json=as_json)
