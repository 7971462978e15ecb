"""The markets of the sandbox: their names, hours and currencies. Symbols are not here.

Markets outside the United States are those of the pipeline's list of exchanges, whose files are read as they are. Their
trading days are those of the library of calendars.
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

_CLOSED_DAYS = Path(__file__).with_name("closed_days.txt")
_DOMAIN = Path(__file__).parents[1] / "domain"
WORLD = tomllib.loads(Path(__file__).with_name("world.toml").read_text(encoding="utf-8"))
_CALENDARS_FROM, _CALENDARS_TO = date(2000, 1, 1), date(2035, 12, 31)


@dataclass(frozen=True, slots=True)
class Venue:
    """One market."""

    exchange: str
    """As Twelve Data and FMP call it."""
    zone: ZoneInfo
    """Its trading days are days of this zone."""
    mic_code: str = ""
    """Empty for markets that are no exchange."""
    name: str = ""
    """As Yahoo and FMP spell it out."""
    currency: str = ""
    """The currency of its prices; pence and cents have codes of their own. Empty if each pair has another one."""
    suffix: str = ""
    """Behind a ticker of this market, as Yahoo and FMP spell it; empty in the United States."""
    country: str = ""
    country_code: str = ""
    calendar: str = ""
    """Of its trading days; empty if none is known."""
    names: frozenset[str] = frozenset()
    """Its names at Twelve Data beside its MIC; others may have the same."""
    yahoo_code: str = ""
    """Where Yahoo calls it otherwise than Twelve Data."""
    yahoo_zone: str = ""
    """Where Yahoo counts its days by another zone."""

    @property
    def hours(self) -> tuple[time, time]:
        """When its trading opens and closes."""
        if not self.mic_code:
            return time(), time()
        calendar = _calendar(self.calendar) if self.suffix else None
        return (time(9, 30), time(16)) if calendar is None else (calendar.opens, calendar.closes)

    def trades_on(self, day: date) -> bool:
        """Whether an exchange trades on a day; markets of currencies, coins and funds are never closed for one."""
        if not self.mic_code:
            return True
        if not self.suffix:
            return day.weekday() < 5 and day not in _closed_in_new_york()
        calendar = _calendar(self.calendar)
        if calendar is None or not calendar.first <= day <= calendar.last:
            return day.weekday() < 5
        return day in calendar.days


@dataclass(frozen=True, slots=True)
class _Calendar:
    """The trading days of an exchange, as far as its holidays are known, and its usual hours."""

    opens: time
    closes: time
    first: date
    last: date
    days: frozenset[date]


@cache
def _calendar(name: str) -> _Calendar | None:
    if not name:
        return None
    import exchange_calendars  # it takes two seconds, and most programs ask for no share abroad

    dispatcher = exchange_calendars.calendar_utils.global_calendar_dispatcher
    kind = dispatcher._calendar_factories[dispatcher.resolve_alias(name)]
    low, high = kind.bound_min(), kind.bound_max()
    first = _CALENDARS_FROM if low is None else max(_CALENDARS_FROM, low.date())
    last = _CALENDARS_TO if high is None else min(_CALENDARS_TO, high.date())
    calendar = exchange_calendars.get_calendar(name, start=str(first), end=str(last))
    days = {stamp.date() for stamp in calendar.sessions}
    with (_DOMAIN / "calendar_corrections.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            if row["calendar"] == name:
                (days.discard if row["hours"] == "closed" else days.add)(date.fromisoformat(row["day"]))
    return _Calendar(calendar.open_times[-1][1], calendar.close_times[-1][1], first, last, frozenset(days))


@cache
def _closed_in_new_york() -> frozenset[date]:
    """Kept in a file, because nearly every program asks for shares of the United States."""
    lines = (line.split() for line in _CLOSED_DAYS.read_text(encoding="ascii").splitlines())
    return frozenset(date.fromisoformat(f"{year}-{day}") for year, *days in lines if year != "#" for day in days)


def _american(exchange: str, mic_code: str, name: str, yahoo_code: str) -> Venue:
    return Venue(
        exchange,
        ZoneInfo("America/New_York"),
        mic_code,
        name,
        "USD",
        country="United States",
        country_code="US",
        names=frozenset({exchange}),
        yahoo_code=yahoo_code,
    )


NASDAQ = _american("NASDAQ", "XNGS", "NasdaqGS", "NMS")
NYSE = _american("NYSE", "XNYS", "NYSE", "NYQ")
_UTC = ZoneInfo("UTC")
FOREX = Venue("Forex", _UTC, name="CCY", names=frozenset({"Forex"}), yahoo_code="CCY", yahoo_zone="Europe/London")
COINS = Venue("Coinbase Pro", _UTC, name="CCC", names=frozenset({"Coinbase Pro"}), yahoo_code="CCC")
FUNDS = Venue("", ZoneInfo("Asia/Kolkata"), currency="INR", country="India", country_code="IN")


def _venue(mic: str, told: dict[str, str]) -> Venue:
    names = [name for name in (told.get("twelvedata"), *told.get("shared", ())) if name]
    country, country_code = WORLD["countries"][told["zone"]]
    return Venue(
        names[0] if names else told["name"],
        ZoneInfo(told["zone"]),
        mic,
        told["name"],
        told.get("minor_unit") or told.get("currency") or WORLD["usual_currencies"][mic],
        told["suffix"],
        country,
        country_code,
        told.get("calendar", mic),
        frozenset(names),
    )


_EXCHANGES = tomllib.loads((_DOMAIN / "exchanges.toml").read_text(encoding="utf-8"))
ABROAD = tuple(_venue(mic, told) for mic, told in _EXCHANGES.items() if told["suffix"])
