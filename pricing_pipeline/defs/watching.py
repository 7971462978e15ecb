"""What does not work in Dagster, as its daemon sees it: code locations that do not load, and sensors that do not tick.

If a code location does not load, no sensor of it can report that. So the daemon of `up` looks in a thread of its own
and writes what it finds into the pricing database, where `pricing.health` reads it.
"""

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.defs.failures_sensor import first_line
from pricing_pipeline.defs.internals import (
    InstigatorState,
    InstigatorTick,
    InstigatorType,
    RemoteSensor,
    SensorInstigatorData,
    TickStatus,
    WorkspaceProcessContext,
)
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import dagster_failures
from pricing_pipeline.operations.dagster_failures import Kind
from pricing_pipeline.settings import load_settings

_LOG = logging.getLogger(__name__)
_EVERY_SECONDS = 5.0
_PATIENCE_SECONDS = 20.0
"""How long after its time a sensor may begin its tick. The daemon looks every ten seconds for sensors that are due."""
_VERIFY_SECONDS = 60.0
"""How often the stored failures are compared with what fails, even if nothing seems to change."""
_CLOCK_STEP_SECONDS = 5.0
_LOAD_AGAIN_SECONDS = 60.0
"""How often a code server is asked to load again what does not load."""

Failing = Mapping[Kind, Mapping[str, str]]
"""What fails of each kind: names, with reasons."""


def start_watching(workspace: WorkspaceProcessContext, others: Collection[str]) -> None:
    """Look until the process ends. The code locations `others` are not ours."""
    engine = make_engine(worker_url(load_settings()), pool_size=1)
    watch = LocationWatch(workspace, others)
    threading.Thread(target=_keep_looking, args=(watch, engine), name="watch", daemon=True).start()


def _keep_looking(watch: "LocationWatch", engine: Engine) -> None:
    while True:
        try:
            watch.look(engine)
        except (DatabaseError, DBAPIError) as error:
            _LOG.warning("what fails in Dagster cannot be read or noted: %s", error)
        except Exception:  # Dagster's own storage may be away, in more ways than one
            _LOG.exception("what fails in Dagster is not known")
        time.sleep(_EVERY_SECONDS)


class LocationWatch:
    """Looks at the code locations of a workspace and at their sensors, and notes what does not work."""

    def __init__(self, workspace: WorkspaceProcessContext, others: Collection[str] = ()) -> None:
        self._workspace, self._others = workspace, others
        self._loaded_at: dict[str, float] = {}
        self._ahead = time.time() - time.monotonic()
        self._noted: Failing | None = None
        self._compared_at = float("-inf")
        self._load_again_at = time.monotonic() + _LOAD_AGAIN_SECONDS

    def look(self, engine: Engine) -> Failing:
        """Look once, and note in the database what has changed."""
        failing = self.failing()
        is_due = time.monotonic() - self._compared_at >= _VERIFY_SECONDS
        if failing != self._noted or any(failing.values()) or is_due:
            with engine.begin() as connection:
                for kind, reasons in failing.items():
                    if reasons != dagster_failures.noted(connection, kind):
                        dagster_failures.note(connection, kind, reasons)
            engine.dispose()  # do not keep a session for minutes in which nothing changes
            self._noted, self._compared_at = failing, time.monotonic()
        self._load_again(failing[Kind.LOCATION])
        return failing

    def _load_again(self, locations: Collection[str]) -> None:
        """Have code servers load once more what does not load: its cause may be gone, and no sensor of it can ask."""
        if locations and time.monotonic() >= self._load_again_at:
            for name in locations:
                self._workspace.reload_code_location(name)
            locations = ()
        if not locations:
            self._load_again_at = time.monotonic() + _LOAD_AGAIN_SECONDS

    def failing(self) -> Failing:
        """What does not work now."""
        now = time.time()
        if abs(now - time.monotonic() - self._ahead) > _CLOCK_STEP_SECONDS:
            # The clock was set, or the machine slept: each sensor starts a new interval.
            self._ahead = now - time.monotonic()
            self._loaded_at.clear()
        known = self._workspace.create_request_context().get_code_location_entries()
        # Failures of other owners' locations raise no alert; the UI shows them.
        entries = {name: entry for name, entry in known.items() if name not in self._others}
        locations = {name: first_line(entry.load_error) for name, entry in entries.items() if entry.load_error}
        sensors = [
            sensor
            for entry in entries.values()
            if entry.code_location is not None
            for repository in entry.code_location.get_repositories().values()
            for sensor in repository.get_sensors()
        ]
        return {Kind.LOCATION: locations, Kind.SENSOR: dict(self._idle(sensors, now))}

    def _idle(self, sensors: Sequence[RemoteSensor], now: float) -> Iterator[tuple[str, str]]:
        """The sensors that are switched on and have not worked since they were loaded, and why."""
        instance = self._workspace.instance
        states = {
            state.selector_id: state for state in instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
        }
        running = [
            sensor
            for sensor in sensors
            if sensor.get_current_instigator_state(states.get(sensor.selector_id)).is_running
        ]
        since = {sensor.name: self._loaded_at.get(sensor.name, now) for sensor in running}
        self._loaded_at = since
        for sensor in running:
            state = states.get(sensor.selector_id)
            if not _has_worked(state, since[sensor.name]):
                why = _why_idle(instance, sensor, since[sensor.name], now)
                if why is not None:
                    yield sensor.name, why


def _has_worked(state: InstigatorState | None, since: float) -> bool:
    """Whether a sensor has ticked since then, and its last tick has not failed. Its state says so without a query."""
    data = state.instigator_data if state is not None else None
    return (
        isinstance(data, SensorInstigatorData)
        and data.last_tick_success_timestamp is not None
        and data.last_tick_success_timestamp >= since
    )


def _why_idle(instance: dg.DagsterInstance, sensor: RemoteSensor, since: float, now: float) -> str | None:
    """Why a sensor does not work; None while it may still begin, and after a single failure among successes."""
    ticks = instance.get_ticks(sensor.get_remote_origin_id(), sensor.selector_id, limit=3)
    own = [tick for tick in ticks if tick.timestamp >= since]
    # A sensor that succeeded before the reload may also fail once.
    ended: list[InstigatorTick] = [tick for tick in ticks if tick.status is not TickStatus.STARTED][:2]
    if ended and ended[0] in own and all(tick.status is TickStatus.FAILURE for tick in ended):
        return f"fails: {first_line(ended[0].error)}"
    # After a tick it is due again only when its interval is over.
    due_at = max([since, *(tick.timestamp + sensor.min_interval_seconds for tick in ticks[:1])])
    if own or now <= due_at + _PATIENCE_SECONDS:
        return None
    return "has not ticked since the code location was loaded: read the log of dagster-daemon"
