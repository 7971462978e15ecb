"""Schedules: scheduled data types by their cron expression, in their own time zone."""

import logging
from datetime import UTC, datetime

import dagster as dg

from pricing_pipeline import demand
from pricing_pipeline.defs.assets import history_key
from pricing_pipeline.defs.jobs import drain_tags
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.domain import DataType

_LOG = logging.getLogger(__name__)


def scheduled_refreshes(snapshot: RegistrySnapshot) -> tuple[list[dg.ScheduleDefinition], dict[str, str]]:
    """One schedule for each scheduled data type, in the row's own time zone.

    Also why types have none whose row Dagster cannot follow: one bad row must not take all others down.
    """
    schedules, faults = [], {}
    for kind in snapshot.data_types:
        if kind.refresh_schedule is None:
            continue
        try:
            schedules.append(_schedule(kind))
        except dg.DagsterInvalidDefinitionError as error:
            faults[kind.data_type] = str(error)
            _LOG.warning("data type %s is not refreshed by its schedule: %s", kind.data_type, error)
    return schedules, faults


def _schedule(kind: DataType) -> dg.ScheduleDefinition:
    @dg.schedule(
        name=f"{kind.data_type}_schedule",
        job_name="refresh",
        cron_schedule=kind.refresh_schedule or "",
        execution_timezone=kind.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Queues every active instrument of {kind.data_type}, behind what people watch.",
    )
    def schedule(
        context: dg.ScheduleEvaluationContext, database: PricingDatabase
    ) -> dg.RunRequest | dg.SkipReason:
        with database.engine.begin() as connection:
            queued = demand.enqueue_scheduled(connection, kind.data_type)
        if not queued:
            return dg.SkipReason("every instrument of the type is queued already, or there is none")
        return dg.RunRequest(
            run_key=f"{kind.data_type}-{context.scheduled_execution_time.isoformat()}",
            partition_key=datetime.now(UTC).strftime("%Y-%m-01"),
            asset_selection=[history_key(kind.data_type)],
            tags={**drain_tags(), "pricing/queued": str(queued)},
        )

    return schedule
