"""Work for three hosts, for providers with limits, and what the providers saw of all hosts together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.support import backlogs
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

UNASKED = ["one", "two", "three"]
UNITS, WINDOW = 10, 2
LEASE = 61
"""Seconds after which the tasks of a lost drain are taken by others."""


def arrange(core: Core, most: Mapping[str, int], count: int) -> int:
    """Work for three providers with at most so many calls at once; returns how many tasks there are."""
    core.lift_limits(batch_size=1)
    core.rows(
        "UPDATE pricing.provider_limits SET units = :units, window_seconds = :window WHERE provider = 'twelvedata'",
        units=UNITS,
        window=WINDOW,
    )
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'equity_daily'")
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_daily', 'yahoo', 1)")
    core.rows(
        "UPDATE pricing.data_collectors p SET max_in_flight = m.most"
        " FROM unnest(CAST(:names AS text[]), CAST(:mosts AS integer[])) AS m (name, most) WHERE p.provider = m.name",
        names=list(most),
        mosts=list(most.values()),
    )
    # The same symbols at two providers: never at once.
    shared = symbols(count)
    core.enqueue(QUOTE, *shared[:20])
    core.enqueue(DAILY, *shared)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(count)))
    return 20 + 2 * count


def want_three_drains(core: Core) -> None:
    """Add work of providers that nobody here can ask, so that there is work for three drains."""
    core.rows(
        "INSERT INTO pricing.data_collectors (provider, base_url) SELECT p, 'https://example.com'"
        " FROM unnest(CAST(:unasked AS text[])) AS p",
        unasked=UNASKED,
    )
    backlogs.slow_calls(core, UNASKED)
    backlogs.waiting(core, UNASKED)


def at_once(calls: list[dict[str, Any]]) -> int:
    """How many calls the provider had at the same time at most. Of a caller that left, the end is not known."""
    spans: list[tuple[float, float]] = [
        (call["monotonic"], call["monotonic"] + (call["milliseconds"] or 0) / 1000) for call in calls
    ]
    return max(sum(begin <= other[0] < end for begin, end in spans) for other in spans)


def most_units(calls: list[dict[str, Any]], seconds: float, clock: str = "monotonic") -> int:
    """The most units in any span of so many seconds, by the machine's clock or the sandbox's (`epoch`)."""
    at_each = ([other["units"] for other in calls if 0 <= other[clock] - call[clock] < seconds] for call in calls)
    return max(map(sum, at_each))


def lateness(core: Core, calls: list[dict[str, Any]]) -> float:
    """By how many seconds the journey of one call to the provider was longer than another's.

    The database's clock, by which calls are logged, is put forward by whole leases.
    """
    logged = core.rows(
        "SELECT symbols, extract(epoch FROM started_at)::float8 AS at FROM pricing.collector_call_log"
        " WHERE provider = :provider",
        provider=TWELVEDATA,
    )
    journeys: list[float] = [
        min((call["epoch"] - row.at) % LEASE for row in logged if row.symbols == list(call["symbols"]))
        for call in calls
    ]
    return max(journeys) - min(journeys)


def overlapping(calls: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of answered calls for one symbol that were in flight at the same time."""
    answered = [call for call in calls if call["status"] is not None]
    return [
        (one, other)
        for one, other in combinations(sorted(answered, key=lambda call: call["monotonic"]), 2)
        if {*one["symbols"]} & {*other["symbols"]}
        and other["monotonic"] < one["monotonic"] + one["milliseconds"] / 1000
    ]


def check_provider_side(core: Core, sandbox: RunningSandbox, at_most: Mapping[str, int]) -> None:
    """What the providers saw of all hosts together."""
    for provider, most in at_most.items():
        assert 1 < at_once(sandbox.calls(provider)) <= most, provider
    # A call reaches the provider a little after its claim, and not each by the same time: on a busy machine even less.
    calls = sandbox.calls(TWELVEDATA)
    assert most_units(calls, WINDOW - max(0.3, lateness(core, calls))) <= UNITS
    assert overlapping(sandbox.calls()) == [], "no two providers are asked for one symbol at once"


def tasks_left(core: Core) -> int:
    return int(core.one("SELECT count(*) FROM pricing.api_call_queue_live"))


def open_calls(core: Core, worker: str) -> int:
    """Calls in flight of the workers whose names begin so."""
    return int(
        core.one(
            "SELECT count(*) FROM pricing.collector_call_log"
            " WHERE starts_with(worker, :worker) AND finished_at IS NULL",
            worker=worker,
        )
    )


def tasks_of_others(core: Core, *workers: str) -> int:
    """Tasks for symbols that none of the workers whose names begin so is asking for."""
    return int(
        core.one(
            "SELECT count(*) FROM pricing.api_call_queue_live WHERE symbol NOT IN ("
            " SELECT symbol FROM pricing.api_call_queue_live WHERE status = 'processing'"
            " AND EXISTS (SELECT FROM unnest(CAST(:workers AS text[])) AS w WHERE starts_with(worker, w)))",
            workers=list(workers),
        )
    )


def forget_unasked(core: Core) -> None:
    """Remove the work of `want_three_drains`."""
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE provider = ANY (:unasked)", unasked=UNASKED)


def check_books(core: Core, made: list[list[str]], tasks: int, lost_by: tuple[str, ...]) -> None:
    """All tasks are completed, and all calls logged. `lost_by` begin the names of workers that may lose calls."""
    core.rows("DELETE FROM pricing.api_call_queue WHERE starts_with(symbol, 'W')")
    audit(core, acknowledged=tasks)
    assert {task.status for task in core.tasks()} == {"completed"}
    logged = core.rows("SELECT symbols, outcome, worker FROM pricing.collector_call_log WHERE worker <> 'old'")
    assert {row.outcome for row in logged} == {"ok", "unknown"}, "every call is completed, or marked as lost"
    seen, claimed = (Counter(tuple(call) for call in calls) for calls in (made, [row.symbols for row in logged]))
    assert seen <= claimed, "no call is made that was not logged"
    assert all(row.worker.startswith(lost_by) for row in logged if row.outcome == "unknown")
    assert core.one("SELECT count(*) FROM pricing.latest_prices") == tasks
