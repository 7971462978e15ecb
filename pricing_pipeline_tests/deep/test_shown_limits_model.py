"""A6: claims keep to the lesser of what is written and what was shown, against a plain model, in any order.

Headers are texts, hostile ones among them. A claim takes exactly what the model allows: never more, and never less, so
no hint makes work stand still for longer than its window, and none outlives its day.
"""

from __future__ import annotations

from collections.abc import Iterator
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

from pricing_pipeline.providers.base import shown_limit
from pricing_pipeline_tests.fixtures.core import QUOTE, symbols
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

START = datetime(2026, 3, 10, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOWS = {"minute": 60, "hour": 3600}
BATCH = 2
DEAREST = 3
"""What the dearest call costs. It is never made, and a limit that does not pay for it is not believed."""
TEXTS = ["0", "-1", "1000000000", "8; DROP TABLE x", "2", "3", "5", "8", "20", "21", "999999999"]
NAMED = st.builds(
    lambda units, seconds: {"ratelimit-limit": f"{units}, {units};w={seconds}"},
    st.sampled_from(["3", "5", "8", "8", "15"]),
    st.sampled_from([60, 60, 3600]),
)
HOSTILE = st.one_of(
    st.builds(lambda text: {"x-ratelimit-limit": text}, st.sampled_from(TEXTS)),
    st.builds(
        lambda units, seconds: {"ratelimit-limit": f"{units}, {units};w={seconds}"},
        st.sampled_from(TEXTS),
        st.sampled_from([60, 3600, 10, 86_400]),
    ),
    st.builds(
        lambda used, left: {"api-credits-used": used, "api-credits-left": left},
        st.sampled_from(TEXTS),
        st.sampled_from(TEXTS),
    ),
)
HEADERS = st.one_of(NAMED, NAMED, HOSTILE)


class HintMachine(RuleBasedStateMachine):
    """A provider with a limit of a minute and one of an hour; each task costs a unit."""

    connection: Connection[Any]

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.open: list[int] = []
        self.claimed: list[datetime] = []
        self.written = {"minute": 20, "hour": 60}
        self.shown: dict[str, tuple[int, datetime]] = {}
        for statement in (
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.api_data_usage,"
            " pricing.limit_counts, pricing.shown_limits",
            "DELETE FROM pricing.provider_keys WHERE provider = 'alpha'",
            "UPDATE pricing.provider_limits SET units = CASE name WHEN 'minute' THEN 20 ELSE 60 END"
            " WHERE provider = 'alpha'",
            "UPDATE pricing.provider_state SET claims = 0, last_call_at = NULL WHERE provider = 'alpha'",
        ):
            self.connection.execute(statement)
        self._move(timedelta())
        self._queue()
        self.claim(1)

    @rule(calls=st.sampled_from([1, 1, 1, 2, 1000]))
    def claim(self, calls: int) -> None:
        room = min(self._room(), calls * BATCH)
        found = self._rows(f"SELECT call_id, ids FROM pricing.claim_calls('alpha', 'w', {calls})")
        taken = sum(len(call.ids) for call in found)
        assert taken == room, (self.shown, self.written)
        self.open += [call.call_id for call in found]
        self.claimed += [self.now] * taken
        self._queue()

    @precondition(lambda self: self.open)
    @rule(headers=HEADERS, is_refused=st.booleans(), is_owned=st.sampled_from([True, True, True, False]))
    def answer(self, headers: dict[str, str], is_refused: bool, is_owned: bool) -> None:
        """Settled as settling.py does it."""
        hint = shown_limit(headers, is_refused=is_refused)
        call = self.open.pop()
        failed = ["failed", "why", "request_refused"] if is_refused else ["ok", None, None]
        self.connection.execute(
            "SELECT pricing.settle_call(%s, %s, 200, 10, %s, %s, %s, NULL, %s, %s)",
            [call, *failed, is_owned, *(hint or (None, None))],
        )
        if is_owned and hint is not None:
            self._note(*hint)

    @rule(name=st.sampled_from(sorted(WINDOWS)), units=st.sampled_from([3, 8, 20, 60]))
    def write(self, name: str, units: int) -> None:
        self.connection.execute(
            "UPDATE pricing.provider_limits SET units = %s WHERE provider = 'alpha' AND name = %s",
            [units, name],
        )
        self.written[name] = units
        self.shown.pop(name, None)

    # By twelves: in the six seconds after a window a call may count or not, for it arrives later than it is claimed.
    @rule(seconds=st.sampled_from([12, 24, 48, 72, 3000, 3612, 43_200, 86_388, 86_412]))
    def advance(self, seconds: int) -> None:
        self._move(timedelta(seconds=seconds))

    @precondition(lambda self: self.shown)
    @rule(seconds=st.sampled_from([86_388, 86_412]))
    def wait_a_day(self, seconds: int) -> None:
        """What was shown is kept to for a day, and no longer."""
        self.advance(seconds)

    @invariant()
    def the_room_is_that_of_the_model(self) -> None:
        (allowed,) = self._rows("SELECT units_left FROM pricing.key_allowances('alpha', pricing.clock())")
        assert max(0, allowed.units_left) == self._room(), (self.shown, self.written)

    # The model

    def _room(self) -> int:
        return max(0, min(self._units(name) - self._used(name) for name in WINDOWS))

    def _note(self, units: int, seconds: int | None) -> None:
        names = {None: "hour", 60: "minute", 3600: "hour"}
        name = names.get(seconds)
        if name is None:
            return
        if units >= self.written[name]:
            self.shown.pop(name, None)
            return
        before = self.shown.get(name)
        if before is None or before[0] != units or before[1] < self.now - timedelta(minutes=1):
            self.shown[name] = (units, self.now)

    def _units(self, name: str) -> int:
        units, at = self.shown.get(name, (0, START))
        is_believed = units >= DEAREST and at > self.now - DAY
        return min(units, self.written[name]) if is_believed else self.written[name]

    def _used(self, name: str) -> int:
        since = self.now - timedelta(seconds=WINDOWS[name] + 0.005)
        return sum(at > since for at in self.claimed)

    # The database

    def _queue(self) -> None:
        """There is always more to do than any limit allows."""
        self.connection.execute(
            "INSERT INTO pricing.api_call_queue_live"
            " (data_type, symbol, window_start, window_end, provider, priority, est_bytes, enqueued_at)"
            " SELECT %s, s, '-infinity', 'infinity', 'alpha', 1, 100, %s FROM unnest(%s::text[]) AS s"
            " ON CONFLICT DO NOTHING",
            [QUOTE, self.now, symbols(70, f"N{len(self.claimed)}X")],
        )

    def _move(self, step: timedelta) -> None:
        self.now += step
        self.connection.execute("UPDATE pricing.frozen_clock SET at = %s", [self.now])

    def _rows(self, sql: str) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(sql).fetchall()


@pytest.fixture
def world(owner_url: str) -> Iterator[Connection[Any]]:
    """A session of a database with a provider of our own, whose clock stands still."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        for statement in (
            "CREATE TABLE pricing.frozen_clock AS SELECT clock_timestamp() AS at",
            "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql VOLATILE"
            " SET search_path = '' AS 'SELECT at FROM pricing.frozen_clock'",
            # Calls stay open in this test, as many as limits let begin.
            "ALTER TABLE pricing.data_collectors DROP CONSTRAINT in_flight_is_sane",
            "INSERT INTO pricing.data_collectors (provider, base_url, max_in_flight)"
            " VALUES ('alpha', 'https://x.example', 100000)",
            "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds)"
            " VALUES ('alpha', 'minute', 20, 60), ('alpha', 'hour', 60, 3600)",
            "INSERT INTO pricing.provider_capabilities"
            " (provider, fetcher, batch_size, batch_from, window_batch_size, units_per_call, units_per_symbol)"
            f" VALUES ('alpha', 'quote', {BATCH}, 1, 1, 0, 1), ('alpha', 'daily_bars', 1, 1, 1, {DEAREST - 1}, 1)",
        ):
            connection.execute(statement)
        yield connection


def test_a6_claims_keep_to_the_lesser_of_what_is_written_and_shown(world: Connection[Any]) -> None:
    class Machine(HintMachine):
        connection = world

    run_machine(Machine, examples(100), steps=40)
