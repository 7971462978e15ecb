"""Prune Dagster's own storage, which would grow without end by the events of runs.

No data is lost: prices, calls and tasks are in the pricing database, with the ids of their runs. If a partition's last
event is deleted with its run, the partition is reported again, without a run.

In a shared storage only runs of our own code location are deleted. Reports without a run do not name their location,
so they are deleted only if `pricing-pipeline up` made the storage.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import dagster as dg
import sqlalchemy as sa
from sqlalchemy import Engine

from pricing_pipeline.defs.checks import CHECKS
from pricing_pipeline.defs.internals import (
    RUNLESS_RUN_ID,
    AssetCheckExecutionsTable,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
)
from pricing_pipeline.defs.naming import UNREAD_LISTS
from pricing_pipeline.defs.ours import DRAIN_TAG, Ours, made_here
from pricing_pipeline.defs.reports import asset_size, month_metadata
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.sources import AVAILABLE
from pricing_pipeline.domain.windows import Window, next_month
from pricing_pipeline.prices import price_reader

KEEP_DRAINS = timedelta(hours=6)
"""Drains that succeeded or were cancelled."""
KEEP_FAILED_DRAINS = timedelta(days=7)
KEEP_OTHERS = timedelta(days=90)
"""Backfills and all other runs that a person started."""
KEEP_REPORTS = timedelta(hours=24)
"""Runless reports about prices, freshness and sources, and Dagster's evaluations of freshness, also of lists."""
KEEP_CHECKS = timedelta(days=30)
"""Results of checks: numbers, texts and plots each hour."""
RUNS_AT_ONCE = 100

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.CANCELED]
_FAILED = [dg.DagsterRunStatus.FAILURE]

Partition = tuple[dg.AssetKey, str]


def prune_dagster(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that prunes a little at each tick."""

    naming = snapshot.naming

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("prune_dagster"),
        minimum_interval_seconds=600,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Removes old drains and reports of this code location from Dagster's storage; prices and their "
        "lineage stay.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        now = datetime.now(UTC)
        ours = Ours.of(context, naming, snapshot.data_types, snapshot.providers)
        runs = prune_runs(context.instance, ours, database.engine, now)
        if not made_here(context.instance):
            return dg.SkipReason(
                f"removed {runs} old runs; the storage was not made by `pricing-pipeline up`, so reports stay"
            )
        forget_moved(context.instance, ours)
        reports = prune_reports(context.instance, ours, now)
        return dg.SkipReason(f"removed {runs} old runs and {reports} old reports")

    return sensor


def prune_runs(instance: dg.DagsterInstance, ours: Ours, engine: Engine, now: datetime) -> int:
    """Delete our expired runs, at most RUNS_AT_ONCE of each kind; returns how many."""
    orphans: set[Partition] = set()
    count = 0
    for run in _old_runs(instance, ours, now):
        orphans.update(
            partition for partition in _partitions_of(instance, run.run_id) if partition[0] in ours.histories
        )
        instance.compute_log_manager.delete_logs(prefix=[run.run_id])
        instance.delete_run(run.run_id)
        count += 1
    _report_again(instance, engine, orphans)
    return count


def prune_reports(instance: dg.DagsterInstance, ours: Ours, now: datetime) -> int:
    """Delete old runless events about what is ours, and old results of checks; returns how many."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    told = ours.latest | ours.freshness | ours.histories | frozenset(ours.records)
    keys = [key.to_string() for key in told | ours.sources | {ours.naming.commodity_lists}]
    events = SqlEventLogStorageTable.c
    are_ours = sa.and_(events.run_id == RUNLESS_RUN_ID, events.asset_key.in_(keys))
    newest = (
        sa.select(sa.func.max(events.id))
        .where(are_ours)
        .group_by(events.asset_key, events.partition, events.dagster_event_type)
    )
    old = sa.delete(SqlEventLogStorageTable).where(
        are_ours, events.timestamp < (now - KEEP_REPORTS).replace(tzinfo=None), events.id.not_in(newest)
    )
    with storage.index_connection() as connection:
        removed = int(connection.execute(old).rowcount)
        return removed + int(connection.execute(_old_checks(keys, now)).rowcount)


def forget_moved(instance: dg.DagsterInstance, ours: Ours) -> None:
    """Remove keys of earlier releases from the catalog if no asset has them any more."""
    if left := list(filter(instance.has_asset_key, ours.moved)):
        instance.wipe_assets(left)


def _old_checks(keys: list[str], now: datetime) -> sa.Delete:
    """Deletes results of checks older than KEEP_CHECKS, except the last of each. Deleting runs does not delete them."""
    checks = AssetCheckExecutionsTable.c
    names = [*(check.name for check in CHECKS), AVAILABLE, UNREAD_LISTS]
    are_ours = sa.and_(checks.asset_key.in_(keys), checks.check_name.in_(names))
    newest = sa.select(sa.func.max(checks.id)).where(are_ours).group_by(checks.asset_key, checks.check_name)
    return sa.delete(AssetCheckExecutionsTable).where(
        are_ours, checks.create_timestamp < (now - KEEP_CHECKS).replace(tzinfo=None), checks.id.not_in(newest)
    )


def _old_runs(instance: dg.DagsterInstance, ours: Ours, now: datetime) -> Iterator[dg.DagsterRun]:
    for statuses, tags, keep in (
        (_ENDED, {DRAIN_TAG: "true"}, KEEP_DRAINS),
        (_FAILED, {DRAIN_TAG: "true"}, KEEP_FAILED_DRAINS),
        (_ENDED + _FAILED, {}, KEEP_OTHERS),
    ):
        wanted = dg.RunsFilter(statuses=statuses, tags=tags, created_before=now - keep)
        yield from list(islice(ours.runs(instance, wanted), RUNS_AT_ONCE))


def _partitions_of(instance: dg.DagsterInstance, run_id: str) -> Iterator[Partition]:
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION).records:
        event = record.event_log_entry.asset_materialization
        if event is not None and event.partition is not None:
            yield event.asset_key, event.partition


def _report_again(instance: dg.DagsterInstance, engine: Engine, orphans: set[Partition]) -> None:
    for key in {key for key, _ in orphans}:
        still_known = instance.get_materialized_partitions(key)
        months = sorted(month for other, month in orphans if other == key and month not in still_known)
        for partition in months:
            first = datetime.fromisoformat(partition).date()
            window = Window(first, next_month(first) - timedelta(days=1))
            with engine.connect() as connection:
                stored = price_reader.months(connection, key.path[-1], window.start, window.end)
                size = asset_size(connection, key.path[-1]) if partition == months[-1] else {}
            metadata = month_metadata(*stored.get(first, (0, 0))) | size
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition, metadata=metadata))
