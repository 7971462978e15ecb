"""Messages to recipients: queued with the caller's change, kept back in quiet hours, shown and retried by people."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import OperationRefused
from pricing_pipeline.operations import operation_queue, recipients
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.clock_steps import HOUR, tick

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")


def add(core: Core, name: str, **columns: object) -> None:
    """A recipient of the channel `log`."""
    columns = {"recipient": name, "channel": "log", **columns}
    names = ", ".join(columns)
    values = ", ".join(f":{column}" for column in columns)
    core.rows(f"INSERT INTO pricing.recipients ({names}, created_at) VALUES ({values}, pricing.clock())", **columns)


def send(core: Core, name: str, *, is_urgent: bool = False) -> int:
    with core.engine.begin() as connection:
        return recipients.send(connection, name, "A title", "A body", is_urgent=is_urgent)


def run_due(core: Core, tmp_path: Path) -> int:
    runner = OperationRunner(core.engine, make_handlers(core.engine, Settings(home=tmp_path)), worker="here")
    try:
        return runner.run_due()
    finally:
        runner.close()


@contextmanager
def notifier(core: Core, home: Path) -> Iterator[None]:
    """A worker that does side effects meanwhile."""
    stop = threading.Event()
    runner = OperationRunner(core.engine, make_handlers(core.engine, Settings(home=home)), worker="here")
    thread = threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05})
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        runner.close()


def test_e1_a_message_is_kept_and_rolled_back_with_the_callers_change(core: Core, tmp_path: Path) -> None:
    with core.engine.connect() as connection:
        recipients.send(connection, "mailbox", "Never", "Rolled back")
        connection.rollback()
    send(core, "mailbox")
    assert run_due(core, tmp_path) == 1
    (row,) = core.rows("SELECT status, result FROM pricing.async_operations")
    assert (row.status, row.result) == (
        "completed",
        {"to": "mailbox", "title": "A title", "body": "A body"},
    )


def test_e8_a_message_to_nobody_is_refused_in_the_callers_transaction(core: Core) -> None:
    add(core, "away", is_active=False)
    for name in ("nobody", "away"):
        with pytest.raises(OperationRefused, match=f"no active recipient is called {name}. There are: mailbox"):
            send(core, name)
    assert core.rows("SELECT FROM pricing.async_operations") == []


def test_e8_a_recipient_who_is_removed_gets_nothing_and_the_message_is_dead(core: Core, tmp_path: Path) -> None:
    add(core, "ann", channel="log")
    core.rows("UPDATE pricing.operation_types SET max_attempts = 5 WHERE operation_type = 'chat'")
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "chat", {"recipient": "bob", "title": "t", "body": "b"})
    assert run_due(core, tmp_path) == 1
    (row,) = core.rows("SELECT status, errors FROM pricing.async_operations")
    assert row.status == "failed", "trying again cannot help"
    assert row.errors[-1]["message"] == "no recipient is called 'bob'. There are: ann, mailbox."


def test_e8_messages_that_wait_for_quiet_hours_follow_a_change_of_them(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 2, 23, tzinfo=UTC))
    clock.stop()
    add(core, "ann", quiet_from=time(22), quiet_until=time(7))
    add(core, "bob", quiet_from=time(22), quiet_until=time(7))
    waits = send(core, "ann")
    send(core, "bob")

    def claimed() -> list[int]:
        with core.engine.begin() as connection:
            return [operation.id for operation in operation_queue.claim(connection, ["log"], 8, "here")]

    def change(**settings: time | None) -> None:
        with core.owner.begin() as connection:
            recipients.change(connection, replace(recipients.find(connection, "ann"), **settings))

    assert claimed() == []
    change(quiet_from=time(23, 1))
    assert claimed() == [waits]


@pytest.mark.parametrize("way", ["retry", "lease", "stopped", "late"])
def test_e8_whatever_makes_a_message_wait_it_does_not_arrive_in_quiet_hours(core: Core, clock: Clock, way: str) -> None:
    """A retry, an attempt whose worker died or stopped, and a notifier that was down when the hours began."""
    clock.set(datetime(2026, 3, 2, 21, 50, tzinfo=UTC))
    clock.stop()
    add(core, "ann", quiet_from=time(22), quiet_until=time(7))
    waits = send(core, "ann")

    def claim() -> list[Operation]:
        with core.engine.begin() as connection:
            operation_queue.recover(connection)
            return operation_queue.claim(connection, ["log"], 8, "here")

    if way != "late":
        (first,) = claim()
        clock.advance(600)
        with core.engine.begin() as connection:
            if way == "retry":
                operation_queue.fail(connection, first, "odd")
            elif way == "stopped":
                operation_queue.return_(connection, first.claim_token, [first.id])
    for minutes in (15, 60, 7 * 60):
        clock.advance(minutes * 60)
        assert claim() == [], clock.now()
    clock.set(datetime(2026, 3, 3, 7, tzinfo=UTC))
    assert [operation.id for operation in claim()] == [waits]


def test_e8_an_attempt_does_not_begin_if_it_might_end_in_quiet_hours(core: Core, clock: Clock) -> None:
    clock.set(datetime(2026, 3, 2, 21, 59, 29, tzinfo=UTC))
    clock.stop()
    add(core, "ann", quiet_from=time(22), quiet_until=time(7))
    for seconds, claimed in ((0, 1), (2, 0)):
        clock.advance(seconds)
        send(core, "ann")
        with core.engine.begin() as connection:
            assert len(operation_queue.claim(connection, ["log"], 8, "here")) == claimed


def is_quiet(at: datetime, begins: time, ends: time, zone: str) -> bool:
    """The plain rule: whether the clock on the wall is within the span, which may pass midnight."""
    local = at.astimezone(ZoneInfo(zone)).time()
    return begins <= local < ends if begins < ends else local >= begins or local < ends


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    at=st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
    begins=st.times().map(lambda t: t.replace(second=0, microsecond=0)),
    length=st.integers(1, 24 * 60 - 1),
    zone=st.sampled_from(ZONES),
)
def test_e8_quiet_hours_end_when_the_clock_on_the_wall_says(
    core: Core, at: datetime, begins: time, length: int, zone: str
) -> None:
    ends = (datetime.combine(at.date(), begins) + timedelta(minutes=length)).time()
    with core.engine.connect() as connection:
        quiet_end = connection.execute(
            text("SELECT pricing.quiet_end(jsonb_populate_record(NULL::pricing.recipients, CAST(:who AS jsonb)), :at)"),
            {
                "who": json.dumps({"quiet_from": str(begins), "quiet_until": str(ends), "time_zone": zone}),
                "at": at,
            },
        ).scalar_one_or_none()
    assert (quiet_end is not None) == is_quiet(at, begins, ends, zone)
    if quiet_end is not None:
        assert at < quiet_end <= at + timedelta(hours=26)
        wall = quiet_end.astimezone(ZoneInfo(zone))
        # In spring an hour is left out: a time within it is the same time an hour later.
        assert wall.time() == ends or wall - timedelta(hours=1) == datetime.combine(wall.date(), ends, wall.tzinfo)


def test_e8_in_quiet_hours_only_what_is_urgent_is_sent(core: Core, clock: Clock, tmp_path: Path) -> None:
    clock.stop()
    now = core.one("SELECT pricing.clock() AT TIME ZONE 'UTC'")
    begins, ends = (now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()
    add(core, "ann", quiet_from=begins, quiet_until=ends)
    waits, urgent = send(core, "ann"), send(core, "ann", is_urgent=True)
    assert run_due(core, tmp_path) == 1
    states = {row.id: row.status for row in core.rows("SELECT id, status FROM pricing.async_operations")}
    assert states == {waits: "pending", urgent: "completed"}
    clock.advance(HOUR)
    assert run_due(core, tmp_path) == 1


def test_e8_an_unknown_zone_is_refused_when_it_is_written(core: Core, cli: CommandLine) -> None:
    assert (
        cli("recipient", "add", "ann", "log", "--quiet", "22:00-07:00", "--quiet-zone", "Mars/Base").error
        == 'time zone "Mars/Base" not recognized.'
    )
    assert core.rows("SELECT FROM pricing.recipients WHERE recipient = 'ann'") == []


def test_e8_a_span_that_is_none_is_refused(cli: CommandLine, core: Core) -> None:
    for quiet in ("22:00", "7-9", "25:00-07:00", "07:00-07:00"):
        said = cli("recipient", "add", "ann", "log", "--quiet", quiet)
        assert "is not a span of a day. Write it like 22:00-07:00" in said.error


def test_e8_a_recipient_is_added_shown_changed_and_removed(cli: CommandLine, core: Core) -> None:
    cli("recipient", "add", "ann", "log", "--severity", "P2", "--quiet", "22:00-07:00")
    assert "already" in cli("recipient", "add", "ann", "log").error
    shown = cli("recipient", "show", "ann").stdout
    assert "22:00 to 07:00 UTC" in shown
    assert "notified of:" in shown
    changed = cli("recipient", "change", "ann", "--quiet", "none", "--severity", "P0", "--json").json
    assert changed["before"]["quiet"] == "22:00 to 07:00 UTC"
    assert changed["after"] == {
        "severity": "P0",
        "quiet": None,
        "quiet_zone": "UTC",
        "allows_private": False,
        "is_active": True,
    }
    names = [row["recipient"] for row in cli("recipient", "list", "--json").json["recipients"]]
    assert names == ["ann", "mailbox"]
    cli("recipient", "remove", "ann")
    assert "no recipient is called 'ann'. There are: mailbox." in cli("recipient", "show", "ann").error
    assert "no recipient is called 'ann'" in cli("recipient", "remove", "ann").error
    assert "give at least one option to change" in cli("recipient", "change", "mailbox").error


def test_e8_a_test_message_says_how_it_ended(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    assert "no recipient is called 'bob'" in cli("notify", "test", "bob").error
    with notifier(core, tmp_path):
        assert cli("notify", "test", "mailbox").stdout == "The message to mailbox was sent.\n"
    (message,) = cli("notify", "log", "--json").json["messages"]
    assert (message["recipient"], message["title"]) == ("mailbox", "Test of the pricing pipeline")
    assert "Test of the pricing pipeline" in cli("notify", "log", "--wide").stdout


def test_e4_e5_a_person_sees_retries_and_cancels_side_effects(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    with core.engine.begin() as connection:
        dead = operation_queue.enqueue(connection, "chat", {"recipient": "bob", "title": "t", "body": "b"})
    run_due(core, tmp_path)
    waits = send(core, "mailbox")
    listed = {row["id"]: row["status"] for row in cli("operation", "list", "--json").json["operations"]}
    assert listed == {waits: "pending", dead: "failed"}
    assert list(listed) == [waits, dead], "what waits comes first"
    assert "no recipient is called 'bob'" in cli("operation", "list", "--status", "failed", "--wide").stdout
    shown = cli("operation", "show", str(dead)).stdout
    assert "attempt 1: no recipient is called 'bob'" in shown
    assert "attempts:" in shown
    assert cli("operation", "cancel", str(waits), "999").exit_code == 1
    assert core.one("SELECT status FROM pricing.async_operations WHERE id = :id", id=waits) == "cancelled"
    outcomes = cli("operation", "retry", "--all-failed", "--json").json["operations"]
    assert outcomes == [{"id": dead, "outcome": "pending again, with all its attempts"}]
    counts = cli("operation", "status", "--json").json
    assert [(row["operation_type"], row["status"], row["operations"]) for row in counts["operations"]] == [
        ("chat", "pending", 1),
        ("log", "cancelled", 1),
    ]
    assert (counts["done_today"], counts["failed_today"]) == (0, 0)
    assert "there is no operation 999." in cli("operation", "show", "999").error


def test_b8_pruning_forgets_side_effects(core: Core, clock: Clock, tmp_path: Path) -> None:
    send(core, "mailbox")
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "chat", {"recipient": "bob", "title": "t", "body": "b"})
    run_due(core, tmp_path)
    left = "SELECT count(*) FROM pricing.async_operations"
    for days, count in ((13, 2), (2, 1), (74, 1), (2, 0)):
        clock.advance(days * 24 * HOUR)
        core.call("SELECT pricing.prune()")
        assert core.one(left) == count, days


@pytest.mark.usefixtures("still")
def test_b15_a_message_waits_no_longer_when_the_clock_is_set_back(core: Core, clock: Clock, tmp_path: Path) -> None:
    tick(core)
    with core.engine.begin() as connection:
        operation_queue.enqueue(
            connection,
            "chat",
            {"recipient": "bob", "title": "t", "body": "b"},
            clock.now() + timedelta(minutes=30),
        )
    clock.advance(-24 * HOUR)
    tick(core)
    assert core.one("SELECT due_at - pricing.clock() FROM pricing.async_operations_live") <= timedelta(minutes=31)


def test_e8_what_is_urgent_is_claimed_before_what_waits_longer(core: Core) -> None:
    waits, urgent = send(core, "mailbox"), send(core, "mailbox", is_urgent=True)
    with core.engine.begin() as connection:
        claimed = operation_queue.claim(connection, ["log"], 4, "here")
    assert [operation.id for operation in claimed] == [urgent, waits]


def test_e8_what_waits_for_a_removed_recipient_is_cancelled(core: Core, cli: CommandLine) -> None:
    add(core, "ann")
    first = send(core, "ann")
    cli("recipient", "remove", "ann")
    add(core, "ann")
    second = send(core, "ann")
    states = {row.id: row.status for row in core.rows("SELECT id, status FROM pricing.async_operations")}
    assert states == {first: "cancelled", second: "pending"}, "another one may have got the name"


def test_e8_what_failed_for_a_removed_recipient_is_not_sent_to_the_next_of_that_name(
    core: Core, cli: CommandLine
) -> None:
    add(core, "ann")
    lost = send(core, "ann")
    with core.engine.begin() as connection:
        (claimed,) = operation_queue.claim(connection, ["log"], 1, "here")
        operation_queue.fail(connection, claimed, "gone", is_permanent=True)
    cli("recipient", "remove", "ann")
    add(core, "ann")
    cli("operation", "retry", "--all-failed")
    assert core.one("SELECT status FROM pricing.async_operations WHERE id = :id", id=lost) == "cancelled"


def test_e8_a_message_by_another_channel_than_the_recipients_is_dead(core: Core, tmp_path: Path) -> None:
    with core.engine.begin() as connection:
        for channel in ("webhook", "email"):
            operation_queue.enqueue(connection, channel, {"recipient": "mailbox", "title": "t", "body": "b"})
    run_due(core, tmp_path)
    rows = core.rows("SELECT status, errors FROM pricing.async_operations ORDER BY id")
    assert [row.status for row in rows] == ["failed", "failed"]
    assert rows[0].errors[-1]["message"] == "mailbox is told by log, not by webhook"


def test_e2_a_time_that_never_comes_is_refused(core: Core) -> None:
    for due_at in ("infinity", "294000-01-01", "2100-01-01"):
        with pytest.raises(DBAPIError, match="an operation is due within a year"):
            core.call(
                'SELECT pricing.enqueue_operation(\'log\', \'{"recipient": "mailbox", "title": "t", "body": "b"}\','
                " CAST(:due_at AS timestamptz))",
                due_at=due_at,
            )


def test_e2_no_message_is_too_long_to_be_shown(core: Core, cli: CommandLine, tmp_path: Path) -> None:
    with core.engine.begin() as connection:
        recipients.send(connection, "mailbox", "t" * 10**6, "b" * 10**6)
    run_due(core, tmp_path)
    (message,) = cli("notify", "log", "--json").json["messages"]
    assert (len(message["title"]), len(message["body"])) == (200, 20_000)
    with pytest.raises(OperationRefused, match="longer than 64 kB"), core.engine.begin() as connection:
        operation_queue.enqueue(connection, "log", {"recipient": "mailbox", "title": "t", "body": "b" * 10**6})


def test_e4_what_waits_says_why(cli: CommandLine, core: Core, clock: Clock) -> None:
    """Each cause by its name, in the list and alone; what is done or dead waits for nothing."""
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    clock.stop()
    add(core, "ann")
    message = send(core, "ann")

    def waits() -> str:
        listed = {row["id"]: row["waits"] for row in cli("operation", "list", "--json").json["operations"]}
        shown = cli("operation", "show", str(message), "--json").json["waits"]
        assert listed[message] == shown
        assert shown.split(" ")[0] in cli("operation", "show", str(message)).stdout
        return str(shown)

    assert "the pipeline runs; to check:" in waits()
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    assert waits() == "it waits for its turn, as number 1 in the queue"
    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields)"
        " VALUES ('sheet_row', '{\"symbol\": \"string\"}')"
    )
    with core.engine.begin() as connection:
        own = operation_queue.enqueue(connection, "sheet_row", {"symbol": "AAPL"})
    clock.advance(61)
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    assert "Does one have a handler for sheet_row?" in cli("operation", "show", str(own), "--json").json["waits"]
    core.rows("DELETE FROM pricing.async_operations WHERE id = :own", own=own)
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    clock.stop()
    core.rows("UPDATE pricing.async_operations SET due_at = pricing.clock() + interval '1 hour', attempt = 1")
    assert waits() == "it is tried again at 2026-03-10 13:00:00 UTC"
    core.rows("UPDATE pricing.async_operations SET due_at = pricing.clock(), attempt = 0")
    core.rows("UPDATE pricing.recipients SET quiet_from = '11:00', quiet_until = '14:30' WHERE recipient = 'ann'")
    assert waits() == "ann has quiet hours until 2026-03-10 14:30:00 UTC"
    for _ in range(3):
        core.rows("SELECT pricing.note_failing('log', 'ann', 'no answer.', false, true, NULL)")
    assert waits() == (
        "the breaker of ann is open until 2026-03-10 12:01:00 UTC, because 3 attempts in a row have failed (no answer)"
    )
    core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'log'")
    assert waits().startswith("the operation type log is switched off.")
    assert "breaker" not in cli("operation", "list", "--wide").stdout
    cli("operation", "cancel", str(message))
    assert cli("operation", "show", str(message), "--json").json["waits"] is None
