"""Months of history as files: an asset for each type of prices, where PRICING_EXPORT_URL names a place for them.

A run that people start writes the months that they choose. The schedule's run writes those that are due, of all types,
and then moves the months that their types do not keep in the database.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date

import dagster as dg

from pricing_pipeline.defs.code_links import code_links
from pricing_pipeline.defs.jobs import NO_RUN_RETRIES
from pricing_pipeline.defs.naming import EXPORT_JOB, Naming
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting, files
from pricing_pipeline.prices.exporting import Exported
from pricing_pipeline.prices.files import Store


def is_wanted(snapshot: RegistrySnapshot) -> bool:
    """Whether there is a place for files, and something to write there."""
    return snapshot.source.settings().export_url is not None and bool(_names(snapshot))


def export_assets(
    snapshot: RegistrySnapshot, months: Callable[[RegistrySnapshot, str], dg.PartitionsDefinition[str]]
) -> dg.AssetsDefinition:
    """The files of all types of prices as one multi-asset, in the `months` of each type."""
    naming = snapshot.naming
    names = {naming.export_key(name): name for name in _names(snapshot)}

    @dg.multi_asset(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("write_history_files"),
        specs=[
            dg.AssetSpec(
                key,
                deps=[naming.history_key(name)],
                group_name=naming.name("history_files"),
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
    def write_history_files(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        run = _ExportRun(context, given(context, naming, PricingDatabase), naming)
        for key in sorted(context.selected_asset_keys):
            run.export(names[key], [date.fromisoformat(month) for month in context.partition_keys])
        run.end()
        # Everything is reported already; yielding an asset here would report it twice.
        yield from ()

    return write_history_files


def export_schedule(snapshot: RegistrySnapshot) -> dg.ScheduleDefinition:
    """The schedule that writes files once a day, and its job, which selects no assets because their months differ."""
    naming = snapshot.naming

    # Not EXPORT_JOB: in a code location, an op and a job cannot share a name.
    @dg.op(name=naming.name("write_due_history_files"), required_resource_keys=needed(naming, PricingDatabase))
    def write_due_history_files(context: dg.OpExecutionContext) -> None:
        run = _ExportRun(context, given(context, naming, PricingDatabase), naming)
        for name in sorted(_names(snapshot)):
            run.export_due(name)
            run.move(name)
        run.end()

    @dg.job(
        name=naming.name(EXPORT_JOB),
        description="Writes all months of history that are due to files, and moves those that their types do not keep "
        "in the database. To write months of your choice, materialize the assets.",
        tags=NO_RUN_RETRIES,
        executor_def=dg.in_process_executor,
    )
    def export_history() -> None:
        write_due_history_files()

    @dg.schedule(
        name=naming.name(EXPORT_JOB),
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

    def __init__(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        database: PricingDatabase,
        naming: Naming,
    ) -> None:
        self._context = context
        self._engine = database.engine
        self._naming = naming
        self._store: Store = files.open_store(database.settings)
        self._failures: list[str] = []
        self._store.drop_abandoned()

    def export_due(self, data_type: str) -> None:
        """Write all months of a type that are due."""
        self.export(data_type, exporting.each_due(self._engine, data_type))

    def export(self, data_type: str, months: Iterable[date]) -> None:
        """Write some months of a type. One that could not be written is not tried again."""
        failed = set[date]()
        for month in months:
            if month in failed:
                continue
            try:
                self._report(data_type, month, exporting.export(self._engine, self._store, data_type, month))
            except PricingError as error:
                self._fail(data_type, month, error)
                failed.add(month)

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
                self._naming.export_key(data_type), partition=month.month.isoformat(), metadata=metadata
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
        event = dg.AssetMaterialization(
            self._naming.export_key(data_type), partition=month.isoformat(), metadata=metadata
        )
        self._context.log_event(event)

    def _fail(self, data_type: str, month: date, error: PricingError) -> None:
        self._failures.append(f"{data_type} {month:%Y-%m}: {error}")
        self._context.log.error(self._failures[-1])
