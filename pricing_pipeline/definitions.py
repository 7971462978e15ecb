"""Assembles what Dagster loads. Explicit lists; nothing is found by itself."""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.definitions_load_context import (  # internal, hence the exact pin
    DefinitionsLoadContext,
    DefinitionsLoadType,
)

from pricing_pipeline.defs import exports
from pricing_pipeline.defs.alerts_sensor import report_alerts
from pricing_pipeline.defs.assets import latest_price_assets, months, price_history_assets, source_assets
from pricing_pipeline.defs.checks import check_schedule, price_checks
from pricing_pipeline.defs.commodity_sync import commodity_lists, is_wanted, sync_schedule
from pricing_pipeline.defs.drain_sensor import refresh_watched
from pricing_pipeline.defs.exports import export_assets, export_schedule
from pricing_pipeline.defs.failures_sensor import note_failures
from pricing_pipeline.defs.freshness_sensor import report_freshness
from pricing_pipeline.defs.jobs import refresh_job
from pricing_pipeline.defs.pruning import prune_dagster
from pricing_pipeline.defs.registry_sensor import follow_registry
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.defs.schedules import scheduled_refreshes
from pricing_pipeline.defs.snapshot import RegistrySnapshot, take
from pricing_pipeline.defs.sources import provider_checks, report_sources
from pricing_pipeline.defs.trading_days import extend_calendars
from pricing_pipeline.defs.trouble import end_silent_runs
from pricing_pipeline.settings import load_settings_as_guest

_SNAPSHOT = "pricing/registry"


def build(snapshot: RegistrySnapshot) -> dg.Definitions:
    """Definitions for one state of the registry. An empty one has only the sensor that waits for types."""
    database = PricingDatabase()
    resources = {
        "database": database,
        "providers": Providers(database=database),
        "allowances": Allowances(database=database),
        # Nothing goes through it. Dagster's own writes files, to a folder that a run's config may name.
        "io_manager": dg.mem_io_manager,
    }
    if not snapshot.data_types:
        return dg.Definitions(sensors=[follow_registry(snapshot)], resources=resources)
    refreshes, unscheduled = scheduled_refreshes(snapshot)
    schedules = [*refreshes, check_schedule(snapshot)]
    sensors: list[dg.SensorDefinition] = [
        refresh_watched(snapshot),
        report_freshness(snapshot),
        report_sources(snapshot),
        report_alerts(snapshot),
        follow_registry(snapshot),
        prune_dagster(snapshot),
        extend_calendars,
        end_silent_runs,
    ]
    exported = [export_assets(snapshot, months)] if exports.is_wanted(snapshot) else []
    if exported:
        schedules.append(export_schedule(snapshot))
    lists = [commodity_lists()] if is_wanted(snapshot) else []
    if lists:
        schedules.append(sync_schedule())
    ticking = {sensor.name for sensor in sensors} | {schedule.name for schedule in schedules}
    sensors.append(note_failures(snapshot, ticking, unscheduled))
    return dg.Definitions(
        assets=[
            price_history_assets(snapshot),
            *latest_price_assets(snapshot, unscheduled),
            *source_assets(snapshot),
            *lists,
            *exported,
        ],
        jobs=[refresh_job(snapshot)],
        sensors=sensors,
        schedules=schedules,
        asset_checks=[price_checks(snapshot), provider_checks(snapshot)],
        resources=resources,
        executor=dg.in_process_executor,
    )


@dg.definitions
def definitions() -> dg.Definitions:
    """Load from the registry; in a run worker, from the copy its code location was built from."""
    load = DefinitionsLoadContext.get()
    # A code server that starts counts as reconstructing, too, but of nothing yet.
    handed_on = (
        load.reconstruction_metadata.get(_SNAPSHOT)
        if load.load_type is DefinitionsLoadType.RECONSTRUCTION
        else None
    )
    snapshot = RegistrySnapshot.from_json(handed_on) if handed_on else take(load_settings_as_guest())
    # From here it goes into every run's plan. (`Definitions.with_reconstruction_metadata` alone reaches nobody.)
    load.add_to_pending_reconstruction_metadata(_SNAPSHOT, snapshot.to_json())
    return build(snapshot)
