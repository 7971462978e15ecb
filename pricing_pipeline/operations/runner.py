"""Do side effects that are due: claim them, hand each to the handler of its type, note how it ended.

A handler gets the operation and does it within `time_limit_seconds`. It returns what is worth keeping, or raises
OperationFailed; any other exception counts as a failed attempt, too. It may be called again for the same operation with
the same idempotency key: after a failure, and after a crash in which nobody could note that it had happened.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import is_refusal, reason, transact
from pricing_pipeline.errors import DatabaseError, OperationFailed
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.life import RUNS, SignsOfLife
from pricing_pipeline.operations.operation_queue import Operation

Handler = Callable[[Operation], object]
"""Does an operation. What it returns must be JSON, and is kept as the operation's result."""

_LOG = logging.getLogger(__name__)
_RECOVER_EVERY = 10.0
"""Seconds between two looks for operations whose worker is lost."""
_LAST_SECONDS = 3.0
"""For attempts that are under way when the worker is stopped. A supervisor kills what lives two seconds longer."""
_MOST_STUCK = 32
"""When this many handlers exceed their time limit, no more operations are begun."""
_MOST_REMEMBERED = 10_000
"""Operations that have happened, though the database could not be told so."""
_LONGEST_RESULT = 65_536
_LONGEST_PAUSE = 86_400
"""In seconds, for which a receiver may ask."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    operation: Operation
    ends_at: float
    """When it counts as too slow, by the monotonic clock."""


class OperationRunner:
    """Does operations of the types that it has handlers for, several at a time. Close it after use.

    It claims no more than it can begin at once, and the database shares out the claims by recipient, so that one that
    hangs holds up only its own messages. A handler that takes longer than its limit has failed. Its thread is busy
    until it returns, so while too many have not returned, no operation is begun.

    What this process knows about its operations counts more than their leases, which may end while the database is
    away: `in_hand`, which all runners of a process share, are taken back by none of them, and what has happened is
    not done again.
    """

    def __init__(
        self,
        engine: Engine,
        handlers: Mapping[str, Handler],
        *,
        worker: str,
        at_once: int = 64,
        signs: SignsOfLife | None = None,
        in_hand: dict[int, UUID] | None = None,
    ) -> None:
        self._engine = engine
        self._handlers = dict(handlers)
        self._worker = worker
        self._signs = signs or SignsOfLife()
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(at_once + _MOST_STUCK, thread_name_prefix="operation")
        self._under_way: dict[Future[str | None], _Attempt] = {}
        self._in_hand = {} if in_hand is None else in_hand
        self._happened: dict[UUID, str | None] = {}
        self._stuck: list[Future[str | None]] = []
        self._recovered_at = -_RECOVER_EVERY
        self._is_full = False

    def close(self) -> bool:
        """Wait for the handlers that are under way; False when some have taken longer than their time limit.

        It does not wait for those. Their threads keep Python from ending.
        """
        self._stuck = [future for future in self._stuck if not future.done()]
        self._pool.shutdown(wait=not self._stuck)
        return not self._stuck

    def run_due(self) -> int:
        """Take back lost operations, and begin due ones; returns how many attempts were begun."""
        self._take_back()
        begun = self._begin()
        while self._under_way:
            self._note_ended()
            begun += self._begin()
        return begun

    def run(self, stop: threading.Event, *, every_seconds: float = 1.0, last_seconds: float = _LAST_SECONDS) -> None:
        """Do operations until `stop` is set; looks for new ones every second.

        Those under way then have `last_seconds` to end. The others return to the queue, and happen again with the same
        idempotency key.
        """
        while not stop.is_set():
            self._signs.advance(RUNS)
            try:
                self._go_on()
                self._signs.answered(RUNS)
                if self._under_way:
                    self._note_ended(patience=every_seconds)
                else:
                    stop.wait(every_seconds)
            except (DatabaseError, DBAPIError) as error:
                # How an operation ended is noted when the database answers again; until then it counts as under way.
                words = reason(error)
                self._signs.failed(RUNS, words)
                _LOG.warning("operations wait for the database: %s", words)
                stop.wait(every_seconds)
        deadline = time.monotonic() + last_seconds
        try:
            while self._under_way and time.monotonic() < deadline:
                self._note_ended(patience=deadline - time.monotonic())
            self._return_unfinished()
        except (DatabaseError, DBAPIError) as error:
            _LOG.warning(
                "the outcome of %d operations could not be recorded, so they run again: %s", len(self._under_way), error
            )

    def _go_on(self) -> None:
        # Whatever has ended is noted before anything is taken back: its lease may be over.
        self._note_ended(patience=0)
        self._recover()
        self._begin()

    def _return_unfinished(self) -> None:
        by_token: dict[UUID, list[Future[str | None]]] = {}
        for future, attempt in self._under_way.items():
            by_token.setdefault(attempt.operation.claim_token, []).append(future)
        for token, futures in by_token.items():
            ids = [self._under_way[future].operation.id for future in futures]
            transact(self._engine, partial(operation_queue.return_, token=token, ids=ids))
            _LOG.warning("%d operations return to the queue; they may have happened", len(ids))
            for future in futures:
                self._let_go(future)
                self._stuck.append(future)

    def _take_back(self) -> None:
        # The copy is atomic, whatever other threads do meanwhile.
        transact(self._engine, partial(operation_queue.recover, known=self._in_hand.copy()))

    def _recover(self) -> None:
        if time.monotonic() >= self._recovered_at + _RECOVER_EVERY:
            self._take_back()
            transact(self._engine, operation_queue.note_run)
            self._recovered_at = time.monotonic()

    def _begin(self) -> int:
        """Claim as many as can begin now, and begin them; returns how many."""
        self._stuck = [future for future in self._stuck if not future.done()]
        if len(self._stuck) >= _MOST_STUCK:
            if not self._is_full:
                types = ", ".join(sorted(self._handlers))
                _LOG.error(
                    "%d handlers have not returned; no operation of %s begins until one has",
                    len(self._stuck),
                    types,
                )
            self._is_full = True
            return 0
        self._is_full = False
        room = self._at_once - len(self._under_way)
        if not room:
            return 0
        claimed = transact(
            self._engine,
            lambda connection: operation_queue.claim(connection, self._handlers, room, self._worker),
        )
        for operation in claimed:
            self._in_hand[operation.id] = operation.claim_token
            ends_at = time.monotonic() + operation.time_limit_seconds
            self._under_way[self._started(operation)] = _Attempt(operation, ends_at)
        return len(claimed)

    def _started(self, operation: Operation) -> Future[str | None]:
        if operation.idempotency_key in self._happened:  # it was taken back before that could be noted
            future: Future[str | None] = Future()
            future.set_result(self._happened[operation.idempotency_key])
            return future
        return self._pool.submit(_storable_result, self._handlers[operation.operation_type], operation)

    def _let_go(self, future: Future[str | None]) -> None:
        operation = self._under_way.pop(future).operation
        if self._in_hand.get(operation.id) == operation.claim_token:
            del self._in_hand[operation.id]

    def _note_ended(self, patience: float = math.inf) -> None:
        """Wait until one has ended or its time is up, or for `patience` seconds; note how those ended."""
        if not self._under_way:
            return
        first_end = min(attempt.ends_at for attempt in self._under_way.values())
        wait(
            self._under_way,
            timeout=max(min(first_end - time.monotonic(), patience), 0),
            return_when=FIRST_COMPLETED,
        )
        ended = [future for future in self._under_way if future.done()]
        by_token: dict[UUID, list[Future[str | None]]] = {}
        for future in ended:
            if (error := future.exception()) is not None:
                self._noted([future], partial(self._fail, self._under_way[future].operation, error))
            else:
                by_token.setdefault(self._under_way[future].operation.claim_token, []).append(future)
        for token, futures in by_token.items():
            if not self._noted(futures, partial(self._complete, token, futures)):
                # Somebody has locked one of them; the others need not wait for that.
                for future in futures:
                    self._noted([future], partial(self._complete, token, [future]))
        for future in [f for f, attempt in self._under_way.items() if attempt.ends_at <= time.monotonic()]:
            operation = self._under_way[future].operation
            limit = operation.time_limit_seconds
            late = OperationFailed(f"it took longer than its time limit of {limit} s")
            if not future.done() and self._noted([future], partial(self._fail, operation, late)):
                self._stuck.append(future)

    def _noted(self, futures: Sequence[Future[str | None]], note: Callable[[], None]) -> bool:
        """Note how attempts ended; False if that has to be tried again: they stay under way until then."""
        try:
            note()
        except DBAPIError as error:
            if not is_refusal(error):
                _LOG.warning("the outcome of an operation cannot be recorded now: %s", reason(error))
                return False
            # It would be refused again. Its lease runs out; what has happened is then completed without its result.
            _LOG.error("the database refuses the outcome of an operation: %s", reason(error))
            for future in futures:
                if future.done() and future.exception() is None:
                    self._remember(self._under_way[future].operation, None)
        for future in futures:
            self._let_go(future)
        return True

    def _complete(self, token: UUID, futures: Sequence[Future[str | None]]) -> None:
        ended = {self._under_way[future].operation.id: future for future in futures}
        results = {id_: future.result() for id_, future in ended.items()}
        done = transact(self._engine, lambda connection: operation_queue.complete(connection, token, results))
        for id_ in results.keys() - set(done):
            operation = self._under_way[ended[id_]].operation
            complete = partial(operation_queue.complete_recovered, operation=operation, result=results[id_])
            if not transact(self._engine, complete):
                self._remember(operation, results[id_])
                _LOG.warning("operation %d has happened, but its claim was lost: another worker may do it again", id_)

    def _remember(self, operation: Operation, result: str | None) -> None:
        """Remember that an operation has happened: if this process claims it again, it does not repeat it."""
        self._happened[operation.idempotency_key] = result
        if len(self._happened) > _MOST_REMEMBERED:
            del self._happened[next(iter(self._happened))]

    def _fail(self, operation: Operation, error: BaseException) -> None:
        is_permanent = isinstance(error, OperationFailed) and error.is_permanent
        retry_after = _seconds(error.retry_after) if isinstance(error, OperationFailed) else None
        message = _storable(_words(error))
        status = transact(
            self._engine,
            lambda connection: operation_queue.fail(
                connection, operation, message, is_permanent=is_permanent, retry_after=retry_after
            ),
        )
        _LOG.warning(
            "attempt %d of operation %d (%s) failed, and it is %s: %s",
            operation.attempt,
            operation.id,
            operation.operation_type,
            {"pending": "tried again later", "failed": "dead"}.get(status or "", "somebody else's now"),
            message,
        )


def _storable_result(handler: Handler, operation: Operation) -> str | None:
    """A handler's result as JSON for the database. Raises TypeError or ValueError if it cannot be JSON."""
    process = os.getpid()
    try:
        result = handler(operation)
    finally:
        if os.getpid() != process:  # the handler has forked, and this is the child
            os._exit(0)
    if result is None:
        return None
    stored = json.dumps(_storable(result), allow_nan=False)
    if len(stored) > _LONGEST_RESULT:
        raise ValueError(f"its result is longer than {_LONGEST_RESULT} characters")
    return stored


def _words(error: BaseException) -> str:
    """A failure in words. A handler may raise what cannot even be converted to text."""
    try:
        return str(error) if isinstance(error, OperationFailed) else f"its handler failed: {error!r}"
    except BaseException:  # nothing may stop the other operations
        return f"its handler failed: {type(error).__name__}"


def _seconds(retry_after: object) -> float | None:
    """A pause that the database can keep: a day at most."""
    if not isinstance(retry_after, int | float) or math.isnan(retry_after):
        return None
    return float(min(max(retry_after, 0), _LONGEST_PAUSE))


def _storable(value: Any) -> Any:
    """Words of others as PostgreSQL takes them: it has no NUL and no halves of characters."""
    match value:
        case str():
            return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
        case Mapping():
            return {_storable(str(name)): _storable(each) for name, each in value.items()}
        case list() | tuple():
            return [_storable(each) for each in value]
    return value
