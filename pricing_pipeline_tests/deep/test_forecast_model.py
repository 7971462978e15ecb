"""F2: the rules of forecast and stretch against a plain model, and months of a quota in fast motion.

The model is support/quota_month.py. Single cases are in test_forecast.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support import quota_month
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.quota_month import MOST, Month

MONTH = 720
BYTES = 600
PAIRS = 12
TTL_HOURS = 4
NEED = PAIRS * BYTES / TTL_HOURS
"""Bytes an hour that so many pairs need at their TTL."""
START = datetime(2026, 3, 1, tzinfo=UTC)

rates = st.floats(0, 1e6, allow_subnormal=False)


@given(
    hours=st.lists(st.integers(0, 50_000), min_size=1, max_size=900),
    rate=st.floats(0, 5e4),
    quota=st.integers(1_000, 20_000_000),
)
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_f2_what_leaves_and_what_is_sustained_is_as_in_the_model(
    connection: psycopg.Connection[Any], hours: list[int], rate: float, quota: int
) -> None:
    """Bytes by hour of the past, of which those of 721 hours ago and more are out."""
    with connection.transaction(force_rollback=True):
        connection.execute(
            "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
            " SELECT 'twelvedata', timestamptz '2026-03-31 12:00Z' - make_interval(hours => %s - n::integer), b"
            " FROM unnest(%s::bigint[]) WITH ORDINALITY AS u (b, n)",
            [len(hours), hours],
        )
        now = datetime(2026, 3, 31, 12, 20, tzinfo=UTC)
        row = connection.execute("SELECT pricing.leaving_bytes('twelvedata', %s)", [now]).fetchone()
        assert row is not None
        used, left = sum(hours[-721:]), quota_month.leaving(hours)
        assert row[0] == left
        assert left[-1] == used
        row = connection.execute(
            "SELECT pricing.sustained_rate(%s::bigint[], %s, %s), pricing.reached_at(%s::bigint[], %s, %s, %s, %s)",
            [left, used, quota, left, used, rate, quota, now],
        ).fetchone()
        assert row is not None
        most = quota_month.sustained(left, used, quota)
        assert row[0] == pytest.approx(most)
        after = quota_month.reached_after(left, used, rate, quota)
        assert row[1] == (None if after is None else now + timedelta(hours=after))
        if most > 0:
            ahead = [used - left[24 * day - 1] + most * 24 * day for day in range(1, 31)]
            assert max(ahead) == pytest.approx(quota), "no day goes past the target, and one reaches it"


@given(watched=rates, background=rates, most=rates)
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_f2_the_background_gives_way_first_and_neither_ever_past_the_limit(
    connection: psycopg.Connection[Any], watched: float, background: float, most: float
) -> None:
    row = connection.execute(
        "SELECT f.* FROM pricing.stretch_factors(%s, %s, %s) f", [watched, background, most]
    ).fetchone()
    assert row is not None
    ahead, behind = row
    assert (ahead, behind) == pytest.approx(quota_month.factors(watched, background, most), rel=1e-9)
    assert 1 <= ahead <= MOST
    assert 1 <= behind <= MOST
    if ahead > 1 and background > 0 and watched + background / MOST > most:
        assert behind == pytest.approx(MOST), "what people watch waits last"
    if max(ahead, behind) < MOST:
        assert watched / ahead + background / behind <= most * (1 + 1e-9) + 1e-9


@given(before=st.floats(1, MOST), wanted=st.floats(1, MOST), elapsed=st.integers(0, 90_000))
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_f2_a_factor_grows_slowly_and_shrinks_at_once(
    connection: psycopg.Connection[Any], before: float, wanted: float, elapsed: int
) -> None:
    row = connection.execute("SELECT pricing.next_factor(%s, %s, %s)", [before, wanted, elapsed]).fetchone()
    assert row is not None
    assert row[0] == pytest.approx(quota_month.next_factor(before, wanted, elapsed))
    assert row[0] <= max(before * 2 ** (elapsed / 3600), 1) * 1.0001
    if wanted < 0.98 * before:
        assert row[0] == wanted


# Months of the model


@pytest.mark.parametrize("demand", [0.5, 1, 3, 10])
def test_f2_use_settles_below_the_wall_and_nothing_stands_still(demand: float) -> None:
    """Of three months each hour is served: at least a sixteenth of what is wanted comes in it."""
    month = Month(72_000_000)
    need = demand * 0.95 * month.quota / MONTH
    for hour in range(3 * MONTH):
        month.pass_hour(need)
        assert month.used <= 0.95 * month.quota
        assert month.hours[-2] >= need / MOST - 1, f"hour {hour} stands still"
    assert month.used == pytest.approx(min(demand * 0.95, 0.88) * month.quota, rel=0.03)
    assert month.factors[0] == pytest.approx(max(1, demand * 0.95 / 0.88), rel=0.03)


def test_f2_without_a_stretch_a_month_ends_after_three_days() -> None:
    """What the stretch is for, and that the model can fail the test above."""
    month = Month(72_000_000, is_stretched=False)
    need = 10 * 0.95 * month.quota / MONTH
    for _ in range(MONTH):
        month.pass_hour(need)
    dry = [hour for hour, came in enumerate(month.hours[:-1]) if came == 0]
    assert len(dry) == 648
    assert dry[0] == 72


def test_f2_people_who_sleep_leave_their_quota_to_the_day() -> None:
    """Three times the quota in eight hours of each day: the average counts, not the peak, so most of it is used."""
    month = Month(72_000_000)
    for hour in range(3 * MONTH):
        month.pass_hour(9 * 0.95 * month.quota / MONTH if hour % 24 < 8 else 0)
        assert month.used <= 0.95 * month.quota
    assert month.used >= 0.85 * month.quota


def test_f2_what_is_watched_keeps_its_ttl_while_the_background_gives_way() -> None:
    month = Month(72_000_000)
    allowed = 0.95 * month.quota / MONTH
    for _ in range(2 * MONTH):
        month.pass_hour(0.7 * allowed, 2 * allowed)
        assert month.factors[0] == 1 or month.factors[1] > 0.97 * MOST
    assert month.factors[0] == 1
    assert 5 < month.factors[1] < MOST
    assert month.used == pytest.approx(0.88 * month.quota, rel=0.02), "below the schedules' step"


# Months of the database


@dataclass
class FastMotion:
    """A session in which the clock is a setting, so that hours take seconds: each is checked, claimed and settled."""

    session: psycopg.Connection[Any]
    fetched: dict[str, list[int]]

    def set(self, hour: int) -> None:
        moment = START + timedelta(hours=hour)
        self.session.execute("SELECT set_config('pricing_test.now', %s, false)", [moment.isoformat()])

    def begin(self, month: Month) -> None:
        """Let the quota have been used as in a month of the model, until now."""
        now = len(month.hours) - 1
        self.set(now)
        self.session.execute(
            "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
            " SELECT 'twelvedata', pricing.clock() - make_interval(hours => %s - n::integer), b"
            " FROM unnest(%s::bigint[]) WITH ORDINALITY AS u (b, n) WHERE b > 0",
            [len(month.hours), month.hours],
        )
        self.session.execute(
            "INSERT INTO pricing.ttl_stretches VALUES ('twelvedata', %s, %s, %s, 1, NULL, pricing.clock())",
            [*month.factors, NEED],
        )
        # One pair after the other, as they would be.
        self.session.execute(
            "UPDATE pricing.latest_prices l SET fetched_at = pricing.clock() - age.by FROM ("
            " SELECT x.symbol, interval '1 hour' * %s * row_number() OVER (ORDER BY x.symbol) / %s AS by"
            " FROM pricing.latest_prices x) age WHERE age.symbol = l.symbol",
            [TTL_HOURS * month.factors[0], PAIRS],
        )
        self.session.execute("UPDATE pricing.demand SET due_at = pricing.clock()")
        self.session.execute("UPDATE pricing.data_collectors SET quota_bytes = %s", [month.quota])

    def pass_hour(self, hour: int) -> int:
        """Returns the bytes that are used after it."""
        self.set(hour)
        self.session.execute("SELECT pricing.stretch_ttls()")
        self.session.execute("SELECT pricing.lift_marks()")
        self.session.execute("SELECT pricing.enqueue_due()")
        for call in self.session.execute(
            "SELECT call_id, ids, symbols, claim_token FROM pricing.claim_calls('twelvedata', 'a', 10)"
        ).fetchall():
            self.session.execute(
                "UPDATE pricing.latest_prices SET fetched_at = pricing.clock() WHERE symbol = ANY (%s)",
                [call.symbols],
            )
            self.session.execute(
                "SELECT pricing.finish_call(%s, %s, %s, 200, %s)",
                [call.call_id, call.ids, call.claim_token, BYTES * len(call.ids)],
            )
            for symbol in call.symbols:
                self.fetched[symbol].append(hour)
        row = self.session.execute("SELECT pricing.bytes_used('twelvedata', pricing.clock())").fetchone()
        assert row is not None
        return int(row[0])

    def gap(self, start: int, end: int) -> int:
        """The longest time in hours that a price was not fetched."""
        return max(
            after - before
            for hours in self.fetched.values()
            for before, after in zip([start, *hours], [*hours, end], strict=True)
        )

    def factor(self) -> float:
        row = self.session.execute(
            "SELECT watched_factor FROM pricing.ttl_stretches WHERE provider = 'twelvedata'"
        ).fetchone()
        return 1.0 if row is None else float(row[0])


@pytest.fixture
def motion(core: Core, owner_url: str) -> Iterator[FastMotion]:
    core.lift_limits()
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type <> 'equity_quote'")
    core.rows("UPDATE pricing.data_type_registry SET is_active = data_type = 'equity_quote'")
    symbols = [f"S{number:02d}" for number in range(PAIRS)]
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols))
    core.refresh()
    core.rows("DELETE FROM pricing.api_data_usage")
    core.rows("DELETE FROM pricing.collector_call_log")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 240")
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz"
        " LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = ''"
        " AS 'SELECT pg_catalog.current_setting(''pricing_test.now'')::timestamptz'"
    )
    with psycopg.connect(owner_url, autocommit=True, row_factory=namedtuple_row) as session:
        motion = FastMotion(session, {symbol: [] for symbol in symbols})
        motion.set(0)
        session.execute("UPDATE pricing.latest_prices SET fetched_at = pricing.clock()")
        session.execute("UPDATE pricing.demand SET due_at = pricing.clock(), created_at = pricing.clock()")
        session.execute("UPDATE pricing.active_subscriptions SET subscribed_at = pricing.clock()")
        session.execute("UPDATE pricing.provider_state SET last_call_at = NULL")
        session.execute(
            "UPDATE pricing.size_estimates SET bytes = %s, measurements = 20 WHERE data_type = 'equity_quote'",
            [BYTES],
        )
        yield motion


@pytest.mark.parametrize(("demand", "start"), [(10, 0), (3, MONTH - 24)])
def test_f2_hours_of_the_database_go_as_in_the_model(motion: FastMotion, demand: int, start: int) -> None:
    """The hard steps are never passed, and no price waits for longer than its stretch.

    From an empty quota, and while the first bytes come back. In the database pairs are fetched together, so that use
    may differ by all of them once.
    """
    month = Month(round(NEED * MONTH / 0.95 / demand))
    for _ in range(start):
        month.pass_hour(NEED)
    motion.begin(month)
    for hour in range(start + 1, start + 97):
        used = motion.pass_hour(hour)
        month.pass_hour(NEED)
        assert used <= month.quota * 0.95
        assert used == pytest.approx(month.used, abs=PAIRS * BYTES + 0.01 * month.quota), f"hour {hour}"
    assert motion.factor() == pytest.approx(month.factors[0], rel=0.15)
    assert motion.gap(start, start + 96) <= TTL_HOURS * MOST / (16 / 4 if demand == 3 else 1) + 1
