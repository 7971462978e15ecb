"""Exchanges by their MIC (ISO 10383), and corrections of the library of trading days.

exchanges.toml is the only place that says how an exchange is named, when it trades and in what money its prices are.
calendar_corrections.csv has special sessions and closed days, each with a public source. The database gets copies of
both at each upgrade.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from pathlib import Path

_EXCHANGES = Path(__file__).with_name("exchanges.toml")
_CORRECTIONS = Path(__file__).with_name("calendar_corrections.csv")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange: its names at providers, when it trades, and in what money; in the United States without suffix.

    `twelvedata` is None where Twelve Data has no name that only this exchange has; `shared` are names there that
    several have. `bloomberg` and `google` are its codes there. `calendar` is None where no calendar of it is known,
    and `known_to` is the last day of its announced holidays if the library does not say. `currency` is None where its
    shares have several. `minor_unit` is the code of the part of a currency that its prices are in.
    """

    mic: str
    name: str
    suffix: str
    zone: str
    calendar: str | None
    twelvedata: str | None = None
    shared: tuple[str, ...] = ()
    bloomberg: tuple[str, ...] = ()
    google: tuple[str, ...] = ()
    known_to: date | None = None
    currency: str | None = None
    minor_unit: str | None = None

    @property
    def endings(self) -> tuple[str, ...]:
        """How its symbols end, wherever they are from: .L, :LSE, :XLON, " LN"; names also in capital letters."""
        told = (self.mic, *filter(None, [self.twelvedata]), *self.shared, *self.google)
        names = dict.fromkeys((*told, *map(str.upper, told)))
        return (
            *(f".{suffix}" for suffix in filter(None, [self.suffix])),
            *(f":{name}" for name in names),
            *(f" {code}" for code in self.bloomberg),
        )


@dataclass(frozen=True, slots=True)
class Correction:
    """The session of an exchange on a day, where its calendar says otherwise.

    Times are in its zone; a session without them is as long as those before it.
    """

    calendar: str
    day: date
    is_open: bool
    opens_at: time | None
    closes_at: time | None
    reason: str
    source: str


@cache
def exchanges() -> Mapping[str, Exchange]:
    """Exchange by its MIC."""
    told = tomllib.loads(_EXCHANGES.read_text(encoding="utf-8"))
    return {
        mic: Exchange(
            mic=mic,
            calendar=entry.pop("calendar", mic) or None,
            shared=tuple(entry.pop("shared", ())),
            bloomberg=tuple(entry.pop("bloomberg", ())),
            google=tuple(entry.pop("google", ())),
            **entry,
        )
        for mic, entry in told.items()
    }


@cache
def corrections() -> tuple[Correction, ...]:
    """The corrections of trading days that come with the pipeline."""
    with _CORRECTIONS.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Correction(
                row["calendar"],
                date.fromisoformat(row["day"]),
                row["hours"] != "closed",
                *_hours(row["hours"]),
                row["reason"],
                row["source"],
            )
            for row in csv.DictReader(line for line in lines if not line.startswith("#"))
        )


def _hours(text: str) -> tuple[time | None, time | None]:
    if text in ("open", "closed"):
        return None, None
    opens, _, closes = text.partition("-")
    return time.fromisoformat(opens), time.fromisoformat(closes)


def currency_of(asset_class: str, symbol: str) -> str | None:
    """The currency that the prices of a canonical symbol must have, if the symbol tells it."""
    if asset_class in ("fx", "crypto"):
        return symbol.partition("/")[2] or None
    if asset_class == "equity" and ":" in symbol:
        exchange = exchanges().get(symbol.partition(":")[2])
        return None if exchange is None else exchange.currency
    return None
