"""Parse what people type into values of the code; the database judges the rest elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import typer

from pricing_pipeline.domain.answers import Adjust
from pricing_pipeline.domain.words import read_number

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MONTH = re.compile(r"\d{4}-\d{2}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(|B|kB|MB|GB|GiB)", re.IGNORECASE)
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "GIB": 2**30}


def day(given: str, option: str, *, last: bool = False) -> date:
    """A day: YYYY-MM-DD, or YYYY-MM for a month's first day, or its last if `last`. Else a usage error."""
    try:
        if _DAY.fullmatch(given):
            return date.fromisoformat(given)
        if _MONTH.fullmatch(given):
            first = date.fromisoformat(f"{given}-01")
            return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1) if last else first
    except ValueError:
        pass
    raise typer.BadParameter(f"{option} {given!r} is not a day. Write it like 2013-02-28, or 2013-02")


def moment(given: str, option: str) -> datetime:
    """A time: ISO 8601, UTC unless it says otherwise; of a day (YYYY-MM-DD) its end in UTC. Else a usage error."""
    try:
        if _DAY.fullmatch(given):
            return datetime.combine(date.fromisoformat(given) + timedelta(days=1), time(), UTC)
        parsed = datetime.fromisoformat(given)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{option} {given!r} is not a time. Write it like 2026-11-20, or 2026-11-20T15:00"
        ) from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def as_of_time(given: str | None) -> datetime | None:
    """The time of --as-of: of a day its last microsecond in UTC, so that it is of that day. Else as `moment`."""
    if given is None:
        return None
    at = moment(given, "--as-of")
    return at - timedelta(microseconds=1) if _DAY.fullmatch(given) else at


def time_of_day(given: str, option: str) -> time:
    """A time of a day: HH:MM. Else a usage error."""
    if re.fullmatch(r"\d{2}:\d{2}", given):
        try:
            return time.fromisoformat(given)
        except ValueError:
            pass
    raise typer.BadParameter(f"{option} {given!r} is not a time of day. Write it like 09:15")


def byte_count(given: str, option: str) -> int:
    """Bytes: a whole number, or one with a unit such as 40GB. Else a usage error."""
    found = _SIZE.fullmatch(given)
    if found is None:
        raise typer.BadParameter(f"{option} {given!r} is not a number of bytes. Write it like 40GB, or 500MB")
    return int(Decimal(found[1]) * _UNITS[found[2].upper()])


def whole_number(given: str, option: str) -> int:
    """A whole number that is not negative. Else a usage error."""
    if not re.fullmatch("[0-9]{1,9}", given):
        raise typer.BadParameter(f"{option} {given!r} is not a whole number. Write it like 30")
    return int(given)


def id_of_backfill(given: str) -> UUID:
    """The id of a backfill. Else a usage error."""
    try:
        return UUID(given)
    except ValueError:
        raise typer.BadParameter(
            f"{given!r} is not an id. Copy a whole one of `pricing-pipeline backfill list`"
        ) from None


def number(given: str, option: str) -> Decimal:
    """An exact number. Else a usage error."""
    try:
        return read_number(given)
    except ValueError:
        raise typer.BadParameter(f"{option} {given!r} is not a number. Write it like 0.5") from None


def seconds(given: str, option: str) -> float:
    """A span in seconds: a number with s, m, h or d. Else a usage error."""
    found = _SPAN.fullmatch(given)
    if found is None:
        raise typer.BadParameter(f"{option} {given!r} is not a span of time. Write it like 30m, 90s, 4h or 2d")
    return int(found[1]) * _SECONDS[found[2]]


def currency_code(given: str) -> str:
    """A code that prices may be in. Else a usage error."""
    from pricing_pipeline.providers.currencies import CURRENCIES

    if given.upper() not in CURRENCIES:
        raise typer.BadParameter(f"--currency {given!r} is not a known currency. Write a code like USD")
    return given.upper()


def basis(given: str, option: str) -> Adjust:
    """On which basis history is read. Else a usage error."""
    try:
        return Adjust(given.lower())
    except ValueError:
        raise typer.BadParameter(f"{option} {given!r} is not one of: {', '.join(Adjust)}") from None


def chosen(option: str, given: str | None, known: Iterable[str]) -> str:
    """What the option names, or the only one there is."""
    names = list(known)
    if given is None and len(names) == 1:
        return names[0]
    if given not in names:
        raise typer.BadParameter(f"{option} is one of: {', '.join(names)}")
    return given
