"""Assembles what Dagster loads, from explicit lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from pricing_pipeline.defs import exports
from pricing_pipeline.defs.alerts_sensor import report_alerts
from pricing_pipeline.defs.assets import (
    freshness_assets,
    latest_price_assets,
    months,
    source_assets,
    stored_assets,
)
from pricing_pipeline.defs.checks import check_schedule, price_checks
from pricing_pipeline.defs.commodity_sync import commodity_lists, is_wanted, sync_schedule
from pricing_pipeline.defs.drain_sensor import refresh_watched
from pricing_pipeline.defs.exports import export_assets, export_schedule
from pricing_pipeline.defs.failures_sensor import note_failures
from pricing_pipeline.defs.handing_on import handed_on
from pricing_pipeline.defs.jobs import refresh_job
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.pruning import prune_dagster
from pricing_pipeline.defs.registry_sensor import follow_registry
from pricing_pipeline.defs.report_sensor import report_prices
from pricing_pipeline.defs.resources import resources
from pricing_pipeline.defs.schedules import scheduled_refreshes
from pricing_pipeline.defs.snapshot import RegistrySnapshot, take
from pricing_pipeline.defs.sources import provider_checks, report_sources
from pricing_pipeline.defs.trading_days import extend_calendars
from pricing_pipeline.defs.trouble import end_silent_runs
from pricing_pipeline.settings import OWN, SettingsSource


def build_defs(
    *,
    prefix: str | Sequence[str] | None = None,
    variables: str = OWN.variables,
) -> dg.Definitions:
    """The pipeline's assets, checks, jobs, schedules, sensors and resources, to be merged with your definitions.

    They have neither an executor nor an IO manager, and need none of yours: our jobs bring their executor, and our
    assets store what they fetch themselves. Two pipelines fit into one project under two prefixes.

    The data types come from the pricing database when the code location loads. While it is away, the last copy
    in the home is used. A run has the definitions with which its code location was loaded.

    Args:
        prefix: What the keys of all assets begin with, such as "prices", "eu/prices" or ["eu", "prices"]. The names of
            jobs, schedules, sensors, ops, groups and resources begin with it, too: "eu_prices_refresh". None: the
            setting `PRICING_ASSET_PREFIX`, which commands and the HTTP API use, too; without it, no prefix.
        variables: The prefix of the environment variables with the settings. A second pipeline of
            the project has others: with "EU_PRICING_" its database is `EU_PRICING_DATABASE_URL`, its home
            `EU_PRICING_HOME`.

    Raises:
        SettingsError: A setting is wrong, the prefix is, or it is not the one of the settings.
    """
    source = SettingsSource(variables)
    with source.names_in_errors():
        settings = source.settings()
        naming = Naming.of(settings, prefix)
    key = f"pricing/{naming.name('registry')}"
    registry = RegistrySnapshot.from_json(handed_on(key, lambda: take(settings, naming, source).to_json()))
    return assembled(replace(registry, naming=naming, source=source))


def assembled(snapshot: RegistrySnapshot) -> dg.Definitions:
    """Definitions for one state of the registry. An empty one has only the sensor that waits for types."""
    naming = snapshot.naming
    bound = resources(naming, snapshot.source)
    if not snapshot.data_types:
        return dg.Definitions(sensors=[follow_registry(snapshot)], resources=bound)
    refreshes, unscheduled = scheduled_refreshes(snapshot)
    schedules = [*refreshes, check_schedule(snapshot)]
    sensors: list[dg.SensorDefinition] = [
        refresh_watched(snapshot),
        report_prices(snapshot),
        report_sources(snapshot),
        report_alerts(snapshot),
        follow_registry(snapshot),
        prune_dagster(snapshot),
        extend_calendars(naming),
        end_silent_runs(naming),
    ]
    exported = [export_assets(snapshot, months)] if exports.is_wanted(snapshot) else []
    if exported:
        schedules.append(export_schedule(snapshot))
    lists = [commodity_lists(snapshot)] if is_wanted(snapshot) else []
    if lists:
        schedules.append(sync_schedule(naming))
    ticking = {sensor.name for sensor in sensors} | {schedule.name for schedule in schedules}
    sensors.append(note_failures(snapshot, ticking, unscheduled))
    return dg.Definitions(
        assets=[
            stored_assets(snapshot),
            *latest_price_assets(snapshot, unscheduled),
            *freshness_assets(snapshot),
            *source_assets(snapshot),
            *lists,
            *exported,
        ],
        jobs=[refresh_job(snapshot)],
        sensors=sensors,
        schedules=schedules,
        asset_checks=[price_checks(snapshot), provider_checks(snapshot)],
        resources=bound,
    )
