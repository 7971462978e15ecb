"""D1: the cadences of slots against a plain model, in any order of times, viewers, schedules, answers and failures.

The model knows when each pair was last brought: by an answer of its own data type, or of one that asks for as many days
or more. A pair is queued if and only if somebody watches it and that is a TTL ago, or if a slot of its schedule is not
served yet. Whatever brings it ends its task, unless that is in work. Of what is queued the most watched goes first, and
then the faster cadence. No product is asked for twice at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.inventory import ProductDays
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import Unfinished
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling, writing
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.inventory import slot
from pricing_pipeline_tests.support.machines import run_machine
from pricing_pipeline_tests.support.slots_synced import MONTH, NOON, TODAY, WEEK, load_types, sell

DAYS = {TODAY: 1, WEEK: 7, MONTH: 30}
TTL = {TODAY: timedelta(minutes=15), WEEK: timedelta(hours=4), MONTH: timedelta(days=1)}
WATCHED, SCHEDULED = 1, -1
SNOOZE = timedelta(minutes=1)

Pair = tuple[str, str]


@dataclass
class Wanted:
    """A live task as the model knows it. `again_at`: it was asked for in vain, and waits until then at least."""

    priority: int
    since: datetime
    call: Call | None = None
    again_at: datetime | None = None


class CadenceMachine(RuleBasedStateMachine):
    """Two products of one partner, three data types each, on a clock that only the rules move."""

    core: Core
    clock: Clock
    products: list[str]

    def __init__(self) -> None:
        super().__init__()
        # Never back: that would be a step of the clock.
        self.now = NOON + timedelta(days=(self.core.clock() - NOON).days + 2)
        self.brought: dict[Pair, datetime] = {}
        self.wanted: dict[Pair, Wanted] = {}
        self.watched: set[Pair] = set()
        self.served = dict.fromkeys(DAYS, self.now - timedelta(days=1))
        self.core.rows(
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.confirmed_pairs, pricing.slot_windows, pricing.products, pricing.pair_requests,"
            " pricing.check_marks, pricing.api_data_usage, pricing.size_estimates, pricing.limit_counts CASCADE"
        )
        self.core.rows(
            "UPDATE pricing.provider_state SET claims = 0, last_call_at = NULL, page_call = NULL, page_until = NULL"
        )
        self.core.rows(
            "UPDATE pricing.schedule_walks SET served_slot = :at, walk_slot = NULL, walk_after = '', lap_start = '',"
            " wrapped = false",
            at=self.served[TODAY],
        )
        self._move(timedelta())

    # What happens

    @rule(data=st.data())
    def watch(self, data: st.DataObject) -> None:
        """Somebody begins to watch: a task of the pair that waits has a viewer now, however fresh the pair is."""
        pair = data.draw(st.sampled_from(self._pairs()))
        if pair not in self.watched and pair in self.wanted and not self.wanted[pair].call:
            self._want(pair, WATCHED)
        self.watched.add(pair)
        self._look()

    @precondition(lambda self: self.watched)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        pair = data.draw(st.sampled_from(sorted(self.watched)))
        self.watched.remove(pair)
        self.core.unsubscribe("ann", pair)

    @rule(minutes=st.sampled_from([1, 2, 7, 14, 15, 16, 61, 239, 241, 1439, 1441]))
    def advance(self, minutes: int) -> None:
        self._move(timedelta(minutes=minutes))
        self._look()

    @rule(data_type=st.sampled_from(sorted(DAYS)), late=st.sampled_from([0, 1, 5, 20]))
    def schedule(self, data_type: str, late: int) -> None:
        """A slot of the schedule is served, some minutes late: what came meanwhile serves it, too."""
        at = self.now - timedelta(minutes=late)
        if at <= self.served[data_type]:
            return
        self.served[data_type] = at
        with self.core.engine.begin() as connection:
            connection.exec_driver_sql("SELECT pricing.enqueue_scheduled(%s, %s)", (data_type, at))
        for pair in self._pairs():
            if pair[0] == data_type and self.brought.get(pair, NOON) < at:
                self._want(pair, SCHEDULED)

    @rule()
    def claim(self) -> None:
        claimed = self.core.claim("octo")
        in_work = {pair[1] for pair, wanted in self.wanted.items() if wanted.call}
        free = [pair for pair, wanted in self.wanted.items() if pair[1] not in in_work and wanted.again_at is None]
        assert bool(claimed) == bool(free)
        for call in claimed:
            (symbol,) = call.symbols
            first = min((-self.wanted[pair].priority, TTL[pair[0]]) for pair in free)
            assert (-self.wanted[call.data_type, symbol].priority, TTL[call.data_type]) == first
            self.wanted[call.data_type, symbol].call = call

    @precondition(lambda self: any(wanted.call for wanted in self.wanted.values()))
    @rule(data=st.data(), is_sold=st.booleans(), seconds=st.sampled_from([0, 20]))
    def answer(self, data: st.DataObject, is_sold: bool, seconds: int) -> None:
        pair = self._draw_in_work(data)
        self._move(timedelta(seconds=seconds))
        self._answer(pair, is_sold=is_sold)

    @rule()
    def work(self) -> None:
        """As mostly: what can be claimed is claimed and answered, one call after the other, until nothing is left."""
        while any(wanted.call or wanted.again_at is None for wanted in self.wanted.values()):
            self.claim()
            for pair in [pair for pair, wanted in self.wanted.items() if wanted.call]:
                self._answer(pair, is_sold=True)

    def _answer(self, pair: Pair, *, is_sold: bool) -> None:
        call = self.wanted[pair].call
        assert call is not None
        window = writing.prepare(self.core.engine, call).window
        assert window == Window(self.now.date(), self.now.date() + timedelta(days=DAYS[pair[0]] - 1))
        said = ProductDays(pair[1], window, (slot(window.start),) if is_sold else ())
        settling.settle_answer(self.core.engine, call, Fetched(Answer(records=(said,)), 200, 600))
        del self.wanted[pair]
        for data_type, days in DAYS.items():
            if days <= DAYS[pair[0]]:
                self.brought[data_type, pair[1]] = self.now
                self.wanted.pop((data_type, pair[1]), None)

    @precondition(lambda self: any(wanted.call for wanted in self.wanted.values()))
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        """It brings nothing, and is asked for again after a minute."""
        wanted = self.wanted[self._draw_in_work(data)]
        assert wanted.call is not None
        if self.now - wanted.since >= timedelta(hours=24):
            return  # it would die of its age, which is of no matter here
        settling.settle_failure(self.core.engine, wanted.call, Unfinished("no", retry_after=SNOOZE.total_seconds()))
        wanted.call, wanted.again_at = None, self.now + 1.2 * SNOOZE

    # What always holds

    @invariant()
    def what_is_queued_is_what_the_model_wants(self) -> None:
        live = {
            (task.data_type, task.symbol): (task.priority, task.status)
            for task in self.core.tasks()
            if task.status in ("pending", "processing", "scheduled")
        }
        assert live == {pair: (wanted.priority, self._status(wanted)) for pair, wanted in self.wanted.items()}

    @invariant()
    def what_is_fresh_is_what_the_model_says(self) -> None:
        told = self.core.rows(
            "SELECT t, s, pricing.is_pair_stale(t, s)"
            " FROM unnest(CAST(:types AS text[])) t, unnest(CAST(:symbols AS text[])) s",
            types=list(DAYS),
            symbols=self.products,
        )
        assert {(row[0], row[1]): row[2] for row in told} == {pair: self._is_stale(pair) for pair in self._pairs()}

    # The model

    def _pairs(self) -> list[Pair]:
        return [(data_type, symbol) for symbol in self.products for data_type in DAYS]

    def _is_stale(self, pair: Pair) -> bool:
        return pair not in self.brought or self.now - self.brought[pair] >= TTL[pair[0]]

    def _want(self, pair: Pair, priority: int) -> None:
        wanted = self.wanted.setdefault(pair, Wanted(priority, self.now))
        wanted.priority = max(wanted.priority, priority)

    def _status(self, wanted: Wanted) -> str:
        if wanted.call:
            return "processing"
        return "scheduled" if wanted.again_at else "pending"

    def _draw_in_work(self, data: st.DataObject) -> Pair:
        return data.draw(st.sampled_from(sorted(pair for pair, wanted in self.wanted.items() if wanted.call)))

    def _look(self) -> None:
        """Heartbeats and a staleness check: what is watched and stale is wanted."""
        if self.watched:
            self.core.heartbeat("ann", *sorted(self.watched))
        self.core.enqueue_due()
        for pair in sorted(self.watched):
            if self._is_stale(pair):
                self._want(pair, WATCHED)

    def _move(self, span: timedelta) -> None:
        """Time goes on, and workers renew their leases all the while."""
        self.now += span
        self.clock.set(self.now)
        for wanted in self.wanted.values():
            if wanted.call:
                self.core.extend(wanted.call)
            if wanted.again_at is not None and wanted.again_at <= self.now:
                wanted.again_at = None
        self.core.promote()


@pytest.fixture
def products(core: Core, clock: Clock) -> list[str]:
    load_types(core)
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'inventory'")
    clock.set(NOON)
    clock.stop()
    return sell(core, "octo", [1, 2])


def test_d1_the_faster_cadence_goes_first_and_what_a_wider_one_has_brought_is_not_asked_for(
    core: Core, clock: Clock, products: list[str]
) -> None:
    class Machine(CadenceMachine):
        pass

    Machine.core, Machine.clock, Machine.products = core, clock, products
    run_machine(Machine, examples(30), steps=30)
