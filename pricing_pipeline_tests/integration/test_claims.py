"""Which tasks a claim takes, in which order, in which calls, and when it is given out."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")

SPRING = (date(2010, 3, 1), date(2010, 5, 31))


def claimed(calls: list[Call]) -> list[list[str]]:
    return [call.symbols for call in calls]


def test_a2_watched_goes_before_held_before_scheduled_before_backfill(core: Core, clock: Clock) -> None:
    core.lift_limits(batch_size=1)
    for symbol, priority in (("BACK", -2), ("SCHED", -1), ("HELD", 0), ("ONE", 1), ("MANY", 9)):
        core.enqueue(QUOTE, symbol, priority=priority)
    order = ["MANY", "ONE", "HELD", "SCHED", "BACK"]
    calls = core.claim(max_calls=9)
    assert claimed(calls) == [[symbol] for symbol in order]
    for call in calls:
        core.return_tasks(call)
    clock.advance(16)  # by then those calls are over
    assert [core.claim_one().symbols[0] for _ in range(5)] == order


def drain(core: Core, claims: int) -> None:
    """Claim so often, and finish each call before the next claim."""
    for _ in range(claims):
        core.finish_call(core.claim_one())


def test_a2_what_becomes_more_urgent_during_a_drain_is_claimed_next(core: Core) -> None:
    """Claims begin where the first task was a few claims ago, and must see what has come before it since."""
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, *symbols(200), priority=3)
    drain(core, 20)

    def is_noted() -> bool:
        """Where claims begin: not while a transaction of another test on this server is older than the tasks."""
        drain(core, 1)
        return core.one("SELECT first_id FROM pricing.provider_state WHERE provider = 'twelvedata'") is not None

    wait_until(is_noted)
    core.enqueue(QUOTE, "NEW", priority=9)
    assert core.claim_one().symbols == ["NEW"]
    drain(core, 20)
    core.enqueue(QUOTE, symbols(200)[-1], priority=9)
    assert core.claim_one().symbols == [symbols(200)[-1]], "its priority was raised"
    drain(core, 10)
    first = core.claim_one()
    drain(core, 10)
    core.return_tasks(first)
    assert core.claim_one().symbols == first.symbols, "it was returned"
    drain(core, 20)
    core.rows("UPDATE pricing.api_call_queue SET priority = 9 WHERE symbol = :symbol", symbol=symbols(200)[-2])
    assert core.claim_one().symbols == [symbols(200)[-2]], "a person has raised it"


def test_a2_what_is_queued_during_many_claims_is_claimed_as_soon_as_it_is_committed(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, *symbols(100), priority=3)
    drain(core, 10)
    with core.owner.begin() as connection:
        connection.execute(text("SELECT pricing.enqueue('equity_quote', ARRAY['NEW'], ARRAY[9])"))
        drain(core, 20)
    assert core.claim_one().symbols == ["NEW"]


def test_a2_a_claim_does_not_read_what_has_finished_while_a_snapshot_keeps_it(core: Core) -> None:
    core.lift_limits(batch_size=10)
    core.rows(
        "SELECT pricing.enqueue('equity_quote', array_agg('S' || n), array_agg(n % 9)) FROM generate_series(1, 1000) n"
    )
    claim = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM pricing.claim_calls('twelvedata', 'a', 1)"
    with core.owner.connect() as reader, autocommitting(core.owner).connect() as worker:
        reader.execution_options(isolation_level="REPEATABLE READ")
        reader.execute(text("SELECT count(*) FROM pricing.api_call_queue_live")).all()
        pages = []
        for count in (10, 50):
            worker.execute(text(claim)).all()  # the first of a session also reads what plans need
            core.rows("SELECT pricing.finish_tasks(array_agg(id)) FROM pricing.api_call_queue_live WHERE attempt > 0")
            drain(core, count)
            (plan,) = worker.execute(text(claim)).scalar_one()
            pages.append(plan["Plan"]["Shared Hit Blocks"])
    assert pages[1] < pages[0] + 100, pages


def test_f1_tasks_share_calls_up_to_the_batch_size(core: Core) -> None:
    core.enqueue(QUOTE, *symbols(250))
    calls = core.claim(max_calls=8)
    assert [len(call.tasks) for call in calls] == [100, 100, 50]
    assert sorted(symbol for call in calls for symbol in call.symbols) == symbols(250)
    assert {call.fetcher for call in calls} == {Fetcher.QUOTE}


def test_f1_a_call_holds_one_data_type_and_one_span_only(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.enqueue(FX, "EUR/USD")
    core.enqueue(DAILY, "META", days=SPRING)
    core.enqueue(DAILY, "GOOG", days=SPRING)
    core.enqueue(DAILY, "NFLX", days=(SPRING[0] - timedelta(days=1), SPRING[1]))
    core.enqueue(DAILY, "MSFT")
    seen = {(call.data_type, call.window, tuple(sorted(call.symbols))) for call in core.claim(max_calls=9)}
    assert seen == {
        (QUOTE, None, ("AAPL", "IBM")),
        (FX, None, ("EUR/USD",)),
        (DAILY, Window(*SPRING), ("GOOG", "META")),
        (DAILY, Window(SPRING[0] - timedelta(days=1), SPRING[1]), ("NFLX",)),
        (DAILY, None, ("MSFT",)),
    }


@pytest.mark.parametrize(("days", "most"), [(16, 120), (30, 66), (1000, 2), (1001, 1)])
def test_f1_spans_share_a_call_while_its_answer_stays_short(core: Core, days: int, most: int) -> None:
    """Twelve Data takes up to 120 symbols a call; of all of them together a call asks for 2,000 days."""
    core.rows("UPDATE pricing.provider_limits SET units = 1000000")
    first = date(2010, 1, 1)
    core.enqueue(DAILY, *symbols(130), days=(first, first + timedelta(days=days - 1)))
    sizes = [len(call.tasks) for call in core.claim(max_calls=2)]
    assert sizes == [most, min(most, 130 - most)]


def test_b17_tasks_of_one_symbol_are_never_in_work_together(core: Core) -> None:
    core.enqueue(DAILY, "AAPL")
    core.enqueue(QUOTE, "AAPL", "IBM")
    (call,) = core.claim(max_calls=9)
    assert (call.data_type, call.symbols) == (QUOTE, ["AAPL", "IBM"]), "what is due again soonest goes first"
    assert core.claim(max_calls=9) == []
    core.complete(call)
    assert core.claim_one().data_type == DAILY


def test_a3_a_claim_knows_its_tasks(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", priority=3)
    before = core.clock()
    call = core.claim_one(worker="drain 7")
    (task,) = call.tasks
    row = core.task("AAPL")
    assert (call.provider, call.data_type, call.window) == (TWELVEDATA, QUOTE, None)
    assert (task.id, task.symbol, task.priority, task.attempt) == (row.id, "AAPL", 3, 1)
    assert (row.worker, row.claim_token, row.call_id, row.attempt) == (
        "drain 7",
        call.claim_token,
        call.id,
        1,
    )
    assert before <= call.claimed_at == row.claimed_at == row.lease_until - timedelta(seconds=60)


def test_a6_a_claim_in_a_longer_transaction_waits_for_the_disk_with_it(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        connection.execute(text("SET LOCAL synchronous_commit = on"))
        assert task_queue.claim(connection, TWELVEDATA, "w", 1, None)
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        connection.execute(text("SELECT pricing.claim_calls('twelvedata', 'plain SQL', 1)"))
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        connection.execute(text("SELECT pricing.claim_calls('twelvedata', 'w', 1, is_waited_for => false)"))
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "off"


def test_a6_a_claim_of_its_own_is_given_out_when_it_is_on_the_disk_and_not_before(core: Core) -> None:
    """It holds its provider's lock no longer than it works. A call whose claim a crash takes back is made twice."""
    core.enqueue(QUOTE, "AAPL", "IBM")
    alone = autocommitting(core.engine)
    with alone.connect() as connection:
        connection.execute(text("SET synchronous_commit = on"))
        assert task_queue.claim(connection, TWELVEDATA, "w", 1, None)
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        for _ in range(20):
            core.rows("DELETE FROM pricing.warnings")
            written = connection.execute(text("SELECT pg_current_wal_insert_lsn()")).scalar_one()
            connection.execute(text("SELECT pricing.await_disk()"))
            is_there = text("SELECT pg_current_wal_flush_lsn() >= CAST(:written AS pg_lsn)")
            assert connection.execute(is_there, {"written": written}).scalar_one()
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'the disk is away'; END $$"
    )
    core.enqueue(QUOTE, "META")
    with alone.connect() as connection, pytest.raises(DBAPIError, match="the disk is away"):
        task_queue.claim(connection, TWELVEDATA, "w", 1, None)
    assert core.task("META").status == "processing", "its lease brings it back"


def test_a6_a_call_is_in_the_log_before_it_is_made(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM", "META")
    with core.engine.begin() as connection:
        (call,) = task_queue.claim(connection, TWELVEDATA, "drain 7", 1, "run 5")
    (logged,) = core.rows(
        "SELECT call_id, provider, data_type, symbols, outcome, finished_at, units, reserved_bytes, run_id, worker,"
        " started_at FROM pricing.collector_call_log"
    )
    assert (logged.call_id, logged.provider, logged.data_type) == (call.id, TWELVEDATA, QUOTE)
    assert logged.symbols == call.symbols
    assert (logged.outcome, logged.finished_at, logged.units, logged.reserved_bytes) == (
        "open",
        None,
        3,
        1800,
    )
    assert (logged.run_id, logged.worker, logged.started_at) == ("run 5", "drain 7", call.claimed_at)
