"""Quotas and stretches as tests of the forecast arrange them, and what they look at."""

from __future__ import annotations

from pricing_pipeline.demand import freshness
from pricing_pipeline.queue import forecast
from pricing_pipeline.queue.forecast import Forecast
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

MINUTE = 60


def ahead(core: Core, provider: str = TWELVEDATA) -> Forecast:
    with core.engine.connect() as connection:
        (found,) = forecast.forecasts(connection, [provider])
    return found


def use(core: Core, by_hours_ago: dict[int, int], provider: str = TWELVEDATA) -> None:
    """Let so many bytes have come so many hours ago."""
    core.rows("DELETE FROM pricing.api_data_usage")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
        " SELECT :provider, pricing.clock() - make_interval(hours => u.ago), u.bytes"
        " FROM unnest(CAST(:agos AS integer[]), CAST(:bytes AS bigint[])) AS u (ago, bytes)",
        provider=provider,
        agos=list(by_hours_ago),
        bytes=list(by_hours_ago.values()),
    )


def allow(core: Core, quota: int, provider: str = TWELVEDATA) -> None:
    core.rows(
        "UPDATE pricing.data_collectors SET quota_bytes = :quota WHERE provider = :provider",
        quota=quota,
        provider=provider,
    )


def stretch(core: Core, watched: float, background: float = 16, provider: str = TWELVEDATA) -> None:
    """What the duty would have noted just now."""
    core.rows("DELETE FROM pricing.ttl_stretches WHERE provider = :provider", provider=provider)
    core.rows(
        "INSERT INTO pricing.ttl_stretches VALUES (:provider, :watched, :background, 1000, 1,"
        " timestamptz '2026-06-20 05:00Z', pricing.clock())",
        provider=provider,
        watched=watched,
        background=background,
    )


def later(core: Core, clock: Clock, minutes: float) -> int:
    """So much later, with the stretch noted anew as every five minutes, what is queued?"""
    clock.advance(minutes * MINUTE)
    core.rows("UPDATE pricing.ttl_stretches SET noted_at = pricing.clock()")
    core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = pricing.clock()")
    return core.enqueue_due()


def why(core: Core, data_type: str = QUOTE, symbol: str = "AAPL") -> freshness.Why:
    with core.engine.connect() as connection:
        (found,) = freshness.why(connection, symbol, data_type)
    return found


def states(core: Core) -> dict[str, str]:
    rows = core.rows("SELECT symbol, state FROM pricing.watched_pairs()")
    return {row.symbol: row.state for row in rows}


def measure_size(core: Core, size: int = 1000) -> None:
    core.rows(
        "INSERT INTO pricing.size_estimates (provider, data_type, per, bytes, measurements)"
        " VALUES ('twelvedata', 'equity_quote', 'symbol', :size, 20)"
        " ON CONFLICT ON CONSTRAINT size_estimates_pkey DO UPDATE SET bytes = :size",
        size=size,
    )


def size_of(core: Core) -> float:
    return float(core.one("SELECT bytes FROM pricing.size_estimates WHERE data_type = 'equity_quote'"))
