"""The markets of the sandbox: their names, hours and currencies, as each provider names them. Symbols are not here."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

_CLOSED_DAYS = Path(__file__).with_name("closed_days.txt")


@dataclass(frozen=True, slots=True)
class Venue:
    """One market. The first names are those of Twelve Data."""

    exchange: str
    mic_code: str
    country: str
    zone: ZoneInfo
    """Its trading days are days of this zone."""
    currency: str
    """The currency of its prices; pence and cents have codes of their own. Empty if each pair has another one."""
    opens: time
    closes: time
    suffix: str
    """Behind a ticker of this market, as Yahoo and FMP spell it; empty in the United States."""
    yahoo_code: str
    yahoo_name: str
    fmp_code: str
    yahoo_zone: str = ""
    """Where Yahoo counts its days by another zone."""

    @property
    def closed_days(self) -> Set[date]:
        """Weekdays without trading; none on markets of currencies, coins and funds."""
        return _closed_days().get("XNYS" if self.country == _US else self.mic_code, frozenset())


@cache
def _closed_days() -> dict[str, Set[date]]:
    days: dict[str, set[date]] = {}
    for line in _CLOSED_DAYS.read_text(encoding="ascii").splitlines():
        if not line.startswith("#"):
            calendar, year, *of_year = line.split()
            days.setdefault(calendar, set()).update(date.fromisoformat(f"{year}-{day}") for day in of_year)
    return {calendar: frozenset(own) for calendar, own in days.items()}


_NEW_YORK, _UTC = ZoneInfo("America/New_York"), ZoneInfo("UTC")
_OPENS, _CLOSES = time(9, 30), time(16, 0)
_US = "United States"

NASDAQ = Venue(
    "NASDAQ", "XNGS", _US, _NEW_YORK, "USD", _OPENS, _CLOSES, "", "NMS", "NasdaqGS", "NASDAQ"
)  # fmt: skip
NYSE = Venue("NYSE", "XNYS", _US, _NEW_YORK, "USD", _OPENS, _CLOSES, "", "NYQ", "NYSE", "NYSE")
FOREX = Venue(
    "Forex", "", "", _UTC, "", time(), time(), "", "CCY", "CCY", "FOREX", "Europe/London"
)  # fmt: skip
COINS = Venue("Coinbase Pro", "", "", _UTC, "", time(), time(), "", "CCC", "CCC", "CRYPTO")
FUNDS = Venue("", "", "India", ZoneInfo("Asia/Kolkata"), "INR", time(), time(), "", "", "", "")

_LONDON, _BERLIN = ZoneInfo("Europe/London"), ZoneInfo("Europe/Berlin")
_SYDNEY, _JOHANNESBURG = ZoneInfo("Australia/Sydney"), ZoneInfo("Africa/Johannesburg")
ABROAD = (
    Venue("LSE", "XLON", "United Kingdom", _LONDON, "GBp", time(8), time(16, 30), "L", "LSE", "LSE", "LSE"),
    Venue("XETR", "XETR", "Germany", _BERLIN, "EUR", time(9), time(17, 30), "DE", "GER", "XETRA", "XETRA"),
    Venue("ASX", "XASX", "Australia", _SYDNEY, "AUD", time(10), time(16), "AX", "ASX", "ASX", "ASX"),
    Venue(
        "JSE",
        "XJSE",
        "South Africa",
        _JOHANNESBURG,
        "ZAc",
        time(9),
        time(17),
        "JO",
        "JNB",
        "Johannesburg",
        "JNB",
    ),
)
"""The first is London's, whose prices are in pence; Sydney's days begin before those of UTC."""
