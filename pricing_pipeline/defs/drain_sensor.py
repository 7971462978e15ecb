"""The sensor `refresh_watched`: while there is something to fetch, keeps as many drains running as have work."""

from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.naming import REFRESH_JOB
from pricing_pipeline.defs.ours import Ours
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.schedules import MissedSlots
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.starting import on_their_way
from pricing_pipeline.defs.ticks import EVERY_LOOP
from pricing_pipeline.demand import drains, staleness
from pricing_pipeline.operations import health
from pricing_pipeline.queue import limits

# If a drain fails at its start, not every tick may launch it again.
_LEAST_SECONDS_BETWEEN = 10.0


@dataclass(frozen=True)
class _Requested:
    """The cursor of the drain sensor: when it last requested a drain, in Unix seconds."""

    at: cursors.Moment


def refresh_watched(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that requests runs of the refresh job for watched and held pairs and for missed slots of schedules."""
    naming = snapshot.naming
    schedules = MissedSlots(snapshot)

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("refresh_watched"),
        job_name=naming.name(REFRESH_JOB),
        minimum_interval_seconds=EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds watched and held prices that are due, queues them most-watched first, serves slots that a "
        "schedule has missed, and keeps as many drains at work as have work.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        with health.ticking(database.engine, "refresh_watched"):
            with database.engine.begin() as connection:
                staleness.run_duties(connection)
            with database.engine.begin() as connection:
                staleness.enqueue_due(connection)
            schedules.serve(database.engine)
            cancel_with_runs(context.instance, database.engine)
            last = cursors.read(context, _Requested)
            requested = last.at if last else 0.0
            # Counted before the working drains: a run that begins its drain in between is then counted twice, not
            # missed.
            coming = on_their_way(context.instance, database.engine, Ours.of(context, naming).label)
            with database.engine.connect() as connection:
                outlook = drains.outlook(connection)
                wanted, lasting = drains.needed(connection, database.settings.max_drains)
            missing = wanted - lasting - coming
            idle = _why_idle(outlook, requested, missing, coming)
            if idle is not None:
                with database.engine.connect() as connection:
                    stops = [standing.stop for standing in limits.standings(connection)]
                return dg.SkipReason("; ".join([idle, *filter(None, stops)]))
            tags = drain_tags(context.instance, database)
            requests = [
                dg.RunRequest(run_key=f"{_run_key(outlook, requested)}-{number}", tags=tags)
                for number in range(missing)
            ]
            return dg.SensorResult(run_requests=requests, cursor=cursors.dump(_Requested(outlook.now_epoch)))

    return sensor


def _why_idle(outlook: drains.Outlook, requested: float, missing: int, coming: int) -> str | None:
    """Why no run is needed now; None if some are. `requested` is the time of the last request, in Unix seconds.

    `missing` drains have work and are neither at work nor `coming`: queued or starting.
    """
    if not outlook.watched and not outlook.queued:
        holdings = "; held pairs are fresh enough" if outlook.held else ""
        return f"nobody watches anything and nothing is queued{holdings}"
    if missing <= 0 and coming:
        return "a drain is queued or starting"
    if missing <= 0:
        return f"a drain is at work for another {outlook.drain_seconds_left or 0.0:.0f} s"
    # A request in the future was made before the database's clock was set back.
    if 0 <= outlook.now_epoch - requested < _LEAST_SECONDS_BETWEEN:
        return "a drain was requested a moment ago, and has ended or failed"
    return None


def _run_key(outlook: drains.Outlook, requested: float) -> str:
    """A key that is the same for two ticks with the same state, so that Dagster launches one run for both."""
    return f"after-request-{requested:.3f}" if requested else f"first-{outlook.now_epoch:.3f}"
