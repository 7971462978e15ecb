"""`/metrics`: figures of the pipeline, and of this process' requests, as Prometheus reads them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Family
from sqlalchemy import Engine
from starlette.datastructures import State
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pricing_pipeline.api.access import Reader
from pricing_pipeline.api.cached import Cached
from pricing_pipeline.api.problems import RESPONSES, database_busy
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.operations import figures
from pricing_pipeline.operations.figures import COUNTER, HISTOGRAM, Figures, Metric, Row, Source

_CACHED_SECONDS = 5.0
_SPELLED_SECONDS = 1.0
"""Writing the text blocks all requests for milliseconds, so it is written once a second at most."""
_PATIENCE_SECONDS = 8.0
"""Prometheus gives up after ten seconds."""
_KNOWN_SECONDS = 300.0
"""How long old figures are served when they cannot be read again: as long as Prometheus itself uses an old sample."""
_PREFIX = "/v1"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

router = APIRouter(tags=["health"], responses=RESPONSES)


class RequestTimes:
    """The times of this process's own requests, since its start."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._seconds = Histogram(
            "pricing_api_request_seconds",
            "how long requests to this process took until the answer began",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._started = Gauge(
            "pricing_api_start_time_seconds",
            "when this process began, in Unix seconds",
            registry=self.registry,
        )
        self._started.set(time.time())

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Note an answer. Routes are templates, and all unknown paths count as one, so labels are bounded."""
        route = scope.get("route")
        path = getattr(route, "path", None)
        template = "none" if path is None else _with_prefix(scope, path)
        # A route is also found for methods that it refuses, and a request may name any word as its method.
        method = scope["method"] if scope["method"] in (getattr(route, "methods", None) or ()) else "any"
        self._seconds.labels(method, template, f"{status // 100}xx").observe(seconds)


def _with_prefix(scope: Scope, path: str) -> str:
    """The template of a path as people know it: a route does not know the prefix under which it was included."""
    is_included = scope["path"].startswith(f"{_PREFIX}/") and not path.startswith(f"{_PREFIX}/")
    return f"{_PREFIX}{path}" if is_included else path


class Measured:
    """An ASGI application that notes how long `app` takes until its answers begin."""

    def __init__(self, app: ASGIApp, *, times: RequestTimes) -> None:
        self._app = app
        self._times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer, and note when it begins to."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._times.note(scope, message["status"], time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, send_noted)


class KnownFigures:
    """The figures of the pipeline, read at most every five seconds. Those that cannot be read now are as last known.

    So no graph goes blank while the database is slow. Figures older than five minutes are left out.
    """

    def __init__(
        self,
        read: Callable[[], Figures],
        *,
        seconds: float = _CACHED_SECONDS,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        self._read = read
        self._cached = Cached(self._remember, seconds=seconds, patience=patience)
        self._last: dict[str, tuple[float, Sequence[Row]]] = {}
        self._failed: Sequence[str] = ()
        self._took = 0.0
        self._spelled_seconds = min(_SPELLED_SECONDS, seconds)
        self._spelled = (float("-inf"), b"")

    async def spelled(self, spell: Callable[[Known], bytes]) -> bytes:
        """What is known as a text, a second old at most. Raises as `get`."""
        spelled_at, text = self._spelled
        if time.monotonic() - spelled_at >= self._spelled_seconds:
            text = spell(await self.get())
            self._spelled = (time.monotonic(), text)
        return text

    async def get(self) -> Known:
        """What is known now. Raises TimeoutError if reading takes too long, and nothing is known of the last minutes;
        and DatabaseError if the database does not answer at all."""
        with suppress(TimeoutError):
            await self._cached.get()
        now = time.monotonic()
        # In one step: another thread writes into it.
        last = {
            name: (now - read_at, rows)
            for name, (read_at, rows) in self._last.copy().items()
            if now - read_at <= _KNOWN_SECONDS
        }
        if not last:
            raise TimeoutError
        return Known(
            {name: rows for name, (_, rows) in last.items()},
            {name: age for name, (age, _) in last.items()},
            self._failed,
            self._took,
        )

    def _remember(self) -> None:
        # In the thread that reads, so that a result that comes too late for its caller is kept.
        found = self._read()
        self._last |= {name: (found.began_at, rows) for name, rows in found.rows.items()}
        self._failed, self._took = found.failed, found.seconds


@dataclass(frozen=True, slots=True)
class Known:
    """The rows of each source as they are known, how old they are, and which the last reading did not get."""

    rows: Mapping[str, Sequence[Row]]
    ages: Mapping[str, float]
    failed: Sequence[str]
    seconds: float


def cached_figures(engine: Engine) -> KnownFigures:
    """The figures of the pipeline of this database."""
    return KnownFigures(lambda: figures.measure(engine))


@router.head("/metrics", include_in_schema=False)
@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def read_metrics(request: Request, _: Reader) -> Response:
    """Figures for Prometheus, which sends a token with the scope `read`. Each line of HELP says what one means."""
    known: KnownFigures = request.app.state.figures
    try:
        text = await known.spelled(lambda measured: _spell(request.app.state, measured))
    except TimeoutError:
        raise database_busy("the database takes too long to answer") from None
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _spell(state: State, measured: Known) -> bytes:
    pipeline = CollectorRegistry(auto_describe=False)
    pipeline.register(_Collector(measured))
    if (replica := state.replica) is not None:
        pipeline.register(_ReplicaCollector(replica))
    return generate_latest(pipeline) + generate_latest(state.request_times.registry)


class _Collector:
    """Figures in the shape that prometheus-client collects."""

    def __init__(self, measured: Known) -> None:
        self._figures = measured

    def collect(self) -> Iterator[Family]:
        for source in figures.SOURCES:
            if source.name in self._figures.rows:
                for metric in source.metrics:
                    yield _family(source, metric, self._figures.rows[source.name])
        missing = GaugeMetricFamily("pricing_metrics_missing", MISSING, labels=["source"])
        for source in figures.SOURCES:
            missing.add_metric([source.name], int(source.name in self._figures.failed))
        yield missing
        age = GaugeMetricFamily("pricing_metrics_age_seconds", AGE, labels=["source"])
        for name, seconds in self._figures.ages.items():
            age.add_metric([name], seconds)
        yield age
        yield GaugeMetricFamily("pricing_metrics_seconds", TOOK, value=self._figures.seconds)


class _ReplicaCollector:
    """Figures of the replica that this process reads."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def collect(self) -> Iterator[Family]:
        yield GaugeMetricFamily("pricing_replica_used", REPLICA_USED, value=int(self._replica.is_used))
        if (lag := self._replica.lag) is not None:
            yield GaugeMetricFamily("pricing_replica_lag_seconds", REPLICA_LAG, value=lag)


REPLICA_USED = "1 while this process reads latest prices and histories from the replica"
REPLICA_LAG = "how far the replica lags at most; absent while unknown"
MISSING = "1 while the figures of this source cannot be read"
AGE = "how long ago the figures of this source were read"
TOOK = "how long reading all figures took"


def _family(source: Source, metric: Metric, rows: Sequence[Row]) -> Family:
    if metric.kind == HISTOGRAM:
        return _histogram(source, metric, rows)
    kind = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.says, labels=source.labels)
    for row in rows:
        if row[metric.column] is not None:
            family.add_metric(_labels(source, row), row[metric.column])
    return family


def _histogram(source: Source, metric: Metric, rows: Iterable[Row]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.says, labels=source.labels)
    for row in rows:
        buckets = [(repr(float(bound)), count) for bound, count in zip(row["bounds"], row["buckets"], strict=True)]
        family.add_metric(_labels(source, row), [*buckets, ("+Inf", row["times"])], row["total_seconds"])
    return family


def _labels(source: Source, row: Row) -> list[str]:
    return [str(row[label]) for label in source.labels]
