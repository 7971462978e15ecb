"""The units of a calendar day last for the trading hours of what is watched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.registry import plans
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.free_plan import charged, free_plan, symbols, why
from pricing_pipeline_tests.support.trading_days import store_weekdays

SUMMER_DAY = datetime(2026, 3, 10, tzinfo=UTC)
"""A Tuesday of New York's summer time: it trades from 13:30 to 20:00 UTC."""
OPEN, LAST = SUMMER_DAY + timedelta(hours=13.5), SUMMER_DAY + timedelta(hours=20.25)
"""The opening, and the time at which the closing price is there."""

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def plan(core: Core, clock: Clock) -> None:
    """The free plan of Twelve Data without its limit by the minute; quotes follow their markets."""
    clock.set(SUMMER_DAY)
    free_plan(core)
    core.rows("DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata' AND name = 'minute'")
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale'")
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('crypto', 'BTC/USD')")
    store_weekdays(core, "XNYS", "2026-03-09", "2026-03-11", ("13:30", "20:00"))
    core.call("SELECT pricing.store_own_sessions('24/7', '2026-03-01', '2026-03-31')")


def units_left(core: Core, clock: Clock, at: datetime) -> int:
    clock.set(at)
    return core.allowance().units_left


@pytest.mark.usefixtures("plan")
def test_a6_a_day_is_spread_over_the_session_of_what_is_watched(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert units_left(core, clock, SUMMER_DAY + timedelta(hours=1)) == 80, "a tenth before the opening"
    assert units_left(core, clock, OPEN) == 80
    assert units_left(core, clock, OPEN + (LAST - OPEN) / 2) == 400, "half of the session, half of the day's"
    assert units_left(core, clock, LAST - timedelta(seconds=1)) == 719
    assert units_left(core, clock, LAST) == 800, "the last tenth comes after the close"


@pytest.mark.usefixtures("plan")
def test_a6_a_plan_promises_the_pace_that_claims_keep_in_new_york(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    note_calendars(core)
    clock.set(OPEN)
    rate = core.one(
        "SELECT pricing.paced_rate(l, 800, pricing.clock()) FROM pricing.provider_limits l"
        " WHERE l.provider = 'twelvedata'"
    )
    assert rate == pytest.approx(800 * plans.PACED_SHARE / plans.SESSION_MINUTES)


def watch_many(core: Core, count: int) -> None:
    """So many quotes of New York are watched."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'equity', 'W' || n FROM generate_series(1, :n) n",
        n=count,
    )
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at)"
        " SELECT 'equity_quote', 'W' || n, pricing.clock() FROM generate_series(1, :n) n",
        n=count,
    )


def note_calendars(core: Core) -> None:
    assert "note_watched_calendars" in core.call("SELECT pricing.run_duties()")


@pytest.mark.usefixtures("plan")
def test_a6_a_claim_does_not_read_all_that_is_watched(core: Core, clock: Clock) -> None:
    """While duties run; half a second at each claim with 100,000 pairs otherwise."""
    watch_many(core, 2000)
    clock.set(OPEN)
    note_calendars(core)
    core.rows("ANALYZE pricing.demand, pricing.instruments")
    with core.owner.begin() as connection:
        allowed = "SELECT sum(units_left) FROM pricing.key_allowances('twelvedata', pricing.clock())"
        before = rows_read(connection)
        assert connection.execute(text(allowed)).scalar_one() == 80
        assert rows_read(connection) - before < 500


def test_a6_a_claim_reads_nothing_of_what_is_only_held(core: Core) -> None:
    """Nothing is noted as watched, so each claim looks whether somebody has begun to watch since."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, calendar, verified_at)"
        " SELECT 'equity', 'H' || n, 'XNYS', pricing.clock() FROM generate_series(1, 2000) n"
    )
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at, is_background)"
        " SELECT 'equity_quote', 'H' || n, pricing.clock(), true FROM generate_series(1, 2000) n"
    )
    core.rows("ANALYZE pricing.demand, pricing.instruments")
    with core.owner.connect() as connection:
        before = rows_read(connection)
        connection.execute(text("SELECT pricing.watched_calendars_of('twelvedata')")).all()
        assert rows_read(connection) - before < 500


@pytest.mark.usefixtures("plan")
def test_a6_what_is_noted_follows_what_is_watched(core: Core, clock: Clock) -> None:
    noted = "SELECT string_agg(calendar, ' ' ORDER BY calendar) FROM pricing.watched_calendars"
    found = "SELECT string_agg(c, ' ' ORDER BY c) FROM pricing.watched_calendars_of('twelvedata') c"
    note_calendars(core)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert (core.one(noted), core.one(found)) == (None, "XNYS"), "nothing noted is looked at anew"
    clock.advance(61)
    note_calendars(core)
    assert core.one(noted) == "XNYS"
    core.heartbeat("ann", (FX, "EUR/USD"))
    assert core.one(found) == "XNYS"
    clock.advance(61)
    note_calendars(core)
    assert core.one(found) == core.one(noted) == "FX XNYS"
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    core.rows("DELETE FROM pricing.demand WHERE symbol = 'AAPL'")
    clock.advance(61)
    note_calendars(core)
    assert core.one(found) == core.one(noted) == "FX"


@pytest.mark.usefixtures("plan")
def test_a6_what_was_noted_long_ago_is_not_believed(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    note_calendars(core)
    core.rows("UPDATE pricing.watched_calendars SET calendar = '24/7'")
    noted = "SELECT pricing.watched_calendars_of('twelvedata')"
    assert core.one(noted) == "24/7"
    clock.advance(121)
    assert core.one(noted) == "XNYS"


@pytest.mark.usefixtures("plan")
def test_a6_what_is_used_is_taken_off(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(100)))
    clock.set(OPEN)
    assert sum(len(call.symbols) for call in core.claim(max_calls=10)) == 80
    assert core.claim(max_calls=10) == []
    assert units_left(core, clock, OPEN + (LAST - OPEN) / 2) == 320


@pytest.mark.usefixtures("plan")
def test_a6_what_trades_around_the_clock_has_its_share_of_every_hour(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES ('crypto_quote', 'crypto', 'quote', 5)"
    )
    core.heartbeat("ann", ("crypto_quote", "BTC/USD"), (QUOTE, "AAPL"))
    assert units_left(core, clock, SUMMER_DAY + timedelta(hours=12)) == 440, "nothing comes after the end"


@pytest.mark.usefixtures("plan")
def test_a6_what_is_watched_at_another_provider_does_not_count(core: Core, clock: Clock) -> None:
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'fx_rate'")
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('fx_rate', 'yahoo', 1)")
    core.heartbeat("ann", (FX, "EUR/USD"))
    assert units_left(core, clock, SUMMER_DAY + timedelta(hours=12)) == 800


@pytest.mark.usefixtures("plan")
def test_a6_a_limit_of_seconds_is_not_paced(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_limits SET window_seconds = 86400, day_timezone = NULL WHERE provider = 'twelvedata'"
    )
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert units_left(core, clock, SUMMER_DAY + timedelta(hours=1)) == 800


@pytest.mark.usefixtures("plan")
def test_f4_why_names_the_limit_that_is_used_up_and_when_the_next_unit_comes(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(100)))
    clock.set(OPEN + timedelta(minutes=1))
    core.claim(max_calls=10)
    paced = why(core, symbols(100)[-1])
    assert paced.state == "rate_limited"
    assert "allows 800 units in a day: 81 are used, and the others are spread over the rest of the" in paced.sentence
    assert paced.next_at is not None
    assert timedelta(seconds=30) < paced.next_at - OPEN - timedelta(minutes=1) < timedelta(minutes=1)
    clock.set(LAST)
    core.rows("UPDATE pricing.provider_limits SET units = 81 WHERE provider = 'twelvedata'")
    spent = why(core, symbols(100)[-1])
    assert (
        "twelvedata allows 81 units in a day, and 81 are used; the next come at 2026-03-11 00:00:00" in spent.sentence
    )
    assert spent.next_at == SUMMER_DAY + timedelta(days=1)


@pytest.mark.usefixtures("plan")
def test_a6_what_was_used_before_anybody_watched_does_not_stop_the_day(core: Core, clock: Clock) -> None:
    """A backfill has used 56 of 90 units by the opening: the 25 that the session may still use last until its end."""
    core.rows("UPDATE pricing.provider_limits SET units = 90 WHERE provider = 'twelvedata'")
    store_weekdays(core, "XNYS", "2026-03-10", "2026-03-10", ("13:30", "14:00"))
    charged(core, 56, OPEN - timedelta(hours=3))
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(60)))
    used = []
    for minute in range(45):
        clock.set(OPEN + timedelta(minutes=minute))
        used.append(sum(len(call.symbols) for call in core.claim(max_calls=10)))
    assert max(used) == 1, "evenly, one by one"
    assert sum(used[:10]) >= 3, "from the opening on"
    assert 18 <= sum(used) <= 25
    assert 0.4 <= sum(used[:22]) / sum(used) <= 0.6


def paced(sessions: Sequence[tuple[datetime, datetime]], units: int, at: datetime) -> float:
    """The plain model, not yet rounded: sessions of one day that do not overlap, in order."""
    if not sessions or at >= sessions[-1][1]:
        return units
    past = sum((max(min(at, end) - start, timedelta()) for start, end in sessions), timedelta())
    whole = sum((end - start for start, end in sessions), timedelta())
    share = 0.1 + (0.9 if sessions[-1][1] == SUMMER_DAY + timedelta(days=1) else 0.8) * (past / whole)
    if at > sessions[0][0] and not any(start <= at < end for start, end in sessions):
        share += 0.1
    return min(max(1, units * share), units)


minutes = st.integers(0, 1440)


@pytest.mark.usefixtures("plan")
@given(
    cuts=st.lists(minutes, max_size=6, unique=True).map(sorted),
    at=st.integers(0, 1439),
    units=st.integers(1, 2000),
    used=st.integers(0, 2000),
)
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a6_units_come_evenly_with_any_sessions(
    core: Core, clock: Clock, cuts: list[int], at: int, units: int, used: int
) -> None:
    """Beside a plain model; and a unit that is said to come at a time is there then, and no minute before."""
    sessions = [
        (SUMMER_DAY + timedelta(minutes=start), SUMMER_DAY + timedelta(minutes=end))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    core.rows("DELETE FROM pricing.calendar_sessions WHERE calendar IN ('XNYS', 'XLON', 'XETR')")
    core.rows(
        "INSERT INTO pricing.calendars (calendar, sessions_from, sessions_to)"
        " VALUES ('XLON', '2000-01-01', '2030-12-31'), ('XETR', '2000-01-01', '2030-12-31')"
        " ON CONFLICT (calendar) DO UPDATE"
        " SET sessions_from = excluded.sessions_from, sessions_to = excluded.sessions_to"
    )
    core.rows("DELETE FROM pricing.demand")
    core.rows("DELETE FROM pricing.collector_call_log")
    for (start, end), calendar, symbol in zip(sessions, ("XNYS", "XLON", "XETR"), symbols(3), strict=False):
        core.rows(
            "INSERT INTO pricing.calendar_sessions VALUES (:calendar, '2026-03-10', :start,"
            # A quarter of an hour belongs to each session: it is cut off here, so that the model need not know of it.
            " CAST(:end AS timestamptz) - interval '15 minutes')"
            if end - start > timedelta(minutes=15)
            else "SELECT 1",
            calendar=calendar,
            start=start,
            end=end,
        )
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, calendar) VALUES ('equity', :symbol, :calendar)"
            " ON CONFLICT (asset_class, symbol) DO UPDATE SET calendar = excluded.calendar",
            symbol=symbol,
            calendar=calendar,
        )
        core.rows(
            "INSERT INTO pricing.demand (data_type, symbol, due_at) VALUES ('equity_quote', :symbol, pricing.clock())",
            symbol=symbol,
        )
    sessions = [(start, end) for start, end in sessions if end - start > timedelta(minutes=15)]

    def units_at(moment: datetime) -> int:
        return int(
            core.one(
                "SELECT pricing.paced_units(l, 'default', :units, :at) FROM pricing.provider_limits l"
                " WHERE (l.provider, l.name) = ('twelvedata', 'day')",
                units=units,
                at=moment,
            )
        )

    now = SUMMER_DAY + timedelta(minutes=at)
    exact, paced_now = paced(sessions, units, now), units_at(now)
    assert math.floor(exact - 1e-6) <= paced_now <= math.floor(exact + 1e-6), "rounded down, but for errors of doubles"
    if used:
        charged(core, used, SUMMER_DAY)
    if used >= paced_now:
        comes = core.one(
            "SELECT pricing.paced_at(l, 'default', :units, :at) FROM pricing.provider_limits l"
            " WHERE (l.provider, l.name) = ('twelvedata', 'day')",
            units=units,
            at=now,
        )
        end = SUMMER_DAY + timedelta(days=1)
        assert comes <= end
        if now < comes < end:
            assert units_at(comes) > used
            assert units_at(max(comes - timedelta(minutes=1), now)) <= used
