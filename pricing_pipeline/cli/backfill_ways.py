"""The two ways of a backfill: as a run of Dagster that is followed from here, or in this process.

What is missing is decided by the database (`pricing.plan_backfill`), so both ways fetch the same, and only once.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from pricing_pipeline.cli.program import warn
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Progress, Request
from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.errors import DagsterUnreachable, DatabaseError, ProviderDown
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.providers.configured import sandbox_url
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import Settings

_FOLLOW_SECONDS = 0.5
_EXPLAINED_AFTER_SECONDS = 3.0
_ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})
_NOTHING_YET = Progress(0, 0, 0)

Show = Callable[[str, Progress], None]
"""Shows what goes on, and how far it is."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a backfill ended; without Dagster there is no run. `backfill_id` is None if nothing was planned."""

    backfill_id: UUID | None
    tasks: int
    open: int
    failed: int
    cancelled: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Instruments that were not asked for, by reason."""
    run_id: str | None = None
    run_url: str | None = None
    run_status: str | None = None
    reason: str | None = None
    """Why nothing was planned, where the run has said so."""

    @property
    def is_complete(self) -> bool:
        """Every task done. A run may still have failed after its last task: then its status says so."""
        return self.backfill_id is not None and self.open == self.failed == self.cancelled == 0


class Pauses:
    """Tells, once for each reason, why a backfill gets no further: its providers may not be called."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open = -1
        self._since = 0.0
        self._told: set[str] = set()

    def explain(self, backfill_id: UUID, progress: Progress) -> None:
        """Look for a reason when as many tasks are open as some seconds ago."""
        now = time.monotonic()
        if progress.open == 0 or progress.open != self._open:
            self._open, self._since = progress.open, now
        elif now - self._since >= _EXPLAINED_AFTER_SECONDS:
            self._since = now
            with self._engine.connect() as connection:
                reasons = backfills.waits_for(connection, backfill_id)
            for reason in (reason for reason in reasons if reason not in self._told):
                self._told.add(reason)
                warn(f"it waits: {reason}.")


def in_process(settings: Settings, engine: Engine, request: Request, show: Show) -> Outcome:
    """Plan and fetch here, within the limits and beside whoever else drains the queue.

    Raises ProviderDown when the sandbox is to be asked and does not run, and SettingsError when no provider of the
    data type has a key.
    """
    if settings.sandbox:
        _require_sandbox(settings)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    with (
        open_clients(settings, engine) as clients,
        Refresher(engine, clients, worker=worker) as refresher,
    ):
        plan = refresher.plan_backfill(request.type_.data_type, request.window, request.symbols)
        try:
            pauses = Pauses(engine)

            def look(progress: Progress) -> None:
                show("fetching", progress)
                pauses.explain(plan.id, progress)

            end = refresher.backfill(plan, look)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(
                "stopped. What is not fetched yet stays queued, for whoever drains the queue next."
            ) from stop
    return Outcome(plan.id, end.tasks, end.open, end.failed)


def in_dagster(
    webserver: Webserver, where: Location, engine: Engine, request: Request, show: Show
) -> Outcome:
    """Have Dagster do it, and follow until everything is fetched. Raises DagsterUnreachable when it refuses."""
    name = request.type_.data_type
    run_id = webserver.launch(where, name, request.window, request.symbols)
    show("starting", _NOTHING_YET)
    try:
        return _follow(webserver, engine, run_id, name, show)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(
            f"left. The run goes on: {webserver.run_url(run_id)}. `pricing-pipeline backfill list` has its backfill as "
            "soon as it begins, and `pricing-pipeline backfill cancel` ends it."
        ) from stop


def _follow(webserver: Webserver, engine: Engine, run_id: str, data_type: str, show: Show) -> Outcome:
    """Watch the tasks of a run's backfill until all are finished, or the run has ended without that.

    The run itself lives on for a while, to report each month to Dagster. While the webserver is away the tasks
    tell enough; while the database is away there is nothing but to wait.
    """
    backfill_id: UUID | None = None
    progress, pauses = _NOTHING_YET, Pauses(engine)
    is_warned = False
    status: str | None = "STARTING"
    while True:
        # Asked before the tasks are counted, so that what the run did before it ended is in the count.
        with suppress(DagsterUnreachable):
            status = webserver.status(run_id)
        try:
            with engine.begin() as connection:
                backfill_id = backfill_id or backfills.of_run(connection, run_id, data_type)
                if backfill_id is not None:
                    progress = backfills.progress(connection, backfill_id)
            if backfill_id is not None:
                pauses.explain(backfill_id, progress)
        except (DatabaseError, OperationalError) as error:
            if not is_warned:
                warn(f"{error} Waiting for it.")
            is_warned = True
        else:
            is_warned = False
            is_fetched = backfill_id is not None and progress.is_finished
            if is_fetched or status in _ENDED or status is None:
                url = webserver.run_url(run_id)
                reason = None
                if backfill_id is None:
                    with suppress(DagsterUnreachable):
                        reason = webserver.failure(run_id)
                return Outcome(
                    backfill_id,
                    progress.tasks,
                    progress.open,
                    progress.failed,
                    run_id=run_id,
                    run_url=url,
                    run_status=status,
                    reason=reason,
                )
        show(_phase(status, backfill_id is not None), progress)
        time.sleep(_FOLLOW_SECONDS)


def _phase(status: str | None, is_planned: bool) -> str:
    if is_planned:
        return "fetching"
    return "waiting for its turn" if status == "QUEUED" else "starting"


def _require_sandbox(settings: Settings) -> None:
    # Without this each task would be tried four times over minutes before it told that nobody listens there.
    address = urlsplit(sandbox_url(settings))
    try:
        socket.create_connection((address.hostname or "", address.port or 80), timeout=2).close()
    except OSError:
        raise ProviderDown(
            f"the sandbox at {address.geturl()} does not answer. Start it with `pricing-pipeline up` or "
            "`pricing-pipeline sandbox`, or set PRICING_SANDBOX=false to ask the real providers."
        ) from None
