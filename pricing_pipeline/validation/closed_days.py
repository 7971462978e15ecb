"""Doubt bars of days on which their exchange has no session: weekends, holidays, days of mourning.

Calendars are wrong at times: they miss special sessions, and learn of some holidays too late. So such a bar is
evidence that the exchange traded. It is quarantined until a second instrument, a second provider or a correction says
the same (`pricing.weigh_closed_days`). Currencies are left out: their week begins on Sunday evening.
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
            Doubted(row, Doubt.CLOSED_DAY, _reason(calendar, row.observed_at.date()))
            for row in verdict.good
            if (calendar := calendar_of(row)) is not None
        ]
        if doubts:
            good = Rows(row for row in verdict.good if calendar_of(row) is None)
            judged[symbol] = replace(verdict, good=good, doubted=[*verdict.doubted, *doubts])
    return judged


def _reason(calendar: str, day: date) -> str:
    return (
        f"{calendar} has no session on {day:%A}, {day}. It is believed once another instrument or provider has a bar "
        f"of that day, or after `calendar add-session {calendar} {day}`. If {calendar} is not its calendar, "
        "correct it with `instrument change --calendar`"
    )
