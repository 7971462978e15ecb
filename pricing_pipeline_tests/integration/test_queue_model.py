"""The queue against a model in plain dictionaries, in every order that Hypothesis can think of (FAULTS 21)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fix_core import DAILY, QUOTE, TWELVEDATA, sample_template

template = sample_template

CADENCES = {QUOTE: 1, DAILY: 1440}
SYMBOLS = ("AAPL", "FB", "IBM")
PRIORITIES = (-1, 1, 2)
BATCH = 2
START = datetime(2026, 3, 10, 12, tzinfo=UTC)
PERMANENT, TRANSIENT, SNOOZED = "unknown_symbol", "provider_down", "throttled"
PAUSES = (5, 30, 120)

Pair = tuple[str, str]


@dataclass
class Expected:
    """A task as the model has it."""

    pair: Pair
    priority: int
    enqueued_at: datetime
    status: str = "pending"
    attempt: int = 0
    token: UUID | None = None
    lease_until: datetime | None = None
    run_after: datetime | None = None
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """What a worker remembers of a claim, for ever."""

    ids: tuple[int, ...]
    token: UUID


class QueueMachine(RuleBasedStateMachine):
    """One queue of two data types and three symbols, in one session, on a clock that only `advance` moves."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.connection.execute(
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand,"
            " pricing.active_subscriptions, pricing.holdings"
        )
        self.connection.execute("UPDATE pricing.provider_state SET claims = 0")
        self.now = START
        self.tasks: dict[int, Expected] = {}
        self.claims: list[Claim] = []
        self.settled: set[int] = set()
        self._set_clock()

    @initialize(priority=st.sampled_from(PRIORITIES))
    def begin_with_work(self, priority: int) -> None:
        self.enqueue(QUOTE, list(SYMBOLS), priority)

    # What happens

    @rule(
        data_type=st.sampled_from([QUOTE, DAILY]),
        symbols=st.lists(st.sampled_from(SYMBOLS), min_size=1),
        priority=st.sampled_from(PRIORITIES),
    )
    def enqueue(self, data_type: str, symbols: list[str], priority: int) -> None:
        self.advance(0.001)  # what is new is told by its time
        added = self._one(
            "SELECT pricing.enqueue(%s, %s, %s)", [data_type, symbols, [priority] * len(symbols)]
        )
        new = 0
        live = {
            task.pair: task
            for task in self.tasks.values()
            if task.status in ("pending", "processing", "scheduled")
        }
        for symbol in set(symbols):
            if (known := live.get((data_type, symbol))) is not None:
                known.priority = max(known.priority, priority)
            else:
                new += 1
        assert added == new
        for row in self._rows("SELECT id, data_type, symbol FROM pricing.api_call_queue_live ORDER BY id"):
            if row.id not in self.tasks:
                self.tasks[row.id] = Expected((row.data_type, row.symbol), priority, self.now)

    @rule(max_calls=st.integers(1, 3))
    def claim(self, max_calls: int) -> None:
        expected = self._expected_claim(max_calls)
        rows = self._rows(
            "SELECT id, call_id, claim_token FROM pricing.claim_calls(%s, 'w', %s, interval '60 s')",
            [TWELVEDATA, max_calls],
        )
        calls: dict[int, set[int]] = {}
        for row in rows:
            calls.setdefault(row.call_id, set()).add(row.id)
        assert sorted(map(sorted, calls.values())) == sorted(map(sorted, expected))
        for row in rows:
            task = self.tasks[row.id]
            task.status, task.attempt, task.token = "processing", task.attempt + 1, row.claim_token
            task.lease_until = self.now + timedelta(seconds=60)
        tokens = {row.claim_token for row in rows}
        assert len(tokens) == min(len(rows), 1)
        assert not tokens & {claim.token for claim in self.claims}, "a token is fresh with every claim"
        for ids in calls.values():
            self.claims.append(Claim(tuple(sorted(ids)), rows[0].claim_token))

    @rule(seconds=st.sampled_from([1, 6, 37, 61, 145, 4000, 90_000]))
    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self._set_clock()

    @rule()
    def promote(self) -> None:
        ripe = [
            task for task in self.tasks.values() if task.run_after is not None and task.run_after <= self.now
        ]
        assert self._one("SELECT pricing.promote_tasks()") == len(ripe)
        for task in ripe:
            task.status, task.run_after = "pending", None

    @rule()
    def recover(self) -> None:
        stuck = [
            task
            for task in self.tasks.values()
            if task.lease_until is not None and task.lease_until < self.now
        ]
        assert self._one("SELECT pricing.recover_tasks()") == len(stuck)
        for task in stuck:
            self._lose(task, "worker_lost", "pending" if task.attempt < 4 else "failed")

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        claim = self._any_claim(data)
        held = self._held(claim)
        assert set(self._one("SELECT pricing.complete_tasks(%s, %s)", [list(claim.ids), claim.token])) == set(
            held
        )
        for task in held.values():
            task.status, task.token, task.lease_until = "completed", None, None

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), kind=st.sampled_from([PERMANENT, TRANSIENT, SNOOZED]))
    def fail(self, data: st.DataObject, kind: str) -> None:
        claim = self._any_claim(data)
        held = self._held(claim)
        returned = self._one(
            "SELECT pricing.fail_tasks(%s, %s, %s, 'why', %s, interval '40 s')",
            [list(claim.ids), claim.token, kind, kind == PERMANENT],
        )
        assert set(returned) == set(held)
        for number, task in held.items():
            pause = 40 if kind == SNOOZED else PAUSES[min(task.attempt, 3) - 1]
            if kind == SNOOZED and self.now - task.enqueued_at < timedelta(hours=24):
                self._lose(task, kind, "scheduled")
                task.attempt -= 1
            elif kind == TRANSIENT and task.attempt < 4:
                self._lose(task, kind, "scheduled")
            else:
                self._lose(task, kind, "failed")
                continue
            (row,) = self._rows("SELECT run_after FROM pricing.api_call_queue_live WHERE id = %s", [number])
            assert pause <= (row.run_after - self.now).total_seconds() <= pause * 1.2
            task.run_after = row.run_after

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = self._any_claim(data)
        held = self._held(claim)
        assert self._one("SELECT pricing.release_tasks(%s, %s)", [list(claim.ids), claim.token]) == len(held)
        for task in held.values():
            self._lose(task, "worker_stopped", "pending")
            task.attempt -= 1

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        claim = self._any_claim(data)
        held = self._held(claim)
        returned = self._one("SELECT pricing.extend_tasks(%s, %s)", [list(claim.ids), claim.token])
        assert set(returned) == set(held)
        for task in held.values():
            task.lease_until = self.now + timedelta(seconds=60)

    # What must hold

    @invariant()
    def the_queue_is_as_the_model_has_it(self) -> None:
        rows = self._rows(
            "SELECT id, data_type, symbol, status, priority, attempt, claim_token, lease_until, run_after,"
            " jsonb_path_query_array(errors, '$[*].kind') AS kinds, tableoid::regclass::text AS leaf"
            " FROM pricing.api_call_queue ORDER BY id"
        )
        assert [row.id for row in rows] == sorted(self.tasks), "a task is lost or doubled"
        for row in rows:
            task = self.tasks[row.id]
            assert (row.data_type, row.symbol) == task.pair
            assert (row.status, row.priority, row.attempt) == (task.status, task.priority, task.attempt)
            assert row.kinds == task.errors
            is_live = task.status in ("pending", "processing", "scheduled")
            assert row.leaf.endswith("_live") is is_live
            if is_live:
                assert (row.claim_token, row.lease_until, row.run_after) == (
                    task.token,
                    task.lease_until,
                    task.run_after,
                )

    @invariant()
    def no_symbol_is_in_work_twice(self) -> None:
        busy = [task.pair[1] for task in self.tasks.values() if task.status == "processing"]
        assert len(busy) == len(set(busy))

    # The model's own reckoning

    def _expected_claim(self, max_calls: int) -> list[list[int]]:
        """Pending tasks in claim order, one for each idle symbol, seated in calls of one data type."""
        busy = {task.pair[1] for task in self.tasks.values() if task.status == "processing"}
        order = sorted(
            (-task.priority, CADENCES[task.pair[0]], number)
            for number, task in self.tasks.items()
            if task.status == "pending" and task.pair[1] not in busy
        )
        calls: list[tuple[str, list[int]]] = []
        taken: set[str] = set()
        for *_, number in order[: max_calls * BATCH]:
            kind, symbol = self.tasks[number].pair
            if symbol in taken:
                continue
            taken.add(symbol)
            seat = next((seats for of, seats in calls if of == kind and len(seats) < BATCH), None)
            if seat is None:
                calls.append((kind, seat := []))
            seat.append(number)
        return [seats for _, seats in calls[:max_calls]]

    def _held(self, claim: Claim) -> dict[int, Expected]:
        return {number: self.tasks[number] for number in claim.ids if self.tasks[number].token == claim.token}

    def _lose(self, task: Expected, kind: str, status: str) -> None:
        task.status, task.token, task.lease_until = status, None, None
        task.errors.append(kind)

    def _any_claim(self, data: st.DataObject) -> Claim:
        """Some claim, the newest or one long lost."""
        return data.draw(st.sampled_from(self.claims[-3:] + self.claims[:2]))

    # The database

    def _set_clock(self) -> None:
        self.connection.execute("UPDATE pricing.frozen_clock SET at = %s", [self.now])

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(sql, parameters).fetchall()

    def _one(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        ((value,),) = self._rows(sql, parameters)
        return value


@pytest.fixture
def frozen(owner_url: str) -> Iterator[Connection[Any]]:
    """A session of a database whose clock stands still, and whose claims nothing limits."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE pricing.frozen_clock AS SELECT clock_timestamp() AS at")
        connection.execute(
            "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'"
        )
        connection.execute("UPDATE pricing.provider_limits SET units = 1000000")
        connection.execute(
            "UPDATE pricing.provider_capabilities SET batch_size = %s, window_batch_size = 1", [BATCH]
        )
        yield connection


def test_b11_the_queue_behaves_like_its_model(frozen: Connection[Any]) -> None:
    class Machine(QueueMachine):
        connection = frozen

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
