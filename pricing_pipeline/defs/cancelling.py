"""Cancel the backfills of cancelled runs, so that later drains do not fetch their tasks.

A run whose process was killed is not cancelled; the next drain fetches its tasks.
"""

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.demand import backfills

_CALLED_OFF = [dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED]


def cancel_with_runs(instance: dg.DagsterInstance, engine: Engine) -> int:
    """Cancel the running backfills of cancelled runs; returns how many tasks were cancelled.

    A run does it at its end. A sensor does it for runs whose process has died.
    """
    with engine.begin() as connection:
        under_way = backfills.under_way(connection)
    if not under_way:
        return 0
    asked_by = sorted(set(under_way.values()))
    runs = instance.get_runs(dg.RunsFilter(run_ids=asked_by, statuses=_CALLED_OFF))
    called_off = {run.run_id for run in runs}
    cancelled = 0
    for backfill_id, run_id in under_way.items():
        if run_id in called_off:
            with engine.begin() as connection:
                cancelled += backfills.cancel(connection, backfill_id)
    return cancelled
