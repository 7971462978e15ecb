"""The markets of the sandbox: their names, hours and currencies, as each provider names them. Symbols are not here.

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
_CALENDARS_FROM, _CALENDARS_TO = date(2000, 1, 1), date(2035, 12, 31)


@dataclass(frozen=True, slots=True)
class Venue:
    """One market. The first names are those of Twelve Data."""

    exchange: str
    mic_code: str
    country: str
    country_code: str
    zone: ZoneInfo
    """Its trading days are days of this zone."""
    currency: str
    """The currency of its prices; pence and cents have codes of their own. Empty if each pair has another one."""
    calendar: str
    """Of its trading days; empty if none is known."""
    suffix: str
    """Behind a ticker of this market, as Yahoo and FMP spell it; empty in the United States."""
    yahoo_code: str
    yahoo_name: str
    fmp_code: str
    names: frozenset[str] = frozenset()
    """What it is called at Twelve Data beside its MIC; others may be called so, too."""
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
    return frozenset(
        date.fromisoformat(f"{year}-{day}") for year, *days in lines if year != "#" for day in days
    )


_NEW_YORK, _UTC = ZoneInfo("America/New_York"), ZoneInfo("UTC")
_US = ("United States", "US", _NEW_YORK, "USD", "", "")

NASDAQ = Venue("NASDAQ", "XNGS", *_US, "NMS", "NasdaqGS", "NASDAQ", frozenset({"NASDAQ"}))
NYSE = Venue("NYSE", "XNYS", *_US, "NYQ", "NYSE", "NYSE", frozenset({"NYSE"}))
FOREX = Venue(
    "Forex", "", "", "", _UTC, "", "", "", "CCY", "CCY", "FOREX", frozenset({"Forex"}), "Europe/London"
)  # fmt: skip
COINS = Venue(
    "Coinbase Pro", "", "", "", _UTC, "", "", "", "CCC", "CCC", "CRYPTO", frozenset({"Coinbase Pro"})
)  # fmt: skip
FUNDS = Venue("", "", "India", "IN", ZoneInfo("Asia/Kolkata"), "INR", "", "", "", "", "")

_COUNTRIES = {
    "Africa/Johannesburg": ("South Africa", "ZA"), "America/Argentina/Buenos_Aires": ("Argentina", "AR"),
    "America/Mexico_City": ("Mexico", "MX"), "America/Santiago": ("Chile", "CL"),
    "America/Sao_Paulo": ("Brazil", "BR"), "America/Toronto": ("Canada", "CA"), "Asia/Bangkok": ("Thailand", "TH"),
    "Asia/Hong_Kong": ("Hong Kong", "HK"), "Asia/Jakarta": ("Indonesia", "ID"), "Asia/Jerusalem": ("Israel", "IL"),
    "Asia/Karachi": ("Pakistan", "PK"), "Asia/Kolkata": ("India", "IN"), "Asia/Kuala_Lumpur": ("Malaysia", "MY"),
    "Asia/Kuwait": ("Kuwait", "KW"), "Asia/Riyadh": ("Saudi Arabia", "SA"), "Asia/Seoul": ("South Korea", "KR"),
    "Asia/Shanghai": ("China", "CN"), "Asia/Singapore": ("Singapore", "SG"), "Asia/Taipei": ("Taiwan", "TW"),
    "Asia/Tokyo": ("Japan", "JP"), "Australia/Sydney": ("Australia", "AU"),
    "Europe/Amsterdam": ("Netherlands", "NL"), "Europe/Athens": ("Greece", "GR"), "Europe/Berlin": ("Germany", "DE"),
    "Europe/Brussels": ("Belgium", "BE"), "Europe/Budapest": ("Hungary", "HU"),
    "Europe/Copenhagen": ("Denmark", "DK"), "Europe/Dublin": ("Ireland", "IE"), "Europe/Helsinki": ("Finland", "FI"),
    "Europe/Istanbul": ("Turkey", "TR"), "Europe/Lisbon": ("Portugal", "PT"),
    "Europe/London": ("United Kingdom", "GB"), "Europe/Madrid": ("Spain", "ES"), "Europe/Oslo": ("Norway", "NO"),
    "Europe/Paris": ("France", "FR"), "Europe/Prague": ("Czech Republic", "CZ"), "Europe/Rome": ("Italy", "IT"),
    "Europe/Stockholm": ("Sweden", "SE"), "Europe/Vienna": ("Austria", "AT"), "Europe/Warsaw": ("Poland", "PL"),
    "Europe/Zurich": ("Switzerland", "CH"), "Pacific/Auckland": ("New Zealand", "NZ"),
}  # fmt: skip
"""By the zone of an exchange: name and code."""
_USUAL_CURRENCIES = {
    "XAMS": "EUR", "XBUE": "ARS", "XHKG": "HKD", "XSES": "SGD", "XSHE": "CNY", "XSHG": "CNY",
}  # fmt: skip
"""Where shares of one exchange have several currencies, all those of the sandbox have this one."""


def _venues_abroad() -> tuple[Venue, ...]:
    listed = tomllib.loads((_DOMAIN / "exchanges.toml").read_text(encoding="utf-8"))
    return tuple(_venue(mic, told) for mic, told in listed.items() if told["suffix"])


def _venue(mic: str, told: dict[str, str]) -> Venue:
    names = [name for name in (told.get("twelvedata"), *told.get("shared", ())) if name]
    code = names[0] if names else told["name"]
    currency = told.get("minor_unit") or told.get("currency") or _USUAL_CURRENCIES[mic]
    return Venue(
        code,
        mic,
        *_COUNTRIES[told["zone"]],
        ZoneInfo(told["zone"]),
        currency,
        told.get("calendar", mic),
        told["suffix"],
        code,
        told["name"],
        code,
        frozenset(names),
    )


ABROAD = _venues_abroad()
