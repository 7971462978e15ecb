"""Trading days of all exchanges against what was reported, and against the second source."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from pricing_pipeline.registry import calendars, second_source
from pricing_pipeline.registry.sessions import Sessions
from pricing_pipeline_tests.fixtures.core import Core, utc
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_trading_days import FIRST, LAST, _since_2021, did, follow, still

__all__ = ["_since_2021"]

# The library keeps each calendar that it has built, so one process builds each of them once.
pytestmark = pytest.mark.xdist_group("trading_days")

DAYS = Path(__file__).parents[1] / "data/trading_days.csv"


def known_days() -> list[dict[str, str]]:
    with DAYS.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@still
def test_f7_the_sessions_of_real_exchanges_are_as_reported(core: Core, clock: Clock) -> None:
    """The proof: holidays, half days, special sessions, a moved week, of 2023 to 2027; all of them are right."""
    clock.set(utc("2026-11-28 12:00"))
    days = known_days()
    assert len({(row["calendar"], row["day"]) for row in days}) == len(days) >= 120
    assert len({row["calendar"] for row in days}) >= 20
    assert {row["day"][:4] for row in days} == {"2023", "2024", "2025", "2026", "2027"}
    follow(core, *sorted({row["calendar"] for row in days}))
    assert calendars.extend(core.engine).failed == {}
    wrong = {}
    for row in days:
        found = did(core, row["calendar"], row["day"])
        if found != row["did"] and (row["did"] != "open" or found == "closed"):
            wrong[row["calendar"], row["day"]] = (found, row["did"], row["source"])
    assert wrong == {}


def test_f7_the_library_and_its_pandas_fit_each_other() -> None:
    """pandas 3.1 makes exchange_calendars 4.13.2 lose weekend sessions, and some calendars cannot be built.

    What neither corrections nor a database touch: it fails when one of the two moves and the other is not right.
    """
    known = {
        ("XBOM", date(2024, 1, 20)): True,
        ("XBOM", date(2025, 2, 1)): True,
        ("XBOM", date(2024, 1, 22)): False,
        ("XTAE", date(2025, 5, 18)): True,  # a Sunday
        ("XTAE", date(2025, 12, 28)): True,
        ("XTAE", date(2025, 6, 6)): False,  # a Friday
        ("XTAE", date(2026, 1, 9)): True,
        ("XTAE", date(2026, 1, 11)): False,
        ("XTAE", date(2026, 4, 22)): False,  # Independence Day
        ("XSAU", date(2026, 1, 11)): True,
        ("ASEX", date(2026, 4, 13)): False,  # the Orthodox Easter Monday
        ("ASEX", date(2026, 4, 14)): True,
        ("XBSE", date(2026, 4, 13)): False,
        ("XBEL", date(2026, 4, 13)): False,
        ("XCYS", date(2026, 4, 13)): False,
        ("XNYS", date(2025, 1, 9)): False,
    }
    days = {name: set(calendars.exchange_sessions(name, FIRST, LAST).days) for name, _ in known}
    assert {(name, day): day in days[name] for name, day in known} == known
    weekdays = Counter(day.weekday() for day in days["XTAE"] if day.year == 2025)
    assert weekdays[6] > 40, "Sundays of Tel Aviv"
    assert weekdays[4] == weekdays[5] == 0


def test_f7_the_second_source_tells_where_it_contradicts_the_first() -> None:
    """Without corrections it knows two late closures of Seoul."""
    sessions = calendars.exchange_sessions("XKRX", date(2026, 1, 1), date(2026, 12, 31))
    found = second_source.disagreements(sessions, date(2026, 6, 1))
    assert [(one.day, one.is_open) for one in found] == [
        (date(2026, 6, 3), False),
        (date(2026, 7, 17), False),
    ]
    assert "Election" in found[0].reason
    unknown = Sessions("XIDX", date(2026, 1, 1), date(2026, 12, 31), [], [], [])
    assert second_source.disagreements(unknown, date(2026, 6, 1)) == [], "it has no Jakarta"
