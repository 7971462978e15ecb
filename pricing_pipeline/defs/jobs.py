"""Jobs: one, which holds the histories and documents of all data types."""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pricing_pipeline.defs.ours import REFRESH_JOB, stored_key
from pricing_pipeline.defs.snapshot import RegistrySnapshot

NO_RUN_RETRIES = {"dagster/max_retries": "0"}
"""Tags of a run that an instance with run retries does not try again.

A run of Dagster's own job gets them as it fails in words: either no other try would mend that, or the queue has tried.
`Failure(allow_retries=False)` would not do: Dagster heeds it for retries of steps alone.
"""


def refresh_job(snapshot: RegistrySnapshot) -> UnresolvedAssetJobDefinition:
    """The refresh job. In process: starting a process per step took 7 s where this takes 2.

    Its runs backfill, as the partitions say that a person has chosen; those of sensor and schedules carry the tag of
    drains. Dagster's own retries stay off: the queue retries, and two layers would multiply.
    """
    return dg.define_asset_job(
        REFRESH_JOB,
        selection=dg.AssetSelection.assets(*(stored_key(kind) for kind in snapshot.data_types)),
        description="Launched by hand, it fills the chosen months. Sensor and schedules have it drain the fetch queue: "
        "most-watched first, inside every provider's limits.",
        tags=NO_RUN_RETRIES,
        executor_def=dg.in_process_executor,
    )
