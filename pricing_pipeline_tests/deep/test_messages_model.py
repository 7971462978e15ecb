"""Messages against a plain model: none is lost, no live notifier sends one twice, and only P0 disturbs quiet hours.

Two processes send, each with the real runner, whose attempts end as the machine says. Both may crash or be stopped at
each step, lose the database before or after a commit, and come back after any time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from sqlalchemy import Engine

from pricing_pipeline.errors import DatabaseError, OperationFailed
from pricing_pipeline.operations import alerts, operation_queue, recipients, runner
from pricing_pipeline.operations.alert_rules import RULES
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

LIMIT, LEASE, ATTEMPTS = timedelta(seconds=240), timedelta(minutes=5), 3
SLOTS = 8
BEFORE_DST = (
    datetime(2026, 3, 28, 20, tzinfo=UTC),
    datetime(2026, 10, 24, 20, tzinfo=UTC),
    datetime(2026, 10, 31, 20, tzinfo=UTC),
)
"""An evening in Berlin before its clocks are set in spring, one in autumn, and one before New York's are."""
HOURS = {
    "ann": ("Europe/Berlin", time(22), time(7)),
    "bob": ("America/New_York", time(23, 30), time(1, 30)),
    "cat": ("Europe/Berlin", time(1), time(2, 30)),
}
NAMES = (*HOURS, "dan", "eve")


@dataclass
class Attempt:
    """What a process does now."""

    process: Process
    operation: Operation
    begun_at: datetime
    future: Future[str | None] = field(default_factory=Future)


class Process:
    """A notifier: the real runner, with attempts that wait until somebody says how they end."""

    def __init__(self, engine: Engine, begin: Callable[[Process, Operation], Future[str | None]]) -> None:
        self.runner = runner.OperationRunner(engine, {"page": lambda operation: None}, worker="here")
        self.begin = begin
        self.runner._pool = self  # type: ignore[assignment]
        self.is_alive = True

    def submit(self, _: object, __: object, operation: Operation) -> Future[str | None]:
        return self.begin(self, operation)

    def go_on(self) -> None:
        """What it does each second."""
        self.runner._recovered_at = -1e9
        with suppress(DatabaseError):  # it tries again a second later
            self.runner._go_on()


@dataclass
class Sent:
    """What the model knows of a message."""

    to: str
    priority: int
    arrivals: list[tuple[Process, datetime]] = field(default_factory=list)
    is_cancelled: bool = False
    is_refused: bool = False


class Database:
    """What lies between a process and its database: it may be away before or after a commit."""

    transact = staticmethod(runner.transact)
    fault: str | None = None

    def __call__(self, engine: Engine, work: Callable[[Any], Any]) -> Any:
        if self.fault == "before":
            raise DatabaseError("away")
        answer = self.transact(engine, work)
        if self.fault == "after":
            raise DatabaseError("away")
        return answer


class Machine(RuleBasedStateMachine):
    """People and prices cause messages, processes send them, and time passes."""

    core: Core
    clock: Clock
    database: Database

    def __init__(self) -> None:
        super().__init__()
        for table in (
            "async_operations",
            "failing_recipients",
            "alerts",
            "alert_silences",
            "dagster_failures",
        ):
            self.core.rows(f"DELETE FROM pricing.{table}")
        self.core.rows("UPDATE pricing.operation_types SET is_active = true")
        self.database.fault = None
        self.hours = {name: HOURS.get(name) for name in NAMES}
        self.hours_changed_at = dict.fromkeys(NAMES, datetime.min.replace(tzinfo=UTC))
        self.known: dict[int, Sent] = {}
        self.attempts: list[Attempt] = []
        self.processes = [self.new_process() for _ in range(2)]
        self.is_channel_active = True
        self.jobs: dict[str, datetime | None] = {}
        """Jobs that fail, and when people were last told."""
        self.silenced: dict[str, datetime] = {}
        self.now = BEFORE_DST[0]

    @initialize(begins_at=st.sampled_from(BEFORE_DST))
    def it_is_an_evening(self, begins_at: datetime) -> None:
        self.now = begins_at
        self.clock.set(begins_at)
        for name in NAMES:
            self.set_hours(name)

    def set_hours(self, name: str) -> None:
        zone, begins, ends = self.hours[name] or ("UTC", None, None)
        with self.core.owner.begin() as connection:
            before = recipients.find(connection, name)
            recipients.change(connection, replace(before, quiet_from=begins, quiet_until=ends, time_zone=zone))

    def new_process(self) -> Process:
        return Process(self.core.engine, self.begins)

    def begins(self, process: Process, operation: Operation) -> Future[str | None]:
        about = self.known[operation.id]
        assert not any(by is process for by, _ in about.arrivals), "this process knows that it has sent it"
        assert self.is_channel_active
        if about.priority > 0:
            assert not self.is_quiet(about.to, self.now), "an attempt begins in quiet hours"
        attempt = Attempt(process, operation, self.now)
        self.attempts.append(attempt)
        return attempt.future

    def is_quiet(self, name: str, at: datetime) -> bool:
        hours = self.hours[name]
        if hours is None:
            return False
        zone, begins, ends = hours
        wall = at.astimezone(ZoneInfo(zone)).time()
        return begins <= wall < ends if begins < ends else wall >= begins or wall < ends

    # What causes messages.

    @rule(
        to=st.sampled_from(NAMES),
        kind=st.sampled_from([2, 2, 1, 0]),
        number=st.sampled_from([1, 1, 1, 20]),
        is_kept=st.booleans(),
    )
    def a_transaction_sends(self, to: str, kind: int, number: int, is_kept: bool) -> None:
        with self.core.engine.connect() as connection, connection.begin() as transaction:
            ids = [
                recipients.send(connection, to, "t", "b", is_urgent=kind == 0, goes_first=kind == 1)
                for _ in range(number)
            ]
            if not is_kept:
                transaction.rollback()
                return
        self.known |= {id_: Sent(to, kind) for id_ in ids}

    @rule(job=st.sampled_from(["a", "b"]))
    def a_job_fails(self, job: str) -> None:
        if job not in self.jobs:
            self.core.rows(
                "INSERT INTO pricing.dagster_failures (kind, name, run_id, reason, failed_at)"
                " VALUES ('run', :job, :job, 'odd', pricing.clock())",
                job=job,
            )
            self.jobs[job] = None

    @rule(job=st.sampled_from(["a", "b"]), hours=st.sampled_from([1, 12]))
    def somebody_silences(self, job: str, hours: int) -> None:
        with self.core.engine.begin() as connection:
            until = alerts.silence(connection, "run_fails", job, hours * 3600, "ann", None)
        self.silenced[job] = max(until, self.silenced.get(job, until))

    @rule()
    def somebody_looks_for_trouble(self) -> None:
        last = max(self.known, default=0)
        alerts.look(self.core.engine, [each for each in RULES if each.name == "run_fails"])
        told = {
            job
            for job, told_at in self.jobs.items()
            if self.silenced.get(job, self.now) <= self.now
            and (told_at is None or told_at <= self.now - timedelta(days=1))
        }
        rows = self.core.rows(
            "SELECT id, recipient, payload ->> 'body' AS body FROM pricing.async_operations"
            " WHERE id > :last AND operation_type = 'page'",
            last=last,
        )
        new = [row for row in rows if row.id not in self.known]
        if not self.is_channel_active:  # while no channel is active, alerts wait
            told = set()
        assert Counter(row.recipient for row in new) == Counter(NAMES if told else ())
        for row in new:
            assert {job for job in ("a", "b") if f" of {job} failed" in row.body} == told
        self.known |= {row.id: Sent(row.recipient, 1) for row in new}
        self.jobs |= dict.fromkeys(told, self.now)

    # What processes and receivers do.

    @rule(which=st.integers(0, 1), times=st.integers(1, 3))
    def a_process_goes_on(self, which: int, times: int) -> None:
        process = self.processes[which]
        for _ in range(times):
            process.go_on()
        self.nobody_waits_for_another(process)

    def nobody_waits_for_another(self, process: Process) -> None:
        if self.database.fault or not self.is_channel_active:
            return
        rows = self.core.rows(
            "SELECT o.recipient, o.priority, o.status, count(*) AS number, min(o.due_at) <= pricing.clock() AS is_due,"
            " coalesce(f.breaker_until > pricing.clock(), false) AS must_wait FROM pricing.async_operations_live o"
            " LEFT JOIN pricing.failing_recipients f USING (operation_type, recipient)"
            " WHERE o.operation_type = 'page' GROUP BY 1, 2, 3, 6"
        )
        for name in NAMES:
            of_name = [row for row in rows if row.recipient == name]
            for priority in (0, 2):
                waits = any(row.status == "pending" and row.is_due and row.priority <= priority for row in of_name)
                goes = sum(row.number for row in of_name if row.status == "processing" and row.priority <= priority)
                must_wait = priority > 0 and (
                    self.is_quiet(name, self.now)
                    or self.is_quiet(name, self.now + LIMIT)
                    or any(row.must_wait for row in of_name)
                )
                if waits and not must_wait:
                    assert goes, f"{name} waits, and has no attempt under way"
                assert goes <= 2 * SLOTS * (1 if priority == 0 else 2), f"{name} has too much of the process"

    @precondition(lambda self: self.attempts)
    @rule(
        data=st.data(),
        how=st.sampled_from(["arrives", "arrives", "fails", "refused"]),
        number=st.integers(1, 9),
    )
    def attempts_end(self, data: st.DataObject, how: str, number: int) -> None:
        name = data.draw(st.sampled_from(sorted({self.known[a.operation.id].to for a in self.attempts})))
        for attempt in [a for a in self.attempts if self.known[a.operation.id].to == name][:number]:
            self.end(attempt, how)

    def end(self, attempt: Attempt, how: str) -> None:
        self.attempts.remove(attempt)
        about = self.known[attempt.operation.id]
        if how == "arrives":
            self.arrives(attempt, about)
            attempt.future.set_result(None)
        else:
            about.is_refused |= how == "refused"
            attempt.future.set_exception(OperationFailed("odd", is_permanent=how == "refused"))

    def arrives(self, attempt: Attempt, about: Sent) -> None:
        if about.priority > 0 and self.hours_changed_at[about.to] <= attempt.begun_at:
            assert not self.is_quiet(about.to, self.now), "it arrives in quiet hours"
        for process, claimed_at in about.arrivals:
            assert process is not attempt.process
            assert not process.is_alive or claimed_at + LEASE <= attempt.begun_at, "somebody had it in hand"
        about.arrivals.append((attempt.process, attempt.begun_at))

    @precondition(lambda self: self.database.fault is None)
    @rule(which=st.integers(0, 1), way=st.sampled_from(["killed", "stopped"]), data=st.data())
    def a_process_ends(self, which: int, way: str, data: st.DataObject) -> None:
        process = self.processes[which]
        for attempt in [a for a in self.attempts if a.process is process]:
            # What was under way may have arrived all the same.
            if data.draw(st.booleans()):
                self.arrives(attempt, self.known[attempt.operation.id])
            self.attempts.remove(attempt)
        if way == "stopped":
            process.runner._note_ended(patience=0)
            process.runner._return_unfinished()
        process.is_alive = False
        self.processes[which] = self.new_process()

    @rule(fault=st.sampled_from([None, None, "before", "after"]))
    def the_database_goes_or_comes(self, fault: str | None) -> None:
        self.database.fault = fault

    @rule(which=st.integers(0, 1), to=st.sampled_from(NAMES), is_taken_back=st.booleans())
    def an_outage_outlasts_a_lease(self, which: int, to: str, is_taken_back: bool) -> None:
        """What a process has sent meanwhile, it notes before it or another takes anything back."""
        process = self.processes[which]
        self.a_transaction_sends(to, 0, 1, is_kept=True)
        process.go_on()
        for attempt in [a for a in self.attempts if a.process is process]:
            if self.known[attempt.operation.id].priority == 0:
                self.end(attempt, "arrives")
        self.time_passes(301)
        if is_taken_back:
            with self.core.engine.begin() as connection:
                operation_queue.recover(connection)
        for _ in range(2):
            process.go_on()

    # What people do.

    @rule(
        name=st.sampled_from(NAMES),
        begins=st.integers(0, 23),
        length=st.integers(1, 12),
        is_quiet=st.booleans(),
    )
    def somebody_changes_hours(self, name: str, begins: int, length: int, is_quiet: bool) -> None:
        zone = (self.hours[name] or ("Europe/Berlin",))[0]
        self.hours[name] = (zone, time(begins), time((begins + length) % 24)) if is_quiet else None
        self.hours_changed_at[name] = self.now + timedelta(microseconds=1)
        self.set_hours(name)

    @rule(is_active=st.booleans())
    def somebody_turns_the_channel(self, is_active: bool) -> None:
        self.is_channel_active = is_active
        self.core.rows(
            "UPDATE pricing.operation_types SET is_active = :is_active WHERE operation_type = 'page'",
            is_active=is_active,
        )

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def somebody_cancels(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.known)))
        with self.core.engine.begin() as connection:
            (outcome,) = operation_queue.cancel(connection, [id_])
        self.known[id_].is_cancelled |= outcome.is_changed

    @rule(seconds=st.sampled_from([1, 59, 241, 300, 601, 3600, 5 * 3600]))
    def time_passes(self, seconds: int) -> None:
        then = self.now + timedelta(seconds=seconds)
        for attempt in [a for a in self.attempts if a.begun_at + LIMIT < then]:
            self.end(attempt, "fails")  # no attempt takes longer than its time limit
        self.now = then
        self.clock.advance(seconds)

    @rule(name=st.sampled_from(NAMES), seconds=st.sampled_from([-239, -59, 0]), is_sent=st.booleans())
    def quiet_hours_are_near(self, name: str, seconds: int, is_sent: bool) -> None:
        """Just before the quiet hours begin, when an attempt might end within them, or when they begin or end."""
        minutes = 1
        while minutes < 1440 and self.is_quiet(name, self.now) == self.is_quiet(
            name, self.now + timedelta(minutes=minutes)
        ):
            minutes += 1
        edge = (self.now + timedelta(minutes=minutes)).replace(second=0, microsecond=0)
        if edge + timedelta(seconds=seconds) <= self.now:
            return
        self.time_passes(int((edge - self.now).total_seconds()) + seconds)
        if is_sent:
            self.a_transaction_sends(name, 2, 1, is_kept=True)
            self.a_process_goes_on(0, 1)
            self.time_passes(59)
            for attempt in [a for a in self.attempts if self.known[a.operation.id].to == name]:
                self.end(attempt, "arrives")

    @invariant()
    def each_message_is_somewhere(self) -> None:
        rows = self.core.rows("SELECT id, status, attempt FROM pricing.async_operations WHERE operation_type = 'page'")
        attempts = {row.id: row.attempt for row in rows}
        states = {row.id: row.status for row in rows}
        assert len(rows) == len(states), "one message is in two places"
        assert states.keys() == self.known.keys(), "none is lost, and none comes from nowhere"
        for id_, about in self.known.items():
            if states[id_] == "completed":
                assert about.arrivals, "what counts as sent has arrived"
            if states[id_] == "failed":
                assert about.is_refused or attempts[id_] == ATTEMPTS, "it was given up before its last attempt"
            assert (states[id_] == "cancelled") == about.is_cancelled

    def teardown(self) -> None:
        """When all works again, everything arrives."""
        self.database.fault = None
        self.somebody_turns_the_channel(is_active=True)
        for _ in range(400):
            for process in self.processes:
                process.go_on()
                for attempt in [a for a in self.attempts if a.process is process]:
                    self.end(attempt, "arrives")
                process.go_on()
            live = self.core.rows(
                "SELECT min(due_at) AS due_at FROM pricing.async_operations_live WHERE operation_type = 'page'"
            )
            if live[0].due_at is None:
                break
            self.time_passes(601)
        self.each_message_is_somewhere()
        left = self.core.rows("SELECT count(*) AS number FROM pricing.async_operations_live")
        assert left[0].number == 0, "something waits for ever"


def test_e3_e7_e8_messages_arrive_as_a_plain_model_says(
    core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.stop()
    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts, time_limit_seconds)"
        " VALUES ('page', :fields, :attempts, :limit)",
        fields=json.dumps({"recipient": "string", "title": "string", "body": "string"}),
        attempts=ATTEMPTS,
        limit=LIMIT.seconds,
    )
    core.rows("DELETE FROM pricing.recipients")
    for name in NAMES:
        core.rows(
            "INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES (:name, 'page', pricing.clock())",
            name=name,
        )
    database = Database()
    monkeypatch.setattr(runner, "transact", database)

    class OnThisDatabase(Machine):
        pass

    OnThisDatabase.core, OnThisDatabase.clock, OnThisDatabase.database = core, clock, database
    run_machine(OnThisDatabase, examples(60), steps=50)
