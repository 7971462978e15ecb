"""The second source of trading days, the package holidays, and the days on which it contradicts the first.

It knows holidays of 28 exchanges, and no special sessions. It is never believed alone: a correction or bars
show who is right (`pricing.store_disagreements`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from pricing_pipeline.registry.sessions import Sessions

_PAST, _AHEAD = timedelta(days=370), timedelta(days=400)
"""Older days are settled, and later ones are not announced."""
_OTHER_NAMES = {"XTKS": "XJPX"}
_WEEKS = (-2, -1, 1, 2)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A day on which the second source contradicts the first, and its name for it."""

    day: date
    is_open: bool
    reason: str


def disagreements(sessions: Sessions, today: date) -> list[Disagreement]:
    """The days around `today` on which the second source contradicts these sessions; none if it lacks the exchange."""
    import holidays

    market = _OTHER_NAMES.get(sessions.calendar, sessions.calendar)
    if market not in holidays.list_supported_financial():
        return []
    first, last = max(sessions.start, today - _PAST), min(sessions.end, today + _AHEAD)
    closed = holidays.financial_holidays(market, years=range(first.year, last.year + 1), language="en_US")
    days = set(sessions.days)
    found = []
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        name = closed.get(day)
        if day in days and name is not None:
            found.append(Disagreement(day, False, name))
        # A weekday on which the exchange never trades is not a holiday.
        elif day not in days and name is None and any(day + timedelta(weeks=n) in days for n in _WEEKS):
            found.append(Disagreement(day, True, "no holiday that it knows"))
    return found
