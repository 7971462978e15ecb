"""The job of drains."""

import dagster as dg

from pricing_pipeline.defs.draining import drain, refreshing
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.naming import REFRESH_JOB
from pricing_pipeline.defs.ours import DRAIN_TAG
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot

NO_RUN_RETRIES = {"dagster/max_retries": "0"}
"""Tags of a run that an instance with run retries does not retry.

A run of Dagster's own job gets them when it fails with a message: either a retry would not help, or the queue has
retried. `Failure(allow_retries=False)` is not enough: Dagster uses it only for retries of steps.
"""


def refresh_job(snapshot: RegistrySnapshot) -> dg.JobDefinition:
    """The job whose runs drain the queue. A run has one process, which starts in 2 s; one for each step took 7 s.

    It selects no assets: it serves all types, whose months differ. And `AutomationCondition.eager` would wait for each
    drain that selects an asset above and has no news about it. Dagster's own retries stay off: the queue retries,
    and two layers of retries would multiply.
    """
    naming = snapshot.naming

    @dg.op(
        name=naming.name("drain_queue"),
        required_resource_keys=needed(naming, PricingDatabase, Providers, Allowances),
    )
    def drain_queue(context: dg.OpExecutionContext) -> None:
        database = given(context, naming, PricingDatabase)
        providers, allowances = given(context, naming, Providers), given(context, naming, Allowances)
        reporter = Reporter(context, database.engine, allowances, snapshot.data_types, naming)
        with refreshing(context.run.run_id, database, providers, reporter) as refresher:
            drain(context, refresher, database.settings)

    @dg.job(
        name=naming.name(REFRESH_JOB),
        description=escaped(
            "Drains the fetch queue: most-watched first, inside every provider's limits, and for a bounded time. The "
            f"sensor {naming.name('refresh_watched')} launches it when there is work. To fill months, materialize the "
            "assets."
        ),
        tags={**NO_RUN_RETRIES, DRAIN_TAG: "true"},
        executor_def=dg.in_process_executor,
    )
    def refresh() -> None:
        drain_queue()

    return refresh
