"""Drains on several hosts: one is killed, one cut off from the database in mid-call, one has a wrong clock."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from itertools import combinations
from typing import Any

import pytest
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support import backlogs
from pricing_pipeline_tests.support.hosts import (
    HostWorker,
    forwarded,
    hosts,
    seen_from,
    server_of,
    why_no_hosts,
)
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.programs import faketime
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.tools.audit import audit

YAHOO = "yahoo"
MOST = {TWELVEDATA: 4, MFAPI: 3, YAHOO: 4}
UNASKED = ["one", "two", "three"]
UNITS, WINDOW = 10, 2
LEASE = 61

WHY_NOT = why_no_hosts()

WHAT_NOBODY_ASKS_FOR = """
    SELECT count(*) FROM pricing.api_call_queue_live WHERE symbol NOT IN (
        SELECT symbol FROM pricing.api_call_queue_live WHERE status = 'processing' AND worker IN ('host 1', 'host 2'))
"""

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.skipif(faketime() is None, reason="no faketime here (Debian: apt-get install faketime)"),
]


def arrange(core: Core) -> int:
    """Three providers with work for three drains; returns how many tasks there are."""
    core.lift_limits(batch_size=1)
    core.rows(
        "UPDATE pricing.provider_limits SET units = :units, window_seconds = :window WHERE provider = 'twelvedata'",
        units=UNITS,
        window=WINDOW,
    )
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'equity_daily'")
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_daily', 'yahoo', 1)"
    )
    core.rows(
        "UPDATE pricing.data_collectors p SET max_in_flight = m.most"
        " FROM unnest(CAST(:names AS text[]), CAST(:mosts AS integer[])) AS m (name, most) WHERE p.provider = m.name",
        names=list(MOST),
        mosts=list(MOST.values()),
    )
    # With work of providers that nobody here can ask, there is work for three drains.
    core.rows(
        "INSERT INTO pricing.data_collectors (provider, base_url) SELECT p, 'https://example.com'"
        " FROM unnest(CAST(:unasked AS text[])) AS p",
        unasked=UNASKED,
    )
    backlogs.slow_calls(core, UNASKED)
    backlogs.waiting(core, UNASKED)
    # The same symbols at two providers: never at once.
    shared = symbols(20)
    core.enqueue(QUOTE, *shared)
    core.enqueue(DAILY, *shared)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(20)))
    return 60


def at_once(calls: list[dict[str, Any]]) -> int:
    """How many calls the provider had at the same time at most. Of a caller that left, the end is not known."""
    spans = [(call["monotonic"], call["monotonic"] + (call["milliseconds"] or 0) / 1000) for call in calls]
    return max(sum(begin <= other[0] < end for begin, end in spans) for other in spans)


def most_units(calls: list[dict[str, Any]], seconds: float) -> int:
    return max(
        sum(other["units"] for other in calls if 0 <= other["monotonic"] - call["monotonic"] < seconds)
        for call in calls
    )


def lateness(core: Core, calls: list[dict[str, Any]]) -> float:
    """By how many seconds the journey of one call to the provider was longer than another's.

    The database's clock, by which calls are logged, is put forward by whole leases.
    """
    logged = core.rows(
        "SELECT symbols, extract(epoch FROM started_at)::float8 AS at FROM pricing.collector_call_log"
        " WHERE provider = :provider",
        provider=TWELVEDATA,
    )
    journeys = [
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


def check_provider_side(core: Core, sandbox: RunningSandbox) -> None:
    """What the providers saw of all hosts together."""
    for provider, most in MOST.items():
        assert 1 < at_once(sandbox.calls(provider)) <= most, provider
    # A call reaches the provider a little after its claim, and not each by the same time: on a busy machine even less.
    calls = sandbox.calls(TWELVEDATA)
    assert most_units(calls, WINDOW - max(0.3, lateness(core, calls))) <= UNITS
    assert overlapping(sandbox.calls()) == [], "no two providers are asked for one symbol at once"


def test_b11_b17_three_hosts_lose_one_to_death_and_one_to_the_network(
    core: Core, clock: Clock, database_url: str
) -> None:
    """The one whose clock is 30 s ahead finishes the work; limits hold over all of them; the books are right."""
    tasks = arrange(core)
    owned_by = (
        "SELECT count(*) FROM pricing.collector_call_log WHERE worker = :worker AND finished_at IS NULL"
    )
    clocks = {"LD_PRELOAD": str(faketime()), "FAKETIME": "+30s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with ExitStack() as stack:
        sandbox = stack.enter_context(running_sandbox())
        sandbox.behave("delay", seconds=1.5)
        made = stack.enter_context(hosts(3))
        workers = []
        for number, host in enumerate(made, start=1):
            database = stack.enter_context(forwarded(host.database, server_of(database_url)))
            there = make_url(sandbox.url)
            provider = stack.enter_context(forwarded(host.provider, (str(there.host), int(there.port or 0))))
            worker = HostWorker(
                host,
                clocks if number == 3 else {},
                url=seen_from(database_url, host.database, database),
                provider=[host.provider, provider],
                seconds=600,
                name=f"host {number}",
                halt="",
                most=3,
            )
            workers.append(stack.enter_context(worker))
        assert [worker.hear() for worker in workers] == ["ready"] * 3
        for worker in workers:
            worker.go()
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.drains") == 3)
        core.rows("DELETE FROM pricing.api_call_queue_live WHERE provider = ANY (:unasked)", unasked=UNASKED)
        killed, cut, ahead = workers
        wait_until(lambda: core.one(owned_by, worker="host 1") > 0)
        killed.kill()
        wait_until(lambda: core.one(owned_by, worker="host 2") > 0)
        made[1].cut(made[1].database)

        # The third does what the others are not asking for; then their leases end.
        wait_until(lambda: core.one(WHAT_NOBODY_ASKS_FOR) == 0)
        lost = core.one("SELECT count(*) FROM pricing.api_call_queue_live")
        assert lost > 0
        clock.advance(LEASE)
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.api_call_queue_live") == 0)
        assert cut.is_alive
        assert ahead.is_alive

        made[1].mend(made[1].database)
        alive = "SELECT lease_until > pricing.clock() FROM pricing.drains WHERE worker = 'host 2'"
        core.enqueue(QUOTE, "LATE")  # keeps the drains at work
        wait_until(lambda: core.one(alive))
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.api_call_queue_live") == 0)
        clock.advance(LEASE)
        core.rows("SELECT pricing.expire_calls()")
        check_provider_side(core, sandbox)
        made_calls = [call["symbols"] for call in sandbox.calls()]

    core.rows(
        "DELETE FROM pricing.api_call_queue WHERE starts_with(symbol, 'W')"
    )  # of providers that nobody can ask
    audit(core, acknowledged=tasks + 1)
    assert {task.status for task in core.tasks()} == {"completed"}
    logged = core.rows(
        "SELECT symbols, outcome, worker FROM pricing.collector_call_log WHERE worker <> 'old'"
    )
    assert {row.outcome for row in logged} == {"ok", "unknown"}, "every call is completed, or marked as lost"
    made, claimed = (
        Counter(tuple(call) for call in calls) for calls in (made_calls, [row.symbols for row in logged])
    )
    assert made <= claimed, "no call is made that was not logged"
    assert {row.worker for row in logged if row.outcome == "unknown"} <= {"host 1", "host 2"}
    assert core.one("SELECT count(*) FROM pricing.latest_prices") == tasks + 1
