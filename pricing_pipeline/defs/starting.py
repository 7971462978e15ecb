"""Find out whether a drain is requested and not yet at work, before another one is requested."""

import time

import dagster as dg
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG  # internal: dagster is pinned
from sqlalchemy import Engine

from pricing_pipeline.defs.draining import drains_of
from pricing_pipeline.demand import drains

_WAITING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING]
_BEGINS_WITHIN_SECONDS = 30.0
"""A run that takes longer to begin its drain will never begin it. Run monitoring ends it."""


def is_on_its_way(instance: dg.DagsterInstance, engine: Engine, label: str | None = None) -> bool:
    """Whether a run that will drain this database is queued, is starting, or has started and not begun its drain.

    `label` is that of the code location, if known: runs of another location may stay queued for ever.
    """
    tags = drains_of(engine) | ({REPOSITORY_LABEL_TAG: label} if label else {})
    ours = dg.RunsFilter(statuses=[*_WAITING, dg.DagsterRunStatus.STARTED], tags=tags)
    starting = set()
    for record in instance.get_run_records(ours):
        if record.dagster_run.status in _WAITING:
            return True
        if abs(time.time() - (record.start_time or time.time())) < _BEGINS_WITHIN_SECONDS:
            starting.add(record.dagster_run.run_id)
    if not starting:
        return False
    with engine.connect() as connection:
        return bool(starting - drains.drains_begun(connection, starting))


def is_drained(instance: dg.DagsterInstance, engine: Engine) -> bool:
    """Whether a drain works at the queue, or is about to."""
    with engine.connect() as connection:
        return drains.outlook(connection).drain_id is not None or is_on_its_way(instance, engine)
