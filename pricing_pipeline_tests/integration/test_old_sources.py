"""F4, F7: which sources count as old, and which have merely nothing newer to tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, Core

pytestmark = pytest.mark.usefixtures("still")

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
DAY_1, DAY_2 = datetime(2026, 6, 9, tzinfo=UTC), datetime(2026, 6, 10, tzinfo=UTC)
"""A Tuesday and a Wednesday."""
NOON = DAY_2 + timedelta(hours=15)


def is_old(core: Core, data_type: str, symbol: str, observed_at: datetime, asked_at: datetime) -> bool:
    return bool(
        core.one(
            "SELECT pricing.is_source_old(r, :symbol, :observed_at, :asked_at, r.default_ttl_minutes)"
            " FROM pricing.data_type_registry r WHERE r.data_type = :data_type",
            data_type=data_type,
            symbol=symbol,
            observed_at=observed_at,
            asked_at=asked_at,
        )
    )


def trade(core: Core, calendar: str, opens: timedelta, closes: timedelta) -> None:
    """Two sessions, in which all equities trade."""
    core.rows("UPDATE pricing.instruments SET calendar = :calendar WHERE asset_class = 'equity'", calendar=calendar)
    for day in (DAY_1, DAY_2):
        core.rows(
            "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at)"
            " VALUES (:calendar, :day, :opens_at, :closes_at)",
            calendar=calendar,
            day=day.date(),
            opens_at=day + opens,
            closes_at=day + closes,
        )


def test_f4_f7_a_source_of_delayed_quotes_is_not_old(core: Core) -> None:
    """Each quote that came fifteen minutes late, and so was a little older than that, was told as not fresh."""
    trade(core, "XNYS", timedelta(hours=13, minutes=30), timedelta(hours=20))
    for minutes, expected in ((14, False), (16, False), (29, False), (31, True)):
        assert is_old(core, QUOTE, "AAPL", NOON - minutes * MINUTE, NOON) == expected, minutes


def test_f4_f7_a_source_is_not_old_while_its_exchange_pauses_at_noon(core: Core) -> None:
    trade(core, "XSHG", timedelta(hours=1, minutes=30), timedelta(hours=7))
    pause = DAY_2 + timedelta(hours=3, minutes=30)
    assert not is_old(core, QUOTE, "AAPL", pause - 15 * MINUTE, pause + 90 * MINUTE)
    assert is_old(core, QUOTE, "AAPL", DAY_2 + 90 * MINUTE, DAY_2 + timedelta(hours=6))


def test_f4_f7_of_what_trades_by_no_known_calendar_a_night_is_not_old(core: Core) -> None:
    core.rows("UPDATE pricing.instruments SET calendar = NULL WHERE symbol = 'AAPL'")
    assert not is_old(core, QUOTE, "AAPL", NOON - 4 * DAY, NOON)
    assert is_old(core, QUOTE, "AAPL", NOON - 6 * DAY, NOON)


@pytest.mark.parametrize("data_type", [QUOTE, DAILY])
def test_f4_f7_after_the_last_session_that_is_known_the_days_count(core: Core, data_type: str) -> None:
    """The last known session was what a daily value was measured by for ever, and a quote was old each night."""
    trade(core, "XNYS", timedelta(hours=13, minutes=30), timedelta(hours=20))
    later = NOON + 90 * DAY
    assert not is_old(core, data_type, "AAPL", later - 4 * DAY, later)
    assert is_old(core, data_type, "AAPL", later - 6 * DAY, later)
    assert is_old(core, data_type, "AAPL", DAY_2, later)


@pytest.mark.parametrize(("days", "on_time", "too_late"), [(1, 4, 9), (7, 8, 13), (30, 35, 45)])
def test_f4_f7_a_fund_that_is_valued_seldom_is_old_when_its_own_pause_is_over(
    core: Core, days: int, on_time: int, too_late: int
) -> None:
    """One that was valued each week or month was old for ever, though its source told each of its values."""
    core.lift_limits()
    core.enqueue(NAV, "118632")
    core.finish(core.claim_one(MFAPI), seconds_old=0)
    newest = DAY_1 - 100 * DAY
    core.rows(
        "DELETE FROM pricing.price_history WHERE symbol = '118632'"
        " AND observed_at <> (SELECT max(observed_at) FROM pricing.latest_prices)"
    )
    for number in range(6):
        core.rows(
            "INSERT INTO pricing.price_history SELECT (h).* FROM (SELECT jsonb_populate_record(x,"
            " jsonb_build_object('observed_at', CAST(:at AS timestamptz))) AS h FROM pricing.price_history x"
            " WHERE x.symbol = '118632' ORDER BY x.observed_at DESC LIMIT 1) copied",
            at=newest - number * days * DAY,
        )
    assert not is_old(core, NAV, "118632", newest, newest + on_time * DAY)
    assert is_old(core, NAV, "118632", newest, newest + too_late * DAY)
