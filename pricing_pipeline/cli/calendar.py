"""`calendar list|add-session|close-day|undo`: trading days, and corrections of days that the library has wrong."""

from __future__ import annotations

from datetime import date, time, timedelta

import typer

from pricing_pipeline.cli.database import open_connection, open_owner
from pricing_pipeline.cli.output import login, print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.registry import calendars
from pricing_pipeline.settings import load_settings


def list_(calendar: str | None, first: date | None, last: date | None, *, as_json: bool) -> None:
    """Print all calendars, or the corrections of one between two days. Raises UnknownCalendar."""
    with open_connection(load_settings()) as connection:
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


def correct(
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
    with open_owner(load_settings()) as engine:
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


def undo(calendar: str, on: date, *, as_json: bool) -> None:
    """Undo the corrections of a day, except shipped ones. Raises UnknownCalendar, also if there are none."""
    with open_owner(load_settings()) as engine:
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
