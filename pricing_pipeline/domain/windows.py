"""Spans of days and of months."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True, slots=True)
class Window:
    """A span of days, both ends included, in the instrument's own trading calendar."""

    start: date
    end: date

    def without(self, days: Iterable[date]) -> list[Window]:
        """The parts of the span that remain without some of its days."""
        day, parts = timedelta(days=1), []
        start = self.start
        for left_out in sorted(days):
            if start < left_out:
                parts.append(Window(start, left_out - day))
            start = left_out + day
        return [*parts, Window(start, self.end)] if start <= self.end else parts


def months_after(first_of_month: date, months: int) -> date:
    """The first day of the month that many months later."""
    year, month = divmod(first_of_month.year * 12 + first_of_month.month - 1 + months, 12)
    return date(year, month + 1, 1)


def months_of(window: Window) -> list[date]:
    """First days of all months that a window touches."""
    months = [window.start.replace(day=1)]
    while (following := months_after(months[-1], 1)) <= window.end:
        months.append(following)
    return months
