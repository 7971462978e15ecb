"""The sessions of a calendar, as a library of trading days works them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Sessions:
    """The trading days of one calendar between two days, with open and close in UTC."""

    calendar: str
    start: date
    end: date
    days: Sequence[date]
    opens: Sequence[datetime]
    closes: Sequence[datetime]
