"""The run of a drain, and its tags. Only the sensor requests drains."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.ours import DRAIN_TAG, made_here
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import PricingDatabase, Providers
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import Settings

_DATABASE_TAG = "pricing/database"
"""The tag that names a drain's pricing database. A Dagster instance may have drains of other databases, too."""

_MAX_RUNTIME_TAG = "dagster/max_runtime"
_PRIORITY_TAG = "dagster/priority"
_GRACE_SECONDS = 180
"""A drain ends after its calls in flight; if it takes this much longer, run monitoring ends it."""


def drain_tags(instance: dg.DagsterInstance, database: PricingDatabase) -> dict[str, str]:
    """The tags of a run that drains the queue: it overtakes other runs if it may, and Dagster ends it if it hangs."""
    seconds = database.settings.max_drain_seconds + _GRACE_SECONDS
    return {**drains_of(database.engine), **ahead(instance, 10), _MAX_RUNTIME_TAG: str(seconds)}


def drains_of(engine: Engine) -> dict[str, str]:
    """The tags of the drains of this pricing database."""
    with engine.connect() as connection:
        database = connection.execute(query("databases.identity")).scalar_one()
    return {DRAIN_TAG: "true", _DATABASE_TAG: database}


def ahead(instance: dg.DagsterInstance, priority: int) -> dict[str, str]:
    """Tags that let a run leave the queue before others, if no run has to wait for a place.

    If runs are limited, or somebody else's daemon takes them from the queue, drain after drain would overtake all other
    runs for ever: each drain requests its successor before it ends.
    """
    limits = instance.get_concurrency_config().run_queue_config
    is_unlimited = limits is not None and limits.max_concurrent_runs == -1
    return {_PRIORITY_TAG: str(priority)} if is_unlimited and made_here(instance) else {}


@contextmanager
def refreshing(run_id: str, database: PricingDatabase, providers: Providers, reporter: Reporter) -> Iterator[Refresher]:
    """The refresher of a run: its drain or its backfill."""
    with (
        providers.clients() as clients,
        Refresher(
            database.engine,
            clients,
            worker=f"{socket.gethostname()}:{os.getpid()}",
            run_id=run_id,
            on_report=reporter.report,
            listening=database.listening,
        ) as refresher,
    ):
        yield refresher


def drain(context: dg.OpExecutionContext, refresher: Refresher, settings: Settings) -> None:
    """Work at the queue for all data types, for a bounded time."""
    seconds = settings.max_drain_seconds
    context.log.info(f"draining the queue for {seconds} s, or until nobody watches and nothing is queued")
    record = context.instance.get_run_record_by_id(context.run.run_id)
    requested_at = record.create_timestamp if record else None
    if not refresher.drain(seconds, requested_at, most=settings.max_drains):
        context.log.info("no further drain is needed; those at work take this run's tasks, too")
