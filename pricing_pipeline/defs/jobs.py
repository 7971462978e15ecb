"""The one job, with the histories and documents of all data types."""

from __future__ import annotations

import dagster as dg

from pricing_pipeline.defs.internals import UnresolvedAssetJobDefinition
from pricing_pipeline.defs.ours import REFRESH_JOB, stored_key
from pricing_pipeline.defs.snapshot import RegistrySnapshot

NO_RUN_RETRIES = {"dagster/max_retries": "0"}
"""Tags of a run that an instance with run retries does not retry.

A run of Dagster's own job gets them when it fails with a message: either a retry would not help, or the queue has
retried. `Failure(allow_retries=False)` is not enough: Dagster uses it only for retries of steps.
"""


def refresh_job(snapshot: RegistrySnapshot) -> UnresolvedAssetJobDefinition:
    """The refresh job. It runs in one process, which starts in 2 s; a process for each step took 7 s.

    A run without the tag of drains backfills its partitions; the sensor and the schedules set that tag. Dagster's own
    retries stay off: the queue retries, and two layers of retries would multiply.
    """
    return dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.assets(*(stored_key(type_) for type_ in snapshot.data_types)),
        description="Launched by hand, it fills the chosen months. Sensor and schedules have it drain the fetch queue: "
        "most-watched first, inside every provider's limits.",
        tags=NO_RUN_RETRIES,
        executor_def=dg.in_process_executor,
    )
