"""B9: how old finished tasks are after pruning, whenever it runs and whatever was dropped."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline_tests.fixtures.core import Core
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
