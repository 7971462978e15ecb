"""How old finished tasks are after pruning (B9), and what is read of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.operations import figures
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_finished_tasks import finish_one
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")


@given(
    pauses=st.lists(st.integers(0, 90), min_size=1, max_size=8),
    missing=st.frozensets(st.integers(0, 7), max_size=3),
)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b9_after_pruning_finished_tasks_are_at_most_fifteen_days_old(
    core: Core, clock: Clock, pauses: list[int], missing: frozenset[int]
) -> None:
    """Invariant: whenever pruning runs, and however long nothing ran before it, what finished in the last seven days is
    there, and nothing that finished more than fifteen days ago."""
    core.rows("TRUNCATE pricing.api_call_queue")
    for leaf in range(8):
        core.rows(
            f"CREATE TABLE IF NOT EXISTS pricing.api_call_queue_completed_{leaf}"
            f" PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ({leaf})"
        )
    for leaf in missing:
        core.rows(f"DROP TABLE pricing.api_call_queue_completed_{leaf}")
    ages: dict[str, int] = {}
    for number, days in enumerate(pauses):
        clock.advance(days * 86_400)
        ages = {symbol: age + days for symbol, age in ages.items()}
        finish_one(core, f"S{number}")
        ages[f"S{number}"] = 0
        core.one("SELECT pricing.prune()")
        kept = set(core.statuses())
        assert {symbol for symbol, age in ages.items() if age < 7} <= kept
        assert kept <= {symbol for symbol, age in ages.items() if age <= 15}


def test_b22_what_is_long_over_is_not_read(core: Core) -> None:
    """Neither by the duty that counts finished tasks, nor by the figures about recent calls."""
    core.rows(
        "INSERT INTO pricing.api_call_queue (data_type, symbol, provider, status, enqueued_at, finished_at, ring)"
        " SELECT :kind, 'S' || n, 'twelvedata', 'completed', at, at,"
        " floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8 FROM generate_series(1, 120000) n"
        " CROSS JOIN LATERAL (SELECT pricing.clock() - (120100 - n) * interval '1 second' AS at) x",
        kind=QUOTE,
    )
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at, finished_at, outcome)"
        " SELECT 'twelvedata', :kind, '{A}', '-infinity', 'infinity', 1, 1000, 'w', at, at, 'ok'"
        " FROM generate_series(1, 20000) n"
        " CROSS JOIN LATERAL (SELECT pricing.clock() - (20100 - n) * interval '1 second' AS at) x",
        kind=QUOTE,
    )
    core.rows("ANALYZE")
    with core.owner.begin() as connection:
        before = rows_read(connection)
        # Of a leaf whose tasks were never counted: those of the last hour.
        assert connection.execute(text("SELECT pricing.count_task_times()")).scalar_one() == 3560
        assert rows_read(connection) - before < 80_000
    (calls,) = [source for source in figures.SOURCES if source.name == "calls"]
    with core.owner.begin() as connection:
        before = rows_read(connection)
        (row,) = calls.rows(connection)
        assert row["calls"] == 200
        assert rows_read(connection) - before < 2000
