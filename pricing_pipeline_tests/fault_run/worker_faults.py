"""Faults of workers: killed, frozen, interrupted, misled."""

from __future__ import annotations

import os
import signal
import time

from pricing_pipeline_tests.fault_run.kinds import Scene, kind
from pricing_pipeline_tests.fault_run.stage import stopped
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.support.programs import faketime
from pricing_pipeline_tests.support.workers import Worker

_HALT_SECONDS = 4.0
"""So long a worker is waited for that is to halt at a point; another may have had all the work."""
POINTS = {
    "claimed": "after its claim, before its call",
    "answered": "after the answer, before its transaction",
    "stored": "behind the fence, before its commit",
    "committed": "after its commit",
}


def _halted(scene: Scene, point: str, **more: str) -> Worker | None:
    """A worker that has halted at this point, while the others have their share of the work."""
    worker = scene.stage.worker(halt=point, **more)
    ends = time.monotonic() + _HALT_SECONDS
    while time.monotonic() < ends:
        # A quote that is good throughout is stored and committed by one statement; of bars nothing is, before theirs.
        scene.load.work_for(DAILY if point == "stored" else QUOTE, 20)
        if worker.has_said("halted", 0.7):
            return worker
    worker.kill()
    scene.happened = False
    return None


def _kill_at(point: str) -> None:
    @kind(f"worker_killed_{point}", f"a worker is killed (SIGKILL) {POINTS[point]}", weight=5)
    def act(scene: Scene) -> None:
        if worker := _halted(scene, point):
            worker.kill()


def _freeze_at(point: str) -> None:
    @kind(
        f"worker_frozen_{point}",
        f"a worker is frozen (SIGSTOP) {POINTS[point]}; its lease ends, others recover its tasks, it goes on",
        weight=4,
    )
    def act(scene: Scene) -> None:
        if worker := _halted(scene, point, idle="500ms"):
            with stopped(worker.pid):
                _end_lease(scene, worker.name)  # type: ignore[attr-defined]
                time.sleep(scene.dice.uniform(0.6, 1.2))
            time.sleep(0.3)
            worker.kill()


for _point in POINTS:
    _kill_at(_point)
    _freeze_at(_point)


def _end_lease(scene: Scene, worker: str) -> None:
    """End the lease of a frozen worker's tasks, but for those that it keeps locked in a transaction."""
    scene.stage.core.rows(
        "UPDATE pricing.api_call_queue_live q SET lease_until = pricing.clock() - interval '1 second'"
        " FROM (SELECT id FROM pricing.api_call_queue_live"
        " WHERE worker = :worker AND status = 'processing' FOR UPDATE SKIP LOCKED) held WHERE q.id = held.id",
        worker=worker,
    )
    scene.stage.core.recover()


@kind("worker_killed_in_mid_call", "a worker is killed while its provider hangs")
def _mid_call(scene: Scene) -> None:
    scene.stage.sandbox.behave("hang", count=2)
    time.sleep(scene.dice.uniform(0.3, 1.0))
    scene.stage.a_worker(scene.dice.randrange(3)).kill()


@kind("worker_killed", "a worker is killed at a random moment", weight=8)
def _killed(scene: Scene) -> None:
    time.sleep(scene.dice.uniform(0, 0.5))
    scene.stage.a_worker(scene.dice.randrange(3)).kill()


@kind("all_workers_killed", "all workers are killed at once")
def _all_killed(scene: Scene) -> None:
    time.sleep(scene.dice.uniform(0, 0.5))
    workers = scene.stage.workers
    for worker in workers:
        worker.signal(signal.SIGKILL)
    for worker in workers:
        worker.kill()  # and wait until it is gone


@kind("worker_frozen", "a worker stands still for a moment and goes on", weight=6)
def _frozen(scene: Scene) -> None:
    with stopped(scene.stage.a_worker(scene.dice.randrange(3)).pid):
        time.sleep(scene.dice.uniform(0.3, 1.8))


@kind("worker_frozen_past_its_lease", "a working worker is frozen; its lease ends, others recover its tasks")
def _frozen_long(scene: Scene) -> None:
    worker = scene.stage.a_worker(scene.dice.randrange(3))
    scene.stage.sandbox.behave("delay", seconds=0.4, count=10)
    time.sleep(scene.dice.uniform(0.1, 0.6))
    with stopped(worker.pid):
        _end_lease(scene, worker.name)  # type: ignore[attr-defined]
        time.sleep(scene.dice.uniform(0.6, 1.2))
    time.sleep(0.5)


@kind("worker_interrupted", "a worker is told to stop (SIGINT) with calls in flight")
def _interrupted(scene: Scene) -> None:
    worker = scene.stage.a_worker(scene.dice.randrange(3))
    scene.stage.sandbox.behave("delay", seconds=0.5, count=4)
    time.sleep(scene.dice.uniform(0.1, 0.6))
    worker.signal(signal.SIGINT)
    time.sleep(0.3)
    worker.kill()


@kind("worker_without_names", "a worker cannot look up any provider's name (DNS fails)")
def _no_names(scene: Scene) -> None:
    worker = scene.stage.worker(sandbox="http://providers.invalid")
    time.sleep(scene.dice.uniform(0.6, 1.5))
    worker.kill()


@kind(
    "worker_with_a_wrong_clock",
    "a worker's clock is an hour wrong, in either direction",
    weight=1,
    needs=lambda stage: faketime() is not None,
)
def _wrong_clock(scene: Scene) -> None:
    offset = scene.dice.choice(["+3600s", "-3600s"])
    changed = {"LD_PRELOAD": str(faketime()), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        worker = scene.stage.worker(anew=True)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    time.sleep(2)
    worker.kill()
