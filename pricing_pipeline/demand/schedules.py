"""Scheduled data types: served slots, and schedules that wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import PricingError
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class WaitingSchedule:
    """A schedule that could not queue some `instruments` since its last `slot`, because of its providers' limits."""

    data_type: str
    slot: datetime
    instruments: int
    reason: str

    @property
    def words(self) -> str:
        return f"{self.instruments} instruments of {self.data_type} wait for their schedule: {self.reason}"


def enqueue_scheduled(connection: Connection, data_type: str, slot: datetime | None = None) -> int | None:
    """Serve a slot of a scheduled type, or queue its instruments now; behind on-demand work, in chunks.

    Returns how many tasks of the first chunk are new; None if the slot was served before or there is no such type.
    """
    queued: int | None = call_sql(connection, "enqueue_scheduled", data_type, slot).scalar_one()
    return queued


def refresh(connection: Connection, data_type: str) -> int:
    """Queue the instruments of a scheduled type now; returns how many tasks of the first chunk are new.

    Raises UnknownDataType, and PricingError for a type without a schedule, or while another session queues it.
    """
    type_ = data_type_registry.active_data_type(connection, data_type)
    if type_.refresh_schedule is None:
        raise PricingError(
            f"{data_type} has no schedule: what is watched or held of it is refreshed by itself. "
            f"`pricing-pipeline type change {data_type} --schedule '30 23 * * *'` gives it one."
        )
    queued = enqueue_scheduled(connection, data_type)
    if queued is None:
        raise PricingError(f"another session is queueing {data_type} right now. Try again in some seconds.")
    return queued


def note_next_slot(connection: Connection, data_type: str, slot: datetime) -> None:
    """Write down the first slot after the served one, as its schedule says."""
    connection.execute(query("demand.note_next_slot"), {"data_type": data_type, "slot": slot})


def waiting_schedules(connection: Connection) -> list[WaitingSchedule]:
    """The schedules that cannot queue some of their instruments now, and why."""
    return [WaitingSchedule(**row) for row in call_sql(connection, "waiting_schedules").mappings()]


def served_slots(connection: Connection) -> dict[str, datetime]:
    """The last served slot of each active scheduled type."""
    return {row.data_type: row.served_slot for row in connection.execute(query("demand.served_slots"))}
