"""A finished task is kept with its story for seven to fifteen days, whatever the clock does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")


def test_b11_a_completed_task_is_kept_with_its_story(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN, "HTTP 500")
    clock.advance(7)
    core.promote()
    call = core.claim_one()
    core.complete(call)
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.call_id, task.failure_kind) == ("completed", 2, call.id, None)
    assert [error["message"] for error in task.errors] == ["HTTP 500"]


def test_b9_finished_tasks_are_kept_seven_to_fifteen_days_and_dead_ones_until_they_are_resolved(
    core: Core, clock: Clock
) -> None:
    core.enqueue(QUOTE, "GOOD", "BAD")
    good = core.claim_one()
    ids = {task.symbol: task.id for task in good.tasks}
    with core.engine.begin() as connection:
        task_queue.complete(connection, [ids["GOOD"]], good.claim_token)
        task_queue.fail(connection, [ids["BAD"]], good.claim_token, FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    day = 86_400

    def kept() -> dict[str, str]:
        core.one("SELECT pricing.prune()")
        return core.statuses()

    both = {"GOOD": "completed", "BAD": "failed"}
    clock.advance(6.9 * day)
    assert kept() == both
    clock.advance(8.1 * day)
    assert kept() == {"BAD": "failed"}
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = pricing.clock()")
    clock.advance(89 * day)
    assert kept() == {"BAD": "failed"}
    clock.advance(2 * day)
    assert kept() == {}


def test_b9_a_clock_that_is_set_back_over_the_end_of_a_week_costs_no_finished_task(core: Core, clock: Clock) -> None:
    """Weeks are those since 1970, so one begins on a Thursday. The leaf of the next week is the oldest of the ring."""
    clock.set(datetime(2026, 11, 26, 0, 0, 1, tzinfo=UTC))
    core.enqueue(QUOTE, "AAPL")
    core.complete(core.claim_one())
    clock.advance(-3600)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"AAPL": "completed"}
    clock.advance(14 * 86_400 + 7200)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {}


def finish_one(core: Core, symbol: str) -> None:
    core.enqueue(QUOTE, symbol)
    core.complete(core.claim_one())


def leaf_of_now(core: Core) -> str:
    week: int = core.one("SELECT floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8")
    return f"pricing.api_call_queue_completed_{week}"


def test_b9_a_leaf_that_was_detached_to_be_kept_is_left_alone(core: Core, clock: Clock) -> None:
    """It was emptied two weeks later, by its name."""
    finish_one(core, "AAPL")
    leaf = leaf_of_now(core)
    core.rows(f"ALTER TABLE pricing.api_call_queue_completed DETACH PARTITION {leaf}")
    finish_one(core, "IBM")
    for _ in range(9):
        clock.advance(7 * 86_400)
        core.one("SELECT pricing.prune()")
        assert core.one(f"SELECT count(*) FROM {leaf}") == 1
    assert core.statuses() == {}, "what finished in its weeks since is in the rest, and pruned there"


def test_b9_old_tasks_go_though_a_clock_was_ahead_in_their_leaf(core: Core, clock: Clock) -> None:
    """The newest task of the leaf seemed to be of a week to come, so the old ones stayed for months."""
    finish_one(core, "AAPL")
    clock.advance(8 * 7 * 86_400)
    finish_one(core, "IBM")
    clock.advance(-8 * 7 * 86_400)
    clock.advance(22 * 86_400)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"IBM": "completed"}


def test_b9_old_tasks_go_though_their_ids_are_the_highest(core: Core, clock: Clock) -> None:
    """A backlog of 10,000 tasks with lower ids hid them."""
    insert = (
        "INSERT INTO pricing.api_call_queue_completed (id, data_type, symbol, window_start, window_end, provider,"
        " status, priority, cadence_minutes, est_bytes, enqueued_at, attempt, max_attempts, errors, finished_at, ring)"
        " SELECT :first + n, 'equity_quote', :name || n, '-infinity', 'infinity', 'twelvedata', 'completed', 1, 1, 600,"
        " pricing.clock(), 1, 4, '[]', pricing.clock(), floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8"
        " FROM generate_series(1, CAST(:count AS integer)) AS n"
    )
    core.rows(insert, first=1_000_000, name="OLD", count=20)
    clock.advance(8 * 7 * 86_400)
    core.rows(insert, first=1000, name="B", count=10_000)
    core.one("SELECT pricing.prune()")
    kept = "SELECT count(*) FROM pricing.api_call_queue_completed"
    assert core.one(kept) == 10_000
    assert core.one(f"{kept} WHERE symbol LIKE 'OLD%'") == 0


def test_b9_an_upgrade_makes_a_leaf_again_that_was_dropped(core: Core, owner_url: str) -> None:
    leaf = leaf_of_now(core)
    core.rows(f"DROP TABLE {leaf}")
    finish_one(core, "AAPL")
    upgrade(owner_url)
    assert core.one(f"SELECT symbol FROM {leaf}") == "AAPL"
    finish_one(core, "IBM")
    assert core.one(f"SELECT count(*) FROM {leaf}") == 2
    assert core.statuses() == {"AAPL": "completed", "IBM": "completed"}
