"""Trading calendars: write their sessions into the database, and find the gaps of a history.

This module only fills the table of sessions; SQL judges by it (`pricing.next_value_at`, `pricing.gaps`,
`pricing.missing_windows`). The library of exchanges takes more than a second to import: nothing else may import it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from psycopg import errors
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db import arrays
from pricing_pipeline.db.engine import driver_rows
from pricing_pipeline.db.errors import reason
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.domain.windows import span
from pricing_pipeline.errors import InvalidRange, SessionsNotKnown

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
class Sessions:
    """The trading days of one calendar between two days, with open and close in UTC."""

    calendar: str
    start: date
    end: date
    days: Sequence[date]
    opens: Sequence[datetime]
    closes: Sequence[datetime]


def extend(engine: Engine, *, again: bool = False) -> list[str]:
    """Write the missing sessions of calendars in use, to the end of next year if they are known so far.

    `again` writes all sessions anew: a new version of the library may have corrections. Returns the written calendars.
    Each is its own transaction. A calendar that the library does not know stays without sessions: its instruments
    follow their TTL, and a warning in the database says so.
    """
    with engine.connect() as connection:
        wanted = connection.execute(query("calendars.to_extend"), {"again": again}).all()
    for row in wanted:
        with engine.begin() as connection:
            if row.calendar in _OWN:
                connection.execute(query("calendars.store_own"), dict(row._mapping))
                continue
            try:
                sessions = exchange_sessions(row.calendar, row.from_day, row.to_day)
            except LookupError as error:
                parameters = {"calendar": row.calendar, "message": str(error)}
                connection.execute(query("calendars.unknown"), parameters)
                continue
            connection.execute(
                query("calendars.store"),
                {
                    "calendar": row.calendar,
                    "from_day": sessions.start,
                    "to_day": sessions.end,
                    "days": list(sessions.days),
                    "opens": list(sessions.opens),
                    "closes": list(sessions.closes),
                },
            )
    return [row.calendar for row in wanted]


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
            f"exchange-calendars knows no exchange {calendar}. Set pricing.instruments.calendar to one that it knows."
        ) from None
    first, last = Timestamp(start), Timestamp(end)
    low, high = kind.bound_min(), kind.bound_max()
    first = first if low is None else max(first, low)
    last = last if high is None else min(last, high)
    with warnings.catch_warnings():
        # The library uses a feature of times that pandas 3 will change.
        warnings.filterwarnings(
            "ignore", "Series.values returning an ndarray that drops timezone", category=Warning
        )
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


def closed_days(
    connection: Connection, data_type: str, symbol: str, first_day: date, last_day: date
) -> list[date]:
    """Holidays of a pair's market between two days, both included: they need no value."""
    rows = connection.execute(
        query("calendars.closed_days"),
        {"data_type": data_type, "symbol": symbol, "first_day": first_day, "last_day": last_day},
    )
    return [row.day for row in rows]


def never_traded(
    connection: Connection, data_type: str, pairs: Sequence[tuple[str, date]]
) -> dict[tuple[str, date], str]:
    """The symbols and days on whose weekday the exchange has no session within a year of the day, with the calendar."""
    parameters = {
        "data_type": data_type,
        "symbols": arrays.texts(symbol for symbol, _ in pairs),
        "days": arrays.plain(day for _, day in pairs),
    }
    rows = driver_rows(connection, driver_query("calendars.never_traded"), parameters)
    return {(symbol, day): calendar for symbol, day, calendar in rows}


def gaps(connection: Connection, data_type: str, symbol: str, first_day: date, last_day: date) -> list[Gap]:
    """The gaps in the history of a pair between two days, both included, oldest first.

    Raises InvalidRange for days in the wrong order, types without daily values and instruments without a calendar, and
    SessionsNotKnown where the calendar's trading days are not known yet.
    """
    days = span(first_day, last_day)
    parameters = {"data_type": data_type, "symbol": symbol, "first_day": days.start, "last_day": days.end}
    try:
        rows = connection.execute(query("calendars.gaps"), parameters).all()
    except DBAPIError as error:
        if isinstance(error.orig, errors.ObjectNotInPrerequisiteState):
            raise SessionsNotKnown(reason(error)) from error
        if not isinstance(error.orig, errors.InvalidParameterValue):
            raise
        raise InvalidRange(reason(error)) from error
    return [Gap(row.first_day, row.last_day, row.sessions, GapKind(row.kind), row.detail) for row in rows]


def today(connection: Connection) -> date:
    """The current day in UTC, by the database's clock."""
    day: date = connection.execute(query("calendars.today")).scalar_one()
    return day
