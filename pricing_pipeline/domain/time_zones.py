"""Names of time zones."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones


def is_time_zone(name: str) -> bool:
    """Whether the IANA database of this machine has this name. The database's server may know fewer."""
    return name in _names()


@cache
def _names() -> frozenset[str]:
    # `localtime` is the zone of its reader.
    return frozenset(available_timezones() - {"localtime"})
