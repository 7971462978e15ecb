"""Schedules: scheduled data types by their cron expression, in their own time zone.

Dagster's schedules usually serve a slot. The database keeps the last served slot, so that the sensor can catch up once
on a slot that passed while Dagster or the database was away.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.defs.internals import (
    CroniterBadDateError,
    cron_string_iterator,
    get_latest_completed_cron_tick,
    is_valid_cron_schedule,
)
from pricing_pipeline.defs.naming import REFRESH_JOB, Naming
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.demand import drains, schedules
from pricing_pipeline.domain.data_types import DataType

_LOG = logging.getLogger(__name__)

_GRACE = timedelta(minutes=2)
"""How long a slot is left to Dagster's scheduler, which looks about once a minute."""


def scheduled_refreshes(snapshot: RegistrySnapshot) -> tuple[list[dg.ScheduleDefinition], dict[str, str]]:
    """One schedule for each scheduled data type, in the row's own time zone.

    It also returns the reasons why types have none because Dagster cannot follow their row: one bad row must not stop
    the others.
    """
    definitions, faults = [], {}
    for type_ in snapshot.data_types:
        if type_.refresh_schedule is None:
            continue
        try:
            definitions.append(_schedule(type_, snapshot.naming))
        except dg.DagsterInvalidDefinitionError as error:
            faults[type_.data_type] = str(error)
            _LOG.warning("data type %s is not refreshed by its schedule: %s", type_.data_type, error)
    return definitions, faults


def schedule_name(data_type: str) -> str:
    return f"{data_type}_schedule"


def _ever_comes(cron: str, timezone: str) -> bool:
    """Whether an expression has a slot: the 31st of April never comes, and fails Dagster's page of schedules."""
    try:
        next(_slots_after(datetime.now(UTC), cron, timezone))
    except CroniterBadDateError:
        return False
    return True


def _schedule(type_: DataType, naming: Naming) -> dg.ScheduleDefinition:
    cron = type_.refresh_schedule or ""
    if is_valid_cron_schedule(cron) and not _ever_comes(cron, type_.schedule_timezone):
        raise dg.DagsterInvalidDefinitionError(f"Found invalid cron schedule '{cron}': its day never comes.")

    @dg.schedule(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name(schedule_name(type_.data_type)),
        # With its asset as the target it would make a job: 500 types took minutes to load. The asset names it instead.
        job_name=naming.name(REFRESH_JOB),
        cron_schedule=cron,
        execution_timezone=type_.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Queues every active instrument of {type_.data_type}, behind what people watch.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.SkipReason:
        # It requests no run: the sensor refresh_watched sees to it within seconds that a drain takes what is queued.
        database = given(context, naming, PricingDatabase)
        slot = context.scheduled_execution_time
        with database.engine.begin() as connection:
            queued = schedules.enqueue_scheduled(connection, type_.data_type, slot)
            waiting = [w.words for w in schedules.waiting_schedules(connection) if w.data_type == type_.data_type]
        if queued is None:
            return dg.SkipReason(f"the slot {slot:%Y-%m-%d %H:%M %Z} was served before, or the type is retired")
        if not queued:
            return dg.SkipReason(
                "; ".join(waiting) or "every instrument of the type is queued or fetched already, or there is none"
            )
        return dg.SkipReason(f"queued {queued}; a drain takes them")

    return schedule


class MissedSlots:
    """Serves the latest slot of each schedule that passed a while ago and was not served.

    If several slots were missed, only the latest is served: one walk over the instruments is enough.
    """

    def __init__(self, snapshot: RegistrySnapshot) -> None:
        self._crons = {
            type_.data_type: (type_.refresh_schedule, type_.schedule_timezone)
            for type_ in snapshot.data_types
            if type_.refresh_schedule is not None
            and is_valid_cron_schedule(type_.refresh_schedule)
            and _ever_comes(type_.refresh_schedule, type_.schedule_timezone)
        }
        # With these, a tick does not evaluate every expression.
        self._next: dict[str, tuple[datetime, datetime]] = {}
        self._noted: dict[str, datetime] = {}

    def serve(self, engine: Engine) -> dict[str, datetime]:
        """Serve missed slots; returns them by data type. One bad type does not stop the others."""
        if not self._crons:
            return {}
        with engine.connect() as connection:
            served = schedules.served_slots(connection)
            now = datetime.fromtimestamp(drains.outlook(connection).now_epoch, UTC)
        caught_up = {}
        for name, slot in served.items():
            try:
                missed = self._missed(name, slot, now - _GRACE)
                self._note(engine, name)
                if missed is None:
                    continue
                with engine.begin() as connection:
                    if schedules.enqueue_scheduled(connection, name, missed) is not None:
                        caught_up[name] = missed
                        _LOG.warning("the slot %s of %s was missed and is served now", missed, name)
            except Exception:
                _LOG.exception("the schedule of %s cannot be evaluated", name)
        return caught_up

    def _note(self, engine: Engine, name: str) -> None:
        """Write down which slot is next, so that its lateness shows while no sensor ticks."""
        _, slot = self._next.get(name, (None, None))
        if slot is not None and self._noted.get(name) != slot:
            with engine.begin() as connection:
                schedules.note_next_slot(connection, name, slot)
            self._noted[name] = slot

    def _missed(self, name: str, served: datetime, until: datetime) -> datetime | None:
        if name not in self._crons:
            return None
        cron, timezone = self._crons[name]
        if self._next.get(name, (None,))[0] != served:
            self._next[name] = (served, next(_slots_after(served, cron, timezone)))
        if self._next[name][1] > until:
            return None
        return get_latest_completed_cron_tick(cron, until, timezone).astimezone(UTC)


def _slots_after(moment: datetime, cron: str, timezone: str) -> Iterator[datetime]:
    for slot in cron_string_iterator(moment.timestamp(), cron, timezone):
        if slot.timestamp() > moment.timestamp():
            yield slot
