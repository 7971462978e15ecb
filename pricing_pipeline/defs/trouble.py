"""The sensor `end_silent_runs`: ends runs that hang.

Dagster limits the time of a drain. A backfill may take days because of a provider's limits; but it reports its progress
every few seconds, also while it waits for a provider. So a backfill without a report for an hour hangs.

While the machine sleeps, or the database is away, every run is silent. So a run is ended only if it is found silent
twice, five minutes apart.
"""

import time

import dagster as dg

from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.ours import Ours, only

SILENCE_SECONDS = 3600.0


def end_silent_runs(naming: Naming) -> dg.SensorDefinition:
    """The sensor that ends runs that hang."""

    @dg.sensor(
        name=naming.name("end_silent_runs"),
        minimum_interval_seconds=300,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Fails backfills that have reported nothing for an hour, so that they do not block other runs.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        ours = only(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]), Ours.of(context, naming).label)
        backfills = (run for run in context.instance.get_runs(ours) if _is_backfill(run, naming))
        silent = [run for run in backfills if _is_silent(context.instance, run)]
        warned = set((context.cursor or "").split())
        hanging = [run for run in silent if run.run_id in warned]
        for run in hanging:
            context.instance.report_run_failed(
                run,
                "It has reported nothing for an hour. Its tasks stay in the queue, and drains work at them.",
            )
        left = [run.run_id for run in silent if run not in hanging]
        context.update_cursor(" ".join(left))
        return dg.SkipReason(f"ended {len(hanging)} silent runs; {len(left)} more have five minutes to report")

    return sensor


def _is_backfill(run: dg.DagsterRun, naming: Naming) -> bool:
    chosen = run.asset_selection or ()
    return bool(chosen) and all(map(naming.is_stored, chosen))


def _is_silent(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    (newest,) = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    return time.time() - newest.timestamp > SILENCE_SECONDS
