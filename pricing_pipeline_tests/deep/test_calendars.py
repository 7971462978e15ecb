"""F7: all sessions from 2000 to the end of next year."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.core import Core, utc
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")


def test_f7_sessions_are_known_from_2000_to_the_end_of_next_year(core: Core, clock: Clock) -> None:
    """NYSE: holidays, half days, summer time; and those who have no exchange. A second time nothing is to do."""
    clock.set(utc("2026-03-10 12:00"))
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('crypto', 'BTC/USD')")
    core.rows("UPDATE pricing.instruments SET calendar = NULL WHERE asset_class = 'fund'")
    assert calendars.extend(core.engine).written == ["24/7", "FX", "XNYS"]
    spans = core.rows("SELECT calendar, sessions_from, sessions_to FROM pricing.calendars WHERE filled_at IS NOT NULL")
    assert {tuple(span)[1:] for span in spans} == {(date(2000, 1, 1), date(2027, 12, 31))}

    def session(calendar: str, day: str) -> tuple[datetime, datetime] | None:
        rows = core.rows(
            "SELECT opens_at, closes_at FROM pricing.calendar_sessions WHERE calendar = :c AND session = :d",
            c=calendar,
            d=date.fromisoformat(day),
        )
        return (rows[0][0], rows[0][1]) if rows else None

    assert session("XNYS", "2025-01-09") is None, "a day of mourning"
    assert session("XNYS", "2025-11-27") is None
    assert session("XNYS", "2025-11-28") == (utc("2025-11-28 14:30"), utc("2025-11-28 18:00"))
    assert session("XNYS", "2025-07-01") == (utc("2025-07-01 13:30"), utc("2025-07-01 20:00"))
    assert session("FX", "2026-03-09") == (utc("2026-03-08 21:00"), utc("2026-03-09 21:00"))
    assert session("FX", "2026-03-07") is None
    assert session("24/7", "2026-03-07") == (utc("2026-03-07 00:00"), utc("2026-03-08 00:00"))
    assert calendars.extend(core.engine).written == []
    clock.set(utc("2027-01-02 12:00"))
    assert calendars.extend(core.engine).written == ["24/7", "FX", "XNYS"]
