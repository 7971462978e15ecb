"""The drain's work: claim the calls that providers allow, make them, check, store, settle.

One `Refresher` holds all fetch logic of a process: one pool of threads for calls, one pool of database
connections, one order of priority over all data types. It knows neither Dagster nor any one provider.
Nothing here decides on limits or retries: the database does, so that all processes agree.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from pricing_pipeline.db.engine import KeptSession, autocommitting
from pricing_pipeline.db.errors import LOCKED_PAGE, is_locked, raise_interruption
from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.db.wakeup import WakeUp
from pricing_pipeline.demand import backfills, staleness, viewers
from pricing_pipeline.demand.backfills import Backfill, Progress
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    DatabaseError,
    ProviderError,
    ReadReplica,
    SettingsError,
)
from pricing_pipeline.providers.base import give_key
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.quarantine import opinions, reviews
from pricing_pipeline.quarantine.opinions import Question
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline.queue.fair_order import FairOrder
from pricing_pipeline.queue.pages import LONGEST_CALL_SECONDS, ClaimedPages
from pricing_pipeline.refresh import making, settling
from pricing_pipeline.refresh.making import with_pages
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.registry import data_type_registry

MAX_IN_FLIGHT = 10
"""Calls in flight at once, over all providers of this process, without those that wait for their next request."""
_MOST_CALLS = 2 * MAX_IN_FLIGHT  # including waiting calls: each has a thread

SESSIONS = 7
"""Sessions of the database that its engine should keep: four answers are stored at a time, beside the two sessions of
the coordinating thread and one for other work."""

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_CHECK_SECONDS, _TICK_SECONDS = 0.5, 1.0
_POLL_SECONDS = 0.25
"""How often to look for work without a wake-up."""
_IDLE_SECONDS = 3.0
"""How long a drain waits for work before it ends."""
_STOP_SECONDS = 2.0
"""How long a stopping worker waits for its calls in flight; then it returns their tasks."""
_EXTEND_TASKS_SECONDS = 15.0
"""How often the leases of tasks are extended whose calls take long."""
_REPORT_AT_LEAST_SECONDS = 320.0
"""A drain reports ever less often: its first reports show that it works, and each takes kilobytes."""
_SETTLED_AT_ONCE = 4
"""How many answers are stored at the same time. One more session would plan all statements for 25 ms, and then
wait for the others."""


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A call in flight with its further requests, and its start by the monotonic clock."""

    call: Call
    pages: ClaimedPages
    began: float


class Pace:
    """Lets a loop begin a work again once `seconds` have passed since it last did, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = float("-inf")

    def begin(self) -> bool:
        """Begin the work if it is due; returns whether."""
        now = time.monotonic()
        if now - self._began < self._seconds:
            return False
        self._began = now
        return True


OnProgress = Callable[[Progress], bool | None]  # True = it waits no longer
Report = Callable[[Sequence[Tally]], None]
"""Receives the tallies since the last report, one for each data type. The draining thread calls it."""


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
        listening: Engine | None = None,
    ) -> None:
        """`listening` reaches the database past a pooler, for wake-ups; None: `engine` does, or there are none."""
        self._engine = engine
        self._listening = listening or engine
        self._autocommit = autocommitting(engine)
        self._clients = clients
        self._worker = worker
        self._run_id = run_id
        self._on_report = on_report
        self._report_every = report_every
        self._pool = ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="call")
        self._settling = threading.BoundedSemaphore(_SETTLED_AT_ONCE)
        self._in_flight: dict[Future[Tally], _InFlight] = {}
        self._woken, self._are_requests_notified = threading.Event(), threading.Event()
        self._stopping = threading.Event()
        self._order = FairOrder()
        self._wake_up: WakeUp | None = None
        self._own, self._second = KeptSession(self._autocommit), KeptSession(self._autocommit)
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="check")
        self._tallies: dict[str, Tally] = {}
        self._last_report = 0.0
        self._checks, self._ticks = Pace(_CHECK_SECONDS), Pace(_TICK_SECONDS)
        self._extensions = Pace(_EXTEND_TASKS_SECONDS)
        self._are_keys_known = False

    def __enter__(self) -> Refresher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for calls in flight (10 s at most for each request) and end the threads."""
        self._stopping.set()
        if self._wake_up is not None:
            self._wake_up.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._helper.shutdown(wait=True, cancel_futures=True)

    def drain(self, seconds: int, requested_at: datetime | None = None, *, most: int = 1) -> bool:
        """Work for `seconds`, or until nobody watches and nothing is queued; False if enough drains are at work.

        Raises ReadReplica when the database takes no writes. `requested_at` (UTC) is when its run was requested, `most`
        how many drains may work at once.

        A lease in the database tells the sensor that this drain is alive and when it ends, so that
        its successor starts in time.
        """
        # Each statement is its own transaction: a process that freezes between two keeps no lock.
        with self._autocommit.connect() as connection:
            drain_id = call_sql(
                connection, "begin_drain", self._worker, self._run_id, seconds, requested_at, most
            ).scalar_one()
        if drain_id is None:
            return False
        ends = time.monotonic() + seconds
        last_busy = time.monotonic()
        next_extend = 0.0

        def is_over() -> bool:
            nonlocal last_busy, next_extend
            now = time.monotonic()
            if now >= next_extend:
                with self._autocommit.connect() as connection:
                    call_sql(connection, "extend_drain", drain_id, sorted(self._clients))
                    if self._in_flight or task_queue.is_busy(connection):
                        last_busy = now
                next_extend = now + _IDLE_SECONDS / 2
            return now >= ends or now - last_busy > _IDLE_SECONDS

        try:
            self._work_until(is_over)
        finally:
            with self._autocommit.connect() as connection:
                call_sql(connection, "end_drain", drain_id)
        return True

    def plan_backfill(self, data_type: str, window: Window, symbols: Sequence[str] | None = None) -> Backfill:
        """Queue tasks for the missing days of a data type, for all its instruments or some.

        Raises SettingsError when no provider of the data type has its API key: the tasks would wait for one, and the
        caller with them.
        """
        # The answers need numpy. Its import takes as long as the plan, so both run at once.
        self._pool.submit(import_module, "numpy")
        with self._autocommit.connect() as connection:
            providers = [p for p in data_type_registry.routes(connection).get(data_type, []) if p in self._clients]
            if providers and not any(self._clients[provider].has_key for provider in providers):
                raise SettingsError(
                    f"{providers[0]} needs an API key, and none is stored or set. {give_key(providers[0])} "
                    "With PRICING_SANDBOX=true the sandbox is asked instead."
                )
            row = call_sql(
                connection,
                "plan_backfill",
                data_type,
                window.start,
                window.end,
                None if symbols is None else list(symbols),
                self._run_id,
            ).one()
        return Backfill(row.backfill_id, data_type, row.tasks, row.left_out)

    def backfill(self, backfill: Backfill, on_progress: OnProgress = lambda progress: None) -> Progress:
        """Work until every task of a backfill is finished, by this worker or another."""
        return self.follow(lambda connection: backfills.progress(connection, backfill.id), on_progress)

    def follow(
        self, ask: Callable[[Connection], Progress], on_progress: OnProgress = lambda progress: None
    ) -> Progress:
        """Work at the common queue, live work first, until `ask` says to stop."""
        progress, asked_at = Progress(0, 0, 0), -_POLL_SECONDS

        def is_over() -> bool:
            nonlocal progress, asked_at
            now = time.monotonic()
            # Asked after each call, it took as long as the next claim.
            if self._in_flight and now - asked_at < _POLL_SECONDS:
                return False
            with self._own.use() as connection:
                progress, asked_at = ask(connection), now
            is_enough = on_progress(progress)
            return progress.is_finished or is_enough is True

        self._work_until(is_over)
        return progress

    def _work_until(self, is_over: Callable[[], bool]) -> None:
        self._stopping.clear()
        if self._wake_up is None:
            self._wake_up = WakeUp(self._listening, self._hear)
        try:
            self._work(is_over)
            # The last answers may have made a day a session: its bars do not wait for the next worker.
            self._passing_over(lambda: reviews.release_opened_days(self._engine))
        except BaseException:  # Ctrl-C and Dagster's end of a run, too
            self._return_unfinished()
            raise
        finally:
            self._own.close()
            self._helper.submit(self._second.close).result()

    def _work(self, is_over: Callable[[], bool]) -> None:
        self._last_report = time.monotonic()
        steps = (self._check, self._tick, self._serve_requests, self._start_calls, self._extend_leases)
        pause = 1.0
        while True:
            try:
                if not self._are_keys_known:
                    self._passing_over(self._register_keys)
                if self._passing_over(is_over):
                    break
                for step in steps:
                    self._passing_over(step)
                pause = 1.0
            except ReadReplica:
                raise  # the server was demoted: waiting would never end
            except (DatabaseError, OperationalError) as error:
                raise_interruption(error)
                # The database will be back. Leases recover the claimed tasks.
                _LOG.warning("the database does not answer, trying again in %.0f s: %s", pause, error)
                time.sleep(pause)
                pause = min(pause * 2, 15.0)
            self._collect(_POLL_SECONDS)
            if time.monotonic() - self._last_report >= self._report_every:
                self._report()
        while self._in_flight:
            self._keep_leases()
            self._collect(_POLL_SECONDS)
        self._report()

    def _passing_over(self, step: Callable[[], T]) -> T | None:
        """Take a step; returns None when another session has locked its rows. The other steps go on."""
        try:
            return step()
        except DBAPIError as error:
            if not is_locked(error):
                raise
        _LOG.warning("a step is passed over, because another session has locked its rows; %s", LOCKED_PAGE)
        return None

    def _register_keys(self) -> None:
        with self._engine.begin() as connection:
            for provider, client in sorted(self._clients.items()):
                limits.register_keys(connection, provider, client.key_names)
        self._are_keys_known = True

    def _return_unfinished(self) -> None:
        """Before the worker stops: wait a moment for calls in flight, and return the tasks of calls that have not
        ended.

        The fence refuses a later answer; only its bytes are booked.
        """
        self._stopping.set()
        wait(self._in_flight, timeout=_STOP_SECONDS)
        self._collect(0.0)
        unfinished, self._in_flight = list(self._in_flight.values()), {}
        for call in (in_flight.call for in_flight in unfinished):
            try:
                settling.return_tasks(self._engine, call, "the worker was told to stop")
            except (DatabaseError, DBAPIError) as error:
                _LOG.warning("the tasks of call %d return to the queue when their lease ends: %s", call.id, error)

    def _keep_leases(self) -> None:
        """Extend leases while the last calls end, which may take minutes if they have pages."""
        try:
            self._passing_over(self._extend_leases)
        except (DatabaseError, OperationalError) as error:
            raise_interruption(error)
            _LOG.warning("the database does not answer, and no lease is extended: %s", error)

    def _extend_leases(self) -> None:
        """Extend the leases of long calls. A call that hangs for good is left to recovery."""
        if not self._in_flight or not self._extensions.begin():
            return
        now = time.monotonic()
        for in_flight in self._in_flight.values():
            if _EXTEND_TASKS_SECONDS <= now - in_flight.began <= LONGEST_CALL_SECONDS:
                with self._autocommit.connect() as connection:
                    task_queue.extend(connection, in_flight.call)

    def _tick(self) -> None:
        if not self._ticks.begin():
            return
        with self._own.use() as connection:
            task_queue.promote(connection)
            task_queue.tend_outages(connection)
        self._start_calls()  # the duties that are due may take longer than a call
        with self._own.use() as connection:
            staleness.run_duties(connection)
        reviews.judge_anew(self._engine)
        self._ask_others()

    def _hear(self) -> None:
        """Note that new work has come, or that a client asks for some."""
        self._are_requests_notified.set()
        self._woken.set()

    def _serve_requests(self) -> None:
        """Serve the requests of clients between two staleness checks."""
        if self._are_requests_notified.is_set():
            self._are_requests_notified.clear()
            with self._own.use() as connection:
                viewers.serve_requests(connection)

    def _check(self) -> None:
        """Queue due pairs in two sessions at once: each takes data types that the other has not begun."""
        if not self._checks.begin():
            return
        helped = self._helper.submit(self._enqueue_due, self._second)
        self._enqueue_due(self._own)
        try:
            helped.result()
        except (DatabaseError, DBAPIError) as error:
            _LOG.warning("the second session of the staleness check failed; the next check does its part: %s", error)

    def _enqueue_due(self, session: KeptSession) -> None:
        with session.use() as connection:
            staleness.enqueue_due(connection)

    def _ask_others(self) -> None:
        """Ask second providers about quarantined values, in free threads, one call to each provider at a time."""
        with self._own.use() as connection:
            for provider in opinions.due(connection):
                busy = sum(in_flight.call.provider == provider for in_flight in self._in_flight.values())
                if provider not in self._clients or busy or self._free() <= 0:
                    continue
                question = opinions.claim(
                    connection,
                    provider,
                    self._worker,
                    self._clients[provider].key_names,
                    run_id=self._run_id,
                )
                if isinstance(question, Question):
                    self._submit(question.call, partial(self._fetch_opinions, question))

    def _fetch_opinions(self, question: Question, pages: ClaimedPages) -> Tally:
        """Ask about quarantined values; runs in a thread of the pool."""
        call = question.call
        wire_bytes = opinions.fetch(self._engine, self._clients[call.provider], question, pages)
        return with_pages(Tally(call.data_type, calls=1, wire_bytes=wire_bytes, providers={call.provider}), pages)

    def _submit(self, call: Call, work: Callable[[ClaimedPages], Tally]) -> None:
        pages = ClaimedPages(self._engine, call, stopping=self._stopping)
        future = self._pool.submit(work, pages)
        self._in_flight[future] = _InFlight(call, pages, time.monotonic())
        future.add_done_callback(lambda _: self._woken.set())

    def _start_calls(self) -> None:
        """Hand free threads to providers with work.

        Only as many calls are claimed as can start now: a call that waited would reach the provider
        long after its units were counted.
        """
        if self._free() <= 0:
            return
        with self._own.use() as connection:
            self._claim_calls(connection)

    def _claim_calls(self, connection: Connection) -> None:
        """Give each provider its fair share of the threads first, then the free threads to the most urgent work."""
        now = time.monotonic()
        busy = Counter(in_flight.call.provider for in_flight in self._in_flight.values())
        waiting = {
            provider.provider: provider
            for provider in task_queue.providers_with_work(connection)
            if provider.provider in self._clients and not self._order.is_passed_over(provider.provider, now)
        }
        urgency = {name: provider.priority for name, provider in waiting.items()}
        share = max(1, MAX_IN_FLIGHT // max(1, len(busy.keys() | waiting.keys())))
        for name in self._order.in_turn(waiting, busy, now):
            free = min(self._free(), min(waiting[name].max_in_flight, share) - busy[name])
            if free <= 0:
                continue
            calls = self._claim(connection, name, free)
            busy[name] += len(calls)
            if len(calls) < free:
                del waiting[name]  # the provider allows no more now
            else:  # its most urgent task need not be one that it can be asked for
                urgency[name] = max(task.priority for task in calls[-1].tasks)
        for name in sorted(waiting, key=lambda name: -urgency[name]):
            free = min(self._free(), waiting[name].max_in_flight - busy[name])
            if free > 0:
                self._claim(connection, name, free)

    def _free(self) -> int:
        """How many calls may begin: those that wait for their next request leave their places to others."""
        working = sum(not in_flight.pages.is_waiting for in_flight in self._in_flight.values())
        return min(MAX_IN_FLIGHT - working, _MOST_CALLS - len(self._in_flight))

    def _claim(self, connection: Connection, provider: str, most: int) -> list[Call]:
        """Claim and begin at most `most` calls of a provider; none when another session has locked its row."""
        self._order.note_turn(provider)
        keys = self._clients[provider].key_names
        try:
            calls = task_queue.claim(connection, provider, self._worker, most, self._run_id, keys)
        except DBAPIError as error:
            if not is_locked(error):
                raise
            self._order.pass_over(provider)
            return []
        self._order.note_unlocked(provider)
        for call in calls:
            self._submit(call, partial(self._make, call))
        return calls

    def _collect(self, timeout: float) -> None:
        """Wait until a call ends, new work comes, or the time is over; count the ended calls."""
        self._woken.wait(timeout)
        self._woken.clear()
        for future in [future for future in self._in_flight if future.done()]:
            call = self._in_flight.pop(future).call
            error = future.exception()
            if error is not None:
                # The lease returns its tasks; one bad call must not end the drain.
                _LOG.error("call %d to %s could not be settled: %r", call.id, call.provider, error)
                continue
            self._tallies.setdefault(call.data_type, Tally(call.data_type)).add(future.result())

    def _report(self) -> None:
        self._last_report = time.monotonic()
        tallies, self._tallies = self._tallies, {}
        if tallies:
            self._report_every = min(2 * self._report_every, _REPORT_AT_LEAST_SECONDS)
            self._on_report([tallies[name] for name in sorted(tallies)])

    def _make(self, call: Call, pages: ClaimedPages) -> Tally:
        """Make one call and settle it; runs in a thread of the pool."""
        outcome = making.make(self._engine, self._clients[call.provider], call, pages)
        if isinstance(outcome, ProviderError):
            return with_pages(settling.settle_failure(self._engine, call, outcome), pages)
        tally = settling.settle_answer(self._engine, call, outcome, autocommit=self._autocommit, turn=self._settling)
        return with_pages(tally, pages)
