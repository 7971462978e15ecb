"""The queue of Dagster's runs: how many runs of people and of others leave it, and that none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import dagster as dg
import pytest
import yaml
from dagster._core.launcher import LaunchRunContext
from dagster._core.run_coordinator import SubmitRunContext
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

from pricing_pipeline.defs.naming import PLAIN, Naming
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import RANGE_START, ROOT, a_daemon, a_run, an_instance, move
from pricing_pipeline_tests.support.patience import PATIENCE

DRAIN = {"pricing/drain": "true"}
NOT_STARTED, STARTED = dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED

ALL_ASSETS = "__ASSET_JOB"
BY_HAND = [
    (ALL_ASSETS, {"dagster/partition": "2020-01-01"}),  # Materialize of one month
    (ALL_ASSETS, {RANGE_START: "2020-01-01"}),
    (ALL_ASSETS, {"dagster/backfill": "abc", "dagster/partition": "2020-01-01"}),
    (ALL_ASSETS, {}),  # documents, which have no months
    ("refresh", {"dagster/partition": "2020-01-01"}),
    ("refresh", {"dagster/backfill": "abc"}),
]
"""Job and tags of runs that the pages of the UI and Dagster's backfills launch."""


class Queue:
    """The run queue of dagster.yaml, and a launcher that only notes what it is to launch."""

    def __init__(self, instance: dg.DagsterInstance, workspace: WorkspaceProcessContext) -> None:
        self.instance = instance
        self._workspace = workspace
        # Made before the daemon's threads need it: each of those that are first at the same time would make its own.
        self._launcher = instance.run_launcher
        self._daemon = QueuedRunCoordinatorDaemon(interval_seconds=0)

    def submit(self, run: dg.DagsterRun) -> dg.DagsterRun:
        request = self._workspace.create_request_context()
        return self.instance.run_coordinator.submit_run(SubmitRunContext(run, request))

    def queued(self, tags: dict[str, str], job: str) -> dg.DagsterRun:
        return self.submit(a_run(self.instance, NOT_STARTED, tags, job))

    def look(self, at: float | None = None) -> None:
        """Let the queue look once, at a time in Unix seconds."""
        list(self._daemon.run_iteration(self._workspace, fixed_iteration_time=at))

    def launched(self) -> list[str]:
        return [run.run_id for run in self._launcher.queue()]  # type: ignore[attr-defined]


@pytest.fixture
def queue(environment: None, core: Core, tmp_path: Path) -> Iterator[Queue]:
    settings = {
        "run_coordinator": yaml.safe_load((ROOT / "dagster.yaml").read_text())["run_coordinator"],
        "run_launcher": {"module": "dagster._core.test_utils", "class": "MockedRunLauncher"},
    }
    with an_instance(tmp_path, **settings) as instance, a_daemon(instance) as workspace:
        yield Queue(instance, workspace)


@pytest.mark.parametrize("at_work", [0, 2])
def test_g3_g6_whatever_people_start_two_runs_of_theirs_work_and_a_drain_never_waits(
    queue: Queue, at_work: int
) -> None:
    for job, tags in BY_HAND[:at_work]:
        move(queue.instance, queue.queued(tags, job), STARTED)
    waiting = {queue.queued(tags, job).run_id for job, tags in BY_HAND}
    check = queue.queued({"dagster/priority": "5"}, "check_prices")
    # Materialize of the lists, and Execute of a check.
    lists = a_run(queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_selection=frozenset([PLAIN.commodity_lists]))
    one_check = frozenset([dg.AssetCheckKey(PLAIN.latest_key(QUOTE), "late_prices")])
    checked = a_run(queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_check_selection=one_check)
    short = [queue.submit(run) for run in (lists, checked)]
    drain = queue.queued({**DRAIN, "dagster/priority": "10", "dagster/partition": "2026-11-01"}, "refresh")
    queue.look()
    launched = queue.launched()
    assert {drain.run_id, check.run_id} <= {*launched}
    assert len(waiting & {*launched}) == 2 - at_work
    assert {run.run_id for run in short} <= {*launched}
    stranger = queue.submit(a_run(queue.instance, NOT_STARTED, location="theirs"))
    marked = {run.run_id for run in queue.instance.get_runs(dg.RunsFilter(tags={"pricing/by-hand": "true"}))}
    beside = queue.instance.get_runs(dg.RunsFilter(tags={"pricing/beside": "true"}))
    assert [run.run_id for run in beside] == [stranger.run_id]
    assert waiting <= marked
    assert marked.isdisjoint(run.run_id for run in (drain, check, stranger, *short))


def test_g8_runs_of_people_are_told_apart_under_a_prefix_too(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRICING_ASSET_PREFIX", "eu/prices")
    chosen = frozenset([Naming.under("eu/prices").commodity_lists])
    lists = queue.submit(a_run(queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_selection=chosen))
    short = [queue.queued({}, f"eu_prices_{job}") for job in ("check_prices", "sync_commodities")]
    by_hand = [queue.queued({}, job) for job in ("eu_prices_refresh", "check_prices")]
    marked = {run.run_id for run in queue.instance.get_runs(dg.RunsFilter(tags={"pricing/by-hand": "true"}))}
    assert marked == {run.run_id for run in by_hand}
    assert marked.isdisjoint(run.run_id for run in (lists, *short))


def test_g3_ten_runs_of_others_work_and_a_drain_never_waits(queue: Queue) -> None:
    for _ in range(12):
        queue.submit(a_run(queue.instance, NOT_STARTED, location="theirs"))
    drain = queue.queued(DRAIN, "refresh")
    queue.look()
    assert len(queue.launched()) == 11
    assert drain.run_id in queue.launched()


def test_g3_a_launch_that_takes_long_keeps_no_other_run_waiting(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch takes seconds, and minutes where a code server hangs."""
    slow = queue.queued({}, ALL_ASSETS).run_id
    drain = queue.queued({**DRAIN, "dagster/priority": "10"}, "refresh")
    launcher = queue.instance.run_launcher
    launch = launcher.launch_run
    launched = Event()

    def launch_run(context: LaunchRunContext) -> None:
        if context.dagster_run.run_id == slow:
            assert launched.wait(PATIENCE)
        launch(context)
        launched.set()

    monkeypatch.setattr(launcher, "launch_run", launch_run)
    queue.look()
    assert queue.launched() == [drain.run_id, slow]


def test_g6_runs_stay_in_the_queue_while_the_code_server_is_away(queue: Queue) -> None:
    """Else each would fail as soon as its turn comes: all months of a backfill, one after the other."""
    runs = [queue.queued({}, ALL_ASSETS).run_id for _ in range(3)]
    away = queue.instance.run_launcher.bad_user_code_run_ids  # type: ignore[attr-defined]
    away.update(runs)
    for seconds in range(0, 240, 60):
        queue.look(1_000_000.0 + seconds)
    assert {run.status for run in queue.instance.get_runs()} == {dg.DagsterRunStatus.QUEUED}
    away.clear()
    queue.look(1_000_000.0 + 250)
    assert {*queue.launched()} == {*runs[:2]}
