"""How long ticks are kept: thinned by their type's policy, in small steps, and by nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

NOW = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def noon(clock: Clock) -> None:
    clock.set(NOW)


def ticks(core: Core, days: int, per_day: int, data_type: str = QUOTE, symbol: str = "AAPL") -> None:
    """Quotes of the last days, spread evenly over each UTC day; the newest is the latest price."""
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " fetched_at) SELECT :type, :symbol, at, 100 + n, 2, 'twelvedata', 1, at FROM ("
        "   SELECT n, date_trunc('day', pricing.clock(), 'UTC') - interval '24 hours' * :days"
        "             + n * interval '24 hours' / :per_day AS at"
        "   FROM generate_series(0, :days * :per_day - 1) AS n) t",
        type=data_type,
        symbol=symbol,
        days=days,
        per_day=per_day,
    )
    core.rows(
        "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, observed_at, fetched_at, provider,"
        " call_id, source_text) SELECT data_type, symbol, amount, scale, observed_at, fetched_at, provider, 1, ''"
        " FROM pricing.price_history WHERE (data_type, symbol) = (:type, :symbol) ORDER BY observed_at DESC LIMIT 1",
        type=data_type,
        symbol=symbol,
    )


def policy(core: Core, after_days: int | None, minutes: int = 1440, data_type: str = QUOTE) -> None:
    core.rows(
        "UPDATE pricing.data_type_registry SET thin_after_days = :days, thin_to_minutes = :minutes"
        " WHERE data_type = :type",
        days=after_days,
        minutes=minutes,
        type=data_type,
    )


def thin(core: Core, at_most: int = 20_000) -> int:
    count: int = core.call("SELECT pricing.thin_history(:most)", most=at_most)
    return count


def kept(core: Core, symbol: str = "AAPL") -> list[Any]:
    return [
        row.observed_at
        for row in core.rows(
            "SELECT observed_at FROM pricing.price_history WHERE symbol = :symbol ORDER BY 1", symbol=symbol
        )
    ]


def test_f3_without_a_policy_everything_is_kept(core: Core) -> None:
    ticks(core, 10, 24)
    assert thin(core) == 0
    assert len(kept(core)) == 240


def test_f3_g8_old_quotes_are_thinned_to_the_last_of_each_span(core: Core) -> None:
    ticks(core, 10, 24)
    core.rows("DELETE FROM pricing.data_changes")
    before = kept(core)
    policy(core, 3, minutes=360)
    assert thin(core) == 7 * (24 - 4)
    assert core.one("SELECT sum(changes) FROM pricing.data_changes") == 7 * (24 - 4), "in the version of its month"
    after = kept(core)
    limit = NOW.replace(hour=0) - timedelta(days=3)
    old = [at for at in after if at < limit]
    assert len(old) == 7 * 4
    assert {at.hour for at in old} == {5, 11, 17, 23}, "the last of six hours"
    assert after[len(old) :] == [at for at in before if at >= limit]
    assert thin(core) == 0
    assert core.latest("AAPL") is not None


def test_f3_a_day_later_a_day_more_is_thinned(core: Core, clock: Clock) -> None:
    ticks(core, 10, 24)
    policy(core, 3)
    assert thin(core) == 7 * 23
    clock.advance(86_400)
    assert thin(core) == 23
    assert len(kept(core)) == 8 + 2 * 24


def test_f3_a_long_past_is_thinned_in_steps_that_take_up_where_they_stopped(core: Core) -> None:
    ticks(core, 12, 50)
    ticks(core, 12, 50, symbol="IBM")
    policy(core, 1)
    steps = []
    while done := thin(core, 100):
        steps.append(done)
    assert max(steps) <= 150, "about what was asked for: whole days"
    assert len(steps) >= 8
    assert len(kept(core)) == len(kept(core, "IBM")) == 11 + 50


def test_f3_only_quotes_can_be_thinned_and_each_type_has_its_own_policy(core: Core) -> None:
    ticks(core, 5, 10)
    ticks(core, 5, 10, data_type=FX, symbol="EUR/USD")
    policy(core, 1)
    assert thin(core) == 4 * 9
    assert len(kept(core, "EUR/USD")) == 50
    with pytest.raises(DBAPIError, match="only_quotes_are_thinned"):
        policy(core, 1, data_type=DAILY)
    with pytest.raises(DBAPIError, match="thinning_divides_a_day"):
        policy(core, 1, minutes=7)
    with pytest.raises(DBAPIError, match="thin_after_is_positive"):
        policy(core, 0)


def test_f3_no_worker_deletes_prices_but_by_the_policy_that_the_owner_sets(core: Core) -> None:
    ticks(core, 5, 10)
    with pytest.raises(DBAPIError, match="permission denied"):
        core.call("DELETE FROM pricing.price_history WHERE symbol = 'AAPL' RETURNING 1")
    with pytest.raises(DBAPIError, match="permission denied"):
        core.call("UPDATE pricing.data_type_registry SET thin_after_days = 1 RETURNING 1")


def test_f3_thinning_is_a_duty(core: Core) -> None:
    ticks(core, 5, 10)
    policy(core, 1)
    assert {"thin_history", "sample_freshness"} <= set(core.call("SELECT pricing.run_duties()"))
    assert len(kept(core)) == 4 + 10


def test_b22_freshness_is_noted_for_what_is_watched_and_forgotten_after_a_week(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    clock.advance(10)
    assert core.call("SELECT pricing.sample_freshness()") == 1
    clock.advance(300)
    core.call("SELECT pricing.sample_freshness()")
    first, second = core.rows("SELECT * FROM pricing.freshness_samples ORDER BY at")
    assert (first.data_type, first.watched, first.fresh, first.late) == (QUOTE, 2, 2, 0)
    assert (second.fresh, second.late) == (0, 2)
    assert second.oldest_age > timedelta(seconds=309)
    clock.advance(7 * 86_400)
    core.call("SELECT pricing.sample_freshness()")
    core.call("SELECT pricing.prune()")
    assert core.one("SELECT count(*) FROM pricing.freshness_samples") == 1
