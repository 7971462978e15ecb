"""The queue of Dagster's runs: how many runs of people leave it, and when it looks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import dagster as dg
import pytest
import yaml
from dagster._core.run_coordinator import SubmitRunContext
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._daemon import controller

from pricing_pipeline.defs import coordinator
from pricing_pipeline.defs.daemon import RunQueue, launch_as_soon_as_queued
from pricing_pipeline.defs.naming import PLAIN, Naming
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import RANGE_START, ROOT, a_daemon, a_run, move
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

    def submit(self, run: dg.DagsterRun) -> dg.DagsterRun:
        request = self._workspace.create_request_context()
        return self.instance.run_coordinator.submit_run(SubmitRunContext(run, request))

    def queued(self, tags: dict[str, str], job: str) -> dg.DagsterRun:
        return self.submit(a_run(self.instance, NOT_STARTED, tags, job))

    def look(self, pause: float) -> None:
        """Let the queue that the daemon's controller makes look once, after its pause in seconds."""
        list(self.of_daemon(pause).run_iteration(self._workspace))

    def look_while_there_is_more(self) -> None:
        self.look(pause=0.0)
        while coordinator.QUEUED.is_set():
            self.look(pause=0.0)

    def of_daemon(self, pause: float) -> RunQueue:
        return controller.QueuedRunCoordinatorDaemon(interval_seconds=pause)  # type: ignore[attr-defined,no-any-return]

    def look_at(self, look: RunQueue, at: float) -> None:
        """Let it look once, at a time in Unix seconds."""
        list(look.run_iteration(self._workspace, fixed_iteration_time=at))

    def launched(self) -> list[str]:
        return [run.run_id for run in self.instance.run_launcher.queue()]  # type: ignore[attr-defined]


@pytest.fixture
def queue(environment: None, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    # It is Dagster's own again at the end.
    monkeypatch.setattr(controller, "QueuedRunCoordinatorDaemon", controller.QueuedRunCoordinatorDaemon)
    launch_as_soon_as_queued()
    config = yaml.safe_load((ROOT / "dagster.yaml").read_text())["run_coordinator"]
    overrides = {
        "run_coordinator": config,
        "run_launcher": {"module": "dagster._core.test_utils", "class": "MockedRunLauncher"},
        "telemetry": {"enabled": False},
    }
    with (
        dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance,
        a_daemon(instance) as workspace,
    ):
        coordinator.QUEUED.clear()
        yield Queue(instance, workspace)


@pytest.mark.parametrize("at_work", [0, 1, 2])
def test_g3_g6_whatever_people_start_two_runs_of_theirs_work_and_a_drain_never_waits(
    queue: Queue, at_work: int
) -> None:
    for job, tags in BY_HAND[:at_work]:
        move(queue.instance, queue.queued(tags, job), STARTED)
    waiting = {queue.queued(tags, job).run_id for job, tags in BY_HAND * 2}
    check = queue.queued({"dagster/priority": "5"}, "check_prices")
    # Materialize of the lists, and Execute of a check.
    lists = a_run(
        queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_selection=frozenset([PLAIN.commodity_lists])
    )
    one_check = frozenset([dg.AssetCheckKey(PLAIN.latest_key(QUOTE), "late_prices")])
    checked = a_run(queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_check_selection=one_check)
    short = [queue.submit(run) for run in (lists, checked)]
    drain = queue.queued({**DRAIN, "dagster/priority": "10", "dagster/partition": "2026-11-01"}, "refresh")
    queue.look_while_there_is_more()
    launched = queue.launched()
    assert launched[:2] == [drain.run_id, check.run_id]
    assert len(waiting & {*launched}) == 2 - at_work
    assert {run.run_id for run in short} <= {*launched}
    stranger = queue.submit(a_run(queue.instance, NOT_STARTED, location="theirs"))
    marked = {run.run_id for run in queue.instance.get_runs(dg.RunsFilter(tags={"pricing/by-hand": "true"}))}
    assert waiting <= marked
    assert marked.isdisjoint(run.run_id for run in (drain, check, stranger, *short))


def test_g8_runs_of_people_are_told_apart_under_a_prefix_too(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_ASSET_PREFIX", "eu/prices")
    chosen = frozenset([Naming.under("eu/prices").commodity_lists])
    lists = queue.submit(a_run(queue.instance, NOT_STARTED, job=ALL_ASSETS, asset_selection=chosen))
    short = [queue.queued({}, f"eu_prices_{job}") for job in ("check_prices", "sync_commodities")]
    by_hand = [queue.queued({}, job) for job in ("eu_prices_refresh", "check_prices")]
    marked = {run.run_id for run in queue.instance.get_runs(dg.RunsFilter(tags={"pricing/by-hand": "true"}))}
    assert marked == {run.run_id for run in by_hand}
    assert marked.isdisjoint(run.run_id for run in (lists, *short))


def test_g3_a_run_that_the_daemon_queues_is_launched_at_once(queue: Queue) -> None:
    look = Thread(target=queue.look, args=[3 * PATIENCE])
    look.start()
    drain = queue.queued(DRAIN, "refresh")
    look.join(PATIENCE)
    assert not look.is_alive()
    assert queue.launched() == [drain.run_id]


def test_g3_a_run_that_another_process_queues_is_launched_after_the_pause(queue: Queue) -> None:
    drain = queue.queued(DRAIN, "refresh")
    coordinator.QUEUED.clear()
    queue.look(pause=0.01)
    assert queue.launched() == [drain.run_id]


def test_g3_a_drain_that_is_queued_during_a_launch_is_the_next(queue: Queue) -> None:
    """A launch takes seconds. A drain waits for the end of one, not for those of all that was queued before."""
    by_hand = [queue.queued({}, ALL_ASSETS).run_id for _ in range(2)]
    queue.look(pause=0.0)
    drain = queue.queued({**DRAIN, "dagster/priority": "10"}, "refresh")
    queue.look(pause=0.0)
    queue.look(pause=0.0)
    assert queue.launched() == [by_hand[0], drain.run_id, by_hand[1]]
    assert not coordinator.QUEUED.is_set()


def test_g6_runs_stay_in_the_queue_while_the_code_server_is_away(queue: Queue) -> None:
    """Else each would fail as soon as its turn comes: all months of a backfill, one after the other."""
    runs = [queue.queued({}, ALL_ASSETS).run_id for _ in range(3)]
    away = queue.instance.run_launcher.bad_user_code_run_ids  # type: ignore[attr-defined]
    away.update(runs)
    look = queue.of_daemon(pause=0.0)
    for seconds in range(0, 240, 3):
        queue.look_at(look, 1_000_000.0 + seconds)
    assert {run.status for run in queue.instance.get_runs()} == {dg.DagsterRunStatus.QUEUED}
    away.clear()
    for seconds in (250, 251):
        queue.look_at(look, 1_000_000.0 + seconds)
    assert queue.launched() == runs[:2]
