"""Report work to Dagster while it is done: a crash late in a run must not lose the report of earlier work."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import dagster as dg
from sqlalchemy import Connection, Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.naming import PLAIN, Naming
from pricing_pipeline.defs.news import last_report, materialization
from pricing_pipeline.defs.plots import price_plot
from pricing_pipeline.defs.resources import Allowances
from pricing_pipeline.defs.steps import Steps
from pricing_pipeline.defs.tables import Metadata, named_table, table
from pricing_pipeline.demand import backfills, freshness
from pricing_pipeline.demand.backfills import Backfill, Progress
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.domain.windows import Window, months_of, next_month
from pricing_pipeline.prices import changes, price_reader, quality
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.registry import data_type_registry

_STEP_SECONDS = 20.0
LATE_ROWS = 5


class Reporter:
    """Writes a run's events.

    While a run works, they are observations: the sensor `report_prices` materializes what has changed, for all
    Dagster instances. A run that a person started also materializes what was asked of it, since Dagster counts a
    backfill without that as failed. `types` are those that are loaded.
    """

    def __init__(
        self,
        context: dg.OpExecutionContext | dg.AssetExecutionContext,
        engine: Engine,
        allowances: Allowances,
        types: Collection[DataType] = (),
        naming: Naming = PLAIN,
    ) -> None:
        self._types = {type_.data_type: type_ for type_ in types}
        self._naming = naming
        self._context = context
        self._engine = engine
        self._allowances = allowances
        self._reported: set[tuple[str, date]] = set()
        self._to_report: set[str] = set()

    def report(self, tallies: Sequence[Tally]) -> None:
        """Report the work since the last report, one data type after the other."""
        with self._engine.connect() as connection:
            served = {row.data_type: row for row in freshness.measure(connection, [t.data_type for t in tallies])}
            self._learn(connection, [tally.data_type for tally in tallies])
            late = {name: why_late(connection, row) for name, row in served.items()}
            months = {t.data_type: self._months_to_report(t) for t in tallies}
            stored = {name: quality.month_rows(connection, name, wanted) for name, wanted in months.items() if wanted}
        for tally in tallies:
            name, work = tally.data_type, self._work(tally)
            self._observe_months(tally, months[name], work, stored.get(name, {}))
            if tally.records:
                metadata = {**work, "records": dg.MetadataValue.int(tally.records)}
                self._context.log_event(
                    dg.AssetObservation(self._naming.stored_key(self._types[name]), metadata=metadata)
                )
            if tally.latest_calls:  # calls for spans of days bring no latest prices
                metadata = {**work, **serving(served.get(name)), **late.get(name, {})}
                self._context.log_event(dg.AssetObservation(self._naming.latest_key(name), metadata=metadata))

    def _observe_months(self, tally: Tally, months: Sequence[date], work: Metadata, stored: Mapping[date, int]) -> None:
        newest = max(tally.months, default=None)
        for month in months:
            self._reported.add((tally.data_type, month))
            # The counts are of all months together, so only one month gets them.
            metadata = {
                **(work if month == newest else {}),
                "rows": dg.MetadataValue.int(tally.months[month]),
            }
            self._context.log_event(
                dg.AssetObservation(
                    self._naming.history_key(tally.data_type),
                    partition=month.isoformat(),
                    metadata=metadata | month_size(stored.get(month)),
                )
            )

    def _learn(self, connection: Connection, names: Sequence[str]) -> None:
        """Look up types that were added after the code location was loaded: a drain serves all types."""
        if self._types.keys() >= {*names}:
            return
        types = data_type_registry.active_data_types(connection)
        types += data_type_registry.retired_data_types(connection)
        self._types = {type_.data_type: type_ for type_ in types} | self._types

    def _months_to_report(self, tally: Tally) -> list[date]:
        """Each month once in a run: a backfill changes all its months all the time.

        The newest month each time, if nothing else reports the work. None if `report_months` is about to report all.
        """
        if tally.data_type in self._to_report:
            return []
        newest = max(tally.months, default=None)
        return sorted(
            month
            for month in tally.months
            if (month == newest and not tally.latest_calls) or (tally.data_type, month) not in self._reported
        )

    def steps(self, data_type: str, waits_for: Callable[[Connection], list[str]]) -> Steps:
        """What logs the progress of tasks of a type."""
        return Steps(self._context, self._engine, data_type, waits_for)

    def progress(self, backfill: Backfill) -> Callable[[Progress], None]:
        """A function that logs a backfill's progress. Call `report_months` at the end.

        At the start, at the end and at each tenth it also observes the history: the asset's page and its plots show
        this while no month has been reported.
        """
        steps = self.steps(backfill.data_type, lambda asking: backfills.waits_for(asking, backfill.id))
        observed: Observed | None = None

        def log(progress: Progress) -> None:
            nonlocal observed
            now = time.monotonic()
            if progress.is_finished:
                self._to_report.add(backfill.data_type)
            steps.say(progress)
            if progress.tasks and is_step(observed, progress, now):
                observed = Observed(progress, now)
                self._context.log_event(
                    dg.AssetObservation(
                        self._naming.history_key(backfill.data_type),
                        metadata=_progress_metadata(backfill, progress),
                    )
                )

        return log

    def report_months(self, backfill: Backfill, window: Window) -> None:
        """Report every month of a backfill with its row count now, also months without trading."""
        months = months_of(window)
        end = next_month(months[-1]) - timedelta(days=1)
        with self._engine.connect() as connection:
            stored = price_reader.months(connection, backfill.data_type, months[0], end)
            lacking = quality.lacking(connection, backfill.data_type, months)
            last = price_plot(quality.plot_series(connection, backfill.data_type))
            last |= asset_size(connection, backfill.data_type, is_once=True)
        key = self._naming.history_key(backfill.data_type)
        complete: dict[date | None, Metadata] = {}
        for month in months:
            metadata = month_metadata(*stored.get(month, (0, 0))) | (last if month == months[-1] else {})
            if lacking[month].symbols:
                metadata |= lacking_metadata(lacking[month])
                self._context.log_event(dg.AssetObservation(key, partition=month.isoformat(), metadata=metadata))
            else:
                complete[month] = metadata
        self._materialize(key, backfill.data_type, complete)
        self._to_report.discard(backfill.data_type)

    def _materialize(self, key: dg.AssetKey, data_type: str, metadata: Mapping[date | None, Metadata]) -> None:
        """Report that months, or the latest values (None), are as a person requested.

        It repeats what the sensor has just reported: for a backfill, Dagster counts only reports of its own runs.
        """
        changes.number(self._engine)
        with changes.turn_to_tell(self._engine) as connection:
            versions = changes.current(connection, data_type, [*metadata])
            for month, about in metadata.items():
                partition = month.isoformat() if month else None
                version, last = versions.get(month), last_report(self._context.instance, key, partition)
                self._context.log_event(materialization(key, version, last, about, partition))

    def report_unfillable(self, data_type: str, window: Window, why: str) -> None:
        """Report the months of a type as they are, if none of its history can be fetched.

        Dagster counts a backfill as failed while one of its months was never reported.
        """
        months = months_of(window)
        with self._engine.connect() as connection:
            stored = price_reader.months(connection, data_type, months[0], next_month(months[-1]) - timedelta(days=1))
        reason: Metadata = {"nothing_to_fill": dg.MetadataValue.text(why)}
        self._materialize(
            self._naming.history_key(data_type),
            data_type,
            {month: month_metadata(*stored.get(month, (0, 0))) | reason for month in months},
        )

    def report_records(self, type_: DataType, confirmed: int) -> None:
        """Report that the records of a type are up to date; a drain may have fetched them."""
        metadata: Metadata = {"pairs_confirmed": dg.MetadataValue.int(confirmed)}
        if type_.contents is Contents.DOCUMENTS:  # several types share the tables of other contents
            with self._engine.connect() as connection:
                metadata |= asset_size(connection, type_.data_type, is_once=True)
        self._materialize(self._naming.stored_key(type_), type_.data_type, {None: metadata})

    def report_nothing_fetched(self, type_: DataType, why: str) -> None:
        """Report that a run had nothing to fetch of a type. Without a materialization, a backfill of Dagster counts the
        asset as failed; no freshness is judged by it.
        """
        metadata: Metadata = {
            "pairs_confirmed": dg.MetadataValue.int(0),
            "nothing_to_fetch": dg.MetadataValue.text(why),
        }
        self._materialize(self._naming.stored_key(type_), type_.data_type, {None: metadata})

    def cancelled(self, backfill: Backfill) -> int:
        """How many tasks of a backfill were cancelled."""
        with self._engine.connect() as connection:
            return backfills.cancelled(connection, backfill.id)

    def nothing_words(self, backfill: Backfill, window: Window, symbols: Sequence[str] | None) -> str:
        """Why a backfill without tasks asks for nothing, in a clause."""
        with self._engine.connect() as connection:
            states = backfills.states(connection, backfill.data_type, window, symbols)
        return backfills.nothing_words(window, states, backfill.left_out)

    def failures(self, backfill: Backfill) -> dg.MetadataValue:
        """Why tasks of a backfill failed, as a table."""
        with self._engine.connect() as connection:
            rows = connection.execute(query("backfill.failures"), {"backfill_id": backfill.id}).mappings()
            return table(["symbol", "kind", "reason"], [[r["symbol"], r["failure_kind"], r["message"]] for r in rows])

    def _work(self, tally: Tally) -> Metadata:
        allowances = self._allowances.now()
        metadata: Metadata = {
            "rows_added": dg.MetadataValue.int(tally.added),
            "rows_revised": dg.MetadataValue.int(tally.revised),
            "symbols": dg.MetadataValue.int(len(tally.symbols)),
            "failed": dg.MetadataValue.int(tally.failed),
            "quarantined": dg.MetadataValue.int(tally.quarantined),
            "bars_without_some_parts": dg.MetadataValue.int(tally.trimmed),
            "calls": dg.MetadataValue.int(tally.calls),
            "bytes": dg.MetadataValue.int(tally.wire_bytes),
        }
        for provider in sorted(tally.providers & allowances.keys()):
            allowance = allowances[provider]
            metadata[f"quota_left_bytes_{provider}"] = dg.MetadataValue.int(allowance.quota_left_bytes)
            metadata[f"units_left_{provider}"] = dg.MetadataValue.int(allowance.units_left)
        return metadata


@dataclass(frozen=True, slots=True)
class Observed:
    """The last observed progress of a backfill, and its time by the monotonic clock, in seconds."""

    progress: Progress
    at: float


def is_step(observed: Observed | None, progress: Progress, now: float) -> bool:
    """Whether a backfill's progress is worth an event: its start, its end, and each tenth between them.

    Tenths are at least 20 s apart, so that a backfill has a dozen events at most, and a quick one two.
    """
    if observed is None:
        return True
    if progress.is_finished:
        return not observed.progress.is_finished
    done, before = progress.tasks - progress.open, observed.progress.tasks - observed.progress.open
    return 10 * done // progress.tasks > 10 * before // progress.tasks and now - observed.at >= _STEP_SECONDS


def _progress_metadata(backfill: Backfill, progress: Progress) -> Metadata:
    done = progress.tasks - progress.open
    return {
        "backfill": dg.MetadataValue.text(str(backfill.id)),
        "tasks": dg.MetadataValue.int(progress.tasks),
        "tasks_done": dg.MetadataValue.int(done),
        "tasks_failed": dg.MetadataValue.int(progress.failed),
        "percent_done": dg.MetadataValue.float(round(100 * done / progress.tasks, 1)),
    }


def month_metadata(rows: int, symbols: int) -> Metadata:
    """The size of a partition of history."""
    return {**month_size(rows), "symbols": dg.MetadataValue.int(symbols)}


def asset_size(connection: Connection, data_type: str, *, is_once: bool = False) -> Metadata:
    """The row count that Dagster shows for the whole history; none if it is not exact."""
    rows = quality.total_rows(connection, data_type, is_once=is_once)
    return {} if rows is None else {"dagster/row_count": dg.MetadataValue.int(rows)}


def month_size(rows: int | None) -> Metadata:
    return {} if rows is None else {"dagster/partition_row_count": dg.MetadataValue.int(rows)}


def lacking_metadata(lacking: quality.Lacking) -> Metadata:
    if not lacking.symbols:
        return {}
    sentence = (
        f"{lacking.symbols} of {lacking.instruments} instruments lack days of this month, so it does not count as "
        "filled. A backfill of all symbols fetches them."
    )
    return {"not_filled": dg.MetadataValue.text(sentence)}


def serving(row: freshness.Freshness | None) -> Metadata:
    """The freshness of a data type's watched pairs."""
    if row is None:
        return {}
    metadata: Metadata = {
        "watched": dg.MetadataValue.int(row.watched),
        "fresh": dg.MetadataValue.int(row.fresh),
        "late": dg.MetadataValue.int(row.late),
    }
    own_faults = {"refused": row.refused, "paused": row.paused, "source_old": row.source_old}
    metadata |= {name: dg.MetadataValue.int(count) for name, count in own_faults.items() if count}
    if row.oldest_fetched_at is not None:
        metadata["oldest_price"] = dg.MetadataValue.timestamp(row.oldest_fetched_at)
    return metadata


def describe_service(row: freshness.Freshness) -> str:
    """The freshness of a data type's watched pairs, in a sentence."""
    if not row.watched:
        return "Nobody watches this type."
    counts = {
        "fresh": row.fresh,
        "due": row.due,
        "late": row.late,
        "refused for a fault of the symbol": row.refused,
        "paused": row.paused,
        "with nothing newer at the source": row.source_old,
    }
    each = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    sentence = f"{row.watched} watched price{'s' if row.watched > 1 else ''}: {each}."
    if row.is_idle:
        sentence += " None can be fetched, so what is stored gets older."
        if row.paused:
            sentence += " `pricing-pipeline instrument resume SYMBOL` resumes a paused one."
    if row.missing:
        sentence += f" {row.missing} {'was' if row.missing == 1 else 'were'} never fetched."
    if not row.is_on_time:
        sentence += (
            " `pricing-pipeline price why SYMBOL` explains each, and `pricing-pipeline status` shows which provider is "
            "throttled or out of quota."
        )
    return sentence


def idle(naming: Naming, row: freshness.Freshness, *more: str) -> dg.AssetObservation:
    """The observation that nothing of a type is fetched, so that its prices get older, with more sentences about it."""
    metadata: Metadata = {"reason": dg.MetadataValue.text(" ".join((describe_service(row), *more)))}
    return dg.AssetObservation(naming.freshness_key(row.data_type), metadata={**metadata, **serving(row)})


def why_late(connection: Connection, row: freshness.Freshness) -> Metadata:
    """A table of the pairs that are late for longest, with the reasons; none if no pair is late."""
    if not row.late:
        return {}
    cells: list[list[object]] = [
        [pair.symbol, pair.sentence] for pair in freshness.why_late(connection, row.data_type, LATE_ROWS)
    ]
    return named_table("why_late", ["symbol", "why"], cells)
