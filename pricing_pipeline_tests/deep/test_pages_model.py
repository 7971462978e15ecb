"""Calls of several requests, against a plain model of what may be asked, in any order and with any faults.

No window ever has more units than its limit. A page is opened if and only if the model says that it may be made now; a
call is ended for want of units only if it could not get as far as a call for the same has got before. No page outlasts
its call, a probe is one call with its pages, and when faults end all that can be done is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)
from psycopg import Connection
from psycopg.rows import namedtuple_row

from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
NEEDED = {"A": 1, "B": 2, "C": 5, "D": 8, "E": 40}
"""How many requests a call for a symbol takes; forty are more than an hour allows."""
MOST_SECONDS = 285
MINUTE, HOUR = timedelta(seconds=60.005), timedelta(seconds=3600.005)
CLAIM = "SELECT call_id, claim_token, ids, symbols FROM pricing.claim_calls('alpha', 'w', 2)"
PAGE = "SELECT * FROM pricing.claim_page(%s, %s, %s, 10, 10, 285, 50)"


@dataclass(eq=False)
class Work:
    """A call as its worker knows it: its requests so far, and that under way (None = the last one is answered)."""

    call_id: int
    token: Any
    ids: list[int]
    symbols: list[str]
    began: datetime
    open_request: int | None
    requests: int = 1

    @property
    def is_done(self) -> bool:
        return self.open_request is None and self.requests >= max(NEEDED[symbol] for symbol in self.symbols)

    @property
    def wants_page(self) -> bool:
        return self.open_request is None and not self.is_done


class PageMachine(RuleBasedStateMachine):
    """One provider with a limit a minute and one an hour, on a clock that only `advance` moves."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.works: list[Work] = []
        for statement in (
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.api_data_usage,"
            " pricing.size_estimates, pricing.limit_counts",
            "DELETE FROM pricing.provider_keys WHERE provider = 'alpha'",
            "UPDATE pricing.data_collectors SET quota_bytes = 1000000, request_delay_ms = 0 WHERE provider = 'alpha'",
            "UPDATE pricing.provider_state SET claims = 0, breaker = 'closed', breaker_since = NULL,"
            " breaker_until = NULL, breaker_openings = 0, probe_call = NULL, last_call_at = NULL,"
            " page_call = NULL, page_until = NULL",
        ):
            self.connection.execute(statement)
        self._set_clock()

    # What happens

    @rule(symbols=st.lists(st.sampled_from("AABCCDE"), min_size=1, max_size=3, unique=True))
    def enqueue(self, symbols: list[str]) -> None:
        for symbol in symbols:
            self.connection.execute(
                "INSERT INTO pricing.api_call_queue_live"
                " (data_type, symbol, window_start, window_end, provider, priority, est_bytes, enqueued_at)"
                " VALUES (%s, %s, '-infinity', 'infinity', 'alpha', 1, 100, %s) ON CONFLICT DO NOTHING",
                [QUOTE, symbol, self.now],
            )

    @rule(symbols=st.sampled_from(["B", "CD", "D", "E"]), pages=st.integers(0, 3))
    def begin(self, symbols: str, pages: int) -> None:
        """As mostly: what is queued is claimed, and some of its requests are made."""
        self.enqueue(list(symbols))
        self.claim()
        for work in list(self.works):
            for _ in range(pages):
                if work.open_request:
                    self._answer(work, "ok")
                if work in self.works and work.wants_page:
                    self._ask_page(work)
            if work.open_request:
                self._answer(work, "ok")

    @rule()
    def claim(self) -> None:
        state = self._state()
        kept = state.page_until is not None and self.now < state.page_until
        calls = self._rows(CLAIM)
        assert not (kept and calls), "who waits for a page goes before new calls"
        self.works += [
            Work(call.call_id, call.claim_token, call.ids, call.symbols, self.now, call.call_id) for call in calls
        ]
        self._check_windows()

    @precondition(lambda self: any(work.wants_page for work in self.works))
    @rule(data=st.data())
    def ask_page(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from([work for work in self.works if work.wants_page]))
        self._ask_page(work)

    def _ask_page(self, work: Work) -> None:
        is_owned, obstacle, needed, most = (
            self._owned(work),
            self._obstacle(work),
            self._needed(work),
            self._most(work),
        )
        is_paused = work.requests == 1 and self.now < self._again_at(work)
        is_late = self.now >= work.began + timedelta(seconds=MOST_SECONDS)
        (said,) = self._rows(PAGE, [work.call_id, work.ids, work.token])
        if said.call_id is not None:
            assert is_owned
            assert not is_late
            assert not is_paused
            assert obstacle is None, "only what may be asked is asked"
            work.open_request, work.requests = said.call_id, work.requests + 1
            self._check_windows()
        elif said.wait_seconds is not None:
            assert is_owned
            assert 0 < said.wait_seconds <= 1
            assert obstacle is not None, "nobody waits for nothing"
            assert self.now < work.began + timedelta(seconds=MOST_SECONDS)
        else:
            assert said.refusal
            is_over = obstacle is not None and obstacle >= work.began + timedelta(seconds=MOST_SECONDS)
            assert not is_owned or is_late or is_over or is_paused or most < needed, (
                "a call is ended only if nothing else helps"
            )
            self._fail(work, "unfinished", said.retry_after)

    @precondition(lambda self: any(work.open_request for work in self.works))
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "ok", "ok", "ok", "provider_down", "throttled"]))
    def answer(self, data: st.DataObject, outcome: str) -> None:
        work = data.draw(st.sampled_from([work for work in self.works if work.open_request]))
        self._answer(work, outcome)

    def _answer(self, work: Work, outcome: str) -> None:
        request, work.open_request = work.open_request, None
        if request != work.call_id:
            self.connection.execute(
                "SELECT pricing.settle_call(%s, %s, 200, 10, is_owned => true)",
                [request, "ok" if outcome == "ok" else "failed"],
            )
        if outcome != "ok":
            self._fail(work, outcome, 7 if outcome == "throttled" else None)
            if outcome == "throttled":
                self.connection.execute("SELECT pricing.throttle('alpha', 'default', interval '7 s', 'too fast')")

    @precondition(lambda self: any(work.is_done for work in self.works))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self._finish(data.draw(st.sampled_from([work for work in self.works if work.is_done])))

    def _finish(self, work: Work) -> None:
        self.works.remove(work)
        is_owned = self._owned(work)
        self.connection.execute(
            "SELECT pricing.finish_call(%s, %s, %s, 200, 10, NULL, NULL, %s)",
            [work.call_id, work.ids, work.token, is_owned],
        )

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        """Its worker dies, between two requests or in one."""
        self.works.remove(data.draw(st.sampled_from(self.works)))

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        """Its worker is told to stop, and gives back its tasks; the late answer is told all the same."""
        work = data.draw(st.sampled_from(self.works))
        self.connection.execute("SELECT pricing.return_tasks(%s, %s)", [work.ids, work.token])

    @rule(seconds=st.sampled_from([1, 2, 7, 20, 61, 61, 400]))
    def advance(self, seconds: int) -> None:
        for _ in range(max(1, seconds // 20)):  # as often as leases are renewed, and duties run
            self.now += timedelta(seconds=min(seconds, 20))
            self._set_clock()
            for work in self.works:
                if self.now - work.began < timedelta(seconds=300):
                    self.connection.execute("SELECT pricing.extend_tasks(%s, %s)", [work.ids, work.token])
            self.connection.execute("SELECT pricing.recover_tasks(), pricing.expire_calls(), pricing.promote_tasks()")

    @rule(mode=st.sampled_from(["free", "delayed", "open", "probing"]))
    def set_mode(self, mode: str) -> None:
        self.connection.execute(
            "UPDATE pricing.data_collectors SET request_delay_ms = %s WHERE provider = 'alpha'",
            [1500 if mode == "delayed" else 0],
        )
        if mode in ("open", "probing"):
            self.connection.execute(
                "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = %s, breaker_until = %s,"
                " breaker_openings = 5, probe_call = NULL WHERE provider = 'alpha'",
                [self.now, self.now + timedelta(minutes=10 if mode == "open" else 0)],
            )

    # What always holds

    @invariant()
    def no_page_outlasts_its_call(self) -> None:
        assert not self._rows(
            "SELECT p.call_id FROM pricing.collector_call_log p"
            " JOIN pricing.collector_call_log c ON c.call_id = p.page_of"
            " WHERE p.finished_at IS NULL AND c.finished_at IS NOT NULL"
        )

    @invariant()
    def a_probe_is_one_call(self) -> None:
        state = self._state()
        if state.breaker == "half_open":
            begun = self._rows(
                "SELECT DISTINCT coalesce(page_of, call_id) AS call_id FROM pricing.collector_call_log"
                " WHERE finished_at IS NULL AND started_at >= (SELECT started_at FROM pricing.collector_call_log"
                " WHERE call_id = %s) AND coalesce(page_of, call_id) >= %s",
                [state.probe_call, state.probe_call],
            )
            assert [call.call_id for call in begun] in ([], [state.probe_call])

    @invariant()
    def all_bytes_are_booked(self) -> None:
        (books,) = self._rows(
            "SELECT pricing.bytes_used('alpha', pricing.clock()) AS used, (SELECT coalesce(sum(wire_bytes), 0)"
            " + coalesce(sum(reserved_bytes) FILTER (WHERE finished_at IS NULL), 0)"
            " FROM pricing.collector_call_log) AS told"
        )
        assert books.used == books.told

    def teardown(self) -> None:
        """Workers are honest again: within some hours nothing is left but what no hour allows."""
        self.set_mode("free")
        self.works = []
        for _ in range(1800):
            self.now += timedelta(seconds=20)
            self._set_clock()
            for work in self.works:
                self.connection.execute("SELECT pricing.extend_tasks(%s, %s)", [work.ids, work.token])
            self.connection.execute("SELECT pricing.recover_tasks(), pricing.expire_calls(), pricing.promote_tasks()")
            if not self.works:
                self.claim()
            for work in list(self.works):
                while work in self.works and (work.open_request or work.is_done or self._moves(work)):
                    if work.open_request:
                        self._answer(work, "ok")
                    elif work.is_done:
                        self._finish(work)
            if self._is_all_done():
                return
        left = self._rows("SELECT id, symbol, status, errors FROM pricing.api_call_queue_live")
        raise AssertionError(f"these wait for ever: {left[:3]}")

    def _moves(self, work: Work) -> bool:
        """Ask for its next page; whether it has got it."""
        self._ask_page(work)
        return work in self.works and work.open_request is not None

    def _is_all_done(self) -> bool:
        left = {row.symbol for row in self._rows("SELECT symbol FROM pricing.api_call_queue_live")}
        return not self.works and left <= {"E"}

    # The model, told from the tables alone

    def _owned(self, work: Work) -> bool:
        return bool(
            self._rows(
                "SELECT FROM pricing.api_call_queue_live WHERE id = ANY (%s) AND status = 'processing'"
                " AND claim_token = %s AND call_id = %s",
                [work.ids, work.token, work.call_id],
            )
            and self._rows(
                "SELECT FROM pricing.collector_call_log WHERE call_id = %s AND finished_at IS NULL",
                [work.call_id],
            )
        )

    def _obstacle(self, work: Work) -> datetime | None:
        """Until when the next request of a call may not be made, at least; None if it may be made now."""
        state, keys = (
            self._state(),
            self._rows("SELECT * FROM pricing.provider_keys WHERE provider = 'alpha'"),
        )
        soon = self.now + timedelta(seconds=1)
        if state.breaker != "closed" and state.probe_call != work.call_id:
            return state.breaker_until  # type: ignore[no-any-return]
        for key in keys:
            if key.blocked_until is not None and key.blocked_until > self.now:
                return key.blocked_until  # type: ignore[no-any-return]
            if key.throttles and self._others(work):
                return soon
        is_kept = state.page_until is not None and self.now < state.page_until
        if is_kept and state.page_call < work.call_id:
            return soon
        (collector,) = self._rows("SELECT * FROM pricing.data_collectors WHERE provider = 'alpha'")
        free_at = state.last_call_at + timedelta(milliseconds=collector.request_delay_ms)
        if free_at > self.now:
            return free_at  # type: ignore[no-any-return]
        return soon if self._free(self._charges(), self.now) < 1 else None

    def _others(self, work: Work) -> bool:
        """Whether another call that is younger than a minute goes first, after a refusal of the key."""
        return any(
            (row.page_of or row.call_id) != work.call_id and (row.page_of or row.call_id < work.call_id)
            for row in self._rows(
                "SELECT call_id, page_of FROM pricing.collector_call_log WHERE finished_at IS NULL AND started_at > %s",
                [self.now - timedelta(seconds=60)],
            )
        )

    def _needed(self, work: Work) -> int:
        """How many more requests get a call further than any unfinished one for the same, or a part of it, has got."""
        before = self._rows(
            "SELECT count(p.call_id) + 1 AS requests FROM pricing.collector_call_log c"
            " LEFT JOIN pricing.collector_call_log p ON p.page_of = c.call_id"
            " WHERE c.failure_kind = 'unfinished' AND c.symbols <@ %s AND c.started_at > %s GROUP BY c.call_id",
            [work.symbols, self.now - timedelta(days=7)],
        )
        furthest = max((row.requests for row in before), default=0)
        return int(max(furthest, work.requests)) + 1 - work.requests

    def _again_at(self, work: Work) -> datetime:
        """Until when pages for the same pause: five minutes, doubling with each unfinished call that has made some."""
        ended = self._rows(
            "SELECT c.finished_at FROM pricing.collector_call_log c WHERE c.failure_kind = 'unfinished'"
            " AND c.symbols <@ %s AND c.started_at > %s"
            " AND EXISTS (SELECT FROM pricing.collector_call_log p WHERE p.page_of = c.call_id) ORDER BY 1",
            [work.symbols, self.now - timedelta(days=7)],
        )
        if not ended:
            return self.now
        return ended[-1].finished_at + min(timedelta(minutes=5 * 2 ** (len(ended) - 1)), timedelta(days=1))  # type: ignore[no-any-return]

    def _most(self, work: Work) -> int:
        """How many more requests the limits let a call make in its time, if it alone makes some."""
        charges, at, made = self._charges(), self.now, 0
        until = work.began + timedelta(seconds=MOST_SECONDS)
        while at < until and made < 50:
            if self._free(charges, at) >= 1:
                charges, made = [*charges, at], made + 1
            else:
                at += timedelta(seconds=0.5)
        return made

    def _charges(self) -> list[datetime]:
        return [row.started_at for row in self._rows("SELECT started_at FROM pricing.collector_call_log")]

    def _free(self, charges: list[datetime], at: datetime) -> int:
        return min(
            units - sum(charge > at - window for charge in charges) - (self._late(window) if at == self.now else 0)
            for units, window in ((4, MINUTE), (20, HOUR))
        )

    def _late(self, window: timedelta) -> int:
        """Calls that began before a window and ended in it: they may have reached the provider in it."""
        return len(
            self._rows(
                "SELECT FROM pricing.collector_call_log WHERE started_at > %s AND started_at <= %s"
                " AND coalesce(finished_at, 'infinity') > %s",
                [self.now - window - timedelta(seconds=5), self.now - window, self.now - window],
            )
        )

    def _check_windows(self) -> None:
        charges = self._charges()
        assert sum(charge > self.now - timedelta(seconds=60) for charge in charges) <= 4
        assert sum(charge > self.now - timedelta(seconds=3600) for charge in charges) <= 20

    def _state(self) -> Any:
        return self._rows("SELECT * FROM pricing.provider_state WHERE provider = 'alpha'")[0]

    # The database

    def _fail(self, work: Work, kind: str, retry_after: float | None) -> None:
        """What a worker does with a call that failed as a whole."""
        self.works.remove(work)
        is_owned = self._owned(work)
        self.connection.execute(
            "SELECT pricing.settle_call(%s, 'failed', 500, 10, 'why', %s, %s)",
            [work.call_id, kind if is_owned else None, is_owned],
        )
        self.connection.execute(
            "SELECT pricing.fail_tasks(%s, %s, %s, 'why', false, make_interval(secs => %s))",
            [work.ids, work.token, kind, retry_after],
        )

    def _set_clock(self) -> None:
        self.connection.execute("UPDATE pricing.frozen_clock SET at = %s", [self.now])

    def _rows(self, sql: str, parameters: Any = ()) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(sql, parameters).fetchall()


@pytest.fixture
def world(owner_url: str) -> Iterator[Connection[Any]]:
    """A session of a database with one provider of our own, whose clock stands still."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE pricing.frozen_clock AS SELECT clock_timestamp() AS at")
        connection.execute(
            "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'"
        )
        connection.execute(
            "INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('alpha', 'https://x.example')"
        )
        connection.execute(
            "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds)"
            " VALUES ('alpha', 'minute', 4, 60), ('alpha', 'hour', 20, 3600)"
        )
        connection.execute(
            "INSERT INTO pricing.provider_capabilities"
            " (provider, fetcher, batch_size, window_batch_size, units_per_call, units_per_symbol)"
            " VALUES ('alpha', 'quote', 2, 1, 1, 0)"
        )
        yield connection


def test_a6_pages_keep_to_limits_and_none_stands_still(world: Connection[Any]) -> None:
    class Machine(PageMachine):
        connection = world

    run_machine(Machine, examples(10), steps=30)
