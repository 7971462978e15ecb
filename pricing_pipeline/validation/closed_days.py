"""Doubt bars of days on which an exchange never trades, such as a Saturday of New York.

This module judges only Saturdays and Sundays, and only if the exchange has no session on that weekday within a year of
the day. So India's special sessions on Saturdays are believed, even if its calendar does not know the newest one.
Currencies are left out: their week begins on Sunday evening. Holidays are not judged: calendars learn of some too late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.validation.knowledge import Doubt, Doubted, Verdict


def doubt_closed_days(
    verdicts: Mapping[str, Verdict], closed: Mapping[tuple[str, date], str]
) -> dict[str, Verdict]:
    """The verdicts, in which bars of `closed` days are doubted: these are symbols and days, with the calendar."""
    judged = dict(verdicts)

    def calendar_of(row: Observation) -> str | None:
        return closed.get((row.symbol, row.observed_at.date()))

    for symbol in {symbol for symbol, _ in closed}:
        verdict = verdicts[symbol]
        doubts = [
            Doubted(row, Doubt.REFUSED, _reason(calendar, row.observed_at.date()))
            for row in verdict.good
            if (calendar := calendar_of(row)) is not None
        ]
        if doubts:
            good = Rows(row for row in verdict.good if calendar_of(row) is None)
            judged[symbol] = replace(verdict, good=good, doubted=[*verdict.doubted, *doubts])
    return judged


def _reason(calendar: str, day: date) -> str:
    return (
        f"it is of a {day:%A}, and {calendar} has traded on none within a year of {day}; if that is not its exchange, "
        "correct pricing.instruments.calendar"
    )
