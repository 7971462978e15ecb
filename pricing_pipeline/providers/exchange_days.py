"""Convert time stamps to days of an exchange, and check that its time zone can be right."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pricing_pipeline.providers.values import Implausible, spelling

_NO_TIME = range(86_400)
"""Stamps on the first day of 1970, without trading: from a clock that was never set."""


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of this IANA name; None if it is unknown."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def check_offset(zone: ZoneInfo, offset: object, moments: Iterable[int]) -> None:
    """Raise Implausible if the answer's own offset from UTC, in seconds, is never the zone's at its moments.

    Each of its bars could be of another day. A value that is not an offset is ignored.
    """
    if not isinstance(offset, int) or isinstance(offset, bool):
        return
    offsets = {_offset(at, zone) for at in moments}
    if offset not in offsets:
        raise Implausible(
            f"its time zone {zone.key} is {' or '.join(map(str, sorted(offsets)))} s from UTC, and its own offset is "
            f"{offset} s: the days of its bars are unknown"
        )


def _offset(epoch_seconds: int, zone: ZoneInfo) -> int:
    try:
        ahead = datetime.fromtimestamp(epoch_seconds, zone).utcoffset()
    except (ValueError, OverflowError, OSError):
        raise Implausible(f"time stamp {epoch_seconds} lies beyond the calendar") from None
    return 0 if ahead is None else int(ahead.total_seconds())


def day_of(stamp: object, zone: tzinfo) -> date:
    """The exchange's day of a bar or an event. Raises Implausible for an impossible stamp."""
    if not isinstance(stamp, int) or isinstance(stamp, bool):
        raise Implausible(f"time stamp {spelling(stamp)!r} is not a whole number of seconds")
    if stamp in _NO_TIME:
        raise Implausible(f"time stamp {stamp} says that there is no time")
    return local_day(stamp, zone)


def local_day(epoch_seconds: int, zone: tzinfo) -> date:
    """The exchange's day: opening times in Sydney lie on the UTC day before."""
    try:
        return datetime.fromtimestamp(epoch_seconds, zone).date()
    except (ValueError, OverflowError, OSError):
        raise Implausible(f"time stamp {epoch_seconds} lies beyond the calendar") from None
