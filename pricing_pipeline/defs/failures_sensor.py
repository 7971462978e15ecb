"""The sensor `note_failures`: writes into the pricing database which runs and ticks of ours fail.

The notifier tells people of them, and needs nothing of Dagster. A sensor for each status of runs would see failures and
successes in no order, and lose those that it cannot write; this one looks at ended runs in the order of their end, and
looks again at what it could not write.
"""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.internals import (
    InstigatorState,
    InstigatorTick,
    InstigatorType,
    RemoteRepositoryOrigin,
    SensorInstigatorData,
    SerializableErrorInfo,
    TickStatus,
)
from pricing_pipeline.defs.ours import CUT_OFF, Ours, only
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.schedules import schedule_name
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.demand import drains
from pricing_pipeline.operations import dagster_failures
from pricing_pipeline.operations.dagster_failures import EndedRun, Kind

_EVERY_SECONDS = 30
_OVERLAP_SECONDS = 60.0
"""How late the end of a run may be stored after the end of a run that was seen."""
_PAGE = 200
_NAME_LENGTH = 150
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_FAILED = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}
_SECRET = re.compile(r"(://[^:/@\s]*:)\S*(?=@)|((?:password|token|apikey|api_key|secret)=)[^\s&]+", re.I)


@dataclass(frozen=True)
class _Seen:
    """The cursor of the sensor: the newest end of a run that was seen, in Unix seconds, and the runs around it."""

    until: cursors.Moment
    runs: dict[str, cursors.Moment]


def note_failures(
    snapshot: RegistrySnapshot, ticking: Collection[str], unscheduled: Mapping[str, str]
) -> dg.SensorDefinition:
    """The sensor that notes failed runs of ours, and failed ticks of the sensors and schedules `ticking`.

    `unscheduled` has the reasons why types have no schedule although their row asks for one.
    """
    naming = snapshot.naming
    unloaded = {naming.name(schedule_name(name)): reason for name, reason in unscheduled.items()}

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("note_failures"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Writes into the pricing database which runs of this pipeline failed, and which of its sensors and "
        "schedules fail, so that people are told. `pricing-pipeline status` shows failed runs as warnings.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        seen = cursors.read(context, _Seen)
        if seen is None or seen.until > time.time() + _OVERLAP_SECONDS:  # the clock was set back
            seen = _Seen(time.time(), {})
        ours = Ours.of(context, naming, snapshot.data_types, snapshot.providers)
        ended, after = _ended_runs(context.instance, ours, seen)
        failing = _failing_ticks(context, ticking) | unloaded
        with database.engine.begin() as connection:
            for run in ended:
                if run.reason is not None:
                    drains.warn_of_run(connection, run.name, run.run_id, run.reason)
            # The newest by name: they are in the order of their ends.
            newest = {run.name: run for run in ended if run.reason != CUT_OFF}
            if newest:
                dagster_failures.note_runs(connection, newest.values())
            if failing.keys() != dagster_failures.noted(connection, Kind.TICK).keys():
                dagster_failures.note(connection, Kind.TICK, failing)
        failed = sum(run.reason is not None for run in ended)
        runs = f"runs that ended: {len(ended)}, failed: {failed}"
        return dg.SensorResult(
            skip_reason=f"{runs}; failing sensors and schedules: {len(failing)}",
            cursor=cursors.dump(after),
        )

    return sensor


def _ended_runs(instance: dg.DagsterInstance, ours: Ours, seen: _Seen) -> tuple[list[EndedRun], _Seen]:
    """Our runs that ended since the last look, in the order of their ends, and what is seen then."""
    since = seen.until - _OVERLAP_SECONDS
    wanted = dg.RunsFilter(statuses=_ENDED, updated_after=datetime.fromtimestamp(since, UTC))
    records = [
        record
        for record in instance.get_run_records(
            only(wanted, ours.label),
            limit=_PAGE + len(seen.runs),
            order_by="update_timestamp",
            ascending=True,
        )
        if record.dagster_run.run_id not in seen.runs
    ]
    updates = {record.dagster_run.run_id: record.update_timestamp.timestamp() for record in records}
    until = max([seen.until, *updates.values()])
    known = {run: at for run, at in {**seen.runs, **updates}.items() if at >= until - _OVERLAP_SECONDS}
    # An old run is updated when somebody tags it.
    ends = [(at, r.dagster_run) for r in records if (at := r.end_time) is not None and at >= since]
    now = time.time()
    ended = [
        EndedRun(_name(run), run.run_id, max(now - at, 0.0), _reason_of_run(instance, run))
        for at, run in sorted(ends, key=itemgetter(0))
        if ours.has(run)
    ]
    return ended, _Seen(until, known)


def _name(run: dg.DagsterRun) -> str:
    """The job of a run; of one that was started on assets, their names, because that job is common to all assets."""
    if not run.job_name.startswith("__"):
        return run.job_name
    keys = sorted(key.to_user_string() for key in run.asset_selection or ())
    keys += sorted(f"{check.asset_key.to_user_string()}:{check.name}" for check in run.asset_check_selection or ())
    return (", ".join(keys) or run.job_name)[:_NAME_LENGTH]


def _reason_of_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str | None:
    """Why a run failed, in a line; None if it succeeded."""
    if run.status is dg.DagsterRunStatus.SUCCESS:
        return None
    records = instance.get_records_for_run(run.run_id, of_type=_FAILED, limit=10).records
    events = [event for record in records if (event := record.event_log_entry.dagster_event) is not None]
    reasons = [*_errors(events), *(event.message or "" for event in events)]
    return next(filter(None, map(_line, reasons)), "it failed")


def _errors(events: Sequence[dg.DagsterEvent]) -> Iterator[str]:
    for event in events:
        error = getattr(event.event_specific_data, "error", None)
        if error is not None:
            yield _innermost(error)


def _innermost(error: SerializableErrorInfo) -> str:
    while error.cause is not None:
        error = error.cause
    return error.message


def first_line(error: SerializableErrorInfo | None) -> str:
    """The first line of what caused an error, without passwords."""
    return _line(_innermost(error)) if error is not None else "it failed"


def _line(text: str) -> str:
    """The first line of an error, without passwords."""
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    return _SECRET.sub(r"\1\2***", first)[:500]


def _failing_ticks(context: dg.SensorEvaluationContext, ticking: Collection[str]) -> dict[str, str]:
    """Our sensors and schedules whose last finished tick failed, with the reasons. One that is switched off does not
    count."""
    if context.code_location_origin is None or context.repository_name is None:
        return {}
    origin = RemoteRepositoryOrigin(context.code_location_origin, context.repository_name)
    states = [
        state
        for state in context.instance.all_instigator_state(origin.get_id(), origin.get_selector_id())
        if state.is_running and state.instigator_name in ticking and not _has_worked(state)
    ]
    failing = {}
    for state, tick in _last_ticks(context.instance, states):
        if tick.status is TickStatus.FAILURE:
            failing[state.instigator_name] = first_line(tick.error)
    return failing


def _has_worked(state: InstigatorState) -> bool:
    """Whether the last tick of a sensor did not fail. Its state says so, which saves a look at its many ticks."""
    data = state.instigator_data
    return isinstance(data, SensorInstigatorData) and data.last_tick_success_timestamp is not None


def _last_ticks(
    instance: dg.DagsterInstance, states: Sequence[InstigatorState]
) -> Iterator[tuple[InstigatorState, InstigatorTick]]:
    """The last finished ticks: of schedules, which may be many and have few ticks, in one query."""
    schedules = [state.selector_id for state in states if state.instigator_type is InstigatorType.SCHEDULE]
    storage = instance.schedule_storage
    batch: Mapping[str, Sequence[InstigatorTick]] = {}
    if schedules and storage is not None and storage.supports_batch_queries:
        # With statuses this query of Dagster fails. The newest may be under way.
        batch = storage.get_batch_ticks(schedules, limit=2)
    for state in states:
        ticks = batch.get(state.selector_id) or instance.get_ticks(
            state.instigator_origin_id, state.selector_id, limit=2
        )
        finished = (tick for tick in ticks if tick.status is not TickStatus.STARTED)
        yield from ((state, tick) for tick in islice(finished, 1))
