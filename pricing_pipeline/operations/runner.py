"""Do side effects that are due: claim them, hand each to the handler of its type, note how it ended.

A handler gets the operation and does it within `time_limit_seconds`. It returns what is worth keeping, or raises
OperationFailed; any other exception counts as a failed attempt, too. It may be called again for the same operation with
the same idempotency key: after a failure, and after a crash in which nobody could note that it had happened.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Engine

from pricing_pipeline.db.errors import transact
from pricing_pipeline.errors import DatabaseError, OperationFailed
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations.operation_queue import Operation

Handler = Callable[[Operation], object]
"""Does an operation. What it returns must be JSON, and is kept as the operation's result."""

_LOG = logging.getLogger(__name__)
_MOST = 100
"""How many operations one claim takes: they must be done before their lease of five minutes ends."""
_MOST_STUCK = 32
"""So many handlers may take longer than their time limit before no more operations are begun."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    operation: Operation
    ends_at: float
    """When it counts as too slow, by the monotonic clock."""


class OperationRunner:
    """Does operations of the types that it has handlers for, several at a time. Close it after use.

    A handler that takes longer than its time limit has failed. Its thread is busy until it returns, so while too many
    have not returned, no operation is begun.
    """

    def __init__(
        self, engine: Engine, handlers: Mapping[str, Handler], *, worker: str, at_once: int = 8
    ) -> None:
        self._engine = engine
        self._handlers = dict(handlers)
        self._worker = worker
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(at_once + _MOST_STUCK, thread_name_prefix="operation")
        self._stuck: list[Future[object]] = []

    def close(self) -> None:
        """Wait for the handlers that are under way."""
        self._pool.shutdown()

    def run_due(self) -> int:
        """Take back what is stuck, and do what is due; returns how many attempts were begun.

        Each claim is done before the next one, so that no operation waits in a claim for long.
        """
        transact(self._engine, operation_queue.recover)
        self._stuck = [future for future in self._stuck if not future.done()]
        begun = 0
        if len(self._stuck) >= _MOST_STUCK:
            _LOG.error("%d handlers have not returned; no operation is begun until one has", len(self._stuck))
            return begun
        while claimed := self._claim():
            begun += len(claimed)
            self._do(claimed)
            if len(claimed) < _MOST:
                break
        return begun

    def run(self, stop: threading.Event, *, every_seconds: float = 1.0) -> None:
        """Do operations until `stop` is set; looks for new ones every second."""
        while not stop.is_set():
            try:
                is_idle = not self.run_due()
            except DatabaseError as error:
                # What has happened and could not be noted happens again, with the same idempotency key.
                _LOG.warning("operations wait for the database: %s", error)
                is_idle = True
            if is_idle:
                stop.wait(every_seconds)

    def _claim(self) -> Sequence[Operation]:
        return transact(
            self._engine,
            lambda connection: operation_queue.claim(connection, self._handlers, _MOST, self._worker),
        )

    def _do(self, claimed: Sequence[Operation]) -> None:
        waiting = list(reversed(claimed))
        under_way: dict[Future[object], _Attempt] = {}
        while waiting or under_way:
            while waiting and len(under_way) < self._at_once:
                operation = waiting.pop()
                handler = self._handlers[operation.operation_type]
                ends_at = time.monotonic() + operation.time_limit_seconds
                under_way[self._pool.submit(handler, operation)] = _Attempt(operation, ends_at)
            patience = min(attempt.ends_at for attempt in under_way.values()) - time.monotonic()
            done, _ = wait(under_way, timeout=max(patience, 0), return_when=FIRST_COMPLETED)
            ended = {future: under_way.pop(future) for future in done}
            late = [future for future, attempt in under_way.items() if attempt.ends_at <= time.monotonic()]
            self._settle(ended)
            for future in late:
                self._stuck.append(future)
                operation = under_way.pop(future).operation
                limit = operation.time_limit_seconds
                self._fail(operation, OperationFailed(f"it took longer than its time limit of {limit} s"))

    def _settle(self, ended: Mapping[Future[object], _Attempt]) -> None:
        results: dict[UUID, dict[int, object]] = {}
        for future, attempt in ended.items():
            operation, error = attempt.operation, future.exception()
            if error is None:
                results.setdefault(operation.claim_token, {})[operation.id] = future.result()
            else:
                self._fail(operation, error)
        for token, results_of_claim in results.items():
            self._complete(token, results_of_claim)

    def _complete(self, token: UUID, results: Mapping[int, object]) -> None:
        kept = {id_: result for id_, result in results.items() if result is not None}
        done = transact(
            self._engine,
            lambda connection: operation_queue.complete(connection, list(results), token, kept),
        )
        for id_ in results.keys() - set(done):
            _LOG.warning("operation %d has happened, but its claim was lost: it may happen again", id_)

    def _fail(self, operation: Operation, error: BaseException) -> None:
        is_permanent = isinstance(error, OperationFailed) and error.is_permanent
        retry_after = error.retry_after if isinstance(error, OperationFailed) else None
        message = str(error) if isinstance(error, OperationFailed) else f"its handler failed: {error!r}"
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
