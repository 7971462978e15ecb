"""Rate limits and quota, one claim after the other; many workers at once are in faults/."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.queue import limits
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, in_zone, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.free_plan import charged, free_plan

pytestmark = pytest.mark.usefixtures("still")

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def answered(core: Core) -> None:
    """A good answer arrives, to a call that was under way."""
    call_id = core.one(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at)"
        " VALUES ('twelvedata', 'equity_quote', '{}', '-infinity', 'infinity', 1, 0, 'w', pricing.clock())"
        " RETURNING call_id"
    )
    with core.engine.begin() as connection:
        limits.settle(connection, call_id, Receipt(200, 0))


def admitted(core: Core, provider: str = TWELVEDATA) -> int:
    """How many tasks a claim gets now."""
    return sum(len(call.tasks) for call in core.claim(provider, max_calls=10))


# Rate limits


def test_a6_the_free_plans_minute_holds(core: Core, clock: Clock) -> None:
    """The window slides, and waits five seconds more for a call that has not ended: it may have begun so late."""
    free_plan(core)
    clock.set(NOON)
    core.enqueue(QUOTE, *symbols(30))
    assert [len(call.tasks) for call in core.claim(max_calls=10)] == [8], "one call, filled to the limit"
    assert admitted(core) == 0
    clock.set(NOON + timedelta(seconds=64))
    assert admitted(core) == 0
    clock.set(NOON + timedelta(seconds=66))
    assert admitted(core) == 8
    clock.set(NOON + timedelta(seconds=90))
    assert admitted(core) == 0


def test_a6_a_call_counts_from_when_it_may_have_arrived(core: Core) -> None:
    """At its end at the latest; of a slow one it is believed that it began within five seconds of its claim."""
    for units, ago, took in [(1, 60.2, 0.1), (2, 60.2, 0.3), (4, 64.9, 9), (8, 65.1, 9)]:
        charged(core, units, NOON - timedelta(seconds=ago), seconds=took)
    core.rows("UPDATE pricing.provider_limits SET units = 100 WHERE provider = 'twelvedata'")
    assert core.one("SELECT units_left FROM pricing.key_allowances('twelvedata', :now)", now=NOON) == 100 - 2 - 4


def test_a6_the_free_plans_day_holds_until_midnight(core: Core, clock: Clock) -> None:
    free_plan(core)
    charged(core, 300, datetime(2026, 3, 9, 23, 59, 50, tzinfo=UTC))
    charged(core, 700, datetime(2026, 3, 10, 0, 0, 1, tzinfo=UTC))
    charged(core, 95, NOON)
    clock.set(NOON + timedelta(hours=1))
    core.enqueue(QUOTE, *symbols(40))
    assert core.allowance().units_left == 5
    assert admitted(core) == 5
    clock.set(datetime(2026, 3, 10, 23, 59, 30, tzinfo=UTC))
    assert admitted(core) == 0
    clock.set(datetime(2026, 3, 11, 0, 0, 2, tzinfo=UTC))
    assert admitted(core) == 8


def test_a6_a_call_just_before_midnight_counts_in_both_days(core: Core, clock: Clock) -> None:
    """It may reach the provider after midnight."""
    free_plan(core)
    core.rows("DELETE FROM pricing.provider_limits WHERE name = 'minute'")
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    charged(core, 790, midnight - timedelta(seconds=0.3), seconds=0.4)
    charged(core, 100, midnight - timedelta(seconds=5))
    clock.set(midnight + timedelta(hours=2))
    assert core.allowance().units_left == 10


def test_a6_a_day_is_one_of_the_providers_zone(core: Core, clock: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_limits SET units = 100, window_seconds = NULL, day_timezone = 'America/New_York'"
        " WHERE provider = 'twelvedata'"
    )
    charged(core, 60, datetime(2026, 3, 10, 3, 0, tzinfo=UTC))  # the evening before, in New York
    charged(core, 7, datetime(2026, 3, 10, 5, 0, tzinfo=UTC))
    clock.set(NOON)
    assert core.allowance().units_left == 93


def test_a6_a_call_of_dear_symbols_asks_for_as_many_as_the_units_pay_for(core: Core, clock: Clock) -> None:
    """Beside symbols that cost one unit, which would be claimed in larger numbers."""
    free_plan(core)
    clock.set(NOON)
    core.rows(
        "UPDATE pricing.provider_capabilities SET units_per_symbol = 3"
        " WHERE (provider, fetcher) = ('twelvedata', 'daily_bars')"
    )
    core.enqueue(DAILY, *symbols(5))
    call = core.claim_one()
    assert len(call.tasks) == 2
    assert core.allowance().units_left == 8 - 2 * 3


def test_a6_a_provider_without_limits_is_not_limited(core: Core) -> None:
    core.rows("DELETE FROM pricing.provider_limits")
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    core.enqueue(QUOTE, *symbols(300))
    assert admitted(core) == 300


@pytest.mark.parametrize("seconds", [60, None])
def test_a6_counting_on_from_the_last_count_gives_what_the_log_gives(
    core: Core, clock: Clock, seconds: int | None
) -> None:
    """Claims count only what has come and gone since the last full count, also when the clock is set back."""
    core.rows(
        "UPDATE pricing.provider_limits SET units = 1000000, window_seconds = CAST(:seconds AS integer),"
        " day_timezone = CASE WHEN CAST(:seconds AS integer) IS NULL THEN 'UTC' END WHERE provider = 'twelvedata'",
        seconds=seconds,
    )
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 3, batch_from = 1")
    core.lift_in_flight()
    core.enqueue(QUOTE, *symbols(600))
    counted = 0
    for turn in range(60):
        assert core.claim()
        if turn % 3 == 0:
            clock.advance((turn * 7 % 11) / 2)
        if turn == 35:
            clock.advance(-20)
        if turn == 50:
            clock.advance(40_000)
        if turn % 10 == 5:
            both = core.rows(
                "SELECT sum(units_left) AS left,"
                " (SELECT count(*) FROM pricing.limit_counts WHERE provider = 'twelvedata') AS counts,"
                " (SELECT sum(c.units) FROM pricing.collector_call_log c, pricing.provider_limits l"
                "  WHERE c.provider = l.provider AND l.provider = 'twelvedata'"
                "  AND c.started_at > pricing.limit_start(l, n.at)"
                # None has ended, so those that began a little before the window may still arrive in it.
                "  - make_interval(secs => coalesce(least(5.0, 0.5 * l.window_seconds), 5.0))) AS logged"
                " FROM (SELECT pricing.clock() AS at OFFSET 0) n"
                " CROSS JOIN LATERAL pricing.key_allowances('twelvedata', n.at) GROUP BY n.at"
            )
            ((left, counts, logged),) = both
            assert left == 1_000_000 - (logged or 0)
            counted += counts
    assert counted, "there was something to count on from"


def test_b17_a_refusal_stops_every_worker_for_as_long_as_it_says(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.enqueue(NAV, "118632")
    assert core.throttle(TWELVEDATA, 90) == pytest.approx(90)
    assert core.throttle(TWELVEDATA, 10) == pytest.approx(90), "a shorter one does not shorten it"
    clock.advance(80)
    assert core.claim() == []
    assert admitted(core, MFAPI) == 1, "other providers go on"
    assert core.allowance().blocked_seconds == pytest.approx(10)
    assert core.allowance().blocked_reason == "too fast"
    clock.advance(11)
    assert admitted(core) == 1
    assert core.allowance().blocked_seconds is None


def test_c1_a_refusal_without_a_time_pauses_for_growing_times_up_to_a_minute(core: Core, clock: Clock) -> None:
    for pause in (5, 10, 20, 40, 60, 60):
        assert core.throttle(TWELVEDATA, None) == pytest.approx(pause)
        clock.advance(pause + 1)
    answered(core)
    assert core.throttle(TWELVEDATA, None) == pytest.approx(5), "an answer ends the growing"


def test_c1_an_answer_within_a_pause_does_not_end_it(core: Core, clock: Clock) -> None:
    """It was on its way before the refusal: neither the pause nor its growing is over."""
    core.throttle(TWELVEDATA, None)
    core.throttle(TWELVEDATA, None)
    answered(core)
    assert core.allowance().blocked_seconds == pytest.approx(10)
    clock.advance(11)
    assert core.throttle(TWELVEDATA, None) == pytest.approx(20)


@pytest.mark.parametrize(("asked", "pause"), [(-5, 0), (1e9, 3600)])
def test_c1_what_a_provider_asks_is_believed_up_to_an_hour(core: Core, asked: float, pause: float) -> None:
    assert max(core.throttle(TWELVEDATA, asked), 0) == pytest.approx(pause)


# Quota


@pytest.fixture
def small_quota(core: Core, clock: Clock) -> Core:
    """A quota of 100,000 bytes, of which a quote takes 1,000, at noon."""
    clock.set(NOON)
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 1000")
    return core


def used(core: Core, count: int, at: datetime = NOON) -> None:
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES ('twelvedata', :at, :count)",
        at=at,
        count=count,
    )


@pytest.mark.parametrize(("priority", "stops_at"), [(0, 95_000), (-1, 90_000), (-2, 75_000)])
def test_b10_each_kind_of_work_stops_at_its_share_of_the_quota(small_quota: Core, priority: int, stops_at: int) -> None:
    used(small_quota, 70_000)
    small_quota.enqueue(QUOTE, *symbols(100), priority=priority)
    assert admitted(small_quota) == (stops_at - 70_000) / 1000
    assert admitted(small_quota) == 0


def test_b10_the_largest_prefix_that_fits_is_admitted(small_quota: Core) -> None:
    used(small_quota, 84_500)
    small_quota.enqueue(QUOTE, *symbols(4), priority=3)
    small_quota.enqueue(QUOTE, *symbols(4, "T"), priority=-1)
    small_quota.enqueue(QUOTE, *symbols(4, "U"), priority=-2)
    (call,) = small_quota.claim()
    assert call.symbols == [*symbols(4), "T0000"]


def test_b10_what_is_in_flight_counts_until_it_is_settled(small_quota: Core) -> None:
    """The estimate until the answer, then what crossed the wire, more or less."""
    used(small_quota, 90_000)
    small_quota.enqueue(QUOTE, *symbols(20))
    first = small_quota.claim_one()
    assert len(first.tasks) == 5
    assert small_quota.allowance().used_bytes == 95_000
    assert small_quota.claim() == []
    small_quota.settle(first, 2_000)
    assert small_quota.allowance().used_bytes == 92_000
    second = small_quota.claim_one()
    assert len(second.tasks) == 3
    small_quota.settle(second, 50_000, "failed")
    assert small_quota.allowance().used_bytes == 142_000, "bytes of failed calls count, beyond all estimates"
    assert small_quota.claim() == []
    assert small_quota.allowance().quota_left_bytes == 0


def test_b10_a_forgotten_call_is_booked_at_its_estimate(small_quota: Core, clock: Clock) -> None:
    small_quota.enqueue(QUOTE, *symbols(5))
    small_quota.claim_one(worker="lost")
    clock.advance(50)
    assert small_quota.one("SELECT pricing.expire_calls()") == 0
    clock.advance(11)
    assert small_quota.one("SELECT pricing.expire_calls()") == 0, "its tasks are not taken back yet"
    small_quota.recover()
    assert small_quota.one("SELECT pricing.expire_calls()") == 1
    (call,) = small_quota.rows("SELECT outcome, wire_bytes, error FROM pricing.collector_call_log")
    assert (call.outcome, call.wire_bytes) == ("unknown", 5_000)
    assert "worker was lost" in call.error
    assert small_quota.allowance().used_bytes == 5_000
    assert small_quota.one("SELECT pricing.expire_calls()") == 0


def test_b10_an_unknown_size_is_taken_for_fifty_thousand_bytes(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('share_price', 'quote', 5)"
    )
    core.enqueue("share_price", "AAPL", "IBM")
    core.claim_one()
    assert core.allowance().used_bytes == 100_000


def test_b12_bytes_are_booked_in_the_hour_of_their_answer(core: Core, clock: Clock) -> None:
    clock.set(NOON + timedelta(minutes=59, seconds=50))
    core.enqueue(QUOTE, *symbols(3))
    first = core.claim_one()
    clock.set(NOON + timedelta(minutes=60, seconds=5))
    core.settle(first, 700)
    core.enqueue(QUOTE, "AAPL")
    core.settle(core.claim_one(), 300)
    booked = core.rows("SELECT hour, calls, units, bytes FROM pricing.api_data_usage")
    assert [tuple(row) for row in booked] == [(NOON + timedelta(hours=1), 2, 4, 1000)]


# Zones


@pytest.mark.own_sessions
@pytest.mark.parametrize(
    ("zone", "now"),
    [
        ("America/New_York", datetime(2026, 3, 20, 12, 30, tzinfo=UTC)),
        ("Europe/London", datetime(2026, 11, 10, 12, 30, tzinfo=UTC)),
    ],
)
def test_b10_thirty_days_are_720_hours_in_every_session(
    core: Core, clock: Clock, database_url: str, zone: str, now: datetime
) -> None:
    """A clock change lies within the window, so that `now() - interval '30 days'` would be an hour off.

    The hour that is only half within counts whole: a quota is not passed by rounding.
    """
    clock.set(now)
    hour = now.replace(minute=0)
    for ago, count in ((718, 1), (719, 10), (720, 100), (721, 1000), (722, 10_000)):
        used(core, count, hour - timedelta(hours=ago))
    engine = make_engine(in_zone(database_url, zone))
    try:
        there = Core(engine, engine)
        assert there.one("SHOW timezone") == zone
        assert there.allowance().used_bytes == 111
    finally:
        engine.dispose()


@pytest.mark.own_sessions
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_a6_a_sessions_zone_moves_no_limit_and_no_bucket(
    core: Core, clock: Clock, database_url: str, zone: str
) -> None:
    free_plan(core)
    charged(core, 100, datetime(2026, 3, 7, 23, 30, tzinfo=UTC))
    charged(core, 10, datetime(2026, 3, 8, 0, 30, tzinfo=UTC))
    charged(core, 1, datetime(2026, 3, 8, 7, 30, tzinfo=UTC))  # the clocks of New York have just gone forward
    clock.set(datetime(2026, 3, 8, 13, 40, tzinfo=UTC))
    core.rows("DELETE FROM pricing.provider_limits WHERE name = 'minute'")
    engine = make_engine(in_zone(database_url, zone))
    try:
        there = Core(engine, engine)
        assert there.allowance().units_left == 789
        there.enqueue(QUOTE, "AAPL")
        there.settle(there.claim_one(), 500)
        (booked,) = core.rows("SELECT hour FROM pricing.api_data_usage")
        assert booked.hour == datetime(2026, 3, 8, 13, tzinfo=UTC)
    finally:
        engine.dispose()
