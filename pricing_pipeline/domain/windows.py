"""Spans of days and of months."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from pricing_pipeline.errors import InvalidRange


@dataclass(frozen=True, slots=True)
class Window:
    """A span of days, both ends included, in the instrument's own trading calendar."""

    start: date
    end: date


def span(first: date, last: date) -> Window:
    """The days between two, both included. Raises InvalidRange when they are in the wrong order."""
    if first > last:
        raise InvalidRange(f"the range {first} to {last} ends before it begins. Give the earlier day first.")
    return Window(first, last)


def last_of(first: date | None, last: date | None, today: date) -> date:
    """The last requested day, today if None. Raises InvalidRange if the first day comes after today."""
    if first is not None and last is None and first > today:
        raise InvalidRange(f"{first} has not come yet: it is {today} (UTC). Give an earlier day.")
    return last or today


def next_month(first_of_month: date) -> date:
    """The first day of the month after."""
    year, month = divmod(first_of_month.year * 12 + first_of_month.month, 12)
    return date(year, month + 1, 1)


def months_of(window: Window) -> list[date]:
    """First days of all months that a window touches."""
    months = [window.start.replace(day=1)]
    while (following := next_month(months[-1])) <= window.end:
        months.append(following)
    return months
