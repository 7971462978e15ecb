"""`calendar list|add-session|close-day|undo`: trading days, and corrections of wrong ones."""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import Annotated

import typer

from pricing_pipeline.cli.arguments import day, time_of_day
from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.options import Json, Reason
from pricing_pipeline.cli.output import login, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import listing
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.registry import calendars

noun = typer.Typer()

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
    typer.Option("--opens", metavar="HH:MM", help="When trading begins, local time; default: the usual hours."),
]
Closes = Annotated[str | None, typer.Option("--closes", metavar="HH:MM", help="When trading ends, local time.")]
Source = Annotated[str | None, typer.Option("--source", metavar="TEXT", help="Where this is published, such as a URL.")]
Who = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who enters it; default: your login.")]


@noun.command("list")
@listing
def list_(
    calendar: AnyCalendar = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="DATE", help="First day; default: a year ago.")] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="DATE", help="Last day; default: all that are known.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List calendars and how far their days are known, or the corrections of one of them.

    Days about which the two sources of trading days disagree are listed as undecided.

    \b
    Example: pricing-pipeline calendar list XBOM --from 2025-01-01
    """
    first = None if from_ is None else day(from_, "--from")
    last = None if to is None else day(to, "--to", last=True)
    with open_connection() as connection:
        if calendar is None:
            known = calendars.listed(connection)
        else:
            calendar = calendars.find(connection, calendar)
            today = calendars.today(connection)
            corrections = calendars.corrections(
                connection, calendar, first or today - timedelta(days=366), last or date(9999, 12, 31)
            )
    if calendar is None:
        if as_json:
            print_json({"calendars": known})
            return
        print_table(
            ["calendar", "instruments", "known from", "to", "corrections", "undecided", "failure", "name"],
            [
                (
                    one["calendar"],
                    one["instruments"],
                    one["sessions_from"],
                    one["sessions_to"],
                    one["corrections"],
                    one["disagreements"],
                    one["failure"],
                    one["description"],
                )
                for one in known
            ],
            right=["instruments", "corrections", "undecided"],
            spare=["name", "known from"],
            long="failure",
        )
        return
    if as_json:
        print_json({"calendar": calendar, "corrections": corrections})
        return
    if not corrections:
        typer.echo(f"no day of {calendar} in this time is corrected or undecided.")
        return
    print_table(
        ["day", "", "hours", "by", "counts", "why", "source"],
        [
            (
                one["day"],
                "session" if one["is_open"] else "closed",
                "" if one["opens_at"] is None else f"{one['opens_at']:%H:%M}-{one['closes_at']:%H:%M}",
                one["by_whom"] or one["origin"],
                "no" if one["is_overruled"] else "yes",
                one["reason"],
                one["source"],
            )
            for one in corrections
        ],
        spare=["source"],
        long="why",
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
    """Add a trading day, or unusual hours, for all instruments of an exchange, at once.

    Quarantined bars of the day are then believed. It needs the owner's URL.

    \b
    Example: pricing-pipeline calendar add-session XNSE 2026-11-08 --opens 18:00 --closes 19:00 --reason Muhurat
    """
    if (opens is None) != (closes is None):
        raise typer.BadParameter("give --opens and --closes, or neither")
    hours = (
        None if opens is None or closes is None else (time_of_day(opens, "--opens"), time_of_day(closes, "--closes"))
    )
    if hours is not None and hours[0] >= hours[1]:
        raise typer.BadParameter("--opens must be before --closes")
    _correct(calendar, day(on, "DAY"), hours, reason, source, user, is_open=True, as_json=as_json)


@noun.command("close-day")
def close_day(
    calendar: Calendar,
    on: Day,
    reason: Reason = None,
    source: Source = None,
    user: Who = None,
    as_json: Json = False,
) -> None:
    """Close an exchange on a day, so that no value is missing and no quote is late.

    It needs the owner's URL.

    \b
    Example: pricing-pipeline calendar close-day XKRX 2026-07-17 --reason "Constitution Day"
    """
    _correct(calendar, day(on, "DAY"), None, reason, source, user, is_open=False, as_json=as_json)


@noun.command()
def undo(calendar: Calendar, when: Day, as_json: Json = False) -> None:
    """Undo what a person entered or bars proved about a day: the library and the shipped corrections count again.

    It needs the owner's URL.

    \b
    Example: pricing-pipeline calendar undo XKRX 2026-07-17
    """
    on = day(when, "DAY")
    with open_owner() as engine:
        with engine.begin() as connection:
            calendar = calendars.find(connection, calendar)
            gone = calendars.undo(connection, calendar, on)
        extended = calendars.extend(engine)
    if as_json:
        print_json({"outcome": "undone", "calendar": calendar, "day": on, "origins": gone})
        return
    typer.echo(f"the correction of {calendar} on {on:%A}, {on} is undone.")
    if why := extended.failed.get(calendar):
        hint(f"its days stay as they are for now: {why}.")


def _correct(
    calendar: str,
    on: date,
    hours: tuple[time, time] | None,
    reason: str | None,
    source: str | None,
    user: str | None,
    *,
    is_open: bool,
    as_json: bool,
) -> None:
    """Enter a session or a closed day. Raises UnknownCalendar."""
    by_whom = user or login()
    with open_owner() as engine:
        with engine.begin() as connection:
            calendar = calendars.find(connection, calendar)
            outcome = calendars.correct(
                connection,
                calendar,
                on,
                hours,
                is_open=is_open,
                reason=reason or ("a special session" if is_open else "a closed day"),
                source=source,
                by_whom=by_whom,
            )
        released = sum(one.outcome == "released" for one in reviews.release_opened_days(engine))
    if as_json:
        print_json(
            {
                "outcome": outcome,
                "calendar": calendar,
                "day": on,
                "is_open": is_open,
                "by": by_whom,
                "released": released,
            }
        )
        return
    typer.echo(f"{calendar} {'trades' if is_open else 'does not trade'} on {on:%A}, {on}.")
    if released:
        one = released == 1
        typer.echo(
            f"{released} quarantined {'bar' if one else 'bars'} of that day {'is' if one else 'are'} believed now."
        )
    hint(f"`pricing-pipeline calendar undo {calendar} {on}` undoes this.")
