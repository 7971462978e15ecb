"""Which parts of a Dagster instance are ours. In a shared one, nothing else is read, changed or deleted."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_postgres import PostgresEventLogStorage

from pricing_pipeline.db.dagster_storage import is_made_here
from pricing_pipeline.defs.internals import (
    REPOSITORY_LABEL_TAG,
    InstigatorState,
    PartitionBackfill,
    PartitionsSubset,
    RemoteRepositoryOrigin,
    ScheduleType,
    TimeWindowPartitionsSubset,
    WorkspaceProcessContext,
    replace,
)
from pricing_pipeline.defs.naming import PLAIN, Naming
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.processes.code_locations import OURS


def label_of(location: str, repository: str = "__repository__") -> str:
    """Dagster's label for the runs of a code location."""
    return f"{repository}@{location}"


LABEL = label_of(OURS)
"""That of our code location in a workspace.yaml of ours."""

DRAIN_TAG = "pricing/drain"
"""The tag of drains, the runs of the job `refresh`. A run of our assets, in any job, is a backfill."""

CUT_OFF = "the pipeline was stopped during this run; its tasks are taken up again"
"""Why a backfill failed that a stop interrupted: nobody need do anything."""

_PAGE = 100


@dataclass(frozen=True)
class Ours:
    """The runs and assets of one code location, by the label of its runs, its data types and its providers.

    `prices` are types of prices, `records` the assets of what all other types store.
    """

    label: str
    prices: tuple[str, ...]
    records: tuple[dg.AssetKey, ...] = ()
    providers: tuple[str, ...] = ()
    naming: Naming = PLAIN

    @classmethod
    def of(
        cls,
        context: dg.SensorEvaluationContext,
        naming: Naming,
        data_types: Sequence[DataType] = (),
        providers: Iterable[str] = (),
    ) -> "Ours":
        """Those of the code location in which a sensor ticks."""
        location = context.code_location_origin
        label = label_of(location.location_name, str(context.repository_name)) if location else LABEL
        prices = tuple(type_.data_type for type_ in data_types if type_.contents is Contents.PRICES)
        records = tuple(naming.stored_key(type_) for type_ in data_types if type_.contents is not Contents.PRICES)
        return cls(label, prices, records, tuple(providers), naming)

    @property
    def latest(self) -> frozenset[dg.AssetKey]:
        return frozenset(map(self.naming.latest_key, [*self.prices, *(key.path[-1] for key in self.records)]))

    @property
    def freshness(self) -> frozenset[dg.AssetKey]:
        return frozenset(self.naming.freshness_key(key.path[-1]) for key in self.latest)

    @property
    def histories(self) -> frozenset[dg.AssetKey]:
        return frozenset(map(self.naming.history_key, self.prices))

    @property
    def moved(self) -> frozenset[dg.AssetKey]:
        """Keys of earlier releases, which had documents among the histories."""
        return frozenset(self.naming.history_key(key.path[-1]) for key in self.records)

    @property
    def _assets(self) -> frozenset[dg.AssetKey]:
        exports = frozenset(map(self.naming.export_key, self.prices))
        return (
            self.latest
            | self.freshness
            | self.histories
            | self.moved
            | exports
            | self.sources
            | frozenset([*self.records, self.naming.commodity_lists])
        )

    @property
    def sources(self) -> frozenset[dg.AssetKey]:
        return frozenset({self.naming.subscriptions, *map(self.naming.provider_key, self.providers)})

    def runs(self, instance: dg.DagsterInstance, wanted: dg.RunsFilter) -> Iterator[dg.DagsterRun]:
        """Our runs among the wanted ones, oldest first. The code location may have other definitions beside ours."""
        cursor = None
        while page := instance.get_runs(only(wanted, self.label), cursor, _PAGE, ascending=True):
            yield from filter(self.has, page)
            cursor = page[-1].run_id

    def has(self, run: dg.DagsterRun) -> bool:
        """Whether a run of our code location is of our assets and jobs."""
        chosen = {*(run.asset_selection or ())}
        chosen |= {check.asset_key for check in run.asset_check_selection or ()}
        return run.job_name in self.naming.jobs or (bool(chosen) and chosen <= self._assets)


def only(wanted: dg.RunsFilter | None, label: str | Sequence[str]) -> dg.RunsFilter:
    """The same filter, limited to the code location with this label, or to those with one of these."""
    wanted = wanted or dg.RunsFilter()
    return replace(wanted, tags={**wanted.tags, REPOSITORY_LABEL_TAG: label})


def made_here(instance: dg.DagsterInstance) -> bool:
    """Whether `pricing-pipeline up` made the instance's storage. Otherwise we may change only our own runs in it."""
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        return False
    with storage.index_connection() as connection:
        return is_made_here(Path(instance.root_directory), connection)


class Beside:
    """The code locations of others that one daemon serves beside ours, by their names in its workspace."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(names)
        self._workspace: WorkspaceProcessContext | None = None

    def look_at(self, workspace: WorkspaceProcessContext) -> None:
        """Learn from a workspace, from now on, what is in these locations."""
        self._workspace = workspace

    def has(self, origin: RemoteRepositoryOrigin) -> bool:
        return origin.code_location_origin.location_name in self._names

    @property
    def labels(self) -> list[str]:
        """Dagster's labels for their runs. Most have one repository; others are known once they are loaded."""
        labels = {*map(label_of, self._names)}
        if self._workspace is not None and self._names:
            entries = self._workspace.create_request_context().get_code_location_entries()
            for name in self._names & entries.keys():
                if (location := entries[name].code_location) is not None:
                    labels |= {label_of(name, repository) for repository in location.get_repositories()}
        return sorted(labels)

    @property
    def keys(self) -> Set[dg.AssetKey]:
        """All assets of the workspace, if it has others than ours."""
        if self._workspace is None or not self._names:
            return frozenset()
        return self._workspace.create_request_context().asset_graph.get_all_asset_keys()


def leave_others_alone(
    instance: dg.DagsterInstance,
    our_types: Callable[[], Iterable[DataType]],
    naming: Naming = PLAIN,
    beside: Beside | None = None,
) -> None:
    """Limit a daemon to our own runs, backfills, sensors and schedules, and those of the code locations `beside`.

    Otherwise it would fail other owners' runs, because it does not know their code, and delete the states of their
    schedules, so that missed slots would never be caught up. `our_types` returns the current data types of our assets.
    """
    beside = beside or Beside()

    def of_ours(ask: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(ask)
        def asked(filters: dg.RunsFilter | None = None, *args: Any, **options: Any) -> Any:
            return ask(only(filters, [LABEL, *beside.labels]), *args, **options)

        return asked

    for name in ("get_runs", "get_run_records", "get_run_ids"):
        setattr(instance, name, of_ours(getattr(instance, name)))
    everybodys = instance.get_backfills

    def backfills(*args: Any, **options: Any) -> Sequence[PartitionBackfill]:
        types = list(our_types())
        exports = (naming.export_key(type_.data_type) for type_ in types)
        keys = frozenset([*map(naming.stored_key, types), *exports, naming.commodity_lists])
        return [
            backfill
            for backfill in everybodys(*args, **options)
            if _is_our_backfill(backfill, keys) or _is_backfill_beside(backfill, beside)
        ]

    instance.get_backfills = backfills  # type: ignore[method-assign]
    states = instance.all_instigator_state

    def our_states(*args: Any, **options: Any) -> Sequence[InstigatorState]:
        return [
            state
            for state in states(*args, **options)
            if (origin := state.origin.repository_origin).get_label() == LABEL or beside.has(origin)
        ]

    instance.all_instigator_state = our_states  # type: ignore[method-assign]


def _is_our_backfill(backfill: PartitionBackfill, keys: frozenset[dg.AssetKey]) -> bool:
    """Whether a backfill is ours. A job's names its code location, an assets' only their keys and partitions."""
    if (origin := backfill.partition_set_origin) is not None:
        return origin.repository_origin.get_label() == LABEL
    if backfill.asset_backfill_data is None:
        return False
    target = backfill.asset_backfill_data.target_subset
    return (
        not target.is_empty
        and target.asset_keys <= keys
        and all(map(_are_months, target.partitions_subsets_by_asset_key.values()))
    )


def _is_backfill_beside(backfill: PartitionBackfill, beside: Beside) -> bool:
    """Whether a backfill is one of others that we serve: its assets may be theirs and ours."""
    if (origin := backfill.partition_set_origin) is not None:
        return beside.has(origin.repository_origin)
    if backfill.asset_backfill_data is None:
        return False
    target = backfill.asset_backfill_data.target_subset
    return not target.is_empty and target.asset_keys <= beside.keys


def _are_months(partitions: PartitionsSubset[str]) -> bool:
    return (
        isinstance(partitions, TimeWindowPartitionsSubset)
        and partitions.partitions_def.schedule_type is ScheduleType.MONTHLY
    )
