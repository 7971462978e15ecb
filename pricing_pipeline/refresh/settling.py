"""Settle a call: store its answer and finish its tasks, behind the fence, in one transaction.

refresher.py decides which call is made, and when; writing.py writes a judgement. The database decides what a failure
means to a task (tried again, snoozed, dead); this module only gives each error its kind. If the database refuses an
answer, it is settled part by part, so that one bad value costs its neighbours nothing.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting
from pricing_pipeline.db.errors import LOCKED_PAGE, is_conflict, is_locked, is_refusal, reason, transact
from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import (
    NotMade,
    PlanRestricted,
    ProviderError,
    Unfinished,
    WorkerStopped,
)
from pricing_pipeline.judging import plausibility
from pricing_pipeline.judging.answers import judge
from pricing_pipeline.prices import context as contexts
from pricing_pipeline.prices import price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline.refresh import writing
from pricing_pipeline.refresh.tally import Tally

_LOG = logging.getLogger(__name__)
_LOCKED_PAUSE = 10.0
"""How long tasks wait when another session keeps a lock. A lock that lasts a second may last for minutes."""
_ANY_TIME: AbstractContextManager[object] = nullcontext()
_LOCKED_SECONDS = 2.0
"""How long to search for the part of an answer that another session has locked."""
_SETTLE_SECONDS = 15.0
"""How long to try to settle a call whose answer is stored. Its lease lasts longer."""
_SETTLE_PAUSE = 0.25


def settle_answer(
    engine: Engine,
    call: Call,
    fetched: Fetched,
    *,
    autocommit: Engine | None = None,
    turn: AbstractContextManager[object] = _ANY_TIME,
) -> Tally:
    """Store an answer and finish its tasks: at once, or in parts when the database refuses the whole.

    `autocommit` is the engine that `autocommitting` makes; a caller with many answers makes it once. The whole is
    stored in its `turn`, the parts are not: a part may wait for locks, and must not delay other answers.
    """
    tally = _tally_of(call, fetched.wire_bytes)
    try:
        try:
            with turn:
                tally.add(_settle_whole(engine, call, fetched, autocommit or autocommitting(engine)))
        except DBAPIError as error:
            if not (is_refusal(error) or is_locked(error)):
                raise
            parts, is_open = transact(engine, partial(_settle_parts, call, fetched))
            tally.add(parts)
            if is_open:
                _settle_later(engine, call, fetched.receipt)
    except DBAPIError as error:
        if not is_conflict(error):
            raise
        message = f"the answer could not be stored: {reason(error)}"
        failed = ProviderError(message, http_status=fetched.http_status, wire_bytes=fetched.wire_bytes)
        transact(engine, partial(_return_all, call, failed))
    return tally


def _settle_whole(engine: Engine, call: Call, fetched: Fetched, autocommit: Engine) -> Tally:
    if _may_be_good(call, fetched.answer):
        tally = transact(autocommit, partial(_settle_good, call, fetched))
        if tally is not None:
            return tally
    return transact(engine, partial(_settle, call, fetched))


def settle_failure(engine: Engine, call: Call, error: ProviderError) -> Tally:
    """Settle a call that failed as a whole: book its bytes, and fail its tasks by the error's kind.

    A worker that stops returns them. A call that was not made stays open until it expires, because it shows nothing of
    its provider: a breaker whose probe it is would close.
    """
    if isinstance(error, NotMade):
        return_tasks(engine, call, str(error))
        return Tally(call.data_type)
    tally = _tally_of(call, error.wire_bytes)
    if isinstance(error, WorkerStopped):
        transact(engine, partial(_return_all, call, error, kind=FailureKind.WORKER_STOPPED))
        return tally
    try:
        transact(engine, partial(_fail, call, error))
        tally.failed = len(call.tasks)
    except DBAPIError as mishap:
        if not (is_conflict(mishap) or is_locked(mishap)):
            raise
        pause = _LOCKED_PAUSE if is_locked(mishap) else None
        transact(engine, partial(_return_all, call, error, pause=pause))
    return tally


def _tally_of(call: Call, wire_bytes: int) -> Tally:
    """The tally of the call itself, without what it brought."""
    latest_calls = int(call.window is None)
    return Tally(
        call.data_type,
        calls=1,
        latest_calls=latest_calls,
        wire_bytes=wire_bytes,
        providers={call.provider},
    )


def return_tasks(engine: Engine, call: Call, message: str) -> None:
    """Return the tasks of a call that this worker does not make, or has not ended; it costs no attempt."""
    transact(engine, lambda connection: task_queue.return_tasks(connection, call, FailureKind.WORKER_STOPPED, message))


def _may_be_good(call: Call, answer: Answer) -> bool:
    """Whether the answer has only whole latest prices. Bars take the other way: they are judged with their splits."""
    is_whole = not (answer.failures or answer.empty or answer.rejected or answer.records)
    is_plain = call.window is None and call.fetcher is not Fetcher.DAILY_BARS
    return is_whole and is_plain and bool(answer.observations) and not answer.observations.trimmed()


def _settle_good(call: Call, fetched: Fetched, connection: Connection) -> Tally | None:
    """Settle an answer if every value is believed: one statement loads the known values, another settles.

    Returns None and does nothing if a value is not believed, or if the claim has lost a task. The fence is in the last
    statement: until then nobody else calls for these symbols, or the claim is lost.
    """
    observations = fetched.answer.observations
    known = contexts.known_values(connection, call, observations)
    verdicts = plausibility.judge_all(known, observations, call.fetcher, is_latest=True)
    for symbol, verdict in verdicts.items():
        newest = known[symbol].newest_at
        if verdict.doubted or verdict.other_basis:
            return None
        if newest is not None and all(row.observed_at < newest for row in verdict.good):
            return None
    stored = price_writer.settle(connection, call, observations, known, fetched.receipt)
    if stored is None:
        return None
    added, revised = stored
    symbols, months = observations.symbols(), observations.months()
    return Tally(call.data_type, added=added, revised=revised, symbols=symbols, months=months)


def _settle(call: Call, fetched: Fetched, connection: Connection) -> Tally:
    """Store the answer, finish the tasks and close the call."""
    task_queue.limit_lock_wait(connection, milliseconds=500)
    owned = task_queue.lock_owned(connection, call)
    stored, served = _store_for(call, fetched, owned, connection)
    task_queue.finish(connection, call, served, fetched.receipt, is_owned=bool(owned))
    return stored


def _store_for(call: Call, fetched: Fetched, owned: set[int], connection: Connection) -> tuple[Tally, list[int]]:
    """Store the answer for the `owned` tasks, which are locked, and fail those without a value.

    Returns the ids of the served tasks, which remain to be finished.
    """
    ids = {task.symbol: task.id for task in call.tasks if task.id in owned}
    context = contexts.load(connection, call, fetched.answer, ids.keys())
    judged = judge(context)
    if (proved := contexts.with_evidence(connection, context, judged)) is not None:
        judged = judge(proved)
    written = writing.write(connection, judged, fetched)
    for (kind, message), symbols in _by_reason(written.failures).items():
        task_queue.fail(connection, [ids[symbol] for symbol in symbols], call.claim_token, kind, message)
    return written.tally, [ids[symbol] for symbol in sorted(written.served)]


def _settle_parts(call: Call, fetched: Fetched, connection: Connection) -> tuple[Tally, bool]:
    """Settle an answer that the database refuses as a whole, part by part; each part has a savepoint.

    Also returns whether the call is still open although it brought something: another session has locked its provider.
    """
    task_queue.limit_lock_wait(connection, milliseconds=100)
    tally = Tally(call.data_type)
    _settle_part(call, fetched, connection, call.symbols, tally, until=time.monotonic() + _LOCKED_SECONDS)
    has_news = bool(tally.symbols or tally.failed or tally.quarantined)
    is_settled = _settle_unless_locked(call, fetched.receipt, connection, is_owned=has_news)
    return tally, has_news and not is_settled


def _settle_later(engine: Engine, call: Call, receipt: Receipt) -> None:
    """Settle a call whose answer is stored, once its provider is no longer locked: no price comes from an open call."""

    def settle(connection: Connection) -> bool:
        task_queue.limit_lock_wait(connection, milliseconds=500)
        return _settle_unless_locked(call, receipt, connection)

    until = time.monotonic() + _SETTLE_SECONDS
    is_settled = False
    while not is_settled and time.monotonic() < until:
        time.sleep(_SETTLE_PAUSE)
        is_settled = transact(engine, settle)


def _settle_part(
    call: Call,
    fetched: Fetched,
    connection: Connection,
    symbols: Sequence[str],
    tally: Tally,
    *,
    until: float,
) -> None:
    """Store the answer for some symbols. If the database refuses, halve them, down to the symbols at fault.

    Locks of other sessions are handled in the same way. After `until` (by the monotonic clock) the search ends, and
    the tasks of the remaining symbols are returned.
    """
    ids = [task.id for task in call.tasks if task.symbol in symbols]
    try:
        with connection.begin_nested():
            owned = task_queue.lock_owned(connection, call, ids)
            task_queue.lock_call(connection, call)
            stored, served = _store_for(call, fetched, owned, connection)
            task_queue.complete(connection, served, call.claim_token)
        tally.add(stored)
        return
    except DBAPIError as error:
        is_in_the_way = is_locked(error) or is_conflict(error)
        if not (is_refusal(error) or is_in_the_way):
            raise
        mishap = error
    if is_in_the_way and (len(symbols) == 1 or time.monotonic() > until):
        _return_locked(call, ids, connection)
    elif len(symbols) == 1:
        message = f"the database refuses the answer for {symbols[0]}: {reason(mishap)}"
        _LOG.warning("call %d to %s: %s", call.id, call.provider, message)
        tally.failed += _unless_locked(
            connection,
            lambda: task_queue.fail(connection, ids, call.claim_token, FailureKind.NOT_STORABLE, message),
            f"a task of call {call.id} returns to the queue when its lease ends",
        )
    else:
        middle = len(symbols) // 2
        _settle_part(call, fetched, connection, symbols[:middle], tally, until=until)
        _settle_part(call, fetched, connection, symbols[middle:], tally, until=until)


def _return_all(
    call: Call,
    error: ProviderError,
    connection: Connection,
    *,
    kind: FailureKind = FailureKind.DATABASE_CONFLICT,
    pause: float | None = None,
) -> None:
    """Return all tasks of a call, after a pause: they were not at fault, so it costs no attempt."""
    task_queue.return_tasks(connection, call, kind, str(error), pause=pause)
    receipt = limits.receipt_of(error, _kind_of_error(call, error), str(error))
    _settle_unless_locked(call, receipt, connection)


def _return_locked(call: Call, ids: Sequence[int], connection: Connection) -> None:
    """Return tasks because another session has locked their rows: they wait a while, and it costs no attempt."""
    message = f"the answer could not be stored, for another session has locked a row of it; {LOCKED_PAGE}"
    _LOG.warning(
        "call %d to %s: %d of its tasks wait for %.0f s: %s",
        call.id,
        call.provider,
        len(ids),
        _LOCKED_PAUSE,
        message,
    )
    kind = FailureKind.DATABASE_CONFLICT
    task_queue.return_tasks(connection, call, kind, message, ids=ids, pause=_LOCKED_PAUSE)


def _settle_unless_locked(call: Call, receipt: Receipt, connection: Connection, *, is_owned: bool = True) -> bool:
    """Settle a call, unless another session has locked its rows or one of its tasks. Returns whether it is settled.

    A task in work needs an open call. That call is settled by its estimate when its tasks are recovered.
    """
    if task_queue.is_in_work(connection, call):
        _LOG.warning(
            "tasks of call %d to %s are locked, and return to the queue when their lease ends",
            call.id,
            call.provider,
        )
        return False
    return _unless_locked(
        connection,
        lambda: limits.settle(connection, call.id, receipt, is_owned=is_owned),
        f"call {call.id} to {call.provider} is not settled yet, or by its estimate",
    )


def _unless_locked(connection: Connection, work: Callable[[], object], otherwise: str) -> bool:
    """Do `work`, unless another session has locked a row of it: then log what happens `otherwise`. Returns whether."""
    try:
        with connection.begin_nested():
            work()
    except DBAPIError as error:
        if not is_locked(error):
            raise
        _LOG.warning("%s: %s", otherwise, reason(error))
        return False
    return True


def _fail(call: Call, error: ProviderError, connection: Connection) -> None:
    kind = _kind_of_error(call, error) or FailureKind.CLIENT_FAULT
    message = limits.message_of(connection, call.provider, error)
    owned = task_queue.lock_owned(connection, call)
    # The provider's rows are locked after all others: see the order of locks in functions/queue/queue.sql.
    receipt = limits.receipt_of(error, _kind_of_error(call, error), message)
    limits.settle(connection, call.id, receipt, is_owned=bool(owned))
    if owned and error.most_symbols is not None:
        limits.limit_batch(connection, call.id, error.most_symbols)
    pause = error.retry_after if isinstance(error, Unfinished) else None
    if owned and kind in (FailureKind.THROTTLED, FailureKind.KEY_REFUSED):
        pause = limits.throttle(connection, call.provider, call.key_name, limits.pause_of(error), message)
    # In a batch, one symbol may have spoiled the call for the others: they get another try.
    blames_all = kind in (FailureKind.MISCONFIGURED, FailureKind.ENDPOINT_RESTRICTED)
    is_permanent = kind.is_permanent and (len(call.tasks) == 1 or blames_all)
    task_queue.fail(
        connection,
        call.task_ids,
        call.claim_token,
        kind,
        message,
        is_permanent=is_permanent,
        retry_after=pause,
    )


def _kind_of_error(call: Call, error: ProviderError) -> FailureKind | None:
    # A provider that refuses one symbol says so in its answer; here it refuses the endpoint to the key.
    if isinstance(error, PlanRestricted) and (len(call.tasks) == 1 or error.is_whole_endpoint):
        return FailureKind.ENDPOINT_RESTRICTED
    return limits.kind_of(error)


def _by_reason(failures: Iterable[SymbolFailure]) -> dict[tuple[FailureKind, str], list[str]]:
    grouped: dict[tuple[FailureKind, str], list[str]] = defaultdict(list)
    for failure in failures:
        grouped[failure.kind, failure.message].append(failure.symbol)
    return grouped
