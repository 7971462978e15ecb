"""As many drains as have work are on their way, and never more: a model of ticks and runs."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import RANGE_START, Stage, a_run, an_instance, environment, move, stage
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support import backlogs
from pricing_pipeline_tests.support.machines import run_machine

__all__ = ["environment", "stage"]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:dagster")
DRAIN = {"pricing/drain": "true"}
QUEUED, STARTING, STARTED, SUCCESS, FAILURE = (
    dg.DagsterRunStatus[name] for name in ("QUEUED", "STARTING", "STARTED", "SUCCESS", "FAILURE")
)


class DrainMachine(RuleBasedStateMachine):
    """What sensor, schedule, run queue, runs and people do, in any order. Somebody watches all the while."""

    core: Core
    clock: Clock
    stage: Stage
    most: int

    def __init__(self) -> None:
        super().__init__()
        self.core.rows("TRUNCATE pricing.drains")
        backlogs.waiting(self.core)
        self.core.rows("UPDATE pricing.schedule_walks SET walk_slot = NULL, served_slot = '2026-01-01'")
        for run in self.stage.instance.get_runs():
            self.stage.instance.delete_run(run.run_id)
        self.cursor: str | None = None
        self.begun: dict[str, str] = {}

    def drains(self, *statuses: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
        return list(self.stage.instance.get_runs(dg.RunsFilter(statuses=statuses, tags=DRAIN)))

    def starting(self) -> list[dg.DagsterRun]:
        waiting = self.drains(QUEUED, STARTING)
        return waiting + [run for run in self.drains(STARTED) if run.run_id not in self.begun]

    def advance(self, source: dg.DagsterRunStatus, target: dg.DagsterRunStatus) -> None:
        for run in self.drains(source)[:1]:
            move(self.stage.instance, run, target)

    @rule()
    def the_sensor_ticks(self) -> None:
        self.core.heartbeat("ann", (QUOTE, "AAPL"))
        tick = self.stage.tick("refresh_watched", self.cursor)
        self.cursor = tick.cursor or self.cursor
        for request in tick.run_requests or ():
            a_run(self.stage.instance, QUEUED, request.tags)

    @rule()
    def a_slot_of_the_schedule_comes(self) -> None:
        self.core.rows("DELETE FROM pricing.api_call_queue_live WHERE data_type = 'mf_nav'")
        tick = self.stage.slot(f"{NAV}_schedule", self.clock.now())
        for request in tick.run_requests or ():
            a_run(self.stage.instance, QUEUED, request.tags)

    @rule()
    def a_drain_leaves_the_queue(self) -> None:
        self.advance(QUEUED, STARTING)

    @rule()
    def a_run_starts(self) -> None:
        self.advance(STARTING, STARTED)

    @rule()
    def a_run_begins_its_drain(self) -> None:
        for run in self.drains(STARTED):
            if run.run_id not in self.begun:
                begin = "SELECT pricing.begin_drain('one', :run, 120, NULL, :most)"
                drain = self.core.one(begin, run=run.run_id, most=self.most)
                if drain is None:
                    move(self.stage.instance, run, SUCCESS)  # enough are at work
                else:
                    self.begun[run.run_id] = drain

    @rule(is_well=st.booleans())
    def a_drain_ends(self, is_well: bool) -> None:
        for run in self.drains(STARTED)[:1]:
            if drain := self.begun.get(run.run_id):
                self.core.rows("SELECT pricing.end_drain(:drain)", drain=drain)
                move(self.stage.instance, run, SUCCESS if is_well else FAILURE)

    @rule()
    def a_drain_fails_before_it_begins(self) -> None:
        for run in self.starting()[:1]:
            move(self.stage.instance, run, FAILURE)

    @rule()
    def a_backfill_starts(self) -> None:
        a_run(self.stage.instance, STARTED, {RANGE_START: "2020-01-01"})

    @rule(seconds=st.sampled_from([4, 14, 105, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.core.rows(
            "UPDATE pricing.drains SET lease_until = pricing.clock() + interval '15 s' WHERE ends_at > pricing.clock()"
        )

    @rule()
    def two_ticks_later_all_that_have_work_are_at_work_or_on_their_way(self) -> None:
        self.clock.advance(11)
        self.the_sensor_ticks()
        at_work = self.core.one("SELECT pricing.lasting_drains()")
        assert len(self.starting()) + at_work >= self.core.one("SELECT pricing.wanted_drains(:most)", most=self.most)

    @invariant()
    def no_more_are_queued_starting_or_at_work(self) -> None:
        assert len(self.starting()) <= self.most
        assert self.core.one("SELECT pricing.lasting_drains()") <= self.most


@pytest.mark.parametrize("most", [1, 3])
def test_g3_b17_so_many_drains_are_on_their_way_whatever_happens(
    stage: Stage, core: Core, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Also when launching fails again and again: runs do not pile up."""
    clock.stop()
    monkeypatch.setenv("PRICING_MAX_DRAINS", str(most))
    backlogs.work_for_three(core)
    assert core.one("SELECT pricing.wanted_drains(:most)", most=most) == most
    core.rows("DELETE FROM pricing.api_call_queue_live")

    class Machine(DrainMachine):
        pass

    Machine.core, Machine.clock, Machine.stage, Machine.most = core, clock, stage, most
    with an_instance(tmp_path) as instance:
        stage.instance = instance
        run_machine(Machine, 5, steps=15)
