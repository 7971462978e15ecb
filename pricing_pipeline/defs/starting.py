"""Count the drains that are requested and not yet at work, before another one is requested."""

import time

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.defs.draining import drains_of
from pricing_pipeline.defs.internals import REPOSITORY_LABEL_TAG
from pricing_pipeline.demand import drains

_WAITING = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING]
_BEGINS_WITHIN_SECONDS = 30.0
"""A run that takes longer to begin its drain will never begin it. Run monitoring ends it."""


def on_their_way(instance: dg.DagsterInstance, engine: Engine, label: str | None = None) -> int:
    """The number of runs that will drain this database: queued, starting, or started without having begun their drain.

    `label` is that of the code location, if known: runs of another location may stay queued for ever.
    """
    tags = drains_of(engine) | ({REPOSITORY_LABEL_TAG: label} if label else {})
    ours = dg.RunsFilter(statuses=[*_WAITING, dg.DagsterRunStatus.STARTED], tags=tags)
    waiting, starting = 0, set()
    for record in instance.get_run_records(ours):
        if record.dagster_run.status in _WAITING:
            waiting += 1
        elif abs(time.time() - (record.start_time or time.time())) < _BEGINS_WITHIN_SECONDS:
            starting.add(record.dagster_run.run_id)
    if not starting:
        return waiting
    with engine.connect() as connection:
        return waiting + len(starting - drains.drains_begun(connection, starting))
