"""Days and times as services spell them, read from answers and written into requests.

A format is one of NAMED, or a pattern of letters as `strptime` has them, such as `%d.%m.%Y`.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pricing_pipeline.providers.exchange_days import day_of
from pricing_pipeline.providers.values import (
    Implausible,
    calendar_day,
    check_day,
    instant_of,
    midnight,
    spelling,
)

NAMED = ("iso_date", "iso_time", "epoch_seconds", "epoch_milliseconds", "dotnet")
WRITTEN = ("iso_date", "iso_time", "epoch_seconds", "epoch_milliseconds")
"""Those that a request can have."""
_LETTERS = frozenset("YymdbBHMSfzpIjaA")
_OF_DAY, _OF_MONTH, _OF_CLOCK = frozenset("dj"), frozenset("mbBj"), frozenset("HI")

_ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DOTNET = re.compile(r"/Date\((-?[0-9]{1,16})([+-](?:0[0-9]|1[0-4])[0-5][0-9])?\)/")
_SECONDS = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_YEAR_OF_NO_TIME = 1970
"""A clock that was never set shows its first day, and seconds read as milliseconds its first month."""


class Pattern(NamedTuple):
    """A pattern of a time, and which parts of a time it has."""

    text: str
    has_day: bool
    has_month: bool
    has_clock: bool
    has_offset: bool
    is_tight: bool
    """Two parts stand without a sign between them, so that each must have all its digits."""


@lru_cache(maxsize=256)
def pattern_of(text: str) -> Pattern:
    """A checked pattern. Raises ValueError."""
    if text in NAMED or "%" not in text:
        raise ValueError(f"write one of {', '.join(NAMED)}, or a pattern such as %d.%m.%Y")
    letters = re.findall("%(.)", text.replace("%%", ""))
    unknown = sorted(set(letters) - _LETTERS)
    if unknown or text.endswith("%") or len(set(letters)) < len(letters):
        raise ValueError(
            f"a pattern has each of the letters {', '.join(f'%{letter}' for letter in sorted(_LETTERS))} once at most"
        )
    if not set(letters) & {"Y", "y"}:
        raise ValueError("a pattern has a year, %Y or %y")
    has_day, has_month = bool(set(letters) & _OF_DAY), bool(set(letters) & _OF_MONTH)
    if has_day and not has_month:
        raise ValueError("a pattern with a day has a month")
    has_clock = bool(set(letters) & _OF_CLOCK)
    if has_clock and not has_day:
        raise ValueError("a pattern with an hour has a day")
    if {"H", "I"} <= set(letters) or ("I" in letters) != ("p" in letters):
        raise ValueError("a pattern has its hour as %H, or as %I with %p")
    return Pattern(text, has_day, has_month, has_clock, "z" in letters, re.search("%[a-zA-Z]%", text) is not None)


def needs_zone(text: str) -> bool:
    """Whether moments in this format have no offset from UTC of their own."""
    return text not in NAMED and pattern_of(text).has_clock and not pattern_of(text).has_offset


def day(raw: object, text: str, zone: str | None) -> date:
    """The day of a daily value. A month or a year alone stands for its last day. Raises Implausible."""
    own = ZoneInfo(zone) if zone else None
    match text:
        case "iso_date":
            return calendar_day(raw)
        case "iso_time":
            return _iso(raw, own, is_day=True).date()
        case "epoch_seconds" | "epoch_milliseconds" | "dotnet":
            return day_of(_epoch(raw, text) // 1_000_000, own or _offset_of(raw))
    pattern = pattern_of(text)
    at = _parsed(raw, pattern)
    if pattern.has_offset and own is not None:
        return _moved(at, own).date()
    if pattern.has_day:
        return at.date()
    if not pattern.has_month or at.month == 12:  # no date follows the last year of the calendar
        return date(at.year, 12, 31)
    return date(at.year, at.month + 1, 1) - timedelta(days=1)


def moment(raw: object, text: str, zone: str | None, now: datetime) -> datetime:
    """The time of a quote; a day alone stands for its midnight in UTC. Raises Implausible, for 1970 and before, too."""
    at = _moment(raw, text, zone, now)
    if at.year <= _YEAR_OF_NO_TIME:
        raise Implausible(
            f"time stamp {spelling(raw)!r} says that there is no time: read as {text}, it is of {at.date()}"
        )
    return at


def _moment(raw: object, text: str, zone: str | None, now: datetime) -> datetime:
    own = ZoneInfo(zone) if zone else None
    match text:
        case "iso_time":
            at = _iso(raw, own, is_day=False)
        case "epoch_seconds" | "epoch_milliseconds" | "dotnet":
            micros = _epoch(raw, text)
            return instant_of(micros // 1_000_000, now).replace(microsecond=micros % 1_000_000)
        case "iso_date":
            return _midnight(calendar_day(raw), now)
        case _:
            pattern = pattern_of(text)
            if not pattern.has_clock:
                return _midnight(day(raw, text, zone), now)
            at = _parsed(raw, pattern)
            at = at if at.tzinfo is not None else at.replace(tzinfo=own or UTC)
    at = _moved(at, UTC)
    return instant_of(int(at.timestamp()), now).replace(microsecond=at.microsecond)


def written(of: date, text: str, zone: str | None, *, is_end: bool) -> str:
    """A day as a request has it; an end in time is the last moment of its day."""
    if text == "iso_date":
        return of.isoformat()
    clock = time(23, 59, 59) if is_end else time()
    at = datetime.combine(of, clock, ZoneInfo(zone) if zone else UTC)
    match text:
        case "iso_time":
            return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case "epoch_seconds":
            return str(int(at.timestamp()))
        case "epoch_milliseconds":
            return str(int(at.timestamp()) * 1000 + (999 if is_end else 0))
    return at.strftime(text)


def _midnight(of: date, now: datetime) -> datetime:
    check_day(of, now)
    return midnight(of)


def _moved(at: datetime, zone: tzinfo) -> datetime:
    try:
        return at.astimezone(zone)
    except (OverflowError, ValueError):
        raise Implausible(f"time {at.isoformat()} lies beyond the calendar") from None


def _iso(raw: object, zone: ZoneInfo | None, *, is_day: bool) -> datetime:
    """A time with the offset that it names, moved into the zone; without an offset it is the zone's own."""
    if isinstance(raw, str) and _ISO_TIME.fullmatch(raw):
        try:
            at = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", raw))
        except ValueError:
            raise Implausible(f"{spelling(raw)!r} is not a time of the calendar") from None
        if at.tzinfo is not None:
            return at if zone is None else _moved(at, zone)
        if zone is not None or is_day:
            return at.replace(tzinfo=zone or UTC)
        raise Implausible(f"{spelling(raw)!r} has no offset from UTC, and no `zone` says which clock it is of")
    raise Implausible(f"{spelling(raw)!r} is not a time such as 2026-11-23T20:00:00Z")


def _offset_of(raw: object) -> tzinfo:
    """The offset that an epoch time in .NET's format may name; UTC for all others."""
    match = _DOTNET.fullmatch(spelling(raw))
    return datetime.strptime(match[2], "%z").tzinfo or UTC if match and match[2] else UTC


def _epoch(raw: object, text: str) -> int:
    """Microseconds since 1970."""
    spelled = spelling(raw)
    if text == "dotnet":
        match = _DOTNET.fullmatch(spelled)
        if match is None:
            raise Implausible(f"{spelled!r} is not a time such as /Date(1780344000000)/")
        return int(match[1]) * 1000
    is_number = isinstance(raw, str | int | Decimal) and not isinstance(raw, bool)
    if not is_number or _SECONDS.fullmatch(spelled) is None:
        raise Implausible(f"time stamp {spelled!r} is not a number")
    micros = Decimal(spelled) * (1000 if text == "epoch_milliseconds" else 1_000_000)
    return int(micros.to_integral_value(ROUND_FLOOR))


def _parsed(raw: object, pattern: Pattern) -> datetime:
    spelled = spelling(raw)
    if isinstance(raw, str | int) and not isinstance(raw, bool) and spelled.isascii():
        try:
            at = datetime.strptime(spelled, pattern.text)
            if not pattern.is_tight or at.strftime(pattern.text).lower() == spelled.lower():
                return at
        except ValueError:
            pass
    example = datetime(2026, 11, 23, 20, tzinfo=UTC).strftime(pattern.text)
    raise Implausible(f"{spelled!r} is not a {'time' if pattern.has_clock else 'day'} such as {example}")
