"""The queue always moves: claims against a plain model of what may be called, in any order.

For any mix of tasks, workers, limits, quota, keys, breakers and faults: if one task alone could be called now, a claim
returns a call; what cannot be called hides nothing; among what can be called priority decides. One exception: for a
task that waits for more units than are left, they are saved during two of each five minutes.

Of all workers together, a provider has no more calls in flight than max_in_flight, and no symbol is asked for twice at
once. What a worker that died had claimed is done by others, and its late answers are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
PROVIDERS = ("alpha", "beta")
GONE, LACKING = "gone_type", "equity_profile"
SYMBOLS = tuple("ABCDEF")
SHARES = {-2: 75, -1: 90}
SPRING = (date(2026, 1, 1), date(2026, 2, 28))
TASK = "id, data_type, symbol, provider, status, priority, est_bytes, enqueued_at, failure_kind, errors"
WORKERS = ("one", "two", "three")
CLAIM = """
    SELECT call_id, claim_token, ids, symbols, priorities, worker_name
    FROM pricing.claim_calls(%s, %s, %s), (VALUES (%s)) AS w (worker_name)
"""
MODES = ("free", "delayed", "one_in_flight", "two_in_flight", "refused", "probing", "open")
IN_FLIGHT = {"one_in_flight": 1, "two_in_flight": 2}


class ClaimMachine(RuleBasedStateMachine):
    """Two providers and a few symbols, on a clock that only `advance` moves. The model reads tables, no functions."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.claims: list[Any] = []
        self.lost: list[Any] = []
        for statement in (
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.holdings, pricing.api_data_usage, pricing.size_estimates, pricing.limit_counts",
            "DELETE FROM pricing.provider_keys WHERE provider IN ('alpha', 'beta')",
            "UPDATE pricing.data_collectors SET quota_bytes = 1000000, request_delay_ms = 0, max_in_flight = 10",
            "UPDATE pricing.provider_limits SET units = 20 WHERE provider IN ('alpha', 'beta')",
            "UPDATE pricing.provider_state SET claims = 0, breaker = 'closed', breaker_since = NULL,"
            " breaker_until = NULL, breaker_openings = 0, probe_call = NULL, last_call_at = NULL",
        ):
            self.connection.execute(statement)
        self._set_clock()

    # What happens

    @rule(
        provider=st.sampled_from(PROVIDERS),
        data_type=st.sampled_from([QUOTE, QUOTE, DAILY, LACKING, GONE]),
        symbols=st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True),
        priority=st.sampled_from([-2, -2, -1, 0, 1, 7]),
        size=st.sampled_from([100, 100, 40_000, 760_000, 960_000, 2_000_000]),
    )
    def enqueue(self, provider: str, data_type: str, symbols: list[str], priority: int, size: int) -> None:
        window = SPRING if priority == -2 else ("-infinity", "infinity")
        for symbol in symbols:
            self.connection.execute(
                "INSERT INTO pricing.api_call_queue_live"
                " (data_type, symbol, window_start, window_end, provider, priority, est_bytes, enqueued_at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [data_type, symbol, *window, provider, priority, size, self.now],
            )

    @rule(provider=st.sampled_from(PROVIDERS), turns=st.integers(0, 9))
    def turn(self, provider: str, turns: int) -> None:
        """So many claims were made before: every tenth begins with a backfill."""
        self.connection.execute("UPDATE pricing.provider_state SET claims = %s WHERE provider = %s", [turns, provider])

    @rule(provider=st.sampled_from(PROVIDERS), mode=st.sampled_from(MODES))
    def set_mode(self, provider: str, mode: str) -> None:
        """What lets a provider be asked by one call at a time, or not at all."""
        self.connection.execute(
            "UPDATE pricing.data_collectors SET request_delay_ms = %s, max_in_flight = %s WHERE provider = %s",
            [500 if mode == "delayed" else 0, IN_FLIGHT.get(mode, 10), provider],
        )
        if mode == "refused":
            self.connection.execute("SELECT pricing.throttle(%s, 'default', interval '7 s', 'too fast')", [provider])
        if mode in ("open", "probing"):
            self.connection.execute(
                "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = %s, breaker_until = %s,"
                " breaker_openings = 5, probe_call = NULL WHERE provider = %s",
                [self.now, self.now + timedelta(minutes=10 if mode == "open" else 0), provider],
            )

    @rule(provider=st.sampled_from(PROVIDERS), units=st.sampled_from([2, 8, 20]))
    def set_limit(self, provider: str, units: int) -> None:
        self.connection.execute("UPDATE pricing.provider_limits SET units = %s WHERE provider = %s", [units, provider])

    @rule(provider=st.sampled_from(PROVIDERS), used=st.sampled_from([0, 700_000, 800_000, 949_950]))
    def use_quota(self, provider: str, used: int) -> None:
        self.connection.execute("DELETE FROM pricing.api_data_usage WHERE provider = %s", [provider])
        self.connection.execute(
            "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES (%s, date_trunc('hour', %s, 'UTC'), %s)",
            [provider, self.now, used],
        )

    @rule(seconds=st.sampled_from([1, 7, 20, 70]))
    def advance(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        self._set_clock()
        self.connection.execute("SELECT pricing.promote_tasks()")

    @rule(
        worker=st.sampled_from(WORKERS),
        provider=st.sampled_from(PROVIDERS),
        max_calls=st.sampled_from([1, 2, 4, 10]),
    )
    def claim(self, worker: str, provider: str, max_calls: int) -> None:
        state = self._state(provider)
        callable_tasks = self._callable(provider)
        single = self._is_single(provider, state)
        units_left = self._units_left(provider)
        room = self._quota_room(provider, -2)
        calls = self._rows(CLAIM, [provider, worker, max_calls, worker])
        self.claims += calls
        symbols = [symbol for call in self.claims for symbol in call.symbols]
        assert len(symbols) == len({*symbols}), "one call at a time for a symbol, of all workers and providers"
        assert bool(calls) == bool(callable_tasks), "what could be called alone is called, and nothing else"
        if not calls:
            return
        assert len(calls) <= (1 if single else max_calls)
        assert self._under_way(provider) <= self._most_in_flight(provider), "of all workers together"
        if state.breaker != "closed":
            assert [len(call.ids) for call in calls] == [1], "a probe is one task"
        claimed = {number for call in calls for number in call.ids}
        assert claimed <= {task.id for task in callable_tasks}
        first = callable_tasks[0]
        backfills = [task.id for task in callable_tasks if task.priority == -2]
        is_backfills_turn = state.claims % 10 == 9 and backfills and not (single and callable_tasks[0].priority > 0)
        if state.breaker == "closed":  # a probe asks for what was asked for longest ago
            assert (backfills[0] if is_backfills_turn else first.id) in calls[0].ids, "priority decides"
        units = self._rows(
            "SELECT sum(units) AS units, sum(reserved_bytes) FILTER (WHERE window_end <> 'infinity') AS bytes"
            " FROM pricing.collector_call_log WHERE call_id = ANY (%s)",
            [[call.call_id for call in calls]],
        )[0]
        assert units.units <= units_left
        assert (units.bytes or 0) <= max(room, 0)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "ok", "provider_down", "throttled", "lost"]))
    def end_call(self, data: st.DataObject, outcome: str) -> None:
        call = self.claims.pop(data.draw(st.integers(0, len(self.claims) - 1)))
        if outcome == "lost":
            self.lost.append(call)
            self._let_leases_end()
        elif outcome == "ok":
            self.connection.execute(
                "SELECT pricing.finish_call(%s, %s, %s, 200, 10)", [call.call_id, call.ids, call.claim_token]
            )
        else:
            self.connection.execute(
                "SELECT pricing.fail_tasks(%s, %s, %s, 'why', false, interval '5 s')",
                [call.ids, call.claim_token, outcome],
            )
            self.connection.execute(
                "SELECT pricing.settle_call(%s, 'failed', 500, 10, 'why', %s, true)",
                [call.call_id, outcome],
            )

    @rule(worker=st.sampled_from(WORKERS))
    def worker_dies(self, worker: str) -> None:
        """In mid-call: its calls are never settled, or much later."""
        mine = [call for call in self.claims if call.worker_name == worker]
        self.lost += mine
        self.claims = [call for call in self.claims if call.worker_name != worker]

    @precondition(lambda self: self.lost)
    @rule(data=st.data())
    def answer_comes_late(self, data: st.DataObject) -> None:
        """A worker was cut off, and settles when its leases are over."""
        call = self.lost.pop(data.draw(st.integers(0, len(self.lost) - 1)))
        self._let_leases_end()
        late = "SELECT pricing.finish_call(%s, %s, %s, 200, 10) AS done"
        assert self._rows(late, [call.call_id, call.ids, call.claim_token])[0].done in ([], None)

    def _let_leases_end(self) -> None:
        # Of all: a worker that lives settles within its lease, or is refused.
        self.lost += self.claims
        self.claims = []
        self.now += timedelta(seconds=61)
        self._set_clock()
        self.connection.execute("SELECT pricing.recover_tasks(), pricing.expire_calls()")

    @rule()
    def clear_out(self) -> None:
        """What can never be called dies in words, and whatever waits then can be called some day."""
        self.connection.execute("SELECT pricing.retire_tasks(), pricing.fail_impossible_tasks()")
        for task in self._rows(f"SELECT {TASK} FROM pricing.api_call_queue_live WHERE status <> 'processing'"):
            assert task.data_type in (QUOTE, DAILY)
            assert self._cost(task) <= self._limit(task.provider)
            assert task.est_bytes <= 1_000_000 * SHARES.get(task.priority, 95) // 100
        for task in self._rows(f"SELECT {TASK} FROM pricing.api_call_queue_dead"):
            assert task.failure_kind in (
                "misconfigured",
                "retired",
                "provider_down",
                "throttled",
                "worker_lost",
            )
            assert task.errors[-1]["message"]

    def teardown(self) -> None:
        """Nothing waits for ever: when faults end, all that is left is done within an hour."""
        for _ in range(60):
            self.connection.execute("SELECT pricing.retire_tasks(), pricing.fail_impossible_tasks()")
            self.connection.execute("DELETE FROM pricing.api_data_usage")
            self.now += timedelta(seconds=61)
            self._set_clock()
            self.connection.execute("SELECT pricing.recover_tasks(), pricing.expire_calls(), pricing.promote_tasks()")
            for provider in PROVIDERS:
                for call in self._rows(CLAIM, [provider, "heir", 10, "heir"]):
                    self.connection.execute(
                        "SELECT pricing.finish_call(%s, %s, %s, 200, 10)",
                        [call.call_id, call.ids, call.claim_token],
                    )
            if not self._rows("SELECT FROM pricing.api_call_queue_live"):
                return
        left = self._rows(f"SELECT {TASK} FROM pricing.api_call_queue_live")
        raise AssertionError(f"{len(left)} tasks wait for ever: {left[:3]}")

    # The model: what may be called, told from the tables alone

    def _callable(self, provider: str) -> list[Any]:
        """Pending tasks that could be called alone now, the most urgent first."""
        if not self._may_ask(provider) or self._under_way(provider) >= self._most_in_flight(provider):
            return []
        busy = {
            task.symbol
            for task in self._rows("SELECT symbol FROM pricing.api_call_queue_live WHERE status = 'processing'")
        }
        pending = self._pending(provider)
        left = self._units_left(provider)
        saved_for = next((task for task in pending if self._is_saved_for(task, left)), None)
        return [
            task
            for task in (pending if saved_for is None else pending[: pending.index(saved_for)])
            if task.data_type in (QUOTE, DAILY)
            and task.symbol not in busy
            and self._cost(task) <= left
            and task.est_bytes <= self._quota_room(provider, task.priority)
        ]

    def _is_saved_for(self, task: Any, left: int) -> bool:
        waited = (self.now - task.enqueued_at).total_seconds()
        return bool(
            task.data_type in (QUOTE, DAILY)
            and left < self._cost(task) <= self._limit(task.provider)
            and 60 <= round(waited) % 300 <= 180
            and task.est_bytes <= self._quota_room(task.provider, task.priority)
        )

    def _may_ask(self, provider: str) -> bool:
        state = self._state(provider)
        if state.breaker_until is not None and state.breaker_until > self.now:
            waited = self.now - state.breaker_since
            people = any(task.priority > 0 for task in self._pending(provider))
            if state.breaker != "open" or waited < timedelta(seconds=45) or not people:
                return False
        collector = self._rows("SELECT * FROM pricing.data_collectors WHERE provider = %s", [provider])[0]
        pause = timedelta(milliseconds=collector.request_delay_ms)
        if pause and state.last_call_at is not None and state.last_call_at > self.now - pause:
            return False
        for key in self._rows("SELECT * FROM pricing.provider_keys WHERE provider = %s", [provider]):
            if key.blocked_until is not None and key.blocked_until > self.now:
                return False
            if key.throttles and self._rows(
                "SELECT FROM pricing.collector_call_log"
                " WHERE provider = %s AND finished_at IS NULL AND started_at > %s",
                [provider, self.now - timedelta(seconds=60)],
            ):
                return False
        return True

    def _under_way(self, provider: str) -> int:
        """Calls that somebody may be making: open ones, until they would have timed out."""
        return len(
            self._rows(
                "SELECT FROM pricing.collector_call_log"
                " WHERE provider = %s AND finished_at IS NULL AND started_at > %s",
                [provider, self.now - timedelta(seconds=15)],
            )
        )

    def _most_in_flight(self, provider: str) -> int:
        (row,) = self._rows("SELECT max_in_flight FROM pricing.data_collectors WHERE provider = %s", [provider])
        return int(row.max_in_flight)

    def _is_single(self, provider: str, state: Any) -> bool:
        collector = self._rows("SELECT * FROM pricing.data_collectors WHERE provider = %s", [provider])[0]
        refused = self._rows("SELECT FROM pricing.provider_keys WHERE provider = %s AND throttles > 0", [provider])
        return bool(state.breaker != "closed" or collector.request_delay_ms or collector.max_in_flight == 1 or refused)

    def _units_left(self, provider: str) -> int:
        since = self.now - timedelta(seconds=60.005)
        calls = self._rows(
            "SELECT units, started_at, finished_at FROM pricing.collector_call_log"
            " WHERE provider = %s AND started_at > %s",
            [provider, since - timedelta(seconds=1)],
        )
        used = sum(
            call.units
            for call in calls
            if call.started_at > since or call.finished_at is None or call.finished_at > since
        )
        return self._limit(provider) - used

    def _quota_room(self, provider: str, priority: int) -> int:
        used = self._rows(
            "SELECT coalesce((SELECT sum(bytes) FROM pricing.api_data_usage WHERE provider = %(p)s), 0)"
            " + coalesce((SELECT sum(reserved_bytes) FROM pricing.collector_call_log"
            " WHERE provider = %(p)s AND finished_at IS NULL), 0) AS bytes",
            {"p": provider},
        )[0]
        return 1_000_000 * SHARES.get(priority, 95) // 100 - int(used.bytes)

    def _cost(self, task: Any) -> int:
        """A bar costs more than a small limit ever allows."""
        return 1 if task.data_type == QUOTE else 6

    def _limit(self, provider: str) -> int:
        return int(self._rows("SELECT units FROM pricing.provider_limits WHERE provider = %s", [provider])[0].units)

    def _pending(self, provider: str) -> list[Any]:
        return self._rows(
            f"SELECT {TASK} FROM pricing.api_call_queue_live WHERE provider = %s AND status = 'pending'"
            " ORDER BY priority DESC, cadence_minutes, id",
            [provider],
        )

    def _state(self, provider: str) -> Any:
        return self._rows("SELECT * FROM pricing.provider_state WHERE provider = %s", [provider])[0]

    # The database

    def _set_clock(self) -> None:
        self.connection.execute("UPDATE pricing.frozen_clock SET at = %s", [self.now])

    def _rows(self, sql: str, parameters: Any = ()) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(sql, parameters).fetchall()


@pytest.fixture
def world(owner_url: str) -> Iterator[Connection[Any]]:
    """A session of a database with two providers of our own, whose clock stands still."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE pricing.frozen_clock AS SELECT clock_timestamp() AS at")
        connection.execute(
            "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'"
        )
        for provider in PROVIDERS:
            connection.execute(
                "INSERT INTO pricing.data_collectors (provider, base_url) VALUES (%s, 'https://x.example')",
                [provider],
            )
            connection.execute(
                "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds)"
                " VALUES (%s, 'minute', 20, 60)",
                [provider],
            )
            connection.execute(
                "INSERT INTO pricing.provider_capabilities"
                " (provider, fetcher, batch_size, batch_from, window_batch_size, units_per_call, units_per_symbol)"
                " VALUES (%(p)s, 'quote', 3, %(fewest)s, 1, 0, 1), (%(p)s, 'daily_bars', 2, 1, 1, 5, 1)",
                {"p": provider, "fewest": 2 if provider == "beta" else 1},
            )
        yield connection


def test_b10_b17_a_claim_returns_a_call_if_one_task_alone_could_be_called(world: Connection[Any]) -> None:
    class Machine(ClaimMachine):
        connection = world

    run_machine(Machine, examples(60), steps=30)
