"""Operations beside a handler that hangs and a row that a person has locked."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg

from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_operations import enqueue, post, runner, states
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

__all__ = ["post"]


def test_e7_a_handler_that_hangs_holds_nobody_up(core: Core, post: str) -> None:
    release, happened = threading.Event(), []

    def hang(operation: Operation) -> None:
        release.wait(PATIENCE)
        happened.append(operation.payload["to"])

    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts, time_limit_seconds)"
        """ VALUES ('hang', '{"to": "string"}', 3, 1)"""
    )
    with core.engine.begin() as connection:
        hanging = operation_queue.enqueue(connection, "hang", {"to": "eve"})
    others = enqueue(core, "ann", "bob")
    handlers = {"hang": hang, "post": lambda operation: happened.append(operation.payload["to"])}
    hung = OperationRunner(core.engine, handlers, worker="here")
    assert hung.run_due() == 3
    assert states(core) == {hanging: "pending"} | dict.fromkeys(others, "completed")
    (row,) = core.rows("SELECT errors, due_at - pricing.clock() AS pause FROM pricing.async_operations_live")
    assert row.errors[0]["message"] == "it took longer than its time limit of 1 s"
    assert row.pause > timedelta(minutes=4)
    release.set()
    hung.close()
    assert states(core)[hanging] == "pending", "that it happened after all is known to the receiver, by the key"


def test_e7_a_row_that_a_person_has_locked_holds_no_other_operation_up(
    core: Core, post: str, database_url: str
) -> None:
    begun, go_on = threading.Barrier(4), threading.Event()

    def handler(operation: Operation) -> None:
        begun.wait(PATIENCE)
        go_on.wait(PATIENCE)

    ids = enqueue(core, "ann", "bob", "eve")
    working = runner(core, handler)
    stop = threading.Event()
    thread = threading.Thread(target=working.run, args=(stop,), kwargs={"every_seconds": 0.05})
    thread.start()
    begun.wait(PATIENCE)
    with psycopg.connect(database_url) as person:
        person.execute("SELECT FROM pricing.async_operations_live WHERE id = %s FOR UPDATE", [ids[1]])
        go_on.set()
        wait_until(lambda: list(states(core).values()).count("completed") == 2)
        assert states(core)[ids[1]] == "processing"
    wait_until(lambda: set(states(core).values()) == {"completed"})
    stop.set()
    thread.join()
    working.close()
