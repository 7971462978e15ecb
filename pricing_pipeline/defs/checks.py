"""Asset checks: are viewers served on time? They run on a schedule of their own, not in each drain."""

from collections.abc import Iterator

import dagster as dg

from pricing_pipeline import demand
from pricing_pipeline.defs.assets import latest_key
from pricing_pipeline.defs.reports import serving, why_late
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.snapshot import RegistrySnapshot

CHECK = "on_time"


def on_time_checks(snapshot: RegistrySnapshot) -> dg.AssetChecksDefinition:
    """One check for each data type: no watched pair is late."""

    @dg.multi_asset_check(
        name="check_on_time",
        specs=[
            dg.AssetCheckSpec(
                CHECK,
                asset=latest_key(name),
                description="No watched price has been due for longer than max(30 s, TTL/4).",
            )
            for name in snapshot.names()
        ],
        can_subset=True,
    )
    def check_on_time(
        context: dg.AssetCheckExecutionContext, database: PricingDatabase
    ) -> Iterator[dg.AssetCheckResult]:
        names = sorted(key.asset_key.path[-1] for key in context.selected_asset_check_keys)
        with database.engine.connect() as connection:
            rows = demand.freshness(connection, names)
            late = {row.data_type: why_late(connection, row) for row in rows}
        for row in rows:
            yield dg.AssetCheckResult(
                check_name=CHECK,
                asset_key=latest_key(row.data_type),
                passed=row.late == 0,
                severity=dg.AssetCheckSeverity.WARN,
                description=_sentence(row),
                metadata={**serving(row), **late[row.data_type]},
            )

    return check_on_time


def check_schedule(snapshot: RegistrySnapshot) -> dg.ScheduleDefinition:
    """Check every hour while anyone watches anything."""
    job = dg.define_asset_job(
        "check_prices",
        selection=dg.AssetSelection.checks_for_assets(*(latest_key(name) for name in snapshot.names())),
        description="Evaluates the checks of latest prices.",
        executor_def=dg.in_process_executor,
    )

    @dg.schedule(
        name="check_prices",
        job=job,
        cron_schedule="17 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Checks hourly that watched prices are served on time.",
    )
    def schedule(database: PricingDatabase) -> dg.RunRequest | dg.SkipReason:
        with database.engine.connect() as connection:
            if not demand.outlook(connection).watched:
                return dg.SkipReason("nobody watches anything, so nothing can be late")
        return dg.RunRequest()

    return schedule


def _sentence(row: demand.Freshness) -> str:
    if row.late:
        return (
            f"{row.late} of {row.watched} watched prices are late. `pricing-pipeline why SYMBOL` says of each why, "
            "`pricing-pipeline status` which provider is throttled or out of quota."
        )
    if not row.watched:
        return "Nobody watches this type."
    return f"{row.watched} watched price{'s' if row.watched > 1 else ''}, none late."
