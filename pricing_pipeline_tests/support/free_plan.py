"""Twelve Data's free plan, as a test's database has it."""

from __future__ import annotations

from datetime import datetime

from pricing_pipeline.demand import freshness
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core


def free_plan(core: Core) -> None:
    """8 credits a minute, and 800 a day of UTC."""
    core.rows("DELETE FROM pricing.provider_limits WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds, day_timezone)"
        " VALUES ('twelvedata', 'minute', 8, 60, NULL), ('twelvedata', 'day', 800, NULL, 'UTC')"
    )


def charged(core: Core, units: int, at: datetime, provider: str = TWELVEDATA, seconds: float = 0.0) -> None:
    """A call that was made earlier and took so many seconds."""
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at, finished_at, outcome, wire_bytes)"
        " VALUES (:provider, 'equity_quote', '{}', '-infinity', 'infinity', :units, 0, 'w', :at,"
        " :at + make_interval(secs => :seconds), 'failed', 0)",
        provider=provider,
        units=units,
        at=at,
        seconds=seconds,
    )


def symbols(count: int) -> list[str]:
    """Shares of New York that nobody knows yet."""
    return [f"T{number:03}" for number in range(count)]


def why(core: Core, symbol: str) -> freshness.Why:
    with core.engine.connect() as connection:
        (quote,) = freshness.why(connection, symbol, QUOTE)
    return quote
