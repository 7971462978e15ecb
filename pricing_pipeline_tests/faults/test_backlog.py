"""Queues that are long, or hard to clean: a claim's cost stays what it was."""

from __future__ import annotations

from collections import Counter
from datetime import date

from sqlalchemy import text

from pricing_pipeline.db.query_loader import named
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.tools.audit import audit

SETTLE = (
    "SELECT count(pricing.settle_call(call_id, 'ok', 200, 100)) FROM pricing.collector_call_log"
    " WHERE finished_at IS NULL"
)


def turns(core: Core, count: int) -> None:
    """So many claims, whose tasks are completed and followed by as many new ones."""
    for _ in range(count):
        for call in core.claim(max_calls=1):
            core.complete(call)
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
    core.rows(SETTLE)
    audit(core)


def entries_of_a_claim(core: Core) -> int:
    """How many entries of its index a claim of one call reads. It is rolled back."""
    read = text("SELECT pg_stat_get_xact_tuples_returned('pricing.live_claim'::regclass)")
    with core.engine.connect() as connection:
        before = int(
            connection.execute(read).scalar_one()
        )  # of what this session has not told the statistics yet
        assert task_queue.claim(connection, TWELVEDATA, "w", 1, None)
        after = int(connection.execute(read).scalar_one())
        connection.rollback()
    return after - before


def littered(core: Core) -> None:
    """From now on claims go on where the last one ended, as they do behind thousands of dead rows."""
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.is_littered() RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )


def claimed_next(core: Core) -> list[str]:
    """The symbols of the next claim, or none."""
    return [symbol for call in core.claim(max_calls=1) for symbol in call.symbols]


def test_b9_claims_go_on_after_each_other_where_finished_tasks_are_many(core: Core, clock: Clock) -> None:
    """The entries of finished tasks are passed by once in a while, and not by every claim."""
    clock.stop()
    core.lift_limits(batch_size=50)
    core.enqueue(QUOTE, *(f"S{number:04d}" for number in range(1000)))
    with core.owner.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.execute(text("SELECT count(*) FROM pricing.api_call_queue_live"))
        turns(core, 12)
        assert entries_of_a_claim(core) > 600
        littered(core)
        turns(core, 1)
        assert entries_of_a_claim(core) <= 50
        clock.advance(0.3)
        assert entries_of_a_claim(core) > 650
        reader.rollback()


def test_b9_a_queue_is_littered_while_thousands_of_dead_rows_cannot_be_cleaned_away(core: Core) -> None:
    littered_now = "SELECT pricing.is_littered()"
    core.enqueue(QUOTE, *(f"S{number:04d}" for number in range(5100)))
    assert core.one(littered_now) is False
    with core.owner.connect().execution_options(isolation_level="REPEATABLE READ") as reader:
        reader.execute(text("SELECT count(*) FROM pricing.api_call_queue_live"))
        with core.owner.connect().execution_options(isolation_level="AUTOCOMMIT") as cleaner:
            cleaner.execute(text("DELETE FROM pricing.api_call_queue_live"))
            cleaner.execute(text("SELECT pg_stat_force_next_flush()"))
            cleaner.execute(text("VACUUM pricing.api_call_queue_live"))
            cleaner.execute(text("SELECT pg_stat_force_next_flush()"))
            assert cleaner.execute(text(littered_now)).scalar_one() is True
            reader.rollback()

            def is_clean() -> bool:
                # The server's own cleaning may hold a snapshot at this very moment.
                cleaner.execute(text("VACUUM pricing.api_call_queue_live"))
                return cleaner.execute(text(littered_now)).scalar_one() is False

            wait_until(is_clean)


def test_b16_a_claim_that_goes_on_finds_what_is_keener_a_moment_later(core: Core, clock: Clock) -> None:
    clock.stop()
    littered(core)
    core.lift_limits(batch_size=2)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(8)))
    assert claimed_next(core) == ["S0", "S1"]
    core.enqueue(QUOTE, "KEEN", priority=9)
    assert claimed_next(core) == ["S2", "S3"]
    clock.advance(0.2)
    assert claimed_next(core) == ["S4", "S5"]
    clock.advance(0.06)
    assert claimed_next(core) == ["KEEN", "S6"], "the quarter of a second counts from the last full look"


def test_b16_a_claim_that_goes_on_never_misses_what_was_put_back_before_it(core: Core, clock: Clock) -> None:
    """Nor what was queued late, raised, or passed over: where too little is left, it looks from the first on."""
    clock.stop()
    littered(core)
    core.lift_limits(batch_size=2)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(6)))
    (first,) = core.claim(max_calls=1)
    with core.engine.begin() as other:
        other.execute(text("SELECT FROM pricing.api_call_queue_live WHERE symbol = 'S2' FOR UPDATE"))
        assert claimed_next(core) == ["S3", "S4"]
    core.return_tasks(first)
    core.enqueue(QUOTE, "KEEN", priority=9)
    assert claimed_next(core) == ["KEEN", "S0"], "one task after the last is too little for a call of two"
    assert claimed_next(core) == ["S1", "S2"]
    assert claimed_next(core) == ["S5"]
    assert claimed_next(core) == []


def test_b16_what_a_claim_saw_and_left_is_not_passed_over_by_the_next(core: Core, clock: Clock) -> None:
    clock.stop()
    littered(core)
    core.lift_limits(batch_size=4)
    core.enqueue(QUOTE, "A1", "A2")
    core.enqueue(QUOTE, "A1", "A3", days=(date(2010, 3, 1), date(2010, 3, 31)))
    core.enqueue(QUOTE, "A4", "A5", "A6")
    assert claimed_next(core) == ["A1", "A2"]
    assert core.one("SELECT passed_at FROM pricing.provider_state WHERE provider = 'twelvedata'") is None
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
    waiting = core.rows(
        "SELECT status, attempt, errors FROM pricing.api_call_queue WHERE data_type = 'equity_quote'"
    )
    assert Counter((row.status, row.attempt, len(row.errors)) for row in waiting) == {
        ("pending", 0, 0): 20_000
    }
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_completed") == 2_000
    audit(core, acknowledged=22_000)
