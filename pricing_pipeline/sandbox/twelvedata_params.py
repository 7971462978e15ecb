"""What may be asked of Twelve Data: each parameter is honoured or refused, never left out of account.

Its documentation names more than the sandbox serves. Those are refused in so many words, as are names that it does
not have: what the provider does with them is not recorded, and an answer to another question is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pricing_pipeline.sandbox.instruments import Instrument

MOST_ROWS, USUAL_ROWS = 5000, 30
MOST_DECIMALS = 11

_LISTING = frozenset({"symbol", "exchange", "mic_code", "country", "type"})
_CALLER = frozenset({"apikey", "format", "source"})
"""`source` is what its own client calls itself."""
_WRITING = _CALLER | {"dp"}
_SERVED = {
    "quote": _LISTING | _WRITING | {"interval", "timezone", "prepost"},
    "price": _LISTING | _WRITING | {"prepost"},
    "exchange_rate": frozenset({"symbol", "timezone"}) | _WRITING,
    "time_series": _LISTING
    | _WRITING
    | {"interval", "outputsize", "timezone", "start_date", "end_date", "date", "order", "prepost", "adjust"},
    "symbol_search": frozenset({"symbol", "outputsize"}) | _CALLER,
    "technical_indicators": _CALLER,
    "api_usage": _CALLER,
}
_ALLOWED = {"format": ("json",), "prepost": ("false",), "order": ("asc", "desc")}
_DECIMAL = re.compile(r'"(-?\d+\.\d+)"|(?<="rate":)(\d+(?:\.\d+)?)')


class Refused(Exception):
    """A parameter that the provider, or the sandbox in its place, does not accept."""


def check(endpoint: str, params: Mapping[str, str]) -> None:
    """Refuse what the endpoint has no use for. Windows are checked when they are read."""
    for name, value in params.items():
        if name not in _SERVED[endpoint]:
            raise Refused(f"**{name}** is not a parameter of /{endpoint} that the sandbox serves")
        allowed = _ALLOWED.get(name)
        if allowed is not None and value.lower() not in allowed:
            raise Refused(f"{name}={value} is not served by the sandbox, only {' and '.join(allowed)}")
    if endpoint == "quote" and params.get("interval", "1day") != "1day":
        raise Refused(f"interval {params['interval']} of /quote is not served by the sandbox; 1day is")
    if "timezone" in params:
        zone_named(params["timezone"])
    _decimals(params)


def rounded(text: str, params: Mapping[str, str]) -> str:
    """The answer with its decimal numbers in as many decimals as `dp` asks for; -1, the default, leaves them."""
    decimals = _decimals(params)
    if decimals < 0:
        return text
    place = Decimal(1).scaleb(-decimals)

    def spelled(price: re.Match[str]) -> str:
        number = Decimal(price[1] or price[2]).quantize(place, ROUND_HALF_EVEN)
        return f'"{number:f}"' if price[1] else f"{number:f}"

    return _DECIMAL.sub(spelled, text)


def count(params: Mapping[str, str], usual: int, most: int = MOST_ROWS) -> int:
    given = params.get("outputsize", str(usual))
    if not given.isdecimal() or not 1 <= int(given) <= most:
        raise Refused(f"Invalid **outputsize** provided: {given}. Supported values are from 1 to {most}")
    return int(given)


def window(
    params: Mapping[str, str], zone: tzinfo, now: datetime
) -> tuple[datetime | None, datetime | None, int]:
    """Start, end and row count asked for. The count is 30 unless a date is given, as documented."""
    start, end = _moment(params, "start_date", zone), _moment(params, "end_date", zone)
    if "date" in params:
        if start is not None or end is not None:
            raise Refused("**date** cannot be used together with **start_date** or **end_date**")
        start = datetime.combine(_day(params["date"], now.astimezone(zone).date()), time(), zone)
        end = start + timedelta(days=1, seconds=-1)
    return start, end, count(params, USUAL_ROWS if start is None and end is None else MOST_ROWS)


def zone_of(params: Mapping[str, str], instrument: Instrument) -> tzinfo:
    """The zone that times within a day are in."""
    return zone_named(params.get("timezone", "Exchange")) or instrument.zone


def zone_named(name: str) -> ZoneInfo | None:
    """None for that of the exchange."""
    if name.lower() == "exchange":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise Refused(f"Invalid **timezone** provided: {name}") from None


def _decimals(params: Mapping[str, str]) -> int:
    given = params.get("dp", "-1")
    if given != "-1" and not (given.isdecimal() and int(given) <= MOST_DECIMALS):
        raise Refused(f"Invalid **dp** provided: {given}. Supported values are from 0 to {MOST_DECIMALS}")
    return int(given)


def _moment(params: Mapping[str, str], name: str, zone: tzinfo) -> datetime | None:
    given = params.get(name)
    if given is None:
        return None
    try:
        return datetime.fromisoformat(given).replace(tzinfo=zone)
    except ValueError:
        raise Refused(
            f"Invalid **{name}** provided: {given}. Use the format 2006-01-02 or 2006-01-02 15:04:05"
        ) from None


def _day(given: str, today: date) -> date:
    named = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        return named.get(given) or date.fromisoformat(given)
    except ValueError:
        raise Refused(
            f"Invalid **date** provided: {given}. Use the format 2006-01-02, today or yesterday"
        ) from None
