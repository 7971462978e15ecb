"""The queue always moves: claims against a plain model of what may be called, in any order.

The invariant (FAULTS 28), for any mix of tasks, limits, quota, keys, breakers and faults: if one task alone could be
called now, a claim returns a call; what cannot be called hides nothing; among what can be called priority decides.
One exception: for a task that waits for more units than are left, they are saved during two of each five minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, sample_template
from pricing_pipeline_tests.fixtures.database import Clock

template = sample_template

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
PROVIDERS = ("alpha", "beta")
GONE, LACKING = "gone_type", "equity_profile"
FETCHERS = {QUOTE: "quote", DAILY: "daily_bars", LACKING: "profile"}
SYMBOLS = tuple("ABCDEF")
SHARES = {-2: 75, -1: 90}
SPRING = (date(2026, 1, 1), date(2026, 2, 28))
TASK = "id, data_type, symbol, provider, status, priority, est_bytes, enqueued_at, failure_kind, errors"
CLAIM = "SELECT call_id, claim_token, ids, priorities FROM pricing.claim_calls(%s, 'w', %s)"
MODES = ("free", "delayed", "one_in_flight", "refused", "probing", "open")


class ClaimMachine(RuleBasedStateMachine):
    """Two providers and a few symbols, on a clock that only `advance` moves. The model reads tables, no functions."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.claims: list[Any] = []
        for statement in (
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.holdings, pricing.api_data_usage, pricing.size_estimates, pricing.limit_counts",
            "DELETE FROM pricing.provider_keys WHERE provider IN ('alpha', 'beta')",
            "UPDATE pricing.data_collectors SET quota_bytes = 1000000, request_delay_ms = 0, max_in_flight = 10",
            "UPDATE pricing.provider_limits SET units = 20 WHERE provider IN ('alpha', 'beta')",
            "UPDATE pricing.provider_state SET claims = 0, breaker = 'closed', breaker_since = NULL,"
            " breaker_until = NULL, breaker_openings = 0, probe_call = NULL, last_call_at = NULL, passed_at = NULL",
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
        self.connection.execute(
            "UPDATE pricing.provider_state SET claims = %s WHERE provider = %s", [turns, provider]
        )

    @rule(provider=st.sampled_from(PROVIDERS), mode=st.sampled_from(MODES))
    def set_mode(self, provider: str, mode: str) -> None:
        """What lets a provider be asked by one call at a time, or not at all."""
        self.connection.execute(
            "UPDATE pricing.data_collectors SET request_delay_ms = %s, max_in_flight = %s WHERE provider = %s",
            [500 if mode == "delayed" else 0, 1 if mode == "one_in_flight" else 10, provider],
        )
        if mode == "refused":
            self.connection.execute(
                "SELECT pricing.throttle(%s, 'default', interval '7 s', 'too fast')", [provider]
            )
        if mode in ("open", "probing"):
            self.connection.execute(
                "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = %s, breaker_until = %s,"
                " breaker_openings = 5, probe_call = NULL WHERE provider = %s",
                [self.now, self.now + timedelta(minutes=10 if mode == "open" else 0), provider],
            )

    @rule(provider=st.sampled_from(PROVIDERS), units=st.sampled_from([2, 8, 20]))
    def set_limit(self, provider: str, units: int) -> None:
        self.connection.execute(
            "UPDATE pricing.provider_limits SET units = %s WHERE provider = %s", [units, provider]
        )

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

    @rule(provider=st.sampled_from(PROVIDERS), max_calls=st.integers(1, 4))
    def claim(self, provider: str, max_calls: int) -> None:
        state = self._state(provider)
        callable_tasks = self._callable(provider)
        single = self._is_single(provider, state)
        units_left = self._units_left(provider)
        room = self._quota_room(provider, -2)
        calls = self._rows(CLAIM, [provider, max_calls])
        self.claims += calls
        assert bool(calls) == bool(callable_tasks), "what could be called alone is called, and nothing else"
        if not calls:
            return
        assert len(calls) <= (1 if single else max_calls)
        if state.breaker != "closed":
            assert [len(call.ids) for call in calls] == [1], "a probe is one task"
        claimed = {number for call in calls for number in call.ids}
        assert claimed <= {task.id for task in callable_tasks}
        first = callable_tasks[0]
        backfills = [task.id for task in callable_tasks if task.priority == -2]
        is_backfills_turn = (
            state.claims % 10 == 9 and backfills and not (single and callable_tasks[0].priority > 0)
        )
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
            self.now += timedelta(seconds=61)
            self._set_clock()
            self.connection.execute("SELECT pricing.recover_tasks(), pricing.expire_calls()")
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
                "SELECT pricing.settle_call(%s, 'failed', 500, 10, 'why', %s), pricing.judge_call(%s)",
                [call.call_id, outcome, call.call_id],
            )

    @rule()
    def clear_out(self) -> None:
        """What can never be called dies in words, and whatever waits then can be called some day."""
        self.connection.execute("SELECT pricing.retire_tasks(), pricing.fail_impossible_tasks()")
        for task in self._rows(
            f"SELECT {TASK} FROM pricing.api_call_queue_live WHERE status <> 'processing'"
        ):
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
            self.connection.execute(
                "SELECT pricing.recover_tasks(), pricing.expire_calls(), pricing.promote_tasks()"
            )
            for provider in PROVIDERS:
                for call in self._rows(CLAIM, [provider, 10]):
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
        if not self._may_ask(provider):
            return []
        busy = {
            task.symbol
            for task in self._rows(
                "SELECT symbol FROM pricing.api_call_queue_live WHERE status = 'processing'"
            )
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

    def _is_single(self, provider: str, state: Any) -> bool:
        collector = self._rows("SELECT * FROM pricing.data_collectors WHERE provider = %s", [provider])[0]
        refused = self._rows(
            "SELECT FROM pricing.provider_keys WHERE provider = %s AND throttles > 0", [provider]
        )
        return bool(
            state.breaker != "closed" or collector.request_delay_ms or collector.max_in_flight == 1 or refused
        )

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
        return int(
            self._rows("SELECT units FROM pricing.provider_limits WHERE provider = %s", [provider])[0].units
        )

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


def test_b10_a_claim_returns_a_call_if_one_task_alone_could_be_called(world: Connection[Any]) -> None:
    class Machine(ClaimMachine):
        connection = world

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.filter_too_much,
            ],
        ),
    )


# What stood still once, each by itself


def test_b10_a_backfill_that_does_not_fit_does_not_stop_a_provider_that_takes_one_call_at_a_time(
    core: Core,
) -> None:
    """Every tenth claim begins with a backfill. One beyond its part of the quota was chosen for ever."""
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000, request_delay_ms = 1")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
        " VALUES ('twelvedata', date_trunc('hour', pricing.clock(), 'UTC'), 76000)"
    )
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(15)))
    asked = []
    while calls := core.claim(max_calls=5):
        asked += calls[0].symbols
        core.finish_call(calls[0])
        core.rows("UPDATE pricing.provider_state SET last_call_at = NULL")
    assert len(asked) == 15
    assert "BACK" not in asked


def test_a2_a_backfill_never_goes_ahead_of_a_viewer_where_one_call_at_a_time_is_made(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 1")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(15)))
    asked = []
    for _ in range(16):
        (call,) = core.claim(max_calls=5)
        asked += call.symbols
        core.finish_call(call)
        core.rows("UPDATE pricing.provider_state SET last_call_at = NULL")
    assert asked[-1] == "BACK"


def test_b8_a_task_that_costs_more_than_a_limit_allows_dies_in_words_and_stops_nobody(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows(
        "UPDATE pricing.provider_capabilities SET units_per_symbol = 10"
        " WHERE provider = 'twelvedata' AND fetcher = 'daily_bars'"
    )
    core.enqueue(DAILY, "DEAR", priority=9)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(5)))
    (call,) = core.claim(max_calls=5)
    assert len(call.tasks) == 5
    assert core.task("DEAR").status == "pending"
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 1
    dear = core.task("DEAR")
    assert (dear.status, dear.failure_kind) == ("failed", "misconfigured")
    assert dear.errors[-1]["message"] == (
        'one symbol costs 10 units of twelvedata, and its limit "minute" allows 8. If your plan allows more, '
        "raise units in pricing.provider_limits; else route equity_daily to another provider"
    )


def test_a2_units_are_saved_for_a_task_that_needs_more_than_come_free_at_a_time(
    core: Core, clock: Clock
) -> None:
    """A viewer waited for ever behind cheap backfills: each of eight units a minute went to one of them."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 7500")
    core.rows(
        "UPDATE pricing.provider_capabilities"
        " SET batch_size = 1, batch_from = 1, units_per_symbol = CASE fetcher WHEN 'daily_bars' THEN 8 ELSE 1 END"
    )
    core.enqueue(QUOTE, *(f"S{number}" for number in range(300)), priority=-2)
    asked = []
    for turn in range(60):
        if turn == 10:
            core.enqueue(DAILY, "DEAR", priority=50)
        clock.advance(7.6)
        for call in core.claim(max_calls=5):
            asked += call.symbols
            core.finish_call(call)
    before = asked.index("DEAR")
    assert 17 <= before <= 20, "nothing is saved for it in its first minute"
    assert len(asked) - before > 20, "others go on after it"


def test_b8_units_are_not_saved_for_what_a_day_does_not_allow_any_more(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, day_timezone)"
        " VALUES ('twelvedata', 'daily', 12, 'UTC')"
    )
    core.rows(
        "UPDATE pricing.provider_capabilities"
        " SET batch_size = 1, batch_from = 1, units_per_symbol = CASE fetcher WHEN 'daily_bars' THEN 8 ELSE 1 END"
    )
    core.enqueue(QUOTE, *(f"S{number}" for number in range(5)))
    assert len(core.claim(max_calls=5)) == 5
    core.enqueue(DAILY, "DEAR", priority=50)
    clock.advance(100)
    core.enqueue(QUOTE, "IBM")
    assert [call.symbols for call in core.claim(max_calls=5)] == [["IBM"]]


def test_a2_a_viewers_task_that_cannot_be_called_leaves_backfills_their_turn(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000000, request_delay_ms = 1")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
        " VALUES ('twelvedata', date_trunc('hour', pricing.clock(), 'UTC'), 500000)"
    )
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, "LARGE", priority=9)
    core.rows("UPDATE pricing.api_call_queue_live SET est_bytes = 600000 WHERE symbol = 'LARGE'")
    core.enqueue(QUOTE, *(f"S{number}" for number in range(15)), priority=0)
    asked = []
    for _ in range(10):
        (call,) = core.claim(max_calls=5)
        asked += call.symbols
        core.finish_call(call)
        core.rows("UPDATE pricing.provider_state SET last_call_at = NULL")
    assert asked[-1] == "BACK"


def test_b8_tasks_of_a_provider_that_was_switched_off_fail_in_words(core: Core) -> None:
    core.enqueue(DAILY, "FB", days=SPRING, priority=-2)
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.fail_impossible_tasks()")
    (task,) = core.tasks("FB")
    assert (task.status, task.failure_kind) == ("failed", "misconfigured")
    assert task.errors[-1]["message"].startswith(
        "twelvedata is switched off, and no other provider serves equity_daily"
    )


def test_b8_a_key_with_more_room_saves_what_is_too_dear_for_the_others(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.provider_capabilities SET units_per_symbol = 10 WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.register_keys('twelvedata', '{small,large}')")
    core.rows(
        "INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)"
        " VALUES ('twelvedata', 'large', 'minute', 20)"
    )
    core.enqueue(QUOTE, "AAPL", "IBM", "FB")
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 0
    (call,) = core.claim(max_calls=5)
    assert (call.key_name, len(call.tasks)) == ("large", 2)


def test_b10_what_is_larger_than_the_quota_ever_allows_dies_in_words(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 10000")
    core.rows(
        "UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 9600 WHERE data_type = 'equity_quote'"
    )
    core.enqueue(QUOTE, "HUGE")
    assert core.claim() == []
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 1
    assert (
        core.task("HUGE")
        .errors[-1]["message"]
        .startswith(
            "it needs about 9600 bytes, and the quota of twelvedata allows such work 9500 in 30 days."
        )
    )


def test_b8_leftovers_of_what_was_changed_hide_nothing_and_are_cleared_away(core: Core) -> None:
    """A deleted type, a provider that cannot fetch it any more: 0 claims in 10 days behind a few hundred of them."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 2, batch_from = 1")
    core.rows(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority)"
        " SELECT kind, 'S' || n, 'twelvedata', 9 FROM generate_series(1, 50) AS n,"
        " unnest(ARRAY['gone', 'mf_nav']) AS kind"
    )
    core.enqueue(QUOTE, "AAPL")
    (call,) = core.claim(max_calls=2)
    assert call.symbols == ["AAPL"]
    ran = core.call("SELECT pricing.run_duties()")
    assert {"retire_tasks", "fail_impossible_tasks"} <= set(ran)
    ends = {
        (row.data_type, row.status, row.provider)
        for row in core.rows(
            "SELECT data_type, status, provider FROM pricing.api_call_queue WHERE symbol LIKE 'S%'"
        )
    }
    assert ends == {("gone", "cancelled", "twelvedata"), ("mf_nav", "pending", "mfapi")}, (
        "another provider has it"
    )


def test_b1_deleting_a_type_retires_its_tasks(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('brief', 'quote', 1)"
    )
    core.enqueue("brief", "AAPL")
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'brief'")
    task = core.task("AAPL")
    assert (task.status, task.failure_kind) == ("cancelled", "retired")


def test_b16_a_probe_is_one_task_even_on_a_backfills_turn(core: Core, clock: Clock) -> None:
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, "AAPL", "IBM", priority=0)
    core.rows(
        "UPDATE pricing.provider_state SET claims = 9, breaker = 'open', breaker_since = pricing.clock(),"
        " breaker_until = pricing.clock(), breaker_openings = 1 WHERE provider = 'twelvedata'"
    )
    (probe,) = core.claim(max_calls=5)
    assert len(probe.tasks) == 1
    assert core.claim(max_calls=5) == []


def test_b17_a_symbol_that_another_provider_gives_an_opinion_on_is_not_asked_for(
    core: Core, clock: Clock
) -> None:
    """Nor for longer than a lost worker's call counts."""
    value = core.one(
        "INSERT INTO pricing.quarantined_values"
        " (data_type, symbol, provider, call_id, kind, reason, value, recorded_at, last_seen_at, last_call_id)"
        " VALUES ('equity_quote', 'AAPL', 'fmp', 0, 'jump', 'why', '1', pricing.clock(), pricing.clock(), 0)"
        " RETURNING value_id"
    )
    call = core.one(
        "INSERT INTO pricing.collector_call_log"
        " (provider, data_type, symbols, window_start, window_end, units, reserved_bytes, worker, started_at)"
        " VALUES ('yahoo', 'equity_quote', '{AAPL}', '-infinity', 'infinity', 1, 0, 'w', pricing.clock())"
        " RETURNING call_id"
    )
    core.rows(
        "INSERT INTO pricing.second_opinions (value_id, provider, call_id, asked_at)"
        " VALUES (:value, 'yahoo', :call, pricing.clock())",
        value=value,
        call=call,
    )
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert core.claim_one().symbols == ["IBM"]
    clock.advance(61)
    assert core.claim_one().symbols == ["AAPL"]
