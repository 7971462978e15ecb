"""The sensor `refresh_watched`: keeps one drain at work while there is something to fetch."""

from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.assets import months
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.ours import Ours, stored_key
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.schedules import MissedSlots
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.starting import is_on_its_way
from pricing_pipeline.defs.ticks import EVERY_LOOP
from pricing_pipeline.demand import drains, staleness
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.operations import health
from pricing_pipeline.queue import limits

# A tick comes every five seconds, and a launch takes three to nine: requested this early, the successor is in time.
_HAND_OVER_SECONDS = 15.0
# If a drain fails at its start, not every tick may launch it again.
_LEAST_SECONDS_BETWEEN = 10.0


@dataclass(frozen=True)
class _Requested:
    """The cursor of the drain sensor: when it last requested a drain, in Unix seconds."""

    at: cursors.Moment


def refresh_watched(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that requests runs of the refresh job for watched and held pairs and for missed slots of schedules."""
    known = {kind.data_type: kind for kind in snapshot.data_types}
    schedules = MissedSlots(snapshot)
    partitions = months(snapshot)

    @dg.sensor(
        name="refresh_watched",
        job_name="refresh",
        minimum_interval_seconds=EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds watched and held prices that are due, queues them most-watched first, serves slots that a "
        "schedule has missed, and keeps one drain at work.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, database: PricingDatabase
    ) -> dg.SensorResult | dg.SkipReason:
        with health.ticking(database.engine, "refresh_watched"):
            with database.engine.begin() as connection:
                staleness.run_duties(connection)
            with database.engine.begin() as connection:
                staleness.enqueue_due(connection)
            schedules.serve(database.engine)
            cancel_with_runs(context.instance, database.engine)
            with database.engine.connect() as connection:
                outlook = drains.outlook(connection)
            last = cursors.read(context, _Requested)
            requested = last.at if last else 0.0
            is_coming = is_on_its_way(context.instance, database.engine, Ours.of(context, ()).label)
            idle = _why_idle(outlook, requested, is_coming)
            if idle is not None:
                with database.engine.connect() as connection:
                    stops = [allowance.stop for allowance in limits.allowances(connection)]
                return dg.SkipReason("; ".join([idle, *filter(None, stops)]))
            # A drain serves all types, also those that are not loaded yet, but a run must select loaded ones.
            wanted = ({*(outlook.queued_types or ())}, {*(outlook.watched_types or ())})
            names = next(filter(None, (names & known.keys() for names in wanted)), known.keys())
            kinds = [known[name] for name in sorted(names)]
            has_months = any(kind.contents is Contents.PRICES for kind in kinds)
            request = dg.RunRequest(
                run_key=_run_key(outlook, requested),
                # By Dagster's clock, because the database's may be ahead.
                partition_key=partitions.get_last_partition_key() if has_months else None,
                asset_selection=[stored_key(kind) for kind in kinds],
                tags=drain_tags(context.instance, database.engine),
            )
            return dg.SensorResult(run_requests=[request], cursor=cursors.dump(_Requested(outlook.now_epoch)))

    return sensor


def _why_idle(outlook: drains.Outlook, requested: float, is_on_its_way: bool) -> str | None:
    """Why no run is needed now; None if one is. `requested` is the time of the last request, in Unix seconds."""
    if not outlook.watched and not outlook.queued:
        holdings = "; held pairs are fresh enough" if outlook.held else ""
        return f"nobody watches anything and nothing is queued{holdings}"
    if is_on_its_way:
        return "a drain is queued or starting"
    left = outlook.drain_seconds_left or 0.0
    if left > _HAND_OVER_SECONDS:
        return f"a drain is at work for another {left:.0f} s"
    # A request in the future was made before the database's clock was set back.
    if 0 <= outlook.now_epoch - requested < _LEAST_SECONDS_BETWEEN:
        return "a drain was requested a moment ago, and has ended or failed"
    return None


def _run_key(outlook: drains.Outlook, requested: float) -> str:
    """A key that is the same for two ticks with the same state, so that Dagster launches one run for both."""
    return f"after-request-{requested:.3f}" if requested else f"first-{outlook.now_epoch:.3f}"
