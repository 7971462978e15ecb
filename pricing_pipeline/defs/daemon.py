"""`python -m pricing_pipeline.defs.daemon FRESH_START WORKSPACE`: prepare Dagster's storage, then run its daemon.

FRESH_START is a file that exists at a fresh start; it is removed when the storage is ready. WORKSPACE is the
workspace.yaml to serve.

If nobody prepared the storage, all processes of Dagster would create the missing tables at the same time. And a run
that was interrupted by a kill would count as running for ever, and take a place in the run queue. The daemon's process
prepares it, because another one would import Dagster once more, and that import is most of a start.

This daemon differs from Dagster's own:

- It keeps its connections. Dagster's own opens one for each query, several a second, which was half of the pipeline's
  cost while nobody watched anything.
- It serves only the runs, backfills, sensors and schedules of its workspace: our own, and those of the code locations
  in `workspace.d`. The owner of a shared storage upgrades it and tidies it up.
- It goes on when the machine's clock is set back. Dagster's own ticks no sensor and starts no queued run until the time
  of its last tick has come again.
- It ticks its sensors as soon as there is work or a price has changed, and otherwise every ten seconds. Dagster's own
  does every five seconds: the first viewer after a quiet time would wait for that, and twice as many ticks would be
  stored.
- After a start, only the sensor that a viewer waits for ticks for three seconds, and freshness is looked at after half
  a minute: the first reports on all assets would delay the first price.
- It looks for backfills every five seconds, not every thirty.
- It notes in the pricing database that the code location does not load, or that a sensor does not work. It has a code
  location that does not load loaded again every minute; Dagster's own waits for a person to do so.
- It lets a backfill wait while the code server is away. Dagster's own fails it and cancels its runs.
"""

import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import yaml

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import listen_url
from pricing_pipeline.db.wakeup import WakeUp
from pricing_pipeline.defs import internals
from pricing_pipeline.defs.internals import (
    GrpcServerCodeLocationOrigin,
    InstigatorState,
    RemoteSensor,
    WorkspaceFileTarget,
    WorkspaceProcessContext,
    capture_interrupts,
)
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.ours import CUT_OFF, DRAIN_TAG, LABEL, Beside, leave_others_alone, made_here, only
from pricing_pipeline.defs.snapshot import last_good
from pricing_pipeline.defs.storage import make_tables
from pricing_pipeline.defs.watching import start_watching
from pricing_pipeline.prices import changes
from pricing_pipeline.processes import process_log
from pricing_pipeline.processes.code_locations import OURS
from pricing_pipeline.settings import load_settings

_UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_BACKFILL_SECONDS = 5
_LEAST_PAUSE_SECONDS = 1.0
"""A sensor ticks at most once a second."""
_LONGER_SECONDS = 5.0
"""How much longer than Dagster's own a pause is in which nothing happens."""
_ALONE_SECONDS = 3.0
"""How long the sensor that a viewer waits for ticks alone after a start."""
_LOOK_SECONDS = 0.1
_STATEMENT_TIMEOUT_MS = 60_000
_RECYCLE_SECONDS = 3600
_MAX_OVERFLOW = 10
"""Connections beside the one that each of the three storages keeps; they close when they are given back."""


def main() -> None:
    """Prepare the storage if this is a fresh start, wait for the code server, and run the daemon."""
    process_log.start()
    logging.getLogger("dagster").propagate = False  # it has a handler of its own
    fresh_start, workspace = sys.argv[1:]
    if Path(fresh_start).exists():
        prepare(served(Path(workspace)).values())
        Path(fresh_start).unlink()
    # Dagster looks for a missing code server only once a minute.
    while not _listens(os.environ["PRICING_CODE_SOCKET"]):
        time.sleep(0.05)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), capture_interrupts(), dg.DagsterInstance.get() as instance:
        settings = load_settings()
        naming = Naming.of(settings)
        others = served(Path(workspace)).keys() - {OURS}
        beside = Beside(others)
        leave_others_alone(instance, lambda: last_good(settings, naming).data_types, naming, beside)
        instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _RECYCLE_SECONDS, _MAX_OVERFLOW)
        look_for_backfills_often()
        let_backfills_wait_for_the_code_server()
        go_on_when_the_clock_is_set_back()
        work = threading.Event()
        tick_when_there_is_work(work)
        tick_the_drains_first(naming)
        look_at_freshness_later()
        target = WorkspaceFileTarget([workspace])
        with (
            closing(WakeUp(make_engine(listen_url(settings), pool_size=1), work.set, changes.is_unnumbered)),
            # At its usual level it logs each look of each sensor, 20 MB a day. The UI shows the same as ticks.
            internals.controller.daemon_controller_from_instance(instance, target, log_level="warning") as controller,
        ):
            context = cast("WorkspaceProcessContext", controller._workspace_process_context)
            beside.look_at(context)
            start_watching(context, others)
            frugal = process_log.Frugal()
            for handler in logging.getLogger("dagster").handlers:
                handler.addFilter(frugal)
            controller.check_daemon_loop()


def look_for_backfills_often() -> None:
    """Look every five seconds. Dagster has no setting for that, and looks every thirty: twelve months that a person
    selects began up to half a minute later.
    """
    internals.controller.DEFAULT_DAEMON_INTERVAL_SECONDS = _BACKFILL_SECONDS


def let_backfills_wait_for_the_code_server() -> None:
    """Without this, Dagster takes the assets of a code server that is away for assets that no longer exist."""
    os.environ["DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR"] = "true"


def go_on_when_the_clock_is_set_back() -> None:
    """Measure Dagster's pauses by the monotonic clock, and tick a sensor whose last tick is in the future.

    After a step back by an hour, Dagster alone ticks no sensor and takes no run from the queue for an hour.
    """
    internals.daemon.time = SimpleNamespace(time=time.monotonic, sleep=time.sleep)  # type: ignore[assignment,attr-defined]
    elapsed = internals.sensor.get_elapsed

    def elapsed_or_unknown(state: InstigatorState) -> float | None:
        seconds = elapsed(state)
        return None if seconds is None or seconds < 0 else seconds

    internals.sensor.get_elapsed = elapsed_or_unknown


def tick_when_there_is_work(work: threading.Event) -> None:
    """End the pause of Dagster's sensors early when `work` is set, and late while nothing happens.

    95 of 100 first viewers had a price within 2.8 s, not 6.8 s (November 2026), and half as many ticks are stored.
    """
    loop = internals.sensor.execute_sensor_iteration_loop

    def until_work(workspace: Any, logger: logging.Logger, shutdown: threading.Event, **options: Any) -> Iterator[Any]:
        return loop(workspace, logger, _Pause(shutdown, work), **options)  # type: ignore[arg-type]

    internals.daemon.execute_sensor_iteration_loop = until_work  # type: ignore[assignment,attr-defined]


def tick_the_drains_first(naming: Naming) -> None:
    """Tick the sensor that a viewer waits for first in each round. Dagster shuffles the sensors.

    At first it ticks alone: the others report on all assets in their first ticks, and the first price would wait.
    """
    shuffled = internals.sensor.shuffled_round_robin_by_key  # type: ignore[attr-defined]
    alone_until = math.inf

    def drains_first(sensors: Iterable[RemoteSensor], **options: Any) -> list[RemoteSensor]:
        nonlocal alone_until
        now = time.monotonic()
        alone_until = min(alone_until, now + _ALONE_SECONDS)
        drains = naming.name("refresh_watched")
        ordered = sorted(shuffled(sensors, **options), key=lambda sensor: sensor.name != drains)
        return ordered[:1] if now < alone_until else ordered

    internals.sensor.shuffled_round_robin_by_key = drains_first  # type: ignore[assignment,attr-defined]


def look_at_freshness_later() -> None:
    """Let Dagster look for the first time after an interval: a first look writes an event for each asset, and the first
    price would wait.
    """
    daemon = internals.freshness.FreshnessDaemon
    look = daemon.run_iteration

    def pass_once(self: Any, workspace: Any) -> Iterator[None]:
        daemon.run_iteration = look  # type: ignore[method-assign]
        yield

    daemon.run_iteration = pass_once  # type: ignore[method-assign,assignment]


class _Pause:
    """The pause between two rounds of ticks: it ends when Dagster is stopped, and early when there is work.

    It ends early at most once in five seconds, so that endless work causes no more ticks than Dagster's own daemon.
    """

    def __init__(self, shutdown: threading.Event, work: threading.Event) -> None:
        self._shutdown = shutdown
        self._work = work
        self._early_again_at = 0.0

    def wait(self, timeout: float) -> None:
        """Wait some seconds longer than asked, or until the pause ends."""
        began = time.monotonic()
        ends = began + timeout + _LONGER_SECONDS
        early = max(began + _LEAST_PAUSE_SECONDS, self._early_again_at)
        while not self._shutdown.is_set() and (now := time.monotonic()) < ends:
            if self._work.is_set() and now >= early:
                self._early_again_at = now + internals.sensor.MIN_INTERVAL_LOOP_TIME
                break
            self._shutdown.wait(min(_LOOK_SECONDS, ends - now))
        self._work.clear()


def served(workspace: Path) -> Mapping[str, str | None]:
    """The code locations that such a workspace.yaml of `up` names: the socket of each that `up` itself starts."""
    entries = [entry["grpc_server"] for entry in yaml.safe_load(workspace.read_text())["load_from"]]
    return {entry["location_name"]: path if isinstance(path := entry.get("socket"), str) else None for entry in entries}


def prepare(sockets: Iterable[str | None] = ()) -> None:
    """Create or migrate our own storage, and end the runs that the last stop interrupted: ours, and those of `sockets`.

    A drain ends as cancelled, because its months must not turn red. A backfill ends as failed: cancelling its run would
    cancel its tasks, too, which are to be taken up again. A run of others fails, so that its owner sees it.
    """
    with dg.DagsterInstance.get() as instance:
        is_ours = made_here(instance)
        if is_ours:
            # dagster.yaml turns off the search for missing tables, which every tick would repeat.
            make_tables(os.environ["PRICING_DAGSTER_URL"])
            instance.upgrade()
        for run in instance.get_runs(only(dg.RunsFilter(statuses=_UNFINISHED), LABEL)):
            if is_ours or _is_of_this_home(run):
                end = instance.report_run_canceled if DRAIN_TAG in run.tags else instance.report_run_failed
                end(run, CUT_OFF)
        started = {socket for socket in sockets if socket is not None}
        for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)) if started else ():
            if _socket_of(run) in started:
                instance.report_run_failed(run, "the pipeline was stopped during this run")


def _is_of_this_home(run: dg.DagsterRun) -> bool:
    """Whether this home's code server launched a run: in a shared storage, others may run our code, too."""
    path = _socket_of(run)
    return path is not None and path == os.environ["PRICING_CODE_SOCKET"]


def _socket_of(run: dg.DagsterRun) -> str | None:
    """The socket of the code server that launched a run, if it has one."""
    if run.remote_job_origin is None:
        return None
    origin = run.remote_job_origin.repository_origin.code_location_origin
    return origin.socket if isinstance(origin, GrpcServerCodeLocationOrigin) else None


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


if __name__ == "__main__":
    main()
