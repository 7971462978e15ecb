"""What a drain's run does, and the tags by which it is known. Sensor and schedules alone ask for drains."""

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.ours import DRAIN_TAG, made_here
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import load_settings_as_guest

_DATABASE_TAG = "pricing/database"
"""On drains: which pricing database they drain. In a Dagster instance others may have drains, too."""

_MAX_RUNTIME_TAG = "dagster/max_runtime"
_PRIORITY_TAG = "dagster/priority"
_GRACE_SECONDS = 180
"""A drain ends by itself after its calls in flight; beyond this, run monitoring ends it."""


def drain_tags(instance: dg.DagsterInstance, engine: Engine) -> dict[str, str]:
    """Tags of a run that drains the queue: it goes ahead of others if it may, and Dagster ends it if it hangs."""
    seconds = load_settings_as_guest().max_drain_seconds + _GRACE_SECONDS
    return {**drains_of(engine), **ahead(instance, 10), _MAX_RUNTIME_TAG: str(seconds)}


def drains_of(engine: Engine) -> dict[str, str]:
    """The tags by which drains of this pricing database are told from others'."""
    with engine.connect() as connection:
        database = connection.execute(query("databases.identity")).scalar_one()
    return {DRAIN_TAG: "true", _DATABASE_TAG: database}


def ahead(instance: dg.DagsterInstance, priority: int) -> dict[str, str]:
    """Tags that let a run leave the queue before others, which costs those nothing where nobody waits for a place.

    Where runs are limited, or a daemon of others may take them from the queue, drain after drain would overtake
    everybody else for ever: each asks for its successor before it ends.
    """
    limits = instance.get_concurrency_config().run_queue_config
    is_unlimited = limits is not None and limits.max_concurrent_runs == -1
    return {_PRIORITY_TAG: str(priority)} if is_unlimited and made_here(instance) else {}


def drain(context: dg.AssetExecutionContext, refresher: Refresher) -> None:
    """Work at the queue for all data types, for a bounded time."""
    seconds = load_settings_as_guest().max_drain_seconds
    context.log.info(f"draining the queue for {seconds} s, or until nobody watches and nothing is queued")
    if not refresher.drain(seconds):
        context.log.info("another drain is at work; it takes this run's tasks too")
