"""Trading calendars: write their sessions into the database, and find the gaps of a history.

This module only fills the table of sessions; SQL judges by it (`pricing.next_value_at`, `pricing.gaps`,
`pricing.missing_windows`). The library of exchanges takes more than a second to import: nothing else may import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from psycopg import errors

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, driver_query, query
from pricing_pipeline.domain.observations import Observations
from pricing_pipeline.domain.windows import span
from pricing_pipeline.errors import InvalidRange, SessionsNotKnown, UnknownCalendar
from pricing_pipeline.registry import second_source
from pricing_pipeline.registry.sessions import Sessions

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_OWN = frozenset({"FX", "24/7"})
"""Calendars that SQL computes itself."""


class GapKind(StrEnum):
    """Why a session has no value. `pricing.gaps` decides."""

    NOT_LISTED = "not_listed"
    PROVIDER_HAS_NONE = "provider_has_none"
    FAILED = "failed"
    QUARANTINED = "quarantined"
    UNREADABLE = "unreadable"
    QUEUED = "queued"
    NOT_PUBLISHED = "not_published"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Gap:
    """Sessions in a row without a value, for one reason, both days included. `detail` is for people."""

    first_day: date
    last_day: date
    sessions: int
    kind: GapKind
    detail: str | None


@dataclass(frozen=True, slots=True)
class Extended:
    """The calendars whose sessions were written, and why those of others could not be worked out."""

    written: Sequence[str]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OpenedDay:
    """A day that has become a session while bars of it were quarantined: their ids, and what made it one."""

    calendar: str
    day: date
    reason: str
    notes: int
    """How often bars of it were noted."""
    value_ids: Sequence[int]


def extend(engine: Engine, *, again: bool = False) -> Extended:
    """Write the missing sessions of calendars in use, to the end of next year if they are known so far.

    `again` writes all sessions again: a new version of the library may have corrections. Each is its own transaction. A
    calendar that cannot be built, or that the library does not know, keeps the sessions it has: its instruments follow
    their TTL beyond them, a warning says so, and the other calendars are written.
    """
    with engine.connect() as connection:
        wanted = connection.execute(query("calendars.to_extend"), {"again": again}).all()
    written: list[str] = []
    failed: dict[str, str] = {}
    for row in wanted:
        try:
            if row.calendar in _OWN:
                with engine.begin() as connection:
                    call_sql(connection, "store_own_sessions", row.calendar, row.from_day, row.to_day)
            else:
                _extend_exchange(engine, row.calendar, row.from_day, row.to_day, row.known_to)
        except statement_error():
            raise
        # The rules of sixty countries may raise any error, such as NotImplementedError under pandas 3.1.
        except Exception as error:
            failed[row.calendar] = str(error) if isinstance(error, LookupError) else _words(row.calendar, error)
            parameters = {"calendar": row.calendar, "message": failed[row.calendar]}
            with engine.begin() as connection:
                connection.execute(query("calendars.note_failed"), parameters)
        else:
            written.append(row.calendar)
    return Extended(written, failed)


def _words(calendar: str, error: Exception) -> str:
    return (
        f"the trading days of {calendar} could not be worked out ({type(error).__name__}: {error}), so those that are "
        "known stay. It is tried again in a week, and by `pricing-pipeline db upgrade`"
    )


def _extend_exchange(engine: Engine, calendar: str, start: date, end: date, known_to: date | None) -> None:
    sessions = exchange_sessions(calendar, start, end if known_to is None else min(end, known_to))
    with engine.begin() as connection:
        call_sql(
            connection,
            "store_sessions",
            calendar,
            sessions.start,
            sessions.end,
            list(sessions.days),
            list(sessions.opens),
            list(sessions.closes),
        )
        doubts = second_source.disagreements(sessions, today(connection))
        call_sql(
            connection,
            "store_disagreements",
            calendar,
            [doubt.day for doubt in doubts],
            [doubt.is_open for doubt in doubts],
            [doubt.reason for doubt in doubts],
        )


def exchange_sessions(calendar: str, start: date, end: date) -> Sessions:
    """The sessions of an exchange (ISO 10383 code) between two days, as far as its holidays are known.

    Raises LookupError for an exchange that the library does not know.
    """
    import exchange_calendars
    from exchange_calendars.errors import InvalidCalendarName
    from pandas import Timestamp

    kinds = exchange_calendars.calendar_utils.global_calendar_dispatcher
    try:
        name = kinds.resolve_alias(calendar)
        kind = kinds._calendar_factories[name]
    except (InvalidCalendarName, KeyError):
        raise LookupError(
            f"exchange-calendars knows no exchange {calendar}. `pricing-pipeline instrument change SYMBOL --calendar` "
            "sets one that it knows"
        ) from None
    first, last = Timestamp(start), Timestamp(end)
    low, high = kind.bound_min(), kind.bound_max()
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    schedule = exchange_calendars.get_calendar(name, start=first, end=last).schedule
    return Sessions(
        calendar,
        first.date(),
        last.date(),
        [stamp.date() for stamp in schedule.index],
        [stamp.to_pydatetime() for stamp in schedule["open"]],
        [stamp.to_pydatetime() for stamp in schedule["close"]],
    )


def known_to(connection: Connection, data_type: str, symbol: str) -> tuple[str, date] | None:
    """The calendar of a pair's instrument, and the last day of its known sessions; None without a calendar."""
    parameters = {"data_type": data_type, "symbol": symbol}
    row = connection.execute(query("calendars.known_to"), parameters).one_or_none()
    return None if row is None else (row.calendar, row.sessions_to)


def closed_days(connection: Connection, data_type: str, symbol: str, first_day: date, last_day: date) -> list[date]:
    """Holidays of a pair's market between two days, both included: they need no value."""
    rows = connection.execute(
        query("calendars.closed_days"),
        {"data_type": data_type, "symbol": symbol, "first_day": first_day, "last_day": last_day},
    )
    return [row.day for row in rows]


def without_session(connection: Connection, data_type: str, observed: Observations) -> dict[str, dict[date, str]]:
    """By symbol, the days of daily values on which its exchange has no session, with the calendar that says so.

    Calendars whose sessions are not known say nothing.
    """
    found: dict[str, dict[date, str]] = {}
    parameters = {"data_type": data_type, **arrays.spans(observed.spans())}
    own = observed.by_symbol()
    rows = driver_rows(connection, driver_query("calendars.sessions"), parameters)
    for symbol, calendar, first, last, ordinals in rows:
        sessions = set(ordinals)
        days = [day for day in own[symbol].dates() if first <= day.toordinal() <= last]
        if closed := [day for day in days if day.toordinal() not in sessions]:
            found[symbol] = dict.fromkeys(closed, calendar)
    return found


def listed(connection: Connection) -> list[dict[str, Any]]:
    """All calendars: how far their days are known, how many instruments follow them, and what is wrong with them."""
    return [dict(row) for row in connection.execute(query("calendars.listed")).mappings()]


def find(connection: Connection, name: str) -> str:
    """The calendar of this name, or of the exchange with this MIC. Raises UnknownCalendar."""
    found = connection.execute(query("calendars.find"), {"name": name}).scalar_one()
    if found is None:
        raise UnknownCalendar(
            f"no trading calendar or exchange is called {name!r}. `pricing-pipeline calendar list` shows all."
        )
    return str(found)


def corrections(connection: Connection, calendar: str, first_day: date, last_day: date) -> list[dict[str, Any]]:
    """The corrections of a calendar between two days, and the days about which its two sources disagree."""
    parameters = {"calendar": calendar, "first_day": first_day, "last_day": last_day}
    return [dict(row) for row in connection.execute(query("calendars.corrections"), parameters).mappings()]


def correct(
    connection: Connection,
    calendar: str,
    day: date,
    hours: tuple[time, time] | None,
    *,
    is_open: bool,
    reason: str,
    source: str | None,
    by_whom: str,
) -> str:
    """Enter a person's correction of a day, with hours in the calendar's zone; returns added or replaced."""
    opens_at, closes_at = hours or (None, None)
    return str(
        call_sql(
            connection,
            "correct_calendar",
            calendar,
            day,
            is_open,
            opens_at,
            closes_at,
            reason,
            source,
            by_whom,
        ).scalar_one()
    )


def undo(connection: Connection, calendar: str, day: date) -> list[str]:
    """Undo the corrections of a day by a person or from evidence; return their origins. Raises UnknownCalendar."""
    gone = connection.execute(query("calendars.undo"), {"calendar": calendar, "day": day}).scalar_one()
    if gone is None:
        raise UnknownCalendar(
            f"nobody has corrected {calendar} on {day}. `pricing-pipeline calendar list {calendar}` shows what was "
            "corrected; `calendar add-session` and `close-day` overrule a shipped correction."
        )
    return list(gone)


def weigh_closed_days(connection: Connection, data_type: str, symbols: Sequence[str]) -> int:
    """Make days sessions that quarantined bars of several instruments or providers prove; returns how many."""
    return int(call_sql(connection, "weigh_closed_days", data_type, list(symbols)).scalar_one())


def opened_days(connection: Connection) -> list[OpenedDay]:
    """Days that have become sessions while bars of them were quarantined, with these bars."""
    return [OpenedDay(**row) for row in connection.execute(query("calendars.bars_of_opened_days")).mappings()]


def forget_opened_day(connection: Connection, opened: OpenedDay) -> None:
    """The bars of a day that has become a session were released. If more were noted since, the day stays."""
    parameters = {"calendar": opened.calendar, "day": opened.day, "notes": opened.notes}
    connection.execute(query("calendars.forget_opened_day"), parameters)


def gaps(connection: Connection, data_type: str, symbol: str, first_day: date, last_day: date) -> list[Gap]:
    """The gaps in the history of a pair between two days, both included, oldest first.

    Raises InvalidRange for days in the wrong order, types without daily values and instruments without a calendar, and
    SessionsNotKnown where the calendar's trading days are not known yet.
    """
    days = span(first_day, last_day)
    try:
        rows = call_sql(connection, "gaps", data_type, symbol, days.start, days.end).all()
    except statement_error() as error:
        if isinstance(error.orig, errors.ObjectNotInPrerequisiteState):
            raise SessionsNotKnown(reason(error)) from error
        if not isinstance(error.orig, errors.InvalidParameterValue):
            raise
        raise InvalidRange(reason(error)) from error
    return [Gap(row.first_day, row.last_day, row.sessions, GapKind(row.kind), row.detail) for row in rows]


def time_zones(connection: Connection, data_type: str, symbols: Sequence[str]) -> dict[str, str]:
    """The time zone (IANA name) of each symbol's exchange, without those whose exchange or zone is not known."""
    rows = connection.execute(query("calendars.time_zones"), {"data_type": data_type, "symbols": list(symbols)})
    return {row.symbol: row.time_zone for row in rows}


def today(connection: Connection) -> date:
    """The current day in UTC, by the database's clock."""
    day: date = connection.execute(query("calendars.today")).scalar_one()
    return day
