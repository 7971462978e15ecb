"""Who has left is gone, and who has died is gone in time: leaving and expiry against a model that knows only the truth.

The model knows who looked at what and when. It knows nothing of demand, tasks and the duties that clean up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import create_engine, text

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

USERS = ("ann", "bob")
PAIRS = tuple((QUOTE, symbol) for symbol in ("AAPL", "META", "IBM"))
SILENCE, ROUND = timedelta(minutes=5), timedelta(minutes=1)
Some = st.sets(st.sampled_from(PAIRS), min_size=1)
Whoever = st.sampled_from(USERS)


class LeavingMachine(RuleBasedStateMachine):
    """Two viewers of three pairs, who come, leave, hold, and die without a word. Duties run all the while."""

    core: Core
    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.core.rows(
            "TRUNCATE pricing.api_call_queue, pricing.demand, pricing.active_subscriptions, pricing.holdings,"
            " pricing.pair_views, pricing.user_allowances, pricing.duties, pricing.pair_requests"
        )
        self.now = self.core.clock()
        self.seen: dict[tuple[str, tuple[str, str]], Any] = {}
        self.held: set[tuple[str, tuple[str, str]]] = set()
        self.wanted_at = dict.fromkeys(PAIRS, self.now - timedelta(days=1))

    @rule(user=Whoever, pairs=Some)
    def looks(self, user: str, pairs: set[tuple[str, str]]) -> None:
        self.core.heartbeat(user, *sorted(pairs))
        self.seen.update({(user, pair): self.now for pair in pairs})
        self._note()

    @rule(user=Whoever, pairs=Some)
    def leaves(self, user: str, pairs: set[tuple[str, str]]) -> None:
        self.core.unsubscribe(user, *sorted(pairs))
        for pair in pairs:
            self.seen.pop((user, pair), None)

    @rule(user=Whoever, pairs=Some)
    def holds(self, user: str, pairs: set[tuple[str, str]]) -> None:
        self.core.hold(user, *sorted(pairs))
        self.held |= {(user, pair) for pair in pairs}
        self._note()

    @rule(user=Whoever, pairs=Some)
    def releases(self, user: str, pairs: set[tuple[str, str]]) -> None:
        self.core.end_holding(user, *sorted(pairs))
        self.held -= {(user, pair) for pair in pairs}

    @rule(seconds=st.sampled_from([1, 30, 59, 61, 240, 299, 301, 420]))
    def time_passes(self, seconds: int) -> None:
        while seconds > 0:
            step = min(seconds, 60)
            seconds -= step
            self._note()
            self.clock.advance(step)
            self.now += timedelta(seconds=step)
            self.core.call("SELECT pricing.run_duties()")
        # What a user has not said again for so long may be gone, and is to be entered anew.
        there = self._watched()
        self.seen = {key: at for key, at in self.seen.items() if key in there or self.now - at <= SILENCE}

    @invariant()
    def whoever_left_is_gone_and_nobody_else(self) -> None:
        there = self._watched()
        assert there <= self.seen.keys(), "who left, or was told to be gone, is watching"
        assert {key for key, at in self.seen.items() if self.now - at <= SILENCE} <= there
        assert all(self.now - self.seen[key] <= SILENCE + ROUND for key in there), "the dead stay for ever"

    @invariant()
    def what_nobody_wants_is_not_fetched(self) -> None:
        demanded = {tuple(row) for row in self.core.rows("SELECT data_type, symbol FROM pricing.demand")}
        wanted = self._wanted()
        assert wanted <= demanded
        kept = {pair for pair in PAIRS if self.now - self.wanted_at[pair] <= 2 * ROUND}
        assert demanded <= wanted | kept
        waiting = {tuple(row) for row in self.core.rows("SELECT data_type, symbol FROM pricing.api_call_queue_live")}
        assert waiting <= demanded

    def _watched(self) -> set[tuple[str, tuple[str, str]]]:
        rows = self.core.rows("SELECT user_id, data_type, symbol FROM pricing.active_subscriptions")
        return {(user, (data_type, symbol)) for user, data_type, symbol in rows}

    def _wanted(self) -> set[tuple[str, str]]:
        return {pair for _, pair in self._watched() | self.held}

    def _note(self) -> None:
        self.wanted_at.update(dict.fromkeys(self._wanted(), self.now))


def test_b5_b8_after_a_client_has_left_or_died_nothing_of_it_stays_watched(core: Core, clock: Clock) -> None:
    clock.stop()

    class Machine(LeavingMachine):
        pass

    Machine.core, Machine.clock = core, clock
    run_machine(Machine, examples(20), steps=15)


MANY = 2000


@pytest.fixture
def early(database_url: str, connection: psycopg.Connection[Any], clock: Clock) -> Iterator[Core]:
    """A session of a worker whose plans are as old as it is: nobody watched anything then."""
    connection.execute("VACUUM ANALYZE")
    engine = create_engine(make_engine(database_url).url, pool_size=1, max_overflow=0)
    core = Core(engine, engine)
    for _ in range(8):
        core.heartbeat("bob", (QUOTE, "AAPL"))
        core.unsubscribe("bob", (QUOTE, "AAPL"))
        clock.advance(61)
        core.call("SELECT pricing.run_duties()")
        core.call("SELECT pricing.clean_subscriptions()")
        core.call("SELECT pricing.adopt_pairs()")
    core.heartbeat("ann", *((QUOTE, f"S{number:05}") for number in range(MANY)))
    yield core
    engine.dispose()


def reads(core: Core, sql: str, **parameters: Any) -> int:
    """How many rows a statement reads, in the one session of the core."""
    with core.engine.begin() as session:
        before = rows_read(session)
        session.execute(text(sql), parameters)
        return rows_read(session) - before


def test_b5_leaving_takes_as_long_as_what_is_left_is_many_also_where_it_was_planned_early(
    early: Core, connection: psycopg.Connection[Any]
) -> None:
    """It took 40 s for 10,000 pairs: the client had gone, and its rows were locked meanwhile."""
    left = {
        "data_types": [QUOTE] * MANY,
        "symbols": [f"S{number:05}" for number in range(MANY)],
    }
    seen = reads(early, "SELECT pricing.unsubscribe('ann', :data_types, :symbols)", **left)
    assert connection.execute("SELECT count(*) FROM pricing.active_subscriptions").fetchall() == [(0,)]
    assert seen < 20 * MANY


@pytest.mark.parametrize(("duty", "seconds"), [("adopt_pairs", 61), ("clean_subscriptions", 301)])
def test_b8_duties_about_viewers_read_rows_in_proportion_also_where_they_were_planned_early(
    early: Core, clock: Clock, duty: str, seconds: int
) -> None:
    clock.advance(seconds)
    assert reads(early, f"SELECT pricing.{duty}()") < 40 * MANY
