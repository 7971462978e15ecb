"""The queue of side effects against a plain model: what was committed happens, and nothing is lost or ended twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from sqlalchemy import Connection

from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

TYPES = {"post": 5, "mail": 3}
"""Operation types and their attempts."""
LEASE, FIRST_PAUSE = timedelta(minutes=5), timedelta(minutes=5)


@dataclass
class Expected:
    """What the model knows of one operation."""

    operation_type: str
    due_at: datetime
    status: str = "pending"
    attempt: int = 0
    errors: int = 0
    claim: Operation | None = None
    lost_at: datetime | None = None


class OperationsMachine(RuleBasedStateMachine):
    """Callers that commit or roll back, workers that end their claims well, badly, late or never, and people."""

    core: Core
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.core.rows("TRUNCATE pricing.async_operations")
        self.now = self.core.clock()
        self.known: dict[int, Expected] = {}
        self.late: list[Operation] = []
        """Claims that were lost, whose worker may still come back."""
        self.keys: dict[int, object] = {}

    def run(self, work: Callable[[Connection], object]) -> object:
        with self.core.engine.begin() as connection:
            return work(connection)

    @rule(kind=st.sampled_from(sorted(TYPES)), in_minutes=st.sampled_from([0, 0, 3]), is_kept=st.booleans())
    def something_happens(self, kind: str, in_minutes: int, is_kept: bool) -> None:
        due_at = self.now + timedelta(minutes=in_minutes)
        with self.core.engine.connect() as connection, connection.begin() as transaction:
            new_id = operation_queue.enqueue(connection, kind, {"to": "x"}, due_at if in_minutes else None)
            if not is_kept:
                transaction.rollback()
        if is_kept:
            assert new_id not in self.known
            self.known[new_id] = Expected(kind, due_at)

    @rule(types=st.sets(st.sampled_from(sorted(TYPES)), min_size=1), most=st.integers(1, 3))
    def a_worker_claims(self, types: set[str], most: int) -> None:
        claimed = self.run(lambda connection: operation_queue.claim(connection, types, most, "worker"))
        assert isinstance(claimed, list)
        due = sorted(
            (about.due_at, id_)
            for id_, about in self.known.items()
            if about.status == "pending" and about.due_at <= self.now and about.operation_type in types
        )
        assert [operation.id for operation in claimed] == [id_ for _, id_ in due[:most]]
        for operation in claimed:
            about = self.known[operation.id]
            assert self.keys.setdefault(operation.id, operation.idempotency_key) == operation.idempotency_key
            about.status, about.claim, about.lost_at = "processing", operation, self.now + LEASE
            about.attempt += 1
            assert (operation.attempt, operation.max_attempts) == (about.attempt, TYPES[about.operation_type])

    def under_way(self) -> list[int]:
        return [id_ for id_, about in self.known.items() if about.status == "processing"]

    @precondition(lambda self: self.under_way())
    @rule(data=st.data())
    def it_happens(self, data: st.DataObject) -> None:
        about = self.known[data.draw(st.sampled_from(self.under_way()))]
        claim = about.claim
        assert claim is not None
        done = self.run(lambda connection: operation_queue.complete(connection, claim.claim_token, {claim.id: None}))
        assert done == [claim.id]
        about.status = "completed"
        self.late.append(claim)

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), is_permanent=st.booleans(), retry_after=st.sampled_from([None, 1.0, 3600.0]))
    def it_fails(self, data: st.DataObject, is_permanent: bool, retry_after: float | None) -> None:
        about = self.known[data.draw(st.sampled_from(self.under_way()))]
        self.fail(about, is_permanent=is_permanent, retry_after=retry_after)

    @rule(kind=st.sampled_from(sorted(TYPES)), do_workers_die=st.booleans())
    def one_is_tried_to_its_end(self, kind: str, do_workers_die: bool) -> None:
        self.something_happens(kind, 0, is_kept=True)
        about = self.known[max(self.known)]
        while about.status == "pending":
            self.time_passes(int((about.due_at - self.now).total_seconds()))
            self.a_worker_claims({kind}, len(self.known))
            if do_workers_die:
                self.time_passes(int(LEASE.total_seconds()))
                self.what_is_stuck_is_taken_back()
            else:
                self.fail(about)
        assert (about.status, about.attempt) == ("failed", TYPES[kind])

    def fail(self, about: Expected, *, is_permanent: bool = False, retry_after: float | None = None) -> None:
        claim = about.claim
        assert claim is not None
        status = self.run(
            lambda connection: operation_queue.fail(
                connection, claim, "no", is_permanent=is_permanent, retry_after=retry_after
            )
        )
        about.errors += 1
        if is_permanent or about.attempt == TYPES[about.operation_type]:
            about.status = "failed"
        else:
            pause = max(FIRST_PAUSE * 2 ** (about.attempt - 1), timedelta(seconds=retry_after or 0))
            about.status, about.due_at = "pending", self.now + pause
        assert status == about.status
        self.late.append(claim)

    @precondition(lambda self: self.late)
    @rule(data=st.data(), is_done=st.booleans())
    def a_lost_claim_comes_back(self, data: st.DataObject, is_done: bool) -> None:
        self.come_back(data.draw(st.sampled_from(self.late)), is_done=is_done)

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), is_done=st.booleans())
    def another_worker_has_it_when_the_first_comes_back(self, data: st.DataObject, is_done: bool) -> None:
        about = self.known[data.draw(st.sampled_from(self.under_way()))]
        first = about.claim
        assert first is not None
        self.time_passes(int(LEASE.total_seconds()))
        self.what_is_stuck_is_taken_back()
        self.a_worker_claims({about.operation_type}, len(self.known))
        self.come_back(first, is_done=is_done)

    def come_back(self, claim: Operation, *, is_done: bool) -> None:
        if is_done:
            ended = self.run(
                lambda connection: operation_queue.complete(connection, claim.claim_token, {claim.id: None})
            )
            assert ended == []
        else:
            assert self.run(lambda connection: operation_queue.fail(connection, claim, "late")) is None

    @rule(seconds=st.sampled_from([1, 299, 300, 601, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.now += timedelta(seconds=seconds)

    @rule()
    def what_is_stuck_is_taken_back(self) -> None:
        stuck = [about for about in self.known.values() if about.status == "processing" and about.lost_at <= self.now]
        assert self.run(operation_queue.recover) == len(stuck)
        for about in stuck:
            assert about.claim is not None
            self.late.append(about.claim)
            about.errors += 1
            about.status, about.due_at = (
                ("failed", about.due_at) if about.attempt == TYPES[about.operation_type] else ("pending", self.now)
            )

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def somebody_cancels(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.known)))
        about = self.known[id_]
        is_live = about.status in ("pending", "processing")
        (outcome,) = self.run(lambda connection: operation_queue.cancel(connection, [id_]))
        assert outcome.is_changed == is_live
        if is_live:
            if about.status == "processing" and about.claim is not None:
                self.late.append(about.claim)
            about.status = "cancelled"
            about.errors += 1

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def somebody_retries(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.known)))
        about = self.known[id_]
        is_dead = about.status in ("failed", "cancelled")
        (outcome,) = self.run(lambda connection: operation_queue.retry(connection, [id_]))
        assert outcome.is_changed == is_dead
        if is_dead:
            about.status, about.attempt, about.due_at = "pending", 0, self.now

    @invariant()
    def the_table_is_as_the_model(self) -> None:
        rows = self.core.rows(
            "SELECT id, status, attempt, jsonb_array_length(errors) AS errors,"
            " coalesce((errors #>> '{1,left_out}')::integer - 1, 0) AS left_out, due_at FROM pricing.async_operations"
        )
        assert {row.id: (row.status, row.attempt, row.errors + row.left_out) for row in rows} == {
            id_: (about.status, about.attempt, about.errors) for id_, about in self.known.items()
        }
        waiting = {row.id: row.due_at for row in rows if row.status == "pending"}
        assert waiting == {id_: about.due_at for id_, about in self.known.items() if about.status == "pending"}


def test_e1_e3_e7_side_effects_are_as_a_plain_model_says(core: Core, clock: Clock) -> None:
    clock.stop()
    for kind, attempts in TYPES.items():
        core.rows(
            "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts)"
            """ VALUES (:kind, '{"to": "string"}', :attempts)""",
            kind=kind,
            attempts=attempts,
        )

    class Machine(OperationsMachine):
        pass

    Machine.core, Machine.clock = core, clock
    run_machine(Machine, examples(60), steps=40)
