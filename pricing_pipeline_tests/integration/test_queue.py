"""A task is enqueued once, and the queue can be read. Claims, finished tasks and failures have files of their own."""

from __future__ import annotations

import random
from datetime import date

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, TWELVEDATA, Core, rows_read, symbols
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

SPRING = (date(2010, 3, 1), date(2010, 5, 31))
SUMMER = (date(2010, 6, 1), date(2010, 8, 31))


# Enqueue


def test_a1_what_is_pending_or_processing_is_not_queued_again(core: Core) -> None:
    assert core.enqueue(QUOTE, "AAPL", "IBM") == 2
    assert core.enqueue(QUOTE, "AAPL", "IBM") == 0
    call = core.claim_one()
    assert core.enqueue(QUOTE, "AAPL", "IBM", "META") == 1
    assert core.statuses() == {"AAPL": "processing", "IBM": "processing", "META": "pending"}
    core.complete(call)
    assert core.enqueue(QUOTE, "AAPL") == 1
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=60)
    assert core.enqueue(QUOTE, "AAPL") == 0, "nor what waits for its next try"


def test_a1_a_priority_that_cannot_be_raised_now_does_not_fail_the_enqueue(core: Core) -> None:
    """`SKIP LOCKED` waits, too, for a row that is updated and locked again while PostgreSQL looks at it: one enqueue of
    sixteen sessions failed of it.
    """
    core.enqueue(QUOTE, "AAPL")
    core.rows(
        "CREATE FUNCTION pricing.locked_again() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = '55P03'; END$$"
    )
    core.rows(
        "CREATE TRIGGER locked_again BEFORE UPDATE OF priority ON pricing.api_call_queue_live"
        " FOR EACH ROW EXECUTE FUNCTION pricing.locked_again()"
    )
    assert core.enqueue(QUOTE, "AAPL", "IBM", priority=7) == 1
    assert [(task.symbol, task.priority) for task in core.tasks()] == [("AAPL", 1), ("IBM", 7)]
    core.rows("DROP TRIGGER locked_again ON pricing.api_call_queue_live")
    assert core.enqueue(QUOTE, "AAPL", priority=7) == 0
    assert core.task("AAPL").priority == 7


def test_a1_an_enqueue_that_changes_nothing_does_not_touch_the_row(core: Core) -> None:
    """The row version stays, so that no claim has to skip it."""
    core.enqueue(QUOTE, "AAPL", priority=2)
    before = core.rows("SELECT ctid, xmin, xmax FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, "AAPL", priority=2)
    core.enqueue(QUOTE, "AAPL", priority=1)
    assert core.rows("SELECT ctid, xmin, xmax FROM pricing.api_call_queue_live") == before


def test_a1_one_batch_names_a_symbol_twice(core: Core) -> None:
    core.rows(
        "SELECT pricing.enqueue('equity_quote', ARRAY['AAPL', 'IBM', 'AAPL'], ARRAY[1, 1, 4])",
    )
    assert [(task.symbol, task.priority) for task in core.tasks()] == [("AAPL", 4), ("IBM", 1)]


def test_b10_a_batch_is_written_in_key_order(core: Core) -> None:
    """Two batches that lock the same rows in different orders can deadlock."""
    shuffled = symbols(300)
    random.Random(1).shuffle(shuffled)
    core.enqueue(QUOTE, *shuffled)
    assert [task.symbol for task in core.tasks()] == symbols(300)


def test_a1_each_span_of_days_is_a_task_of_its_own(core: Core) -> None:
    for days in (None, SPRING, SUMMER, SPRING):
        core.enqueue(DAILY, "AAPL", days=days)
    assert len(core.tasks("AAPL")) == 3


def test_a5_without_a_route_a_task_dies_at_once_and_says_so(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE data_type = 'equity_quote'")
    assert core.enqueue(QUOTE, "AAPL") == 0
    dead = core.tasks("AAPL")[-1]
    assert (dead.status, dead.failure_kind) == ("failed", "misconfigured")
    assert "pricing-pipeline route add" in dead.errors[0]["message"]
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert pair.backoff_until > core.clock()


# Reading


def test_b22_counts_and_lists_show_the_queue(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM", priority=4)
    core.enqueue(DAILY, "META", days=SPRING, priority=-2)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    core.enqueue(QUOTE, "MSFT", priority=2)
    clock.advance(30)
    with core.engine.connect() as connection:
        counts = {counted.status: counted for counted in task_queue.counts(connection)}
        listed = task_queue.tasks(connection, ["pending", "failed"], 10)
        busy, providers = task_queue.is_busy(connection), task_queue.providers_with_work(connection)
    assert {status: counted.tasks for status, counted in counts.items()} == {"pending": 2, "dead": 2}
    assert 29 < counts["pending"].oldest_seconds < 60
    assert [(row["symbol"], row["status"], row["window_start"]) for row in listed] == [
        ("MSFT", "pending", None),
        ("META", "pending", SPRING[0]),
        ("AAPL", "failed", None),
        ("IBM", "failed", None),
    ]
    assert listed[-1]["last_error"] == "no such symbol"
    assert busy
    assert providers == [(TWELVEDATA, 8, 2)]


def test_b11_providers_with_work_are_found_without_reading_the_queue(core: Core) -> None:
    """Before each claim of a drain; nobody has counted the rows of a new queue, and all of them were read."""
    core.enqueue(QUOTE, *(f"S{number}" for number in range(1_000)))
    with core.engine.begin() as connection:
        before = rows_read(connection)
        assert task_queue.providers_with_work(connection) == [(TWELVEDATA, 8, 1)]
        assert rows_read(connection) - before < 100
