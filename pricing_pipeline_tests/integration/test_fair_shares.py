"""A recipient that hangs or fails holds up its own messages alone, however many wait for it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock

SLOTS = 8
MANY = 10_000


def add(core: Core, *names: str) -> None:
    for name in names:
        core.rows(
            "INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES (:name, 'log', pricing.clock())",
            name=name,
        )


def send(core: Core, name: str, number: int = 1, *, is_urgent: bool = False) -> None:
    core.rows(
        "SELECT pricing.enqueue_message(:name, 'A title', 'A body', :is_urgent) FROM generate_series(1, :number)",
        name=name,
        number=number,
        is_urgent=is_urgent,
    )


def claim(core: Core, most: int = 64) -> list[Operation]:
    with core.engine.begin() as connection:
        return operation_queue.claim(connection, ["log"], most, "here")


def fail(core: Core, operations: list[Operation], message: str = "it gave no answer") -> None:
    with core.engine.begin() as connection:
        for operation in operations:
            operation_queue.fail(connection, operation, message)


def names(operations: list[Operation]) -> list[str]:
    return [operation.payload["recipient"] for operation in operations]


def test_e7_recipients_take_turns_however_long_their_lines_are(core: Core) -> None:
    add(core, "ann", "bob")
    send(core, "mailbox", 30)
    send(core, "ann", 3)
    send(core, "bob", 1)
    assert sorted(names(claim(core, 6))) == ["ann", "ann", "bob", "mailbox", "mailbox", "mailbox"]


def test_e7_a_claim_costs_the_same_however_many_wait_for_one(core: Core) -> None:
    add(core, "ann")
    core.rows(
        "INSERT INTO pricing.async_operations_live (operation_type, payload, status, due_at, max_attempts, enqueued_at)"
        """ SELECT 'log', '{"recipient": "mailbox", "title": "t", "body": "b"}', 'pending', pricing.clock(), 3,"""
        " pricing.clock() FROM generate_series(1, :number)",
        number=MANY,
    )
    core.rows("ANALYZE pricing.async_operations_live")
    send(core, "ann")
    with core.engine.begin() as connection:
        before = rows_read(connection)
        claimed = operation_queue.claim(connection, ["log"], 64, "here")
        read = rows_read(connection) - before
    assert sorted(names(claimed)) == ["ann", *["mailbox"] * SLOTS]
    assert read < 500, "it looks at the head of each line alone"


def test_e7_three_failures_open_the_breaker_of_a_recipient_and_one_success_closes_it(
    core: Core, cli: CommandLine, clock: Clock
) -> None:
    clock.stop()
    add(core, "ann")
    send(core, "ann", 20)
    fail(core, claim(core)[:1])
    assert claim(core) == [], "seven attempts are under way, and who has failed gets one at a time"
    clock.advance(301)
    with core.engine.begin() as connection:
        operation_queue.recover(connection)
    for _ in range(2):
        (probe,) = claim(core)
        fail(core, [probe])
    for seconds in (60, 120, 240, 480, 960, 960):
        send(core, "mailbox")
        assert names(claim(core)) == ["mailbox"]
        said = cli("status").stdout
        assert "warning:     ann has not been reached by log since" in said
        assert "it gave no answer" in said
        clock.advance(seconds - 1)
        assert claim(core) == []
        clock.advance(1)
        (probe,) = claim(core)
        fail(core, [probe])
    send(core, "ann", is_urgent=True)
    (urgent,) = claim(core)
    with core.engine.begin() as connection:
        operation_queue.complete(connection, urgent.claim_token, {urgent.id: None})
    assert "has not been reached" not in cli("status").stdout
    assert names(claim(core)) == ["ann"] * SLOTS


def test_e7_what_a_person_changes_or_retries_is_tried_at_once(core: Core, cli: CommandLine) -> None:
    add(core, "ann")
    send(core, "ann", 4)
    claimed = claim(core)
    fail(core, claimed[:3])
    with core.engine.begin() as connection:
        operation_queue.fail(connection, claimed[3], "gone", is_permanent=True)
    send(core, "ann")
    assert claim(core) == []
    cli("operation", "retry", "--all-failed")
    assert len(claim(core)) == 1
    fail(core, claim(core))
    cli("recipient", "change", "ann", "--severity", "P2")
    assert core.rows("SELECT FROM pricing.failing_recipients") == []


def test_e7_messages_to_a_channel_that_is_inactive_wait_and_are_counted(core: Core, cli: CommandLine) -> None:
    core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'log'")
    send(core, "mailbox", 2)
    assert claim(core) == []
    assert "the channel log is inactive, and 2 messages to mailbox wait" in cli("status").stdout
    cli("operation-type", "change", "log", "--active")
    assert len(claim(core)) == 2


@pytest.mark.parametrize("table", ["failing_recipients", "recipients"])
def test_e7_a_row_that_a_person_has_locked_holds_up_no_claim_and_no_note(core: Core, table: str) -> None:
    add(core, "ann")
    send(core, "ann", 3)
    claimed = claim(core)
    fail(core, claimed[:1])
    with core.owner.begin() as person:
        person.execute(text(f"SELECT FROM pricing.{table} FOR UPDATE"))
        fail(core, claimed[1:2])
        send(core, "mailbox")
        assert names(claim(core)) == ["mailbox"]
        with core.engine.begin() as connection:
            done = operation_queue.complete(connection, claimed[2].claim_token, {claimed[2].id: None})
        assert done == [claimed[2].id]


def test_e7_quiet_hours_that_leave_less_time_than_an_attempt_may_take_let_messages_through(
    core: Core, clock: Clock
) -> None:
    """An attempt that might end within the next quiet hours was never begun, and its message never sent."""
    clock.set(datetime(2026, 6, 10, 7, 58, 30, tzinfo=UTC))
    clock.stop()
    core.rows("UPDATE pricing.operation_types SET time_limit_seconds = 240 WHERE operation_type = 'log'")
    add(core, "ann")
    core.rows("UPDATE pricing.recipients SET quiet_from = '08:00', quiet_until = '07:59' WHERE recipient = 'ann'")
    send(core, "ann")
    assert claim(core) == []
    clock.advance(60)
    assert names(claim(core)) == ["ann"]


def test_e7_somebody_whose_channel_is_inactive_does_not_count_as_one_who_can_be_told(core: Core) -> None:
    """The only recipient of an active channel was dead, and the last resort was not told."""
    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields, is_active) VALUES"
        """ ('pager', '{"recipient": "string", "title": "string", "body": "string"}', true),"""
        """ ('horn', '{"recipient": "string", "title": "string", "body": "string"}', false)"""
    )
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at)"
        " VALUES ('ops', 'pager', pricing.clock()), ('bob', 'horn', pricing.clock())"
    )
    send(core, "ops")
    with core.engine.begin() as connection:
        (operation,) = operation_queue.claim(connection, ["pager"], 1, "here")
        operation_queue.fail(connection, operation, "gone", is_permanent=True)
        (alert,) = connection.execute(query("alerts.nobody_told")).all()
    assert "messages to ops by pager have failed" in alert.says
