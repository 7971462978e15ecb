"""A worker that lost its claim changes nothing, in whatever order things happen.

Each test holds two claims of the same tasks: a late one, whose lease ran out, and the one that took over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import is_locked
from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.errors import ProviderDown, Throttled
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer, settle_failure
from pricing_pipeline_tests.fixtures.core import (
    ANSWERED,
    MFAPI,
    NAV,
    QUOTE,
    TWELVEDATA,
    Core,
    observation,
)
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sessions import joined, meanwhile
from pricing_pipeline_tests.tools.audit import audit


def taken_over(core: Core, clock: Clock) -> tuple[Call, Call]:
    """A claim whose lease ran out, and the claim that has its tasks now."""
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    late = core.claim_one(worker="late")
    clock.advance(61)
    assert core.recover() == 2
    return late, core.claim_one(worker="heir")


def state(core: Core) -> dict[str, object]:
    """All that a late finish could change, but for the log of calls."""
    return {
        name: core.rows(f"SELECT t::text FROM pricing.{name} AS t ORDER BY 1")
        for name in (
            "api_call_queue",
            "demand",
            "latest_prices",
            "price_history",
            "price_revisions",
            "history_coverage",
            "provider_state",
            "instruments",
        )
    }


def answer(core: Core, call: Call, price: str) -> Answer:
    at = core.clock() - timedelta(seconds=1)
    return Answer(Rows(observation(symbol, price, at) for symbol in call.symbols))


def late_finishes(core: Core, late: Call) -> dict[str, Callable[[], object]]:
    prices = answer(core, late, "666.00")
    return {
        "complete": lambda: core.complete(late),
        "finish": lambda: core.finish_call(late, is_owned=False),
        "fail": lambda: core.fail(late, FailureKind.PROVIDER_DOWN),
        "fail for good": lambda: core.fail(late, FailureKind.UNKNOWN_SYMBOL),
        "snooze": lambda: core.fail(late, FailureKind.THROTTLED, retry_after=60),
        "return": lambda: core.return_tasks(late),
        "extend": lambda: core.extend(late),
        "store": lambda: settle_answer(core.engine, late, Fetched(prices, 200, 900)),
        "store nothing": lambda: settle_answer(
            core.engine, late, Fetched(Answer(empty=frozenset(late.symbols)), 200, 900)
        ),
        "report a fault": lambda: settle_failure(core.engine, late, ProviderDown("it hung up")),
        "report a refusal": lambda: settle_failure(core.engine, late, Throttled("too fast", retry_after=600)),
    }


def changes_nothing(core: Core, late: Call) -> None:
    before = state(core)
    for how, finish in late_finishes(core, late).items():
        finish()
        assert state(core) == before, f"a late {how} had an effect"


def test_b11_a_late_finish_changes_nothing_while_the_heir_works(core: Core, clock: Clock) -> None:
    late, heir = taken_over(core, clock)
    changes_nothing(core, late)
    core.finish(heir, "100.00")
    assert [str(price.price) for price in (core.latest("AAPL"), core.latest("IBM")) if price] == ["100.00"] * 2
    audit(core)


def test_b11_a_late_finish_changes_nothing_after_the_heir_is_done(core: Core, clock: Clock) -> None:
    late, heir = taken_over(core, clock)
    core.finish(heir, "100.00")
    changes_nothing(core, late)
    audit(core)


def test_b11_a_finish_within_the_lease_is_as_good_after_it_until_recovery(core: Core, clock: Clock) -> None:
    """The token decides, not the clock: what nobody took back is still ours."""
    core.enqueue(QUOTE, "AAPL")
    call = core.claim_one()
    clock.advance(600)
    core.finish(call)
    assert core.task("AAPL").status == "completed"
    assert core.recover() == 0


def test_b12_a_calls_bytes_are_booked_once_whoever_reports_them(core: Core, clock: Clock) -> None:
    """A forgotten call counts at its estimate; the truth that comes too late is not added to it."""
    late, heir = taken_over(core, clock)
    core.settle(heir, 1000)
    core.settle(heir, 1000)
    assert core.allowance().used_bytes == 1000 + 1200
    assert core.one("SELECT pricing.expire_calls()") == 1
    core.settle(late, 5000)
    assert core.allowance().used_bytes == 1000 + 1200
    outcomes = core.rows("SELECT outcome, wire_bytes FROM pricing.collector_call_log ORDER BY call_id")
    assert [tuple(row) for row in outcomes] == [("unknown", 1200), ("ok", 1000)]


def test_a6_a_call_is_settled_with_its_own_tasks_only(core: Core) -> None:
    """Two calls of one claim have one token: finishing the first leaves the second's tasks to the second."""
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, "AAPL", "IBM")
    first, second = core.claim(max_calls=2)
    assert first.claim_token == second.claim_token
    both = [*first.task_ids, *second.task_ids]
    with core.engine.begin() as worker:
        assert task_queue.finish(worker, first, both, ANSWERED) == set(first.task_ids)
    assert core.rows("SELECT call_id, outcome FROM pricing.collector_call_log ORDER BY call_id") == [
        (first.id, "ok"),
        (second.id, "open"),
    ]
    assert core.complete(second) == set(second.task_ids)


def test_b19_a_finish_passes_over_demand_that_is_locked(core: Core) -> None:
    """No worker waits for demand, so a session that has locked some stops nothing; it is due again a minute later."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    with core.engine.begin() as other:
        other.execute(text("SELECT FROM pricing.demand FOR UPDATE"))
        finishing = meanwhile(
            core.engine,
            lambda c: task_queue.finish(c, call, call.task_ids, ANSWERED),
        )
        joined(*finishing)
        assert core.task("AAPL").status == "completed"
    assert core.one("SELECT pricing.repair_demand()") == 1
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert pair.became_due_at is None


# Two sessions at once


def test_b19_the_staleness_check_and_a_finish_do_not_deadlock(core: Core) -> None:
    """A scheduled task is in work when its pair becomes due for viewers: the check wants to raise its
    priority while the worker stores, completes, and moves the pair on."""
    # By age alone, whatever day it is.
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_data_stale'")
    core.heartbeat("ann", (NAV, "118632"))
    core.refresh(MFAPI)
    core.rows("SELECT pricing.enqueue_scheduled('mf_nav')")
    call = next(call for call in core.claim(MFAPI, max_calls=9) if call.symbols == ["118632"])
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() - interval '1 second'")
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '2 days'")
    with core.engine.begin() as worker:
        assert task_queue.lock_owned(worker, call) == set(call.task_ids)
        check = meanwhile(core.engine, lambda c: c.execute(text("SELECT pricing.check_type('mf_nav', 9)")))
        assert task_queue.complete(worker, call.task_ids, call.claim_token) == set(call.task_ids)
    joined(*check)


def test_b19_recovery_and_a_finish_do_not_deadlock(core: Core, clock: Clock) -> None:
    """The last attempt outlives its lease; its worker comes back in the moment it is buried."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    core.rows("UPDATE pricing.api_call_queue_live SET attempt = max_attempts")
    clock.advance(61)
    with core.engine.begin() as worker:
        assert task_queue.lock_owned(worker, call) == set(call.task_ids)
        recovery = meanwhile(core.engine, lambda c: c.execute(text("SELECT pricing.recover_tasks()")))
        task_queue.complete(worker, call.task_ids, call.claim_token)
    joined(*recovery)
    assert core.task("AAPL").status == "completed", "the worker was first"


def test_a3_a_claim_passes_over_a_task_that_is_locked(core: Core) -> None:
    """SKIP LOCKED: anyone who raises a priority or finishes its own work holds up no claim."""
    core.enqueue(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as other:
        other.execute(text("UPDATE pricing.api_call_queue_live SET priority = 9 WHERE symbol = 'AAPL'"))
        claiming = meanwhile(core.engine, lambda c: task_queue.claim(c, TWELVEDATA, "passer-by", 1, None))
        joined(*claiming)
    assert {task.symbol: task.worker for task in core.tasks()} == {"AAPL": None, "IBM": "passer-by"}


def test_a6_two_claims_at_once_do_not_spend_one_allowance_twice(core: Core) -> None:
    """The lock comes before the look: a claim that looked while another was under way would see what that takes."""
    core.be_patient("claim_calls")
    core.rows("UPDATE pricing.provider_limits SET units = 8")
    core.enqueue(QUOTE, *(f"S{number:02}" for number in range(20)))
    taken: list[Call] = []
    with core.engine.begin() as first:
        taken += task_queue.claim(first, TWELVEDATA, "first", 1, None)
        other = meanwhile(core.engine, lambda c: taken.extend(task_queue.claim(c, TWELVEDATA, "second", 1, None)))
    joined(*other)
    assert sum(len(call.tasks) for call in taken) == 8


def claimed_in_the_end(connection: Connection) -> None:
    """A claim waits for another one for a fifth of a second at a time."""
    while True:
        try:
            with connection.begin_nested():
                task_queue.claim(connection, TWELVEDATA, "second", 9, None)
            return
        except DBAPIError as error:
            if not is_locked(error):
                raise


def test_b10_a_claim_waits_for_the_other_claim_of_its_provider_only(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.enqueue(NAV, "118632")
    with core.engine.begin() as first:
        (mine,) = task_queue.claim(first, TWELVEDATA, "first", 1, None)
        other = meanwhile(core.engine, claimed_in_the_end)
        assert other[0].is_alive()
        assert [call.symbols for call in core.claim(MFAPI)] == [["118632"]]
    joined(*other)
    assert {task.symbol: task.worker for task in core.tasks()} == {
        mine.symbols[0]: "first",
        ({"AAPL", "IBM"} - set(mine.symbols)).pop(): "second",
        "118632": "a",
    }


def test_b12_calls_that_end_together_are_booked_without_waiting_for_each_other(core: Core) -> None:
    """One row for all was locked until its transaction was on the disk, and every other worker waited for that."""
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, "AAPL", "META", "IBM")
    settle = text("SELECT pricing.settle_call(:id, 'failed', 500, :bytes)")
    slow, quick, late = (core.claim_one().id for _ in range(3))
    with core.engine.begin() as first:
        first.execute(settle, {"id": slow, "bytes": 500})
        with core.engine.begin() as second:
            second.execute(text("SET LOCAL lock_timeout = '10s'"))
            second.execute(settle, {"id": quick, "bytes": 700})
    core.call("SELECT pricing.settle_call(:id, 'failed', 500, 300)", id=late)
    rows = core.rows("SELECT calls, bytes FROM pricing.api_data_usage ORDER BY calls")
    assert [row.calls for row in rows] == [1, 2], "a row for each of those that ended together, and no more"
    assert sum(row.bytes for row in rows) == 1500
    assert core.allowance().used_bytes == 1500


# A person steps in


def ids_of(core: Core, symbol: str = "AAPL") -> list[int]:
    return [task.id for task in core.tasks(symbol)]


def outcomes(
    done: list[str], verb: Callable[[Connection, list[int]], list[task_queue.Outcome]], ids: list[int]
) -> Callable[[Connection], None]:
    """The verb as work for a session; what it says of the tasks goes to `done`."""
    return lambda connection: done.extend(one.outcome for one in verb(connection, ids))


def test_e4_a_cancel_waits_for_a_finish_and_comes_too_late(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    said: list[str] = []
    with core.engine.begin() as worker:
        task_queue.lock_owned(worker, call)
        cancel = meanwhile(core.engine, outcomes(said, task_queue.cancel, call.task_ids))
        assert cancel[0].is_alive()
        task_queue.complete(worker, call.task_ids, call.claim_token)
    joined(*cancel)
    assert said == ["finished"]
    assert core.task("AAPL").status == "completed"
    pair = core.demand_of(QUOTE, "AAPL")
    assert pair is not None
    assert pair.backoff_until is None, "nothing was cancelled, so nothing rests"


def test_e4_a_finish_waits_for_a_cancel_and_is_refused(core: Core) -> None:
    core.be_patient("finish_tasks")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    with core.engine.begin() as person:
        assert [one.outcome for one in task_queue.cancel(person, call.task_ids)] == ["cancelled"]
        done: list[set[int]] = []
        finish = meanwhile(core.engine, lambda c: done.append(task_queue.complete(c, call.task_ids, call.claim_token)))
        assert finish[0].is_alive()
    joined(*finish)
    assert done == [set()]
    assert core.task("AAPL").status == "cancelled"


def test_e4_recovery_passes_over_what_is_being_cancelled(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    call = core.claim_one()
    clock.advance(61)
    with core.engine.begin() as person:
        task_queue.cancel(person, call.task_ids)
        assert core.recover() == 0
    assert core.task("AAPL").status == "cancelled"


def test_a8_two_retries_at_once_make_one_task(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    said: list[str] = []
    with core.engine.begin() as first:
        assert [one.outcome for one in task_queue.retry(first, ids_of(core))] == ["retried"]
        second = meanwhile(core.engine, outcomes(said, task_queue.retry, ids_of(core)))
        assert second[0].is_alive()
    joined(*second)
    assert said == ["not_dead"]
    audit(core, acknowledged=1)


def test_a8_a_retry_beside_an_enqueue_of_the_same_work_leaves_one_task(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    dead = ids_of(core)
    said: list[str] = []
    with core.engine.begin() as sensor:
        sensor.execute(text("SELECT pricing.enqueue('equity_quote', '{AAPL}', '{1}')"))
        retry = meanwhile(core.engine, outcomes(said, task_queue.retry, dead))
        assert retry[0].is_alive()
    joined(*retry)
    assert said == ["live_already"]
    assert [task.status for task in core.tasks("AAPL")] == ["failed", "pending"]
    audit(core, acknowledged=2)
