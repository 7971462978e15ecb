"""Side effects that are done: by real threads, beside crashes, and each at least once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline.errors import OperationFailed, OperationRefused
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import Handler, OperationRunner
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until


@pytest.fixture
def post(core: Core) -> str:
    """An operation type with one field. A busy machine has as long as it needs."""
    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts, time_limit_seconds)"
        """ VALUES ('post', '{"to": "string", "at": "url?", "count": "number?"}', 3, 240)"""
    )
    return "post"


def enqueue(core: Core, *receivers: str) -> list[int]:
    with core.engine.begin() as connection:
        return [operation_queue.enqueue(connection, "post", {"to": to}) for to in receivers]


def states(core: Core) -> dict[int, str]:
    return {row.id: row.status for row in core.rows("SELECT id, status FROM pricing.async_operations")}


def runner(core: Core, handler: Handler) -> OperationRunner:
    return OperationRunner(core.engine, {"post": handler}, worker="here")


def test_e1_what_is_rolled_back_never_happens_and_all_else_does(core: Core, post: str) -> None:
    """Operations from eight sessions at once; a third of their transactions is rolled back."""
    transactions = 500 if is_thorough() else 30
    happened: Counter[str] = Counter()
    lock = threading.Lock()

    def handler(operation: Operation) -> None:
        with lock:
            happened[operation.payload["to"]] += 1

    def cause(number: int) -> list[str]:
        names = [f"{number}-{part}" for part in range(5)]
        with core.engine.connect() as connection, connection.begin() as transaction:
            for name in names:
                operation_queue.enqueue(connection, post, {"to": name})
            if number % 3 == 0:
                transaction.rollback()
                return []
        return names

    runners = [runner(core, handler) for _ in range(2)]
    stop = threading.Event()
    threads = [threading.Thread(target=each.run, args=(stop,), kwargs={"every_seconds": 0.01}) for each in runners]
    for thread in threads:
        thread.start()
    with ThreadPoolExecutor(8) as sessions:
        committed = [name for names in sessions.map(cause, range(transactions)) for name in names]
    wait_until(lambda: len(happened) >= len(committed))
    wait_until(lambda: set(states(core).values()) == {"completed"})
    stop.set()
    for thread, each in zip(threads, runners, strict=True):
        thread.join()
        each.close()
    assert happened == Counter(committed), "each once, and nothing that was rolled back"
    assert len(committed) == 5 * (transactions - len(range(0, transactions, 3)))


def test_e3_e6_a_failed_attempt_is_repeated_later_with_the_same_key(core: Core, post: str, clock: Clock) -> None:
    clock.stop()
    keys = []

    def handler(operation: Operation) -> object:
        keys.append(operation.idempotency_key)
        if len(keys) < 3:
            raise OperationFailed("it answered 500") if len(keys) == 1 else ValueError("odd")
        return {"status": 200}

    (only,) = enqueue(core, "ann")
    with_pauses = runner(core, handler)
    assert with_pauses.run_due() == 1
    for minutes in (5, 10):
        clock.advance(minutes * 60 - 1)
        assert with_pauses.run_due() == 0
        clock.advance(1)
        assert with_pauses.run_due() == 1
    with_pauses.close()
    assert len(set(keys)) == 1
    (row,) = core.rows("SELECT status, attempt, errors, result FROM pricing.async_operations")
    assert (row.status, row.attempt, row.result) == ("completed", 3, {"status": 200})
    assert [(error["attempt"], error["message"]) for error in row.errors] == [
        (1, "it answered 500"),
        (2, "its handler failed: ValueError('odd')"),
    ]
    assert states(core) == {only: "completed"}


def test_e4_what_failed_for_good_is_retried_by_hand(core: Core, post: str) -> None:
    def refuses(operation: Operation) -> None:
        raise OperationFailed("it answered 410: the receiver is gone", is_permanent=True)

    (only,) = enqueue(core, "ann")
    first = runner(core, refuses)
    assert first.run_due() == 1
    first.close()
    assert states(core) == {only: "failed"}
    with core.engine.begin() as connection:
        outcomes = operation_queue.retry(connection, [only, only + 1])
        assert [outcome.outcome for outcome in outcomes] == ["retried", "unknown"]
    second = runner(core, lambda operation: operation.attempt)
    assert second.run_due() == 1
    second.close()
    assert core.one("SELECT result FROM pricing.async_operations") == 1, "all attempts are restored"


def test_e7_a_worker_that_dies_leaves_nothing_undone(core: Core, post: str, clock: Clock) -> None:
    ids = enqueue(core, "ann", "bob")
    with core.engine.begin() as connection:
        (lost, _) = operation_queue.claim(connection, ["post"], 10, "dies")
    again = runner(core, lambda operation: None)
    clock.advance(299)
    assert again.run_due() == 0
    clock.advance(1)
    assert again.run_due() == 2
    again.close()
    assert states(core) == dict.fromkeys(ids, "completed")
    with core.engine.begin() as connection:
        assert operation_queue.complete(connection, lost.claim_token, {lost.id: None}) == []


@pytest.mark.parametrize("meanwhile", ["nothing", "taken_back", "claimed_by_another"])
def test_e7_after_an_outage_longer_than_a_lease_a_process_repeats_nothing_that_it_has_done(
    core: Core, post: str, clock: Clock, meanwhile: str
) -> None:
    clock.stop()
    happened: list[int] = []
    ids = enqueue(core, "ann", "bob")
    working = runner(core, lambda operation: happened.append(operation.id))
    working._begin()
    wait_until(lambda: len(happened) == 2)
    clock.advance(301)  # while it cannot note how they ended
    if meanwhile != "nothing":
        with core.engine.begin() as connection:
            assert operation_queue.recover(connection) == 2
    if meanwhile == "claimed_by_another":
        with core.engine.begin() as connection:
            for other in operation_queue.claim(connection, ["post"], 10, "another"):
                operation_queue.fail(connection, other, "it dies")
    for _ in range(3):
        working._recovered_at = -1e9
        working._go_on()
        wait_until(lambda: all(future.done() for future in working._under_way))
        clock.advance(601)
    working.close()
    assert sorted(happened) == ids
    assert states(core) == dict.fromkeys(ids, "completed")


def test_e7_an_operation_that_a_person_has_locked_is_passed_over_by_claims(
    core: Core, post: str, database_url: str
) -> None:
    ids = enqueue(core, "ann", "bob", "eve")
    with psycopg.connect(database_url) as person:
        person.execute("SELECT FROM pricing.async_operations_live WHERE id = %s FOR UPDATE", [ids[0]])
        with core.engine.begin() as connection:
            connection.execute(text("SET LOCAL statement_timeout = '5s'"))  # instead of waiting for ever
            claimed = operation_queue.claim(connection, ["post"], 10, "here")
    assert [operation.id for operation in claimed] == ids[1:]


def test_e3_whatever_a_handler_brings_or_says_is_kept(core: Core, post: str) -> None:
    """The database takes neither NUL nor halves of characters; JSON takes no set."""

    def handler(operation: Operation) -> object:
        match operation.payload["to"]:
            case "nul":
                return {"answer": "a\0b\\u0000\ud800"}
            case "set":
                return {1, 2}
            case _:
                raise OperationFailed("no\0 \udfff")

    nul, odd, failed = enqueue(core, "nul", "set", "fails")
    working = runner(core, handler)
    assert working.run_due() == 3
    working.close()
    rows = {row.id: row for row in core.rows("SELECT id, status, result, errors FROM pricing.async_operations")}
    assert rows[nul].status == "completed"
    assert rows[nul].result["answer"] == "a\ufffdb\\u0000?"
    assert (rows[odd].status, rows[failed].status) == ("pending", "pending")
    assert "TypeError" in rows[odd].errors[0]["message"]
    assert rows[failed].errors[0]["message"] == "no\ufffd ?"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_e7_a_handler_that_forks_or_ends_all_it_can_stops_no_other(core: Core, post: str) -> None:
    class Odd(BaseException):
        def __repr__(self) -> str:
            raise SystemExit

    children: list[int] = []

    def handler(operation: Operation) -> object:
        match operation.payload["to"]:
            case "forks":
                if child := os.fork():
                    children.append(child)
                return "from the child" if not child else "from the parent"
            case "odd":
                raise Odd
            case "interrupts":
                raise KeyboardInterrupt
        return None

    ids = enqueue(core, "forks", "odd", "interrupts", "ann")
    working = runner(core, handler)
    assert working.run_due() == 4
    working.close()
    assert [states(core)[id_] for id_ in ids] == ["completed", "pending", "pending", "completed"]
    assert core.one("SELECT result FROM pricing.async_operations WHERE id = :id", id=ids[0]) == "from the parent"
    wait_until(lambda: os.waitpid(children[0], os.WNOHANG)[0])


def test_e4_the_end_of_a_cancelled_operation_is_refused(core: Core, post: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def handler(operation: Operation) -> None:
        begun.set()
        go_on.wait(PATIENCE)

    core.rows("UPDATE pricing.operation_types SET time_limit_seconds = 30")
    (only,) = enqueue(core, "ann")
    working = runner(core, handler)
    thread = threading.Thread(target=working.run_due)
    thread.start()
    assert begun.wait(PATIENCE)
    with core.engine.begin() as connection:
        (outcome,) = operation_queue.cancel(connection, [only])
        assert outcome.outcome == "cancelled_under_way"
    go_on.set()
    thread.join()
    working.close()
    assert states(core) == {only: "cancelled"}


def test_e2_bad_input_is_refused_in_the_callers_transaction(core: Core, post: str) -> None:
    for kind, payload, sentence in (
        ("fax", {}, "no operation is called fax"),
        ("post", {}, "to is missing"),
        ("post", {"to": None}, "to is missing"),
        ("post", {"to": 1}, "to is not a string"),
        ("post", {"to": "x", "of": 1}, "of is not known; it has at, count, to"),
        ("post", {"to": "x", "at": "ftp://x"}, "at is not a url"),
        ("post", {"to": "x", "at": "https://ann@x/"}, "at is not a url"),
        ("post", {"to": "x", "count": "many"}, "count is not a number"),
    ):
        with pytest.raises(OperationRefused, match=sentence), core.engine.begin() as connection:
            operation_queue.enqueue(connection, kind, payload)
        assert states(core) == {}


def test_e2_what_may_be_left_out_may(core: Core, post: str) -> None:
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, post, {"to": "x", "at": "https://x.example/y?z=1", "count": 2.5})
        operation_queue.enqueue(connection, post, {"to": "x", "at": None})
    assert len(states(core)) == 2


def test_e5_the_view_counts_by_type_and_status(core: Core, post: str) -> None:
    enqueue(core, "ann", "bob")
    one_of_two = OperationRunner(core.engine, {"post": lambda operation: None}, worker="here")
    one_of_two.run_due()
    one_of_two.close()
    enqueue(core, "eve")
    rows = core.rows("SELECT status, operations, average_attempts FROM pricing.operation_status ORDER BY 1")
    assert [tuple(row) for row in rows] == [("completed", 2, 1), ("pending", 1, 0)]


def test_e1_work_without_a_handler_here_waits_for_one(core: Core, post: str) -> None:
    enqueue(core, "ann")
    other = OperationRunner(core.engine, {"mail": lambda operation: None}, worker="here")
    assert other.run_due() == 0
    other.close()
    assert list(states(core).values()) == ["pending"]
