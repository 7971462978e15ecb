"""Only the database's clock counts, and it counts the same in every session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core, in_zone
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.programs import faketime
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import running_sandbox
from pricing_pipeline_tests.support.workers import Worker, crowd
from pricing_pipeline_tests.tools.audit import audit

NOTHING_IS_LEFT = "SELECT NOT EXISTS (SELECT FROM pricing.api_call_queue_live)"
ZONES = ["UTC", "America/New_York", "Europe/London", "Asia/Kolkata"]
CHANGES = [
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York springs forward
    datetime(2026, 11, 1, 6, tzinfo=UTC),  # and falls back
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # London springs forward
    datetime(2026, 10, 25, 1, tzinfo=UTC),  # and falls back
]


def seconds(first: datetime, last: datetime) -> int:
    """Python takes two times of one zone for wall clocks and forgets what lies between them."""
    return round((last.astimezone(UTC) - first.astimezone(UTC)).total_seconds())


@pytest.mark.skipif(faketime() is None, reason="no faketime here (Debian: apt-get install faketime)")
def test_b11_workers_an_hour_ahead_and_an_hour_behind_change_nothing(
    core: Core, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two providers with ten calls each: twice what one worker has threads for.
    watched = [(QUOTE, f"S{number:03d}") for number in range(10)]
    watched += [(NAV, str(118_000 + number)) for number in range(10)]
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 10")
    with running_sandbox() as sandbox, ExitStack() as stack:
        sandbox.behave("delay", seconds=5)  # so that the first is not done before the other begins
        core.heartbeat("ann", *watched, (FX, "EUR/USD"), (DAILY, "AAPL"))
        began = core.clock()
        workers = []
        for number, offset in enumerate(("+3600s", "-3600s")):
            with monkeypatch.context() as environment:
                environment.setenv("LD_PRELOAD", str(faketime()))
                environment.setenv("FAKETIME", offset)
                environment.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                worker = Worker("drain", anew=True, url=database_url, sandbox=sandbox.url, seconds=6, number=number)
                workers.append(stack.enter_context(worker))
        for worker in workers:
            worker.says("ready")
        for begun, worker in enumerate(workers, start=1):
            worker.go()
            # Of two drains that begin in one moment, one is sent away.
            wait_until(partial(core.one, f"SELECT count(*) = {begun} FROM pricing.drains"))
        results = [worker.result() for worker in workers]
        # What a busy machine has left.
        crowd(1, "work_for", url=database_url, sandbox=sandbox.url, until=NOTHING_IS_LEFT, seconds=0)
        ended = core.clock()
    ahead, behind = (datetime.fromisoformat(result["clock"]) for result in results)
    assert ahead - ended > timedelta(minutes=59)
    assert began - behind > timedelta(minutes=59)
    assert all(result["calls"] for result in results), "each had its share"
    assert {task.status for task in core.tasks()} == {"completed"}
    assert [task.errors for task in core.tasks() if task.errors] == []
    for table, columns in {
        "api_call_queue_completed": ("enqueued_at", "claimed_at", "finished_at"),
        "collector_call_log": ("started_at", "finished_at"),
        "latest_prices": ("fetched_at",),
        "price_history": ("fetched_at",),
        "drains": ("started_at", "finished_at"),
        "instruments": ("verified_at",),
    }.items():
        for column in columns:
            first, last = core.rows(
                f"SELECT min({column}), max({column}) FROM pricing.{table}"
                + (" WHERE verified_at > created_at" if table == "instruments" else "")
            )[0]
            assert began - timedelta(seconds=1) <= first <= last <= ended, (table, column)
    late = core.rows("SELECT FROM pricing.demand WHERE due_at > pricing.clock() + interval '1 day 1 minute'")
    assert late == []
    audit(core)


@pytest.mark.parametrize("ahead", [3600, 3 * 86_400, 365 * 86_400], ids=["an hour", "three days", "a year"])
def test_b17_a_drain_goes_on_when_the_clock_jumps_ahead_and_back(core: Core, clock: Clock, ahead: int) -> None:
    """A minute of its work at most is lost. (The providers' clock is right: values of the future would be refused.)"""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.provider_limits SET units = 20, window_seconds = 2 WHERE provider = 'twelvedata'")

    def is_fetched(count: int) -> Callable[[], bool]:
        stored = "SELECT count(*) FROM pricing.latest_prices WHERE fetched_at <= pricing.clock()"
        return lambda: core.one(stored) >= count

    with running_sandbox() as sandbox, refreshing(core.engine, sandbox.url) as refresher:
        core.enqueue(QUOTE, *(f"A{number}" for number in range(15)))
        work_until(refresher, is_fetched(10))
        clock.advance(ahead)
        core.enqueue(QUOTE, *(f"B{number}" for number in range(15)))
        work_until(refresher, is_fetched(30))
        clock.advance(-ahead)
        began = core.clock()
        core.enqueue(QUOTE, *(f"C{number}" for number in range(15)))
        work_until(refresher, lambda: core.one(NOTHING_IS_LEFT))
        assert core.clock() - began < timedelta(seconds=PATIENCE), "it did not wait for the time that has gone"
    assert len(core.tasks()) == 45
    assert {task.status for task in core.tasks()} == {"completed"}
    audit(core)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_b4_a_change_of_the_clocks_changes_nothing_in_any_session(
    core: Core, database_url: str, clock: Clock, change: datetime
) -> None:
    """A day of the TTL is 24 hours, an hour of backing off is an hour, and history is cut at midnight UTC."""
    clock.stop()
    clock.set(change - timedelta(seconds=30))
    day = (change - timedelta(seconds=30)).date()
    seen = []
    for number, zone in enumerate(ZONES):
        good, bad = f"GOOD{number}", f"{('EUR', 'GBP', 'CHF', 'JPY')[number]}/USD"
        engine = make_engine(in_zone(database_url, zone))
        try:
            there = Core(engine, engine)
            there.heartbeat("ann", (DAILY, good), (FX, bad))
            calls = {call.data_type: call for call in there.claim(max_calls=4)}
            there.finish(calls[DAILY])
            there.fail(calls[FX], FailureKind.UNKNOWN_SYMBOL)
            due, pair, latest = (
                there.demand_of(DAILY, good),
                there.demand_of(FX, bad),
                there.latest(good, DAILY),
            )
            assert due is not None
            assert pair is not None
            assert latest is not None
            days = [day + timedelta(days) for days in (-1, 0, 1)]
            seen.append(
                {
                    "fresh for": seconds(latest.fetched_at, due.due_at),
                    "backs off for": round(seconds(there.clock(), pair.backoff_until), -1),
                    "bars of days": [len(there.history(good, DAILY, one, one)) for one in days],
                }
            )
        finally:
            engine.dispose()
    assert seen == [seen[0]] * len(ZONES)
    assert seen[0] == {
        "fresh for": 86_400,
        "backs off for": 3600,
        "bars of days": [0, 1, 0],
    }
