"""Find out how many drains are needed, and which runs have begun one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from pricing_pipeline.db.query_loader import call_sql, query

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Outlook:
    """The state that decides whether a drain is needed. `held`: somebody holds a pair.

    `now_epoch` is in Unix seconds, by the database's clock.
    """

    watched: bool
    held: bool
    queued: bool
    watched_types: list[str] | None
    drain_id: UUID | None
    drain_seconds_left: float | None
    now_epoch: float
    registry_version: int


def outlook(connection: Connection) -> Outlook:
    """The state that decides whether a drain is needed now."""
    return Outlook(**connection.execute(query("demand.outlook")).mappings().one())


def needed(connection: Connection, most: int) -> tuple[int, int]:
    """How many drains have work, of the `most` that are allowed; how many are at work and not about to end."""
    wanted, lasting = connection.execute(query("drains.needed"), {"most": most}).one()
    return wanted, lasting


def drains_begun(connection: Connection, runs: Collection[str]) -> set[str]:
    """The runs that have begun a drain, even if it has ended."""
    return set(connection.execute(query("drains.begun"), {"runs": list(runs)}).scalars())


def warn_of_run(connection: Connection, job: str, run_id: str, why: str) -> None:
    """Write a warning that a run has failed; `status` shows it."""
    call_sql(connection, "warn", "run", job, f"run {run_id}: {why}", None)
