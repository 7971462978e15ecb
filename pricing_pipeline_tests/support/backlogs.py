"""Work for several drains: slow calls in the log, and tasks that wait."""

from __future__ import annotations

from collections.abc import Sequence

from pricing_pipeline_tests.fixtures.core import Core

PROVIDERS = ("twelvedata", "yahoo", "fmp")


def slow_calls(core: Core, providers: Sequence[str] = PROVIDERS, *, seconds: float = 15.0) -> None:
    """Calls of two hours ago took so many seconds each, for a symbol and a unit."""
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, key_name, data_type, symbols, window_start, window_end,"
        " units, reserved_bytes, worker, started_at, finished_at, outcome, wire_bytes)"
        " SELECT p, 'default', 'equity_quote', '{OLD}', '-infinity', 'infinity', 1, 0, 'old', n.at,"
        " n.at + make_interval(secs => :seconds), 'ok', 0"
        " FROM unnest(CAST(:providers AS text[])) AS p, (SELECT pricing.clock() - interval '2 hours' AS at) n",
        providers=list(providers),
        seconds=seconds,
    )


def waiting(core: Core, providers: Sequence[str] = PROVIDERS, *, tasks: int = 10) -> None:
    """So many tasks wait at each provider."""
    core.rows(
        "INSERT INTO pricing.api_call_queue_live"
        " (data_type, symbol, window_start, window_end, provider, priority, est_bytes, enqueued_at)"
        " SELECT 'equity_quote', 'W' || upper(p) || n, '-infinity', 'infinity', p, 1, 100, pricing.clock()"
        " FROM unnest(CAST(:providers AS text[])) AS p, generate_series(1, :tasks) AS n ON CONFLICT DO NOTHING",
        providers=list(providers),
        tasks=tasks,
    )


def work_for_three(core: Core) -> None:
    """Each of three providers would have ten calls in flight, within its limits."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    slow_calls(core)
    waiting(core)
