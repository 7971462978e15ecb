"""Queues that are long, or hard to clean: a claim's cost stays what it was."""

from __future__ import annotations

from collections import Counter
from datetime import date

from sqlalchemy import text

from pricing_pipeline.db.query_loader import named
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.tools.audit import audit


def turns(core: Core, count: int) -> None:
    """So many claims, whose tasks are completed and followed by as many new ones."""
    for _ in range(count):
        for call in core.claim(max_calls=1):
            core.complete(call)
            core.call("SELECT pricing.settle_call(:id, 'ok', 200, 100)", id=call.id)
            core.enqueue(QUOTE, *call.symbols)


def pages_of_a_claim(core: Core) -> int:
    """How many pages of 8 kB a claim of one call looks at. It is rolled back."""
    claim = text("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + named("queue.claim"))
    parameters = {
        "provider": TWELVEDATA,
        "worker": "w",
        "max_calls": 1,
        "run_id": None,
        "keys": None,
        "is_waited_for": True,
    }
    with core.engine.connect() as connection:
        (explained,) = connection.execute(claim, parameters).scalar_one()
        connection.rollback()
    assert explained["Plan"]["Actual Rows"] == 1
    return int(explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"])


def test_b9_a_snapshot_held_open_does_not_slow_claims_down(core: Core) -> None:
    """What was finished since cannot be vacuumed, and lies in the way of every claim."""
    core.lift_limits(batch_size=50)
    core.enqueue(QUOTE, *(f"S{number:04d}" for number in range(500)))
    turns(core, 20)
    fresh = pages_of_a_claim(core)
    with core.owner.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        seen = reader.execute(text("SELECT count(*) FROM pricing.api_call_queue_live")).scalar_one()
        turns(core, 75)
        held = pages_of_a_claim(core)
        assert reader.execute(text("SELECT count(*) FROM pricing.api_call_queue_live")).scalar_one() == seen
        reader.rollback()
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_completed") == 95 * 50
    assert held - fresh < 2 * 75 * 50, "what was finished since is passed by at less than two pages each"
    audit(core)


def claimed_next(core: Core) -> list[str]:
    """The symbols of the next claim, or none."""
    return [symbol for call in core.claim(max_calls=1) for symbol in call.symbols]


def test_b16_what_a_claim_saw_and_left_is_not_passed_over_by_the_next(core: Core) -> None:
    core.lift_limits(batch_size=4)
    core.enqueue(QUOTE, "A1", "A2")
    core.enqueue(QUOTE, "A1", "A3", days=(date(2010, 3, 1), date(2010, 3, 31)))
    core.enqueue(QUOTE, "A4", "A5", "A6")
    assert claimed_next(core) == ["A1", "A2"]
    assert claimed_next(core) == ["A3"], "A1 is being asked for, and A4 to A6 stand behind"


def test_b16_what_waits_for_a_throttled_provider_does_not_delay_a_free_one(core: Core) -> None:
    """20,000 tasks lie ahead of 2,000. Claiming first and looking later snoozed 19,992 of them."""
    core.lift_limits(batch_size=100)
    core.enqueue(QUOTE, *(f"S{number:05d}" for number in range(20_000)), priority=50)
    core.enqueue(NAV, *(str(100_000 + number) for number in range(2_000)))
    core.throttle(TWELVEDATA, 3600)
    while True:
        with core.engine.connect() as connection:
            providers = [one.provider for one in task_queue.providers_with_work(connection)]
        if MFAPI not in providers:
            break
        for provider in providers:
            with core.engine.begin() as connection:
                for call in task_queue.claim(connection, provider, "w", 10, None):
                    assert call.provider == MFAPI
                    task_queue.complete(connection, call.task_ids, call.claim_token)
                    limits.settle(connection, call.id, Receipt(200, 100))
    waiting = core.rows("SELECT status, attempt, errors FROM pricing.api_call_queue WHERE data_type = 'equity_quote'")
    assert Counter((row.status, row.attempt, len(row.errors)) for row in waiting) == {("pending", 0, 0): 20_000}
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_completed") == 2_000
    audit(core, acknowledged=22_000)
