"""Many processes on one provider: limits by the sandbox's own log, and a storm of refusals."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.support.sandbox_server import running_sandbox
from pricing_pipeline_tests.support.workers import crowd


def most_units(calls: list[dict[str, Any]], seconds: float) -> int:
    """The most units that any window of this length held, by the sandbox's log."""
    return max(
        sum(other["units"] for other in calls if 0 <= other["monotonic"] - call["monotonic"] < seconds)
        for call in calls
    )


# What is written down can be read of by others when it is committed, a little later.
A_LITTLE = timedelta(seconds=1.2)
LATER_CALLS = """
    SELECT count(*) >= 2 FROM pricing.collector_call_log
    WHERE started_at > (SELECT min(finished_at) + interval '1.2 seconds' FROM pricing.collector_call_log)
"""


def lateness(core: Core, calls: list[dict[str, Any]]) -> float:
    """By how many seconds the journey of one call to the sandbox was longer than another's."""
    logged = core.rows("SELECT symbols, extract(epoch FROM started_at)::float8 AS at FROM pricing.collector_call_log")
    began = {tuple(row.symbols): row.at for row in logged}
    journeys = [call["epoch"] - began[tuple(call["symbols"])] for call in calls]
    return max(journeys) - min(journeys)


@pytest.mark.parametrize(("batch", "units"), [(1, 20), (8, 8)])
def test_a6_eight_processes_with_real_clients_stay_within_the_limit(
    core: Core, database_url: str, batch: int, units: int
) -> None:
    """B17: 20 calls of one symbol a second, or 8 credits a second in batches; the provider's log is the judge.

    The margin of a window of a second covers 50 ms of journey. On a machine with too much else to do journeys are
    longer; by so much the window is shortened here.
    """
    core.rows(
        "UPDATE pricing.provider_limits SET units = :units, window_seconds = 1 WHERE provider = 'twelvedata'",
        units=units,
    )
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = :batch, batch_from = 1", batch=batch)
    core.enqueue(QUOTE, *symbols(400))
    with running_sandbox() as sandbox:
        used = f"SELECT coalesce(sum(cardinality(symbols)), 0) > {units} FROM pricing.collector_call_log"
        crowd(8, "work_for", url=database_url, sandbox=sandbox.url, until=used, seconds=1.5)
        calls = sandbox.calls(TWELVEDATA)
    assert not any(call["refused"] for call in calls)
    assert sum(call["units"] for call in calls) > units, "the limit is used, not only kept"
    excess = max(0.0, lateness(core, calls) - 0.05)
    assert most_units(calls, 1.0 - excess) <= units


def test_c1_a_storm_of_refusals_stops_eight_processes_and_ends_without_a_wave(core: Core, database_url: str) -> None:
    """0 calls inside a block; after it, one call at a time feels the way, for all processes together."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 1")
    core.enqueue(QUOTE, *symbols(400))
    with running_sandbox() as sandbox:
        sandbox.behave("throttle", provider=TWELVEDATA, retry_after="2")
        crowd(8, "work_for", url=database_url, sandbox=sandbox.url, until=LATER_CALLS, seconds=0)
        arrived = len(sandbox.calls(TWELVEDATA))
    calls = core.rows("SELECT started_at, finished_at FROM pricing.collector_call_log ORDER BY started_at")
    assert arrived == len(calls)
    first = min(call.finished_at for call in calls) + A_LITTLE
    wave = [call for call in calls if call.started_at < first]
    assert len(wave) <= 8, "only those that were on their way before the first refusal was written down"
    later = calls[len(wave) :]
    assert later
    for call in later:
        told = [other.finished_at for other in calls if other.finished_at < call.started_at]
        assert call.started_at - max(told) >= timedelta(seconds=1.9), "none inside a block"
    assert all(before.finished_at < after.started_at for before, after in pairwise(later)), "one at a time"
    assert {task.attempt for task in core.tasks()} == {0}


def test_b16_a_provider_that_is_down_gets_one_probe_from_four_processes(core: Core, database_url: str) -> None:
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 2")
    core.enqueue(QUOTE, *symbols(400))
    with running_sandbox() as sandbox:
        sandbox.behave("status", provider=TWELVEDATA, status=503)
        is_open = "SELECT breaker = 'open' FROM pricing.provider_state WHERE provider = 'twelvedata'"
        crowd(4, "work_for", url=database_url, sandbox=sandbox.url, until=is_open, seconds=0.5)
        made = len(sandbox.calls(TWELVEDATA))
        assert core.allowance().breaker == "open"
        # Eight are in flight at once, and faults that are booked in one moment do not count each other.
        assert 10 <= made <= 10 + 8 + 8, "those in flight when it opened, and when the tenth was booked"
        core.rows("UPDATE pricing.provider_state SET breaker_until = pricing.clock() WHERE breaker = 'open'")
        is_again = is_open.replace("= 'open'", "= 'open' AND breaker_openings = 2")
        crowd(4, "work_for", url=database_url, sandbox=sandbox.url, until=is_again, seconds=0.5)
        assert len(sandbox.calls(TWELVEDATA)) == made + 1, "exactly one probe"
        assert core.one("SELECT max(breaker_openings) FROM pricing.provider_state") == 2
