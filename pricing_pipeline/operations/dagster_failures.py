"""Failures in Dagster, recorded in the database for the notifier, which does not need Dagster."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql, query

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class EndedRun:
    """How the newest run of a job ended. No `reason`: it succeeded."""

    name: str
    run_id: str
    seconds_ago: float
    reason: str | None = None


def note_runs(connection: Connection, runs: Collection[EndedRun]) -> None:
    """Note how the newest run of each job ended: one that succeeds ends the failure of an earlier one."""
    call_sql(connection, "note_dagster_runs", json.dumps([asdict(run) for run in runs]))


class Kind(StrEnum):
    """What can fail, apart from runs."""

    TICK = "tick"
    """A sensor or schedule whose last tick failed."""
    LOCATION = "location"
    """A code location that does not load."""
    SENSOR = "sensor"
    """A sensor that has not ticked since its code location was loaded, or whose last two ticks failed."""


def noted(connection: Connection, kind: Kind) -> dict[str, str]:
    """What is noted as failing of this kind, with the reasons."""
    rows = connection.execute(query("dagster_failures.noted"), {"kind": kind.value})
    return {row.name: row.reason for row in rows}


def note(connection: Connection, kind: Kind, failing: Mapping[str, str]) -> None:
    """Note all that fails now of this kind, with the reasons."""
    call_sql(connection, "note_dagster_failures", json.dumps(dict(failing)), kind.value)
