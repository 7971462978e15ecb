"""The queue against a model in plain dictionaries, in every order that Hypothesis can think of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, TWELVEDATA
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

CADENCES = {QUOTE: 1, DAILY: 1440}
SYMBOLS = ("AAPL", "META", "IBM")
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
    finished_at: datetime | None = None
    resolved_at: datetime | None = None

    def note(self, kind: str) -> None:
        """The history keeps the first entry and the last ten, and says that others are left out."""
        if len(self.errors) >= 12:
            self.errors = [self.errors[0], "left_out", *self.errors[3:]]
        self.errors.append(kind)

    @property
    def is_live(self) -> bool:
        return self.status in ("pending", "processing", "scheduled")

    @property
    def is_dead(self) -> bool:
        return self.status in ("failed", "cancelled")


@dataclass
class Wanted:
    """A row of demand as the model has it. `due_at` None is never: a task for it is live."""

    due_at: datetime | None = START
    failures: int = 0
    backoff_until: datetime | None = None

    def rest(self, until: datetime) -> None:
        self.due_at = self.backoff_until = until

    def forget(self, due_at: datetime | None) -> None:
        self.due_at, self.failures, self.backoff_until = due_at, 0, None


@dataclass(frozen=True)
class Claim:
    """What a worker remembers of a claim, for ever."""

    ids: tuple[int, ...]
    token: UUID


class QueueMachine(RuleBasedStateMachine):
    """One queue of two data types and three symbols, in one session, on a clock that only `advance` moves."""

    connection: Connection[Any]
    batch_from: int

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
        self.demand = {(kind, symbol): Wanted() for kind in CADENCES for symbol in SYMBOLS}
        for kind, symbol in self.demand:
            self.connection.execute(
                "INSERT INTO pricing.demand (data_type, symbol, due_at) VALUES (%s, %s, %s)",
                [kind, symbol, START],
            )
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
        added = self._one("SELECT pricing.enqueue(%s, %s, %s)", [data_type, symbols, [priority] * len(symbols)])
        new = 0
        live = {task.pair: task for task in self.tasks.values() if task.is_live}
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
            "SELECT unnest(ids) AS id, call_id, claim_token FROM pricing.claim_calls(%s, 'w', %s, lease => '60 s')",
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
        ripe = [task for task in self.tasks.values() if task.run_after is not None and task.run_after <= self.now]
        assert self._one("SELECT pricing.promote_tasks()") == len(ripe)
        for task in ripe:
            task.status, task.run_after = "pending", None

    @rule()
    def recover(self) -> None:
        stuck = [task for task in self.tasks.values() if task.lease_until is not None and task.lease_until < self.now]
        assert self._one("SELECT pricing.recover_tasks()") == len(stuck)
        for task in stuck:
            self._lose(task, "worker_lost", "pending" if task.attempt < 4 else "failed")

    @rule(max_calls=st.integers(1, 3))
    def take_over(self, max_calls: int) -> None:
        """A worker is lost and another has its tasks: the state in which a late verb could do harm."""
        self.claim(max_calls)
        self.advance(61)
        self.recover()
        self.claim(max_calls)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        claim = self._any_claim(data)
        owned = self._owned(claim)
        assert set(self._one("SELECT pricing.complete_tasks(%s, %s)", [list(claim.ids), claim.token])) == set(owned)
        for task in owned.values():
            task.status, task.token, task.lease_until, task.finished_at = "completed", None, None, self.now
            self.demand[task.pair].forget(self.now + timedelta(minutes=CADENCES[task.pair[0]]))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), kind=st.sampled_from([PERMANENT, TRANSIENT, SNOOZED]))
    def fail(self, data: st.DataObject, kind: str) -> None:
        claim = self._any_claim(data)
        owned = self._owned(claim)
        returned = self._one(
            "SELECT pricing.fail_tasks(%s, %s, %s, 'why', %s, interval '40 s')",
            [list(claim.ids), claim.token, kind, kind == PERMANENT],
        )
        assert set(returned) == set(owned)
        for number, task in owned.items():
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
        owned = self._owned(claim)
        assert self._one("SELECT pricing.return_tasks(%s, %s)", [list(claim.ids), claim.token]) == len(owned)
        for task in owned.values():
            self._lose(task, "worker_stopped", "pending")
            task.attempt -= 1

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        claim = self._any_claim(data)
        owned = self._owned(claim)
        returned = self._one("SELECT pricing.extend_tasks(%s, %s)", [list(claim.ids), claim.token])
        assert set(returned) == set(owned)
        for task in owned.values():
            task.lease_until = self.now + timedelta(seconds=60)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        ids = self._any_tasks(data)
        outcomes = dict(self._rows("SELECT task_id, outcome FROM pricing.cancel_tasks(%s)", [ids]))
        assert outcomes == {number: "cancelled" if self.tasks[number].is_live else "finished" for number in ids}
        for task in (self.tasks[number] for number in ids if outcomes[number] == "cancelled"):
            self._withdraw(task, "cancelled")
            self.demand[task.pair].rest(self.now + timedelta(hours=1))

    @precondition(lambda self: any(task.is_dead for task in self.tasks.values()))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        ids = self._any_tasks(data)
        live = {task.pair: number for number, task in self.tasks.items() if task.is_live}
        expected: dict[int, tuple[str, int | None]] = {}
        for number in sorted(ids, reverse=True):
            task = self.tasks[number]
            if not task.is_dead:
                expected[number] = ("not_dead", None)
            elif task.pair in live:
                expected[number] = ("live_already", live[task.pair])
            else:
                expected[number] = ("retried", number)
                live[task.pair] = number
        rows = self._rows("SELECT task_id, outcome, live_id FROM pricing.retry_tasks(%s)", [ids])
        assert {row.task_id: (row.outcome, row.live_id) for row in rows} == expected
        for task in (self.tasks[number] for number in ids if expected[number][0] == "retried"):
            task.status, task.attempt, task.enqueued_at = "pending", 0, self.now
            task.finished_at = task.resolved_at = None
            task.note("retried")
            self.demand[task.pair].forget(None)

    @rule(data_type=st.sampled_from([QUOTE, DAILY]))
    def change_route(self, data_type: str) -> None:
        """Which ends the back-off of its pairs, and settles what the old one did not know."""
        self.connection.execute(
            "UPDATE pricing.provider_routing SET provider = provider WHERE data_type = %s", [data_type]
        )
        for (kind, _), wanted in self.demand.items():
            if kind == data_type and wanted.backoff_until is not None:
                wanted.forget(self.now if wanted.due_at is None else min(wanted.due_at, self.now))

        for task in self.tasks.values():
            if task.status == "failed" and task.pair[0] == data_type and task.errors[-1] == PERMANENT:
                task.resolved_at = task.resolved_at or self.now

    @rule(data_type=st.sampled_from([QUOTE, DAILY]))
    def retire_and_bring_back(self, data_type: str) -> None:
        for is_active in (False, True):
            self.connection.execute(
                "UPDATE pricing.data_type_registry SET is_active = %s WHERE data_type = %s",
                [is_active, data_type],
            )
        for task in self.tasks.values():
            if task.is_live and task.pair[0] == data_type:
                self._withdraw(task, "retired")
        for (kind, _), wanted in self.demand.items():
            if kind == data_type and (wanted.backoff_until is None or wanted.backoff_until <= self.now):
                wanted.due_at = self.now if wanted.due_at is None else min(wanted.due_at, self.now)

    @rule(days=st.sampled_from([0, 8, 50, 91]))
    def prune(self, days: int) -> None:
        self.advance(days * 86_400)
        self._one("SELECT pricing.resolve_tasks()")
        self._one("SELECT pricing.prune()")
        for number, task in list(self.tasks.items()):
            if task.finished_at is None:
                continue
            weeks = int(self.now.timestamp() // 604_800) - int(task.finished_at.timestamp() // 604_800)
            is_old = task.resolved_at is not None and self.now - task.resolved_at > timedelta(days=90)
            is_past = weeks % 8 >= 2 or self.now - task.finished_at > timedelta(days=14)
            # Leaves go round in eight weeks; the dead are kept until nobody has needed them for long.
            if (task.status == "completed" and is_past) or (task.is_dead and is_old):
                del self.tasks[number]

    # What must hold

    @invariant()
    def the_pairs_are_as_the_model_has_them(self) -> None:
        rows = self._rows(
            "SELECT data_type, symbol, CASE WHEN became_due_at IS NULL THEN due_at END AS due_at, failures,"
            " backoff_until FROM pricing.demand"
        )
        assert {(row.data_type, row.symbol): (row.due_at, row.failures, row.backoff_until) for row in rows} == {
            pair: (wanted.due_at, wanted.failures, wanted.backoff_until) for pair, wanted in self.demand.items()
        }

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
            assert row.leaf.endswith("_live") is task.is_live
            if task.is_live:
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
        """Pending tasks in claim order, one for each idle symbol, cut into calls of one data type."""
        busy = {task.pair[1] for task in self.tasks.values() if task.status == "processing"}
        order = sorted(
            (-task.priority, CADENCES[task.pair[0]], number)
            for number, task in self.tasks.items()
            if task.status == "pending" and task.pair[1] not in busy
        )
        picked = [number for *_, number in order[: max_calls * BATCH]]
        kinds: dict[tuple[str, int], list[int]] = {}
        taken: set[str] = set()
        for number in picked:
            kind, symbol = self.tasks[number].pair
            if symbol not in taken:
                taken.add(symbol)
                kinds.setdefault((kind, self._most_in_a_call(self.tasks[number])), []).append(number)
        calls = [call for (_, size), numbers in kinds.items() for call in self._cut(numbers, size)]
        return sorted(calls, key=lambda call: picked.index(call[0]))[:max_calls]

    def _most_in_a_call(self, task: Expected) -> int:
        """What failed is asked for alone where few do not share a call, and what was refused elsewhere among fewer."""
        if not task.attempt:
            return BATCH
        return 1 if self.batch_from > 1 else max(1, BATCH // 10 ** task.errors.count(PERMANENT))

    def _cut(self, numbers: list[int], size: int) -> list[list[int]]:
        """Calls of so many tasks; too few to share one go alone."""
        calls = [numbers[at : at + size] for at in range(0, len(numbers), size)]
        return [part for call in calls for part in ([call] if len(call) >= self.batch_from else [[n] for n in call])]

    def _owned(self, claim: Claim) -> dict[int, Expected]:
        known = {number: self.tasks[number] for number in claim.ids if number in self.tasks}
        return {number: task for number, task in known.items() if task.token == claim.token}

    def _lose(self, task: Expected, kind: str, status: str) -> None:
        task.status, task.token, task.lease_until = status, None, None
        task.note(kind)
        if status == "failed":
            task.finished_at = self.now
            wanted = self.demand[task.pair]
            if kind == PERMANENT:
                wanted.rest(self.now + timedelta(hours=min(2 ** min(wanted.failures, 5), 24)))
            else:
                wanted.rest(self.now + timedelta(minutes=min(2 ** min(wanted.failures, 4), 10)))
            wanted.failures += 1

    def _withdraw(self, task: Expected, kind: str) -> None:
        self._lose(task, kind, "cancelled")
        task.run_after, task.finished_at, task.resolved_at = None, self.now, self.now

    def _any_tasks(self, data: st.DataObject) -> list[int]:
        """A few tasks in whatever state."""
        return data.draw(st.lists(st.sampled_from(sorted(self.tasks)), min_size=1, max_size=3, unique=True))

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
            "UPDATE pricing.provider_capabilities SET batch_size = %s, batch_from = 1, window_batch_size = 1",
            [BATCH],
        )
        yield connection


@pytest.mark.parametrize("fewest", [1, 2])
def test_b11_the_queue_behaves_like_its_model(frozen: Connection[Any], fewest: int) -> None:
    frozen.execute("UPDATE pricing.provider_capabilities SET batch_from = %s", [fewest])

    class Machine(QueueMachine):
        connection = frozen
        batch_from = fewest

    run_machine(Machine, examples(50), steps=35)
