"""What fails in Dagster, as the notifier sees it, which needs nothing of Dagster."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query


@dataclass(frozen=True, slots=True)
class EndedRun:
    """How the newest run of a job ended. No `reason`: it succeeded."""

    name: str
    run_id: str
    seconds_ago: float
    reason: str | None = None


def note_runs(connection: Connection, runs: Collection[EndedRun]) -> None:
    """Note how the newest run of each job ended: one that succeeds ends the failure of an earlier one."""
    connection.execute(
        query("dagster_failures.note_runs"), {"runs": json.dumps([asdict(run) for run in runs])}
    )


def failing_ticks(connection: Connection) -> set[str]:
    """The sensors and schedules that are noted as failing."""
    return set(connection.execute(query("dagster_failures.failing_ticks")).scalars())


def note_ticks(connection: Connection, failing: Mapping[str, str]) -> None:
    """Note which sensors and schedules fail now, and why; all others work."""
    connection.execute(query("dagster_failures.note_ticks"), {"failing": json.dumps(dict(failing))})
