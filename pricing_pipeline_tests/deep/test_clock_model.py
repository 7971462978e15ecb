"""The queue and its limits on a clock that jumps, against true times that a model keeps.

Invariant, after any step of the database's clock, in whatever state tasks, demand, keys, breaker and limits are: a
pause, lease or back-off that would have lasted R seconds more lasts at most R + 60 s more, as soon as the step was
noticed; so much of a limit is free as was not used in the last window and 60 s; and no window that the provider sees
holds more than the limit and as much again for each step in it. Nobody is seen more than a minute ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, DAY = 3600, 86_400
STEPS = [sign * size for size in (10, 25, 70, HOUR, 3 * DAY, 365 * DAY) for sign in (-1, 1)]
WINDOW, UNITS = 60, 4
GRACE = 60
NOTICED = 1
"""A drain looks each second."""

WAITS = """
    SELECT what, extract(epoch FROM at - pricing.clock())::float8 AS seconds FROM (
        SELECT 'task ' || id || kind, at FROM pricing.api_call_queue_live
        CROSS JOIN LATERAL (VALUES (' run_after', run_after), (' lease', lease_until)) w (kind, at)
        UNION ALL
        SELECT kind || symbol, at FROM pricing.demand
        CROSS JOIN LATERAL (VALUES ('back-off ', backoff_until), ('due ', due_at)) w (kind, at)
        UNION ALL
        SELECT kind || key_name, at FROM pricing.provider_keys
        CROSS JOIN LATERAL (VALUES ('pause ', blocked_until), ('others ', foreign_until)) w (kind, at)
        UNION ALL
        SELECT 'breaker ' || provider, breaker_until FROM pricing.provider_state
        UNION ALL
        SELECT 'drain ' || worker, lease_until FROM pricing.drains
        UNION ALL
        SELECT 'refusal ' || symbol, refused_until FROM pricing.route_refusals) waits (what, at)
    WHERE at IS NOT NULL
"""


@dataclass(frozen=True)
class Claim:
    """One call, as its worker remembers it."""

    call_id: int
    ids: tuple[int, ...]
    token: UUID


class ClockMachine(RuleBasedStateMachine):
    """One provider with a limit, worked at by one session, on a clock that differs from the true one by `offset`."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.true = 0.0
        self.offset = 0.0
        self.calls: list[tuple[float, int]] = []
        self.steps: list[float] = []
        self.open: list[Claim] = []
        self.connection.execute(
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.holdings, pricing.duties, pricing.limit_counts, pricing.check_marks, pricing.drains,"
            " pricing.route_refusals, pricing.api_data_usage, pricing.user_allowances, pricing.pair_views,"
            " pricing.warnings"
        )
        self.connection.execute("DELETE FROM pricing.provider_keys")
        self.connection.execute(
            "UPDATE pricing.provider_state SET breaker = 'closed', breaker_since = NULL, breaker_until = NULL,"
            " breaker_openings = 0, last_call_at = NULL, probe_call = NULL, claims = 0"
        )
        self._set_clock()
        self._tick()

    # What happens

    @rule(symbols=st.lists(st.sampled_from(["AAPL", "META", "IBM", "KO", "PEP", "XOM"]), min_size=1, unique=True))
    def watch(self, symbols: list[str]) -> None:
        self._one("SELECT pricing.heartbeat('ann', %s, %s)", [[QUOTE] * len(symbols), symbols])

    @rule(symbol=st.sampled_from(["A", "B", "C", "D", "E", "F"]))
    def enqueue(self, symbol: str) -> None:
        self._one("SELECT pricing.enqueue(%s, %s, %s)", [QUOTE, [symbol], [1]])

    @rule(max_calls=st.integers(1, 4))
    def claim(self, max_calls: int) -> None:
        self._claim(max_calls)

    @precondition(lambda self: self.open)
    @rule()
    def finish(self) -> None:
        claim = self.open.pop(0)
        self._one("SELECT pricing.finish_call(%s, %s, %s, 200, 600)", [claim.call_id, list(claim.ids), claim.token])

    @precondition(lambda self: self.open)
    @rule(kind=st.sampled_from(["provider_down", "unknown_symbol"]))
    def fail(self, kind: str) -> None:
        self._fail(self.open.pop(0), kind, None)

    @precondition(lambda self: self.open)
    @rule(pause=st.sampled_from([5, 90, HOUR]))
    def be_refused(self, pause: int) -> None:
        claim = self.open.pop(0)
        self._one(
            "SELECT pricing.throttle(%s, 'default', make_interval(secs => %s), 'too fast')",
            [TWELVEDATA, pause],
        )
        self._fail(claim, "throttled", pause)

    @rule()
    def lose_the_provider(self) -> None:
        self._one("SELECT pricing.open_breaker(%s, 'it is down')", [TWELVEDATA])

    @rule()
    def begin_a_drain(self) -> None:
        self._one("SELECT pricing.begin_drain('w', NULL, 120)")

    @rule(seconds=st.sampled_from([1, 9, 40, 130]))
    def wait(self, seconds: int) -> None:
        self._wait(seconds)

    @rule(seconds=st.sampled_from(STEPS), work_goes_on=st.booleans())
    def set_the_clock(self, seconds: int, work_goes_on: bool) -> None:
        before = self._waits()
        self.offset += seconds
        self.steps.append(self.true)
        self._set_clock()
        self._wait(NOTICED)
        for what, left in self._waits().items():
            if what in before:
                allowed = max(before[what], 0) + GRACE
                assert left <= allowed, f"{what} lasted {before[what]} s more, and lasts {left} s after {seconds} s"
        assert self._one(
            "SELECT coalesce(max(last_seen_at) <= pricing.clock() + interval '1 minute', true)"
            " FROM pricing.active_subscriptions"
        )
        used = sum(units for at, units in self.calls if at > self.true - WINDOW - GRACE)
        left = self._one("SELECT min(units_left) FROM pricing.key_allowances(%s, pricing.clock())", [TWELVEDATA])
        assert left >= UNITS - used, f"{left} units left, {used} used, after {seconds} s"
        if work_goes_on:
            self._expect_work(before)

    def _expect_work(self, before: dict[str, float]) -> None:
        """Nothing waits for ever: a minute after all pauses from before the step would be over, a claim gets it."""
        if not self._one("SELECT EXISTS (SELECT FROM pricing.api_call_queue_live)"):
            return
        longest = max(
            (left for what, left in before.items() if what.split()[0] in ("task", "pause", "breaker")),
            default=0,
        )
        if longest > 600:
            return
        self.open.clear()
        self._wait(max(longest, WINDOW) + GRACE + 5)
        if self._one("SELECT EXISTS (SELECT FROM pricing.api_call_queue_live)"):
            assert self._claim(1), "something waits, and nothing keeps it from being claimed"

    # The session

    def _claim(self, max_calls: int) -> int:
        rows = self._rows(
            "SELECT call_id, ids, claim_token FROM pricing.claim_calls(%s, 'w', %s)", [TWELVEDATA, max_calls]
        )
        self.open += [Claim(row.call_id, tuple(row.ids), row.claim_token) for row in rows]
        self.calls += [(self.true, len(row.ids)) for row in rows]
        steps = sum(at > self.true - WINDOW for at in self.steps)
        used = sum(units for at, units in self.calls if at > self.true - WINDOW)
        assert used <= UNITS * (1 + steps), f"{used} units in a window with {steps} steps"
        return len(rows)

    def _fail(self, claim: Claim, kind: str, pause: int | None) -> None:
        self._one(
            "SELECT pricing.fail_tasks(%s, %s, %s, 'why', %s, make_interval(secs => %s))",
            [list(claim.ids), claim.token, kind, kind == "unknown_symbol", pause],
        )
        self._one("SELECT pricing.settle_call(%s, 'failed', 500, 100, 'why', %s, true)", [claim.call_id, kind])

    def _wait(self, seconds: float) -> None:
        """The time passes, and duties are looked after as a drain does; seldom enough to be quick."""
        until = self.true + seconds
        while self.true < until:
            self.true = min(self.true + 10, until)
            self._set_clock()
            self._tick()

    def _tick(self) -> None:
        self._one("SELECT pricing.enqueue_due()")
        self._one("SELECT pricing.promote_tasks()")
        if self._one("SELECT pricing.run_duties()") == []:
            self._one("SELECT pricing.run_duties()")

    def _waits(self) -> dict[str, float]:
        return {row.what: row.seconds for row in self._rows(WAITS)}

    def _set_clock(self) -> None:
        now = START + timedelta(seconds=self.true + self.offset)
        self.connection.execute("UPDATE pricing.frozen_clock SET at = %s", [now])

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(sql, parameters).fetchall()

    def _one(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        ((value,),) = self._rows(sql, parameters)
        return value


@pytest.fixture
def jumping(owner_url: str) -> Iterator[Connection[Any]]:
    """A session of a database whose clock stands where it is put, and whose provider allows four units a minute."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE pricing.frozen_clock AS SELECT clock_timestamp() AS at")
        connection.execute(
            "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'"
        )
        connection.execute("DELETE FROM pricing.provider_limits")
        connection.execute(
            "INSERT INTO pricing.provider_limits VALUES (%s, 'minute', %s, %s, NULL)",
            [TWELVEDATA, UNITS, WINDOW],
        )
        connection.execute(
            "UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1, window_batch_size = 1"
        )
        connection.execute("SET client_min_messages = error")
        yield connection


def test_b17_after_any_step_of_the_clock_work_goes_on_and_no_limit_is_passed_by_more_than_a_window(
    jumping: Connection[Any],
) -> None:
    class Machine(ClockMachine):
        connection = jumping

    run_machine(Machine, examples(40), steps=25)
