"""F2: when the units of a day would be used up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.queue.forecast import DayForecast
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.free_plan import charged, free_plan
from pricing_pipeline_tests.support.stretching import ahead

AAPL = (QUOTE, "AAPL")
NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
"""A Wednesday."""


@pytest.fixture(autouse=True)
def noon(clock: Clock, still: None) -> None:
    clock.set(NOON)


def a_day(core: Core, *, trades: bool) -> None:
    """800 units of the 10th of June; the watched share trades from 13:30 to 20:00 UTC, or not on that day."""
    free_plan(core)
    core.heartbeat("ann", AAPL)
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale'")
    core.rows("UPDATE pricing.instruments SET calendar = 'XNYS', verified_at = now() WHERE symbol = 'AAPL'")
    core.rows(
        "UPDATE pricing.calendars SET sessions_from = '2026-06-01', sessions_to = '2026-12-31', filled_at = now()"
        " WHERE calendar = 'XNYS'"
    )
    core.rows("DELETE FROM pricing.calendar_sessions WHERE calendar = 'XNYS'")
    for day in ("2026-06-10", "2026-06-12")[not trades :]:
        core.rows(
            "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at)"
            f" VALUES ('XNYS', '{day}', '{day} 13:30Z', '{day} 20:00Z')"
        )


def day_ahead(core: Core) -> DayForecast:
    found = ahead(core).day
    assert found is not None
    return found


def test_f2_the_units_of_a_day_go_on_as_in_the_last_hour(core: Core, clock: Clock, cli: CommandLine) -> None:
    a_day(core, trades=False)
    quiet = day_ahead(core)
    assert (quiet.units, quiet.used, quiet.basis) == (800, 0, "measured")
    assert (quiet.outlook, quiet.ends_at, quiet.until) == ("lasts", None, datetime(2026, 6, 11, tzinfo=UTC))
    charged(core, 300, NOON - timedelta(hours=2))
    charged(core, 100, NOON - timedelta(minutes=30))
    busy = day_ahead(core)
    assert (busy.used, busy.hour_units, busy.outlook, busy.ends_at) == (
        *(400, 100, "ends"),
        NOON + timedelta(hours=4),
    )
    words = (
        "400 of today's 800 units are used, 100 of them in the last hour: at this pace they end at 2026-06-10 16:00 UTC"
    )
    assert busy.words == words
    assert f"forecast:    twelvedata: {words}." in cli("status").stdout
    assert words in " ".join(cli("provider", "show", TWELVEDATA).stdout.split())
    clock.advance(1801)
    assert (day_ahead(core).hour_units, day_ahead(core).outlook) == (0, "lasts")
    charged(core, 400, core.clock())
    over = day_ahead(core)
    assert over.ends_at == core.clock()
    assert over.words == "800 of today's 800 units are used; the next come at 2026-06-11 00:00 UTC"


def test_f2_the_units_of_a_day_do_not_end_while_they_are_spread_over_it(core: Core, clock: Clock) -> None:
    a_day(core, trades=True)
    charged(core, 79, NOON - timedelta(minutes=30))
    assert (day_ahead(core).basis, day_ahead(core).outlook) == ("paced", "lasts")
    clock.set(NOON + timedelta(hours=8))
    charged(core, 600, core.clock() - timedelta(minutes=10))
    assert (day_ahead(core).basis, day_ahead(core).outlook) == ("paced", "lasts")
    clock.set(NOON + timedelta(hours=8, minutes=16))
    after = day_ahead(core)
    assert (after.used, after.hour_units, after.basis) == (679, 600, "measured")
    assert after.ends_at == core.clock() + timedelta(hours=121 / 600)


def test_f2_each_active_key_has_its_day_which_begins_in_its_zone(core: Core) -> None:
    a_day(core, trades=False)
    core.rows("UPDATE pricing.provider_limits SET day_timezone = 'Asia/Kolkata' WHERE name = 'day'")
    core.rows("DELETE FROM pricing.provider_keys WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name, is_active)"
        " VALUES ('twelvedata', 'a', true), ('twelvedata', 'b', true), ('twelvedata', 'c', false)"
    )
    charged(core, 50, datetime(2026, 6, 9, 18, 29, tzinfo=UTC))
    charged(core, 70, datetime(2026, 6, 9, 18, 31, tzinfo=UTC))
    found = day_ahead(core)
    assert (found.units, found.used) == (1600, 70)
    assert found.until == datetime(2026, 6, 10, 18, 30, tzinfo=UTC)


def test_f2_a_provider_without_a_limit_of_a_day_has_no_such_forecast(core: Core) -> None:
    core.rows("DELETE FROM pricing.provider_limits WHERE day_timezone IS NOT NULL")
    assert ahead(core).day is None


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 719)), max_size=6),
    minute=st.integers(720, 1439),
    trades=st.booleans(),
)
def test_f2_a_day_ends_when_its_pace_says_and_never_while_it_is_spread(
    core: Core, clock: Clock, calls: list[tuple[int, int]], minute: int, trades: bool
) -> None:
    core.rows("DELETE FROM pricing.collector_call_log")
    clock.set(datetime(2026, 6, 10, tzinfo=UTC) + timedelta(minutes=minute))
    a_day(core, trades=trades)
    now = core.clock()
    for units, ago in calls:
        charged(core, units, now - timedelta(minutes=ago, seconds=30))
    found = day_ahead(core)
    assert found.used == sum(units for units, _ in calls)
    assert (found.outlook == "ends") == (found.ends_at is not None)
    pace = sum(units for units, ago in calls if ago < 60)
    if found.used >= found.units:
        assert found.ends_at == now
    elif trades and minute < 20 * 60 + 15:
        assert (found.basis, found.ends_at) == ("paced", None)
    elif found.ends_at is None:
        hours = (found.until - now).total_seconds() / 3600
        assert found.used + pace * hours <= found.units + 0.01
    else:
        assert now <= found.ends_at < found.until
        hours = (found.ends_at - now).total_seconds() / 3600
        assert found.used + pace * hours == pytest.approx(found.units, abs=0.01)
