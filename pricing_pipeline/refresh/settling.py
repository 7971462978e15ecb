"""Settle a call: store its answer and finish its tasks, behind the fence, in one transaction.

refresher.py decides which call is made, and when. The database decides what a failure means to a task (tried again,
snoozed, dead); this module only gives each error its kind. If the database refuses an answer, it is settled part by
part, so that one bad value costs its neighbours nothing.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting
from pricing_pipeline.db.errors import LOCKED_PAGE, is_conflict, is_locked, is_refusal, reason, transact
from pricing_pipeline.domain.answers import Adjustment, Answer, FailureKind, Observation, SymbolFailure
from pricing_pipeline.domain.bars import months_of, of_symbols, symbols_of, together, trimmed_of
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import (
    ClientFault,
    KeyRefused,
    Misconfigured,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.prices import actions, documents, known_values, price_writer, rebasing
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline.quarantine import closed_days, judgement, quarantined_values
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.validation.knowledge import Known

_LOG = logging.getLogger(__name__)
_KEY_REFUSED_PAUSE = 60.0
_LOCKED_PAUSE = 10.0
"""How long tasks wait when another session keeps a lock. A lock that lasts a second may last for minutes."""
_ANY_TIME: AbstractContextManager[object] = nullcontext()
_LOCKED_SECONDS = 2.0
"""How long to search for the part of an answer that another session has locked."""

_KINDS: tuple[tuple[type[ProviderError], FailureKind], ...] = (
    (Throttled, FailureKind.THROTTLED),
    (KeyRefused, FailureKind.KEY_REFUSED),
    (PlanRestricted, FailureKind.PLAN_RESTRICTED),
    (RequestRefused, FailureKind.REQUEST_REFUSED),
    (SchemaDrift, FailureKind.SCHEMA_DRIFT),
    (ProviderDown, FailureKind.PROVIDER_DOWN),
    (Misconfigured, FailureKind.MISCONFIGURED),
    (ClientFault, FailureKind.CLIENT_FAULT),
)


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
    if fetched.content_length_missing:
        _note_unannounced(engine, call)
    parts = Tally(call.data_type)
    try:
        try:
            with turn:
                tally = _settle_whole(engine, call, fetched, autocommit or autocommitting(engine))
        except DBAPIError as error:
            if not (is_refusal(error) or is_locked(error)):
                raise
            _store_in_parts(
                engine, call, fetched, call.symbols, parts, until=time.monotonic() + _LOCKED_SECONDS
            )
            _settle_unless_locked(engine, call, partial(_close, call, fetched, parts.has_news))
            tally = parts
    except DBAPIError as error:
        if not is_conflict(error):
            raise
        failed = ProviderError(
            f"the answer could not be stored: {reason(error)}",
            http_status=fetched.http_status,
            wire_bytes=fetched.wire_bytes,
        )
        tally = _return_all(engine, call, failed, stored=(fetched, parts) if parts.has_news else None)
    return _counted(call, fetched.wire_bytes, tally)


def _settle_whole(engine: Engine, call: Call, fetched: Fetched, autocommit: Engine) -> Tally:
    if _may_be_good(call, fetched.answer):
        tally = transact(autocommit, lambda session: _settle_good(session, call, fetched))
        if tally is not None:
            return tally
    return transact(engine, lambda connection: _settle(connection, call, fetched))


def _note_unannounced(engine: Engine, call: Call) -> None:
    """Count an answer without a Content-Length. The count is for people; if it fails, the answer is stored anyway."""
    try:
        transact(engine, lambda connection: limits.note_unannounced(connection, call.id))
    except DBAPIError as error:
        _LOG.warning(
            "call %d came without a Content-Length, and this could not be noted: %s", call.id, reason(error)
        )


def settle_failure(engine: Engine, call: Call, error: ProviderError) -> Tally:
    """Settle a call that failed as a whole: book its bytes, and fail its tasks by the error's kind."""
    try:
        transact(engine, lambda connection: _fail(connection, call, error))
        tally = Tally(call.data_type, failed=len(call.tasks))
    except DBAPIError as mishap:
        if not (is_conflict(mishap) or is_locked(mishap)):
            raise
        tally = _return_all(engine, call, error, pause=_LOCKED_PAUSE if is_locked(mishap) else None)
    return _counted(call, error.wire_bytes, tally)


def return_tasks(engine: Engine, call: Call, kind: FailureKind, message: str) -> int:
    """Return the call's tasks to the queue at once; it costs no attempt. Returns how many the claim still owned."""
    return transact(engine, lambda connection: task_queue.return_tasks(connection, call, kind, message))


def _may_be_good(call: Call, answer: Answer) -> bool:
    """Whether the answer has only latest prices. Bars take the other way: they are judged with their splits."""
    is_whole = not (answer.failures or answer.empty or answer.rejected or answer.documents)
    is_plain = call.window is None and call.fetcher is not Fetcher.DAILY_BARS
    return is_whole and is_plain and bool(answer.observations)


def _settle_good(connection: Connection, call: Call, fetched: Fetched) -> Tally | None:
    """Settle an answer if every value is believed: one statement loads the known values, another settles.

    Returns None and does nothing if a value is not believed, or if the claim has lost a task. The fence is in the last
    statement: until then nobody else calls for these symbols, or the claim is lost.
    """
    observations = fetched.answer.observations
    known = known_values.load(connection, call, observations)
    for symbol, verdict in judgement.verdicts(call, observations, known).items():
        newest = known[symbol].newest_at
        if verdict.doubted or verdict.other_basis:
            return None
        if newest is not None and all(row.observed_at < newest for row in verdict.good):
            return None
    stored = price_writer.settle(connection, call, observations, known, _receipt(fetched))
    if stored is None:
        return None
    added, revised = stored
    return Tally(
        call.data_type,
        added=added,
        revised=revised,
        symbols=symbols_of(observations),
        months=months_of(observations),
    )


def _settle(connection: Connection, call: Call, fetched: Fetched) -> Tally:
    """Store, finish and close in one transaction behind the fence."""
    task_queue.limit_lock_wait(connection, milliseconds=500)
    owned = task_queue.lock_owned(connection, call)

    def finish(ids: list[int]) -> None:
        task_queue.finish(connection, call, ids, _receipt(fetched), is_owned=bool(owned))

    return _store(connection, call, fetched, owned, finish)


def _close(call: Call, fetched: Fetched, is_owned: bool, connection: Connection) -> None:
    limits.settle(connection, call.id, _receipt(fetched), is_owned=is_owned)


def _receipt(fetched: Fetched) -> Receipt:
    kind = _kind_of(fetched.answer)
    return Receipt(fetched.http_status, fetched.wire_bytes, fetched.units_left, kind)


def _kind_of(answer: Answer) -> FailureKind | None:
    """The most frequent failure of an answer that brought nothing; None if it brought something."""
    if answer.observations or answer.documents or answer.empty or not answer.failures:
        return None
    return Counter(failure.kind for failure in answer.failures).most_common(1)[0][0]


def _store(
    connection: Connection,
    call: Call,
    fetched: Fetched,
    owned: set[int],
    finish: Callable[[list[int]], object],
) -> Tally:
    """Store the answer for the `owned` tasks, which this transaction has locked, and finish them.

    `finish` is called last, with the ids of the served tasks.
    """
    answer = actions.as_confirmed(connection, call, fetched.answer)
    ids = {task.symbol: task.id for task in call.tasks if task.id in owned}
    observed = of_symbols(answer.observations, ids)
    rebasing.lock_basis(connection, call)
    known, changes = _known(connection, call, answer, observed)
    verdicts = judgement.judge_answer(connection, call, observed, known)
    verdicts = closed_days.doubt_closed_days(connection, call, verdicts)
    asked = rebasing.change_bases(connection, call, observed, verdicts, changes)
    observations = together([verdict.good for verdict in verdicts.values()])
    empty = [symbol for symbol in answer.empty if symbol in ids]
    if call.fetcher.is_document:
        stored = {row.symbol: row for row in documents.store(connection, call, answer, ids.keys())}
    else:
        stored = {row.symbol: row for row in price_writer.store(connection, call, observations, known)}
    # If the level of the prices is doubted, the splits that were undone for them are doubted too.
    sure = [symbol for symbol in ids if not judgement.is_level_doubted(verdicts.get(symbol))]
    wrong = actions.doubted(connection, call, answer, sure)
    actions.store(connection, call, answer, sure, without=wrong)
    if call.fetcher is Fetcher.DAILY_BARS:
        judgement.note_unconfirmed(answer, verdicts)
        actions.note_overlap(connection, call, verdicts, stored)
    failures = [failure for failure in answer.failures if failure.symbol in ids]
    doubts = judgement.doubts(answer, verdicts, ids, wrong.values())
    if doubts:
        size = len(fetched.body)
        quarantined_values.quarantine(connection, call, doubts, fetched.evidence, fetched.http_status, size)
    failures += judgement.unserved(call, answer, verdicts, stored, changes, asked)
    failed = {failure.symbol for failure in failures}
    confirmed = {symbol for symbol, verdict in verdicts.items() if verdict.confirmed}
    done = sorted((set(stored) | set(empty) | confirmed | asked) - failed)
    if call.window is not None:
        answered = [symbol for symbol in done if symbol not in asked]
        price_writer.cover_read(connection, call.data_type, answered, call.window, answer.unread)
    elif empty and not call.fetcher.is_document:
        price_writer.confirm(connection, call.data_type, empty)
    for (kind, message), symbols in _by_reason(failures).items():
        task_queue.fail(connection, [ids[symbol] for symbol in symbols], call.claim_token, kind, message)
    finish([ids[symbol] for symbol in done])
    return Tally(
        call.data_type,
        added=sum(row.added for row in stored.values()),
        revised=sum(row.revised for row in stored.values()),
        failed=len(failures),
        quarantined=len(doubts),
        trimmed=trimmed_of(observations),
        documents=sum(1 for document in answer.documents if document.symbol in stored),
        symbols=set(done),
        months=months_of(of_symbols(observations, stored.keys() - failed)),
    )


def _known(
    connection: Connection, call: Call, answer: Answer, observed: Sequence[Observation]
) -> tuple[dict[str, Known], dict[str, rebasing.BasisChange]]:
    """The known values to judge the answer by, and the histories that may change to the answer's basis."""
    loaded = known_values.load(connection, call, observed)
    if call.fetcher not in (Fetcher.DAILY_BARS, Fetcher.NAV):
        return loaded, {}
    known = actions.refined(connection, call, answer, loaded)
    changes = rebasing.find_basis_changes(connection, call, answer, observed, known)
    bases = {symbol: Adjustment.RAW for symbol, change in changes.items() if change.is_whole}
    return (actions.refined(connection, call, answer, loaded, bases) if bases else known), changes


def _store_in_parts(
    engine: Engine, call: Call, fetched: Fetched, symbols: Sequence[str], parts: Tally, *, until: float
) -> None:
    """Store the answer for some symbols. If the database refuses, halve them, down to the symbols at fault.

    Each stored part is counted in `parts` at once: a later part may fail, and the stored ones stay.

    Locks of other sessions are handled in the same way. After `until` (by the monotonic clock) the search ends, and
    the tasks of the remaining symbols are returned.
    """
    ids = {task.id for task in call.tasks if task.symbol in symbols}

    def work(connection: Connection) -> Tally:
        task_queue.limit_lock_wait(connection, milliseconds=100)
        owned = task_queue.lock_owned(connection, call, ids)
        task_queue.lock_call(connection, call)
        return _store(
            connection,
            call,
            fetched,
            owned,
            lambda done: task_queue.complete(connection, done, call.claim_token),
        )

    try:
        parts.add(transact(engine, work))
        return
    except DBAPIError as error:
        if not (is_refusal(error) or is_locked(error)):
            raise
        is_in_the_way = is_locked(error)
        message = f"the database refuses the answer for {symbols[0]}: {reason(error)}"
    if is_in_the_way and (len(symbols) == 1 or time.monotonic() > until):
        _return_locked(engine, call, ids)
        return
    if len(symbols) == 1:
        _LOG.warning("call %d to %s: %s", call.id, call.provider, message)
        kind = FailureKind.NOT_STORABLE
        transact(
            engine,
            lambda connection: task_queue.fail(connection, sorted(ids), call.claim_token, kind, message),
        )
        parts.failed += 1
        return
    middle = len(symbols) // 2
    _store_in_parts(engine, call, fetched, symbols[:middle], parts, until=until)
    _store_in_parts(engine, call, fetched, symbols[middle:], parts, until=until)


def _return_all(
    engine: Engine,
    call: Call,
    error: ProviderError,
    *,
    pause: float | None = None,
    stored: tuple[Fetched, Tally] | None = None,
) -> Tally:
    """Return all tasks of a call, after a pause: the database was at fault, so it costs no attempt.

    If parts of the answer are `stored`, the call has not failed: the stored rows name it.
    """
    kind, message = FailureKind.DATABASE_CONFLICT, str(error)
    transact(engine, lambda connection: task_queue.return_tasks(connection, call, kind, message, pause=pause))
    if stored is None:
        _settle_unless_locked(engine, call, partial(_book_failure, call, error, True))
        return Tally(call.data_type)
    _settle_unless_locked(engine, call, partial(_close, call, stored[0], True))
    return stored[1]


def _return_locked(engine: Engine, call: Call, ids: set[int]) -> None:
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
    pause = _LOCKED_PAUSE
    transact(
        engine,
        lambda connection: task_queue.return_tasks(connection, call, kind, message, ids=ids, pause=pause),
    )


def _settle_unless_locked(engine: Engine, call: Call, settle: Callable[[Connection], object]) -> None:
    """Settle a call, unless another session has locked its rows or one of its tasks.

    A task in work needs an open call. That call is settled by its estimate when its tasks are recovered.
    """

    def work(connection: Connection) -> None:
        if task_queue.is_in_work(connection, call):
            _LOG.warning(
                "tasks of call %d to %s are locked, and return to the queue when their lease ends",
                call.id,
                call.provider,
            )
        else:
            settle(connection)

    try:
        transact(engine, work)
    except DBAPIError as error:
        if not is_locked(error):
            raise
        _LOG.warning("call %d to %s is settled by its estimate: %s", call.id, call.provider, reason(error))


def _fail(connection: Connection, call: Call, error: ProviderError) -> None:
    kind = _kind_of_error(call, error) or FailureKind.CLIENT_FAULT
    owned = task_queue.lock_owned(connection, call)
    # The provider's rows are locked after all others: see the order of locks in functions/queue/queue.sql.
    _book_failure(call, error, bool(owned), connection)
    pause: float | None = None
    if owned and kind in (FailureKind.THROTTLED, FailureKind.KEY_REFUSED):
        retry_after = error.retry_after if isinstance(error, Throttled) else _KEY_REFUSED_PAUSE
        pause = limits.throttle(connection, call.provider, call.key_name, retry_after, str(error))
    # In a batch, one symbol may have spoiled the call for the others: they get another try.
    blames_all = kind in (FailureKind.MISCONFIGURED, FailureKind.ENDPOINT_RESTRICTED)
    is_permanent = kind.is_permanent and (len(call.tasks) == 1 or blames_all)
    task_queue.fail(
        connection,
        call.task_ids,
        call.claim_token,
        kind,
        str(error),
        is_permanent=is_permanent,
        retry_after=pause,
    )


def _kind_of_error(call: Call, error: ProviderError) -> FailureKind | None:
    # A provider that refuses one symbol says so in its answer; here it refuses the endpoint to the key.
    if isinstance(error, PlanRestricted) and (len(call.tasks) == 1 or error.is_whole_endpoint):
        return FailureKind.ENDPOINT_RESTRICTED
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), None)


def _book_failure(call: Call, error: ProviderError, is_owned: bool, connection: Connection) -> None:
    kind = _kind_of_error(call, error)
    receipt = Receipt(error.http_status, error.wire_bytes, kind=kind, error=str(error))
    limits.settle(connection, call.id, receipt, is_owned=is_owned)


def _counted(call: Call, wire_bytes: int, tally: Tally) -> Tally:
    """The tally with the call itself counted in."""
    tally.calls, tally.latest_calls = 1, int(call.window is None)
    tally.wire_bytes, tally.providers = wire_bytes, {call.provider}
    return tally


def _by_reason(failures: Iterable[SymbolFailure]) -> dict[tuple[FailureKind, str], list[str]]:
    grouped: dict[tuple[FailureKind, str], list[str]] = defaultdict(list)
    for failure in failures:
        grouped[failure.kind, failure.message].append(failure.symbol)
    return grouped
