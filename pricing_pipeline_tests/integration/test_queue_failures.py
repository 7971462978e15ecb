"""What becomes of a task that fails, is given back or outlives its lease. The ordinary life is in test_queue.py."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

# Fail


def test_a8_one_trial_is_enough_for_an_instrument_that_was_never_priced(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "NOPEA"), (DAILY, "NOPEA"), (QUOTE, "AAPL"))
    core.lift_limits(batch_size=1)
    core.enqueue(DAILY, "NOPEA", priority=-2, days=(date(2026, 1, 2), date(2026, 1, 30)))
    refused = 0
    while calls := core.claim():
        if "AAPL" in calls[0].symbols:
            core.finish(calls[0])
        else:
            core.fail(calls[0], FailureKind.UNKNOWN_SYMBOL, "twelvedata does not know NOPEA.")
            refused += 1
    assert refused == 1
    dead = [(task.status, task.failure_kind) for task in core.tasks("NOPEA")]
    assert dead == [("failed", "unknown_symbol")] * 3
    assert "does not know NOPEA" in core.one(
        "SELECT last_failure FROM pricing.demand WHERE data_type = :t AND symbol = 'NOPEA'", t=DAILY
    )
    # A provider may have the bars of what it has no quote of: later each is asked by itself.
    core.enqueue(QUOTE, "NOPEA")
    core.enqueue(DAILY, "NOPEA")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    core.finish(core.claim_one())
    assert core.one("SELECT verified_at FROM pricing.instruments WHERE symbol = 'NOPEA'") is not None
    # What had a price is known: then only the failed task is at fault.
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = pricing.clock()")
    core.enqueue(QUOTE, "NOPEA")
    core.enqueue(DAILY, "NOPEA")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    core.claim_one()


@pytest.mark.parametrize("kind", [FailureKind.PROVIDER_DOWN, FailureKind.IMPLAUSIBLE])
def test_a8_transient_failures_are_tried_four_times_and_then_dead(core: Core, clock: Clock, kind: FailureKind) -> None:
    """The pauses are 5 s, 30 s and 2 min, a fifth longer at most, so that retries do not come in waves.

    What a source says by mistake it says again at once: there the first pause is the TTL.
    """
    core.enqueue(QUOTE, "AAPL")
    pauses = (60, 120, 240) if kind is FailureKind.IMPLAUSIBLE else (5, 30, 120)
    for attempt, pause in enumerate(pauses, start=1):
        core.fail(core.claim_one(), kind, f"failure {attempt}")
        task = core.task("AAPL")
        failed_at = core.one("SELECT CAST(errors -> -1 ->> 'at' AS timestamptz) FROM pricing.api_call_queue_live")
        assert (task.status, task.attempt) == ("scheduled", attempt)
        assert pause <= (task.run_after - failed_at).total_seconds() <= pause * 1.2
        clock.advance(pause * 0.9)
        assert core.promote() == 0
        assert core.claim() == []
        clock.advance(pause * 0.4)
        assert core.promote() == 1
    core.fail(core.claim_one(), kind, "failure 4")
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.failure_kind) == ("failed", 4, kind)
    assert task.finished_at is not None
    assert [(error["attempt"], error["kind"], error["message"]) for error in task.errors] == [
        (number, kind, f"failure {number}") for number in (1, 2, 3, 4)
    ]


def test_a8_a_dead_pair_backs_off_for_an_hour_doubling_to_a_day(core: Core, clock: Clock) -> None:
    """The pair is still stale, yet the next check must not start it again."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    for hours in (1, 2, 4, 8, 16, 24, 24):
        core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
        pair = core.demand_of(QUOTE, "AAPL")
        assert pair is not None
        assert abs((pair.backoff_until - core.clock()).total_seconds() - hours * 3600) < 5
        assert pair.last_failure == "no such symbol"
        clock.advance(hours * 3600 - 10)
        core.heartbeat("ann", (QUOTE, "AAPL"))
        core.heartbeat("bob", (QUOTE, "AAPL"))
        assert core.enqueue_due() == 0
        clock.advance(20)
        assert core.enqueue_due() == 1


def test_a8_success_ends_the_backoff(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    clock.advance(3601)
    core.enqueue_due()
    core.finish(core.claim_one())
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert (pair.failures, pair.backoff_until, pair.last_failure) == (0, None, None)


def test_a8_a_backoff_outlives_its_viewers(core: Core, clock: Clock) -> None:
    """Anyone who leaves and comes back within the hour does not start the episode anew."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    clock.advance(600)
    core.clean()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert core.enqueue_due() == 0
    assert [task.status for task in core.tasks("AAPL")] == ["failed"]


def test_c1_what_is_not_the_tasks_fault_costs_no_attempt_for_a_day(core: Core, clock: Clock) -> None:
    kind = FailureKind.THROTTLED
    core.enqueue(QUOTE, "AAPL")
    for _ in range(9):
        core.fail(core.claim_one(), kind, "not now", retry_after=40)
        task = core.task("AAPL")
        assert (task.status, task.attempt) == ("scheduled", 0)
        assert 39 < (task.run_after - core.clock()).total_seconds() <= 48
        clock.advance(49)
        core.promote()
    assert len(core.task("AAPL").errors) == 9
    clock.advance(86_400)
    core.fail(core.claim_one(), kind, "not now", retry_after=40)
    task = core.task("AAPL")
    assert (task.status, task.failure_kind) == ("failed", kind)


def test_c1_a_snooze_without_a_time_is_short(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.THROTTLED)
    assert 4 < (core.task("AAPL").run_after - core.clock()).total_seconds() <= 6


def test_a8_messages_are_kept_short(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "x" * 100_000)
    assert len(core.task("AAPL").errors[0]["message"]) == 500


# Release and recover


def test_b11_a_lease_is_never_made_shorter(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    core.rows(
        "SELECT pricing.extend_tasks(:ids, :token, '5 minutes')",
        ids=list(call.task_ids),
        token=call.claim_token,
    )
    longer = core.task("AAPL").lease_until
    assert longer > core.clock() + timedelta(minutes=4)
    assert core.extend(call) == set(call.task_ids)
    assert core.task("AAPL").lease_until == longer


def test_b11_recovery_takes_back_what_has_outlived_its_lease_only(core: Core, clock: Clock) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, "OLD")
    core.enqueue(QUOTE, "NEW")
    core.claim_one()
    clock.advance(30)
    core.claim_one()
    clock.advance(31)
    assert core.recover() == 1
    old, new = core.task("OLD"), core.task("NEW")
    assert (old.status, old.attempt, old.claim_token, old.lease_until) == ("pending", 1, None, None)
    assert [(error["kind"], error["attempt"]) for error in old.errors] == [("worker_lost", 1)]
    assert (new.status, new.errors) == ("processing", [])
    assert core.recover() == 0


def test_b11_a_task_that_kills_its_worker_every_time_dies(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    for _ in range(4):
        core.claim_one()
        clock.advance(61)
        assert core.recover() == 1
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.failure_kind) == ("failed", 4, "worker_lost")


# History


def test_b11_a_history_keeps_the_first_and_the_last_entries_and_counts_the_others(core: Core, clock: Clock) -> None:
    """A task that is snoozed all day must not grow with each snooze: 1,500 made failing fifty times as slow."""
    core.enqueue(QUOTE, "AAPL")
    for number in range(1, 41):
        core.fail(core.claim_one(), FailureKind.THROTTLED, f"refusal {number}", retry_after=1)
        clock.advance(2)
        core.promote()
    errors = core.task("AAPL").errors
    assert [error["message"] for error in errors] == [
        "refusal 1",
        "29 entries are left out here",
        *(f"refusal {number}" for number in range(31, 41)),
    ]
    assert errors[1]["kind"] == "left_out"
    assert errors[1]["left_out"] == 29
    assert errors[0]["at"] < errors[1]["at"] < errors[2]["at"]
