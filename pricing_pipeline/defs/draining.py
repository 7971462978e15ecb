"""What a drain's run does, and the tags by which it is known. Sensor and schedules alone ask for drains."""

import dagster as dg

from pricing_pipeline.defs.ours import DRAIN_TAG
from pricing_pipeline.refresh import Refresher
from pricing_pipeline.settings import load_settings_as_guest

_MAX_RUNTIME_TAG = "dagster/max_runtime"
_PRIORITY_TAG = "dagster/priority"
_GRACE_SECONDS = 180
"""A drain ends by itself after its calls in flight; beyond this, run monitoring ends it."""


def drain_tags() -> dict[str, str]:
    """Tags of a run that drains the queue: it goes before all others, and Dagster ends it if it hangs."""
    seconds = load_settings_as_guest().max_drain_seconds + _GRACE_SECONDS
    return {DRAIN_TAG: "true", _PRIORITY_TAG: "10", _MAX_RUNTIME_TAG: str(seconds)}


def drain(context: dg.AssetExecutionContext, refresher: Refresher) -> None:
    """Work at the queue for all data types, for a bounded time."""
    seconds = load_settings_as_guest().max_drain_seconds
    context.log.info(f"draining the queue for {seconds} s, or until nobody watches and nothing is queued")
    if not refresher.drain(seconds):
        context.log.info("another drain is at work; it takes this run's tasks too")
