"""The use case: claim what providers allow, call them, check, store, settle.

One `Refresher` holds all fetch logic of a process: one pool of threads for calls, one pool of database
connections, one order of priority over all data types. It knows neither Dagster nor any one provider.
Nothing here decides on limits or retries: the database does, so that all processes agree.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import date
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, OperationalError

from pricing_pipeline import demand, limits, prices, queue
from pricing_pipeline.db.query_loader import named
from pricing_pipeline.domain import Answer, Call, FailureKind, SymbolFailure, Window, months_after
from pricing_pipeline.errors import (
    DatabaseError,
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.client import ProviderClient

MAX_IN_FLIGHT = 10
"""Calls in flight at once, over all providers of this process."""

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 1.0
_POLL_SECONDS = 0.25
_EXTEND_SECONDS = 5.0
_IDLE_SECONDS = 3.0
_KEY_REFUSED_PAUSE = 60.0
_STORE_ATTEMPTS = 3
_RETRY_SQLSTATES = frozenset({"40001", "40P01"})

_KINDS: tuple[tuple[type[ProviderError], FailureKind], ...] = (
    (Throttled, FailureKind.THROTTLED),
    (KeyRefused, FailureKind.KEY_REFUSED),
    (PlanRestricted, FailureKind.PLAN_RESTRICTED),
    (RequestRefused, FailureKind.REQUEST_REFUSED),
    (SchemaDrift, FailureKind.SCHEMA_DRIFT),
    (ProviderDown, FailureKind.PROVIDER_DOWN),
)


@dataclass(slots=True)
class Tally:
    """What was done for one data type since the last report.

    `latest_calls` are those of the `calls` that asked for latest prices, the others asked for spans of days;
    `months` counts rows by the UTC month's first day.
    """

    data_type: str
    calls: int = 0
    latest_calls: int = 0
    wire_bytes: int = 0
    added: int = 0
    revised: int = 0
    failed: int = 0
    symbols: set[str] = field(default_factory=set)
    months: Counter[date] = field(default_factory=Counter)
    providers: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        self.calls += other.calls
        self.latest_calls += other.latest_calls
        self.wire_bytes += other.wire_bytes
        self.added += other.added
        self.revised += other.revised
        self.failed += other.failed
        self.symbols |= other.symbols
        self.months.update(other.months)
        self.providers |= other.providers


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a backfill is, in tasks."""

    tasks: int
    open: int
    failed: int

    @property
    def is_finished(self) -> bool:
        return self.open == 0


@dataclass(frozen=True, slots=True)
class Backfill:
    """A planned backfill. Zero tasks: everything asked for is stored already."""

    id: UUID
    data_type: str
    tasks: int


Report = Callable[[Sequence[Tally]], None]
"""Receives what was done since the last report, by data type; called from the draining thread."""


class Refresher:
    """Drains the queue through provider clients. Close it, or use it as a context manager."""

    def __init__(
        self,
        engine: Engine,
        clients: Mapping[str, ProviderClient],
        *,
        worker: str,
        run_id: str | None = None,
        on_report: Report = lambda tallies: None,
        report_every: float = 20.0,
    ) -> None:
        self._engine = engine
        self._clients = clients
        self._worker = worker
        self._run_id = run_id
        self._on_report = on_report
        self._report_every = report_every
        self._pool = ThreadPoolExecutor(MAX_IN_FLIGHT, thread_name_prefix="call")
        self._in_flight: dict[Future[Tally], Call] = {}
        self._tallies: dict[str, Tally] = {}
        self._last_report = self._last_tick = 0.0

    def __enter__(self) -> Refresher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for calls in flight (10 s at most each) and end the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def drain(self, seconds: int) -> bool:
        """Work for `seconds`, or until nobody watches and nothing is queued; False if another drain works.

        A lease in the database tells the sensor that this drain is alive and when it ends, so that
        its successor starts in time.
        """
        with self._engine.begin() as connection:
            parameters = {"worker": self._worker, "run_id": self._run_id, "seconds": seconds}
            drain_id = connection.execute(text(named("drains.begin")), parameters).scalar_one()
        if drain_id is None:
            return False
        ends = time.monotonic() + seconds
        last_busy = time.monotonic()
        next_extend = 0.0

        def is_over() -> bool:
            nonlocal last_busy, next_extend
            now = time.monotonic()
            if now >= next_extend:
                with self._engine.begin() as connection:
                    connection.execute(text(named("drains.extend")), {"drain_id": drain_id})
                    if self._in_flight or queue.is_busy(connection):
                        last_busy = now
                next_extend = now + min(_EXTEND_SECONDS, _IDLE_SECONDS / 2)
            return now >= ends or now - last_busy > _IDLE_SECONDS

        try:
            self._work_until(is_over)
        finally:
            with self._engine.begin() as connection:
                connection.execute(text(named("drains.end")), {"drain_id": drain_id})
        return True

    def plan_backfill(self, data_type: str, window: Window, symbols: Sequence[str] | None = None) -> Backfill:
        """Queue what is missing of a data type between two days, for all its instruments or some."""
        with self._engine.begin() as connection:
            row = connection.execute(
                text(named("backfill.plan")),
                {
                    "data_type": data_type,
                    "first_day": window.start,
                    "last_day": window.end,
                    "symbols": None if symbols is None else list(symbols),
                    "run_id": self._run_id,
                },
            ).one()
        return Backfill(row.backfill_id, data_type, row.tasks)

    def backfill(
        self, backfill: Backfill, on_progress: Callable[[Progress], None] = lambda progress: None
    ) -> Progress:
        """Work until every task of a backfill is finished, whoever finished it.

        Live work goes first all the while: this drains the common queue, not a private one.
        """
        progress = self.progress(backfill)

        def is_over() -> bool:
            nonlocal progress
            progress = self.progress(backfill)
            on_progress(progress)
            return progress.is_finished

        self._work_until(is_over)
        return progress

    def progress(self, backfill: Backfill) -> Progress:
        """How far a backfill is."""
        with self._engine.begin() as connection:
            row = connection.execute(text(named("backfill.progress")), {"backfill_id": backfill.id}).one()
        return Progress(row.tasks, row.open, row.failed)

    def _work_until(self, is_over: Callable[[], bool]) -> None:
        self._last_report = time.monotonic()
        pause = 1.0
        while True:
            try:
                if is_over():
                    break
                self._tick()
                self._start_calls()
                pause = 1.0
            except (DatabaseError, OperationalError) as error:
                # The database will be back; what is claimed is recovered by its lease.
                _LOG.warning("the database does not answer, trying again in %.0f s: %s", pause, error)
                time.sleep(pause)
                pause = min(pause * 2, 15.0)
            self._collect(_POLL_SECONDS)
            if time.monotonic() - self._last_report >= self._report_every:
                self._report()
        while self._in_flight:
            self._collect(_POLL_SECONDS)
        self._report()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._last_tick < _TICK_SECONDS:
            return
        self._last_tick = now
        with self._engine.begin() as connection:
            demand.run_duties(connection)
        with self._engine.begin() as connection:
            demand.enqueue_due(connection)
        with self._engine.begin() as connection:
            queue.promote(connection)

    def _start_calls(self) -> None:
        """Hand free threads to providers with work, each within its own share.

        Only as many calls are claimed as can start now: a call that waited would reach the provider
        long after its units were counted.
        """
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            return
        with self._engine.connect() as connection:
            providers = queue.providers_with_work(connection)
        busy = Counter(call.provider for call in self._in_flight.values())
        for provider, most in providers.items():
            free = min(MAX_IN_FLIGHT - len(self._in_flight), most - busy[provider])
            if free <= 0 or provider not in self._clients:
                continue
            with self._engine.begin() as connection:
                calls = queue.claim(connection, provider, self._worker, free, self._run_id)
            for call in calls:
                self._in_flight[self._pool.submit(self._make, call)] = call

    def _collect(self, timeout: float) -> None:
        if not self._in_flight:
            time.sleep(timeout)
            return
        done, _ = wait(self._in_flight, timeout=timeout, return_when=FIRST_COMPLETED)
        for future in done:
            call = self._in_flight.pop(future)
            error = future.exception()
            if error is not None:
                # Its lease brings the tasks back; one bad call must not end the drain.
                _LOG.error("call %d to %s could not be settled: %r", call.id, call.provider, error)
                continue
            self._tallies.setdefault(call.data_type, Tally(call.data_type)).add(future.result())

    def _report(self) -> None:
        self._last_report = time.monotonic()
        tallies, self._tallies = self._tallies, {}
        if tallies:
            self._on_report([tallies[name] for name in sorted(tallies)])

    def _make(self, call: Call) -> Tally:
        """Make one call and settle it; runs in a thread of the pool."""
        client = self._clients[call.provider]
        try:
            fetched = client.fetch(call.fetcher, call.symbols, call.window, now=call.claimed_at)
        except ProviderError as error:
            failure = error
            self._transact(lambda connection: _settle_failure(connection, call, failure))
            return _tally(call, failure.wire_bytes, failed=len(call.tasks))
        return self._transact(
            lambda connection: _settle_answer(
                connection, call, fetched.answer, fetched.http_status, fetched.wire_bytes
            )
        )

    def _transact(self, work: Callable[[Connection], T]) -> T:
        """Run in one transaction, again when it was the victim of a deadlock or its session was lost.

        The fence makes that safe: had the lost one been committed after all, nothing would be held any more.
        """
        for attempt in range(1, _STORE_ATTEMPTS + 1):
            try:
                with self._engine.begin() as connection:
                    return work(connection)
            except DatabaseError:
                if attempt == _STORE_ATTEMPTS:
                    raise
                time.sleep(attempt)
            except DBAPIError as error:
                if (
                    attempt == _STORE_ATTEMPTS
                    or getattr(error.orig, "sqlstate", None) not in _RETRY_SQLSTATES
                ):
                    raise
        raise AssertionError("unreachable")


def _tally(call: Call, wire_bytes: int, *, failed: int = 0) -> Tally:
    return Tally(
        call.data_type,
        calls=1,
        latest_calls=int(call.window is None),
        wire_bytes=wire_bytes,
        failed=failed,
        providers={call.provider},
    )


def _settle_answer(
    connection: Connection, call: Call, answer: Answer, status: int | None, wire_bytes: int
) -> Tally:
    """Store what the call brought and finish its tasks, in one transaction behind the fence."""
    tally = _tally(call, wire_bytes)
    held = queue.held(connection, call)
    ids = {task.symbol: task.id for task in call.tasks if task.id in held}
    observations = [o for o in answer.observations if o.symbol in ids]
    stored = {row.symbol: row for row in prices.store(connection, call, observations)}
    empty = [symbol for symbol in answer.empty if symbol in ids]
    failures = [failure for failure in answer.failures if failure.symbol in ids]
    failures += [
        SymbolFailure(
            row.symbol, FailureKind.STALE_SOURCE, "the provider's time is older than what is stored"
        )
        for row in stored.values()
        if row.is_stale_source
    ]
    failed = {failure.symbol for failure in failures}
    done = sorted((set(stored) | set(empty)) - failed)

    if call.window is not None:
        prices.cover(connection, call.data_type, done, call.window.start, call.window.end)
    elif empty:
        prices.confirm(connection, call.data_type, empty)
    if done:
        queue.complete(connection, [ids[symbol] for symbol in done], call.claim_token)
    for (kind, message), symbols in _by_reason(failures).items():
        queue.fail(connection, [ids[symbol] for symbol in symbols], call.claim_token, kind, message)
    if held:  # what a lost worker heard is old
        limits.unthrottle(connection, call.provider)
    limits.settle(connection, call.id, "ok", http_status=status, wire_bytes=wire_bytes)

    tally.failed = len(failures)
    tally.symbols.update(done)
    tally.added = sum(row.added for row in stored.values())
    tally.revised = sum(row.revised for row in stored.values())
    tally.months.update(
        o.observed_at.date().replace(day=1)
        for o in observations
        if o.symbol in stored and o.symbol not in failed
    )
    return tally


def _settle_failure(connection: Connection, call: Call, error: ProviderError) -> None:
    """The whole call failed: book its bytes and let each task have the consequence of the error's kind."""
    kind = next(kind for cls, kind in _KINDS if isinstance(error, cls))
    held = queue.held(connection, call)
    pause: float | None = None
    if held and kind in (FailureKind.THROTTLED, FailureKind.KEY_REFUSED):
        asked = error.retry_after if isinstance(error, Throttled) else _KEY_REFUSED_PAUSE
        pause = limits.throttle(connection, call.provider, asked, str(error))
    # In a batch, one symbol may have spoiled the call for the others: those deserve another try.
    is_permanent = kind.is_permanent and len(call.tasks) == 1
    queue.fail(
        connection,
        call.task_ids,
        call.claim_token,
        kind,
        str(error),
        is_permanent=is_permanent,
        retry_after=pause,
    )
    limits.settle(
        connection,
        call.id,
        "failed",
        http_status=error.http_status,
        wire_bytes=error.wire_bytes,
        error=str(error),
    )


def _by_reason(failures: Iterable[SymbolFailure]) -> dict[tuple[FailureKind, str], list[str]]:
    grouped: dict[tuple[FailureKind, str], list[str]] = defaultdict(list)
    for failure in failures:
        grouped[failure.kind, failure.message].append(failure.symbol)
    return grouped


def months_of(window: Window) -> list[date]:
    """First days of all months that a window touches."""
    months = [window.start.replace(day=1)]
    while (following := months_after(months[-1], 1)) <= window.end:
        months.append(following)
    return months
