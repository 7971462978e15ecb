"""Jobs: one, which drains the queue for all data types, and the tags of its runs."""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pricing_pipeline.defs.assets import DRAIN_TAG, history_key
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.settings import load_settings

_MAX_RUNTIME_TAG = "dagster/max_runtime"
_PRIORITY_TAG = "dagster/priority"
_GRACE_SECONDS = 180
"""A drain ends by itself after its calls in flight; beyond this, run monitoring ends it."""


def drain_tags() -> dict[str, str]:
    """Tags of a run that drains the queue: it goes before all others, and Dagster ends it if it hangs."""
    seconds = load_settings().max_drain_seconds + _GRACE_SECONDS
    return {DRAIN_TAG: "true", _PRIORITY_TAG: "10", _MAX_RUNTIME_TAG: str(seconds)}


def refresh_job(snapshot: RegistrySnapshot) -> UnresolvedAssetJobDefinition:
    """The refresh job. In process: starting a process per step took 7 s where this takes 2.

    Dagster's own retries stay off: the queue retries, and two layers would multiply.
    """
    return dg.define_asset_job(
        "refresh",
        selection=dg.AssetSelection.assets(*(history_key(name) for name in snapshot.names())),
        description="Drains the fetch queue: most-watched first, inside every provider's limits.",
        tags={**drain_tags(), "dagster/max_retries": "0"},
        executor_def=dg.in_process_executor,
    )
