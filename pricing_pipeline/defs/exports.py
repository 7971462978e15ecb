"""Months of history as files: an asset for each type of prices, where PRICING_EXPORT_URL names a place for them.

A run that people start writes the months that they choose. The schedule's run writes those that are due, of all types,
and then moves the months that their types do not keep in the database.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.defs.code_links import code_links
from pricing_pipeline.defs.jobs import NO_RUN_RETRIES
from pricing_pipeline.defs.ours import EXPORT_JOB, export_key, history_key
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting, files
from pricing_pipeline.prices.exporting import Exported
from pricing_pipeline.prices.files import Store
from pricing_pipeline.settings import load_settings_as_guest


def is_wanted(snapshot: RegistrySnapshot) -> bool:
    """Whether there is a place for files, and something to write there."""
    return load_settings_as_guest().export_url is not None and bool(_names(snapshot))


def export_assets(
    snapshot: RegistrySnapshot, months: Callable[[RegistrySnapshot, str], dg.PartitionsDefinition[str]]
) -> dg.AssetsDefinition:
    """The files of all types of prices as one multi-asset, in the `months` of each type."""
    names = {export_key(name): name for name in _names(snapshot)}

    @dg.multi_asset(
        name="write_history_files",
        specs=[
            dg.AssetSpec(
                key,
                deps=[history_key(name)],
                group_name="history_files",
                kinds={"parquet"},
                description="Its history outside the database: a Parquet file for each month, with revisions and the "
                "provider and call of each value. A schedule writes what has changed every day.",
                metadata=code_links("prices/exporting.py", "db/functions/prices/exports.sql"),
                partitions_def=months(snapshot, name),
                skippable=True,
            )
            for key, name in names.items()
        ],
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def write_history_files(
        context: dg.AssetExecutionContext, database: PricingDatabase
    ) -> Iterator[dg.MaterializeResult[None]]:
        run = _ExportRun(context, database.engine)
        for key in sorted(context.selected_asset_keys):
            run.export(names[key], [date.fromisoformat(month) for month in context.partition_keys])
        run.end()
        # Everything is reported already; yielding an asset here would report it twice.
        yield from ()

    return write_history_files


def export_schedule(snapshot: RegistrySnapshot) -> dg.ScheduleDefinition:
    """The schedule that writes files once a day, and its job, which selects no assets because their months differ."""

    @dg.op(
        name="write_due_history_files"
    )  # not EXPORT_JOB: in a code location, an op and a job cannot share a name
    def write_due_history_files(context: dg.OpExecutionContext, database: PricingDatabase) -> None:
        run = _ExportRun(context, database.engine)
        for name in sorted(_names(snapshot)):
            run.export_due(name)
            run.move(name)
        run.end()

    @dg.job(
        name=EXPORT_JOB,
        description="Writes all months of history that are due to files, and moves those that their types do not keep "
        "in the database. To write months of your choice, materialize the assets.",
        tags=NO_RUN_RETRIES,
        executor_def=dg.in_process_executor,
    )
    def export_history() -> None:
        write_due_history_files()

    @dg.schedule(
        name=EXPORT_JOB,
        job=export_history,
        cron_schedule="37 2 * * *",
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Writes the months of history that have changed to files, and moves those that their types do "
        "not keep in the database.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
        return dg.RunRequest()

    return schedule


def _names(snapshot: RegistrySnapshot) -> list[str]:
    return [type_.data_type for type_ in snapshot.data_types if type_.contents is Contents.PRICES]


class _ExportRun:
    """Exports and moves month by month. One that fails does not stop the others; the run fails at its end."""

    def __init__(self, context: dg.OpExecutionContext | dg.AssetExecutionContext, engine: Engine) -> None:
        self._context = context
        self._engine = engine
        self._store: Store = files.open_store(load_settings_as_guest())
        self._failures: list[str] = []
        self._store.drop_abandoned()

    def export_due(self, data_type: str) -> None:
        """Write all months of a type that are due."""
        with self._engine.connect() as connection:
            months = exporting.due(connection, data_type)
        self.export(data_type, months)

    def export(self, data_type: str, months: Sequence[date]) -> None:
        """Write some months of a type."""
        for month in months:
            try:
                self._report(data_type, month, exporting.export(self._engine, self._store, data_type, month))
            except PricingError as error:
                self._fail(data_type, month, error)

    def move(self, data_type: str) -> None:
        """Move the months that a type does not keep in the database."""
        with self._engine.connect() as connection:
            months = exporting.movable(connection, data_type)
        for month in months:
            if month.keeps is not None:
                self._context.log.info(f"{data_type} {month.month:%Y-%m} stays for now: {month.keeps}")
                continue
            try:
                moved = exporting.move(self._engine, self._store, data_type, month.month)
            except PricingError as error:
                self._fail(data_type, month.month, error)
                continue
            metadata: Metadata = {"rows_left_database": dg.MetadataValue.int(moved)}
            event = dg.AssetObservation(
                export_key(data_type), partition=month.month.isoformat(), metadata=metadata
            )
            self._context.log_event(event)

    def end(self) -> None:
        """Fail if anything has failed."""
        if self._failures:
            raise dg.Failure(" ".join(self._failures), allow_retries=False)

    def _report(self, data_type: str, month: date, exported: Exported | None) -> None:
        metadata: Metadata = {"dagster/partition_row_count": dg.MetadataValue.int(0)}
        if exported is not None:
            metadata = {
                "dagster/partition_row_count": dg.MetadataValue.int(exported.versions),
                "dagster/uri": dg.MetadataValue.path(self._store.path(data_type, month)),
                "file_bytes": dg.MetadataValue.int(exported.file_bytes),
                "sha256": dg.MetadataValue.text(exported.sha256),
                "is_new": dg.MetadataValue.bool(exported.is_new),
            }
        event = dg.AssetMaterialization(export_key(data_type), partition=month.isoformat(), metadata=metadata)
        self._context.log_event(event)

    def _fail(self, data_type: str, month: date, error: PricingError) -> None:
        self._failures.append(f"{data_type} {month:%Y-%m}: {error}")
        self._context.log.error(self._failures[-1])
