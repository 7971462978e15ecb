"""What of a Dagster instance is ours. In one that others share, nothing else is read, changed or deleted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import PartitionBackfill  # internal like the next ones: pinned
from dagster._core.scheduler.instigation import InstigatorState
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._record import replace
from dagster_postgres import PostgresEventLogStorage

from pricing_pipeline.db.dagster_storage import is_made_here

LABEL = "__repository__@pricing_pipeline"
"""How Dagster labels runs of the code location that workspace.yaml names."""

_HISTORY = "price_history"
_JOBS = frozenset({"refresh", "check_prices"})
_PAGE = 100


def history_key(data_type: str) -> dg.AssetKey:
    return dg.AssetKey([_HISTORY, data_type])


def latest_key(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["latest_price", data_type])


@dataclass(frozen=True)
class Ours:
    """What belongs to one code location: the label of its runs, and the data types whose assets are in it."""

    label: str
    data_types: tuple[str, ...]

    @classmethod
    def of(cls, context: dg.SensorEvaluationContext, data_types: Sequence[str]) -> "Ours":
        """Of the code location that a sensor ticks in."""
        location = context.code_location_origin
        label = f"{context.repository_name}@{location.location_name}" if location else LABEL
        return cls(label, tuple(data_types))

    @property
    def latest(self) -> frozenset[dg.AssetKey]:
        return frozenset(map(latest_key, self.data_types))

    @property
    def histories(self) -> frozenset[dg.AssetKey]:
        return frozenset(map(history_key, self.data_types))

    def runs(self, instance: dg.DagsterInstance, wanted: dg.RunsFilter) -> Iterator[dg.DagsterRun]:
        """Our runs of those that are wanted, the oldest first. Others may have definitions beside ours."""
        cursor = None
        while page := instance.get_runs(only(wanted, self.label), cursor, _PAGE, ascending=True):
            yield from filter(self._is_of_ours, page)
            cursor = page[-1].run_id

    def _is_of_ours(self, run: dg.DagsterRun) -> bool:
        chosen = {*(run.asset_selection or ())}
        chosen |= {check.asset_key for check in run.asset_check_selection or ()}
        return run.job_name in _JOBS or (bool(chosen) and chosen <= self.latest | self.histories)


def only(wanted: dg.RunsFilter | None, label: str) -> dg.RunsFilter:
    """The same runs, but only those of the code location with this label."""
    wanted = wanted or dg.RunsFilter()
    return replace(wanted, tags={**wanted.tags, REPOSITORY_LABEL_TAG: label})


def made_here(instance: dg.DagsterInstance) -> bool:
    """Whether `pricing-pipeline up` made the instance's storage; all but our own runs is its owner's otherwise."""
    storage = instance.event_log_storage
    if not isinstance(storage, PostgresEventLogStorage):
        return False
    with storage.index_connection() as connection:
        return is_made_here(Path(instance.root_directory), connection)


def leave_others_alone(instance: dg.DagsterInstance) -> None:
    """Have a daemon see our own runs, backfills, sensors and schedules alone.

    It would fail others' runs, whose code it does not know, and delete the states of others' schedules as of ones that
    are gone: their missed slots would never be caught up.
    """

    def of_ours(ask: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(ask)
        def asked(filters: dg.RunsFilter | None = None, *args: Any, **options: Any) -> Any:
            return ask(only(filters, LABEL), *args, **options)

        return asked

    for name in ("get_runs", "get_run_records", "get_run_ids"):
        setattr(instance, name, of_ours(getattr(instance, name)))
    everybodys = instance.get_backfills

    def backfills(*args: Any, **options: Any) -> Sequence[PartitionBackfill]:
        return [backfill for backfill in everybodys(*args, **options) if _is_our_backfill(backfill)]

    instance.get_backfills = backfills  # type: ignore[method-assign]
    states = instance.all_instigator_state

    def our_states(*args: Any, **options: Any) -> Sequence[InstigatorState]:
        return [
            state for state in states(*args, **options) if state.origin.repository_origin.get_label() == LABEL
        ]

    instance.all_instigator_state = our_states  # type: ignore[method-assign]


def _is_our_backfill(backfill: PartitionBackfill) -> bool:
    """One of a job names its code location, one of assets only their keys."""
    if (origin := backfill.partition_set_origin) is not None:
        return origin.repository_origin.get_label() == LABEL
    keys = backfill.asset_selection or ()
    return bool(keys) and all(key.path[0] == _HISTORY for key in keys)
