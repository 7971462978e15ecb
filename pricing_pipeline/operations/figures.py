"""Figures of the whole pipeline, read from its database: what `/metrics` gives to Prometheus.

Every process reads the same ones, also after a restart. What one process knows about itself, such as how long its
requests took, is not here. No label is a symbol or a user: the registry, the providers and the code bound how
many values each has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import freshness
from pricing_pipeline.operations import health
from pricing_pipeline.queue import limits, task_queue

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LOG = logging.getLogger(__name__)
Row = Mapping[str, Any]
GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A name that Prometheus knows, and the column of its source that has the value. Seconds, bytes or a number."""

    name: str
    column: str
    says: str
    kind: str = GAUGE


@dataclass(frozen=True, slots=True)
class Source:
    """One read, with the columns that label its metrics. Figures without a value are left out."""

    name: str
    labels: tuple[str, ...]
    metrics: tuple[Metric, ...]
    read: Callable[[Connection], Iterable[Row]] | None = None
    """None = the query of this name in db/queries/metrics.sql."""

    def rows(self, connection: Connection) -> list[Row]:
        """The rows as they are now."""
        if self.read is not None:
            return list(self.read(connection))
        return [dict(row) for row in connection.execute(query(f"metrics.{self.name}")).mappings()]


@dataclass(frozen=True, slots=True)
class Figures:
    """The rows of each source that could be read, and the names of those that could not.

    Reading began at `began_at`, on the clock of `time.monotonic`, and took `seconds`.
    """

    rows: Mapping[str, Sequence[Row]]
    failed: Sequence[str]
    began_at: float
    seconds: float


_PAIR_STATES = ("fresh", "due", "late", "refused", "paused", "source_old")


def _parts(connection: Connection) -> Iterable[Row]:
    return [{"part": part.part, "is_late": int(part.is_late)} for part in health.measure(connection)]


def _pairs(connection: Connection) -> Iterable[Row]:
    for type_ in freshness.measure(connection):
        for state in _PAIR_STATES:
            yield {"data_type": type_.data_type, "state": state, "pairs": getattr(type_, state)}


def _tasks(connection: Connection) -> Iterable[Row]:
    return [counted._asdict() for counted in task_queue.counts(connection)]


def _providers(connection: Connection) -> Iterable[Row]:
    for standing in limits.standings(connection):
        yield {
            **asdict(standing),
            "units_left": standing.units_left if standing.units_limit is not None else None,
            "quota_left_bytes": standing.quota_left_bytes,
            "paused_seconds": standing.blocked_seconds or 0.0,
        }


SOURCES = (
    Source(
        "parts",
        ("part",),
        (Metric("pricing_late", "is_late", "1 while this part of the pipeline is late"),),
        _parts,
    ),
    Source(
        "subscriptions",
        ("data_type",),
        (Metric("pricing_subscriptions", "subscriptions", "subscriptions; each is a viewer and a pair"),),
    ),
    Source(
        "pairs",
        ("data_type", "state"),
        (Metric("pricing_watched_pairs", "pairs", "watched pairs by state"),),
        _pairs,
    ),
    Source(
        "tasks",
        ("provider", "status"),
        (
            Metric("pricing_tasks", "tasks", "tasks in the queue, and dead ones that are not resolved"),
            Metric("pricing_oldest_task_seconds", "oldest_seconds", "how long the oldest task has been ready"),
        ),
        _tasks,
    ),
    Source(
        "task_times",
        ("data_type", "wanted_by"),
        (
            Metric(
                "pricing_task_seconds",
                "buckets",
                "how long tasks took from queued to stored, counted a minute later; its count is the throughput",
                HISTOGRAM,
            ),
        ),
    ),
    Source(
        "ticks",
        ("part",),
        (
            Metric(
                "pricing_ticks_total",
                "ticks",
                "successful ticks of a sensor or the staleness check",
                COUNTER,
            ),
            Metric(
                "pricing_tick_seconds_total",
                "total_seconds",
                "how long the successful ticks took in all",
                COUNTER,
            ),
            Metric("pricing_tick_seconds", "seconds", "how long the last successful tick took"),
            Metric("pricing_tick_age_seconds", "age_seconds", "how long ago the last successful tick ended"),
        ),
    ),
    Source(
        "runs",
        (),
        (
            Metric(
                "pricing_run_start_seconds",
                "start_seconds",
                "from the request of the last drain's run to its start",
            ),
            Metric("pricing_drains", "drains", "drains at work"),
        ),
    ),
    Source(
        "providers",
        ("provider",),
        (
            Metric("pricing_provider_units", "units_limit", "units that the tightest limits allow, over all keys"),
            Metric("pricing_provider_units_left", "units_left", "units that the tightest limits still allow now"),
            Metric("pricing_provider_quota_bytes", "quota_bytes", "bytes that the provider may send in 30 days"),
            Metric(
                "pricing_provider_quota_used_bytes",
                "used_bytes",
                "bytes that the provider has sent in 30 days",
            ),
            Metric("pricing_provider_quota_left_bytes", "quota_left_bytes", "bytes of the quota that are left"),
            Metric(
                "pricing_provider_paused_seconds",
                "paused_seconds",
                "how long all keys of the provider still pause",
            ),
            Metric("pricing_provider_unannounced_calls", "unannounced_calls", "answers in 24 h without a length"),
        ),
        _providers,
    ),
    Source(
        "breakers",
        ("provider", "state"),
        (Metric("pricing_provider_breaker", "is_so", "1 for the state of the breaker"),),
    ),
    Source(
        "calls",
        ("provider", "outcome"),
        (
            Metric("pricing_provider_calls", "calls", "calls that ended in the last five minutes"),
            Metric(
                "pricing_provider_call_seconds",
                "seconds",
                "how long calls of the last five minutes took on average",
            ),
        ),
    ),
    Source(
        "estimates",
        ("provider", "data_type", "per"),
        (
            Metric(
                "pricing_estimate_bytes",
                "bytes",
                "estimated bytes of a symbol's price, or of a day of history",
            ),
            Metric(
                "pricing_estimate_measurements_total",
                "measurements",
                "answers whose bytes were measured",
                COUNTER,
            ),
            Metric(
                "pricing_estimate_overruns_total",
                "overruns",
                "answers of more than twice the estimated bytes",
                COUNTER,
            ),
        ),
    ),
    Source(
        "locks",
        ("kind",),
        (
            Metric(
                "pricing_lock_seconds",
                "oldest_seconds",
                "age of the oldest transaction, lock or wait for a lock",
            ),
            Metric("pricing_lock_sessions", "sessions", "sessions by what they hold or wait for"),
        ),
    ),
    Source(
        "warnings",
        ("source",),
        (Metric("pricing_warnings", "warnings", "warnings of the last hour, by the function that gave them"),),
    ),
    Source(
        "operations",
        ("operation_type", "status"),
        (
            Metric(
                "pricing_operations",
                "operations",
                "side effects; of the completed ones those of the last hour",
            ),
            Metric(
                "pricing_oldest_operation_seconds",
                "oldest_seconds",
                "how long the oldest side effect has been due",
            ),
        ),
    ),
    Source("alerts", ("rule", "severity"), (Metric("pricing_alerts", "alerts", "alerts that are open"),)),
)


def measure(engine: Engine) -> Figures:
    """All figures as they are now. A source that fails, or takes more than two seconds, stops no other.

    Raises DatabaseError when the database does not answer.
    """
    began = time.monotonic()
    rows: dict[str, Sequence[Row]] = {}
    failed = []
    with engine.connect() as connection:
        for source in SOURCES:
            try:
                with connection.begin_nested():
                    connection.execute(query("session.limit"), {"limit": "2s"})
                    rows[source.name] = source.rows(connection)
            except statement_error() as error:
                failed.append(source.name)
                _LOG.warning("the figures %s are missing: %s", source.name, reason(error))
    return Figures(rows, failed, began, time.monotonic() - began)
