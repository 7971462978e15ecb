"""What becomes of a call: its answer stored and its tasks finished, behind the fence, in one transaction.

Which call is made, and when, is refresher.py's. What a failure means to a task (tried again, snoozed, dead) is the
database's: here an error only gets its kind. An answer that the database refuses is settled part by part, so that
one bad value costs its neighbours nothing.
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
from pricing_pipeline.quarantine import closed_days, held_values, judgement
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.validation.knowledge import Known

_LOG = logging.getLogger(__name__)
_KEY_REFUSED_PAUSE = 60.0
_LOCKED_PAUSE = 10.0
"""A lock that was not released within a second may be kept for minutes: so long the provider is not asked again."""
_ANY_TIME: AbstractContextManager[object] = nullcontext()
_LOCKED_SECONDS = 2.0
"""How long to look for the part of an answer that a lock of another session keeps from being stored."""

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
    """Store what the call brought and finish its tasks: at once, or in parts when the database refuses the whole.

    `autocommit` is the engine by `autocommitting`; who settles many answers makes it once. The whole is stored in its
    `turn`, the parts out of turn: what waits for locks must not keep other answers from being stored.
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
            _unless_locked(engine, call, partial(_close, call, fetched, parts.has_news))
            tally = parts
    except DBAPIError as error:
        if not is_conflict(error):
            raise
        failed = ProviderError(
            f"the answer could not be stored: {reason(error)}",
            http_status=fetched.http_status,
            wire_bytes=fetched.wire_bytes,
        )
        tally = _give_back(engine, call, failed, stored=(fetched, parts) if parts.has_news else None)
    return _counted(call, fetched.wire_bytes, tally)


def _settle_whole(engine: Engine, call: Call, fetched: Fetched, autocommit: Engine) -> Tally:
    if _may_be_good(call, fetched.answer):
        tally = transact(autocommit, lambda session: _settle_good(session, call, fetched))
        if tally is not None:
            return tally
    return transact(engine, lambda connection: _settle(connection, call, fetched))


def _note_unannounced(engine: Engine, call: Call) -> None:
    """Count an answer without a length. A figure for people: no answer is lost for it."""
    try:
        transact(engine, lambda connection: limits.note_unannounced(connection, call.id))
    except DBAPIError as error:
        _LOG.warning("that call %d came without a length is not noted: %s", call.id, reason(error))


def settle_failure(engine: Engine, call: Call, error: ProviderError) -> Tally:
    """The whole call failed: book its bytes and let each task have the consequence of the error's kind."""
    try:
        transact(engine, lambda connection: _fail(connection, call, error))
        tally = Tally(call.data_type, failed=len(call.tasks))
    except DBAPIError as mishap:
        if not (is_conflict(mishap) or is_locked(mishap)):
            raise
        tally = _give_back(engine, call, error, pause=_LOCKED_PAUSE if is_locked(mishap) else None)
    return _counted(call, error.wire_bytes, tally)


def release(engine: Engine, call: Call, kind: FailureKind, message: str) -> int:
    """Give the call's tasks back to the queue at once, at no cost of an attempt; returns how many were still held."""
    return transact(engine, lambda connection: task_queue.release(connection, call, kind, message))


def _may_be_good(call: Call, answer: Answer) -> bool:
    """Whether the answer has a latest price of every symbol, and nothing else. Bars are judged by their splits, too."""
    is_whole = not (answer.failures or answer.empty or answer.rejected or answer.documents)
    is_plain = call.window is None and call.fetcher is not Fetcher.DAILY_BARS
    return is_whole and is_plain and bool(answer.observations)


def _settle_good(connection: Connection, call: Call, fetched: Fetched) -> Tally | None:
    """Settle an answer of which every value is believed: one statement loads what is known, the other settles.

    Returns None, with nothing done, if a value is not believed or the claim has lost a task. The fence is in the last
    statement: until then nobody else makes calls for these symbols, or the claim is lost.
    """
    observations = fetched.answer.observations
    known = known_values.load(connection, call, observations)
    for symbol, verdict in judgement.verdicts(call, observations, known).items():
        newest = known[symbol].newest_at
        if verdict.held or verdict.other_basis:
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
    task_queue.be_brief(connection, milliseconds=500)
    held = task_queue.held(connection, call)

    def finish(ids: list[int]) -> None:
        task_queue.finish(connection, call, ids, _receipt(fetched), is_owned=bool(held))

    return _store(connection, call, fetched, held, finish)


def _close(call: Call, fetched: Fetched, is_owned: bool, connection: Connection) -> None:
    limits.settle(connection, call.id, _receipt(fetched), is_owned=is_owned)


def _receipt(fetched: Fetched) -> Receipt:
    kind = _kind_of(fetched.answer)
    return Receipt(fetched.http_status, fetched.wire_bytes, fetched.units_left, kind)


def _kind_of(answer: Answer) -> FailureKind | None:
    """Why nothing at all came of an answer, for the most of its symbols; None if something did."""
    if answer.observations or answer.documents or answer.empty or not answer.failures:
        return None
    return Counter(failure.kind for failure in answer.failures).most_common(1)[0][0]


def _store(
    connection: Connection,
    call: Call,
    fetched: Fetched,
    held: set[int],
    finish: Callable[[list[int]], object],
) -> Tally:
    """Store the answer for the tasks among `held`, which the transaction has locked, and finish those.

    `finish` is called last, with the ids of the tasks that were served.
    """
    answer = actions.as_confirmed(connection, call, fetched.answer)
    ids = {task.symbol: task.id for task in call.tasks if task.id in held}
    given = of_symbols(answer.observations, ids)
    rebasing.share(connection, call)
    known, turns = _known(connection, call, answer, given)
    verdicts = closed_days.held(connection, call, judgement.judged(connection, call, given, known))
    asked = rebasing.turn(connection, call, given, verdicts, turns)
    observations = together([verdict.good for verdict in verdicts.values()])
    empty = [symbol for symbol in answer.empty if symbol in ids]
    if call.fetcher.is_document:
        stored = {row.symbol: row for row in documents.store(connection, call, answer, ids.keys())}
    else:
        stored = {row.symbol: row for row in price_writer.store(connection, call, observations, known)}
    # Where the level of prices is in doubt, so are the splits that they were undone by.
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
        held_values.hold(connection, call, doubts, fetched.evidence, fetched.http_status, size)
    failures += judgement.unserved(call, answer, verdicts, stored, turns, asked)
    failed = {failure.symbol for failure in failures}
    confirmed = {symbol for symbol, verdict in verdicts.items() if verdict.confirmed}
    done = sorted((set(stored) | set(empty) | confirmed | asked) - failed)

    if call.window is not None:
        told = [symbol for symbol in done if symbol not in asked]
        price_writer.cover_read(connection, call.data_type, told, call.window, answer.unread)
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
        held=len(doubts),
        trimmed=trimmed_of(observations),
        documents=sum(1 for document in answer.documents if document.symbol in stored),
        symbols=set(done),
        months=months_of(of_symbols(observations, stored.keys() - failed)),
    )


def _known(
    connection: Connection, call: Call, answer: Answer, given: Sequence[Observation]
) -> tuple[dict[str, Known], dict[str, rebasing.Turn]]:
    """What the answer is judged by, on its own basis where a history may change to that; and of which that is so."""
    loaded = known_values.load(connection, call, given)
    if call.fetcher not in (Fetcher.DAILY_BARS, Fetcher.NAV):
        return loaded, {}
    known = actions.refined(connection, call, answer, loaded)
    turns = rebasing.turns(connection, call, answer, given, known)
    bases = {symbol: Adjustment.RAW for symbol, turn in turns.items() if turn.is_whole}
    return (actions.refined(connection, call, answer, loaded, bases) if bases else known), turns


def _store_in_parts(
    engine: Engine, call: Call, fetched: Fetched, symbols: Sequence[str], parts: Tally, *, until: float
) -> None:
    """Store the answer for some symbols; by halves where that is refused, down to those that are to blame.

    What is done is counted in `parts` as soon as it is: a later part may fail, and what is stored stays.

    Likewise down to those of which another session has locked something; what is still together at `until` (by the
    monotonic clock) is then put off.
    """
    ids = {task.id for task in call.tasks if task.symbol in symbols}

    def work(connection: Connection) -> Tally:
        task_queue.be_brief(connection, milliseconds=100)
        held = task_queue.held(connection, call, ids)
        task_queue.hold_log(connection, call)
        return _store(
            connection,
            call,
            fetched,
            held,
            lambda done: task_queue.complete(connection, done, call.claim_token),
        )

    try:
        parts.add(transact(engine, work))
        return
    except DBAPIError as error:
        if not (is_refusal(error) or is_locked(error)):
            raise
        is_in_the_way = is_locked(error)
        said = f"the database refuses the answer for {symbols[0]}: {reason(error)}"
    if is_in_the_way and (len(symbols) == 1 or time.monotonic() > until):
        _put_off(engine, call, ids)
        return
    if len(symbols) == 1:
        _LOG.warning("call %d to %s: %s", call.id, call.provider, said)
        kind = FailureKind.NOT_STORABLE
        transact(
            engine, lambda connection: task_queue.fail(connection, sorted(ids), call.claim_token, kind, said)
        )
        parts.failed += 1
        return
    middle = len(symbols) // 2
    _store_in_parts(engine, call, fetched, symbols[:middle], parts, until=until)
    _store_in_parts(engine, call, fetched, symbols[middle:], parts, until=until)


def _give_back(
    engine: Engine,
    call: Call,
    error: ProviderError,
    *,
    pause: float | None = None,
    stored: tuple[Fetched, Tally] | None = None,
) -> Tally:
    """The database was in the way, not the task: its tasks are pending again (after a pause), and cost no attempt.

    A call of which parts are `stored` has not failed: those name it, and it is kept for as long as they are.
    """
    kind, said = FailureKind.DATABASE_CONFLICT, str(error)
    transact(engine, lambda connection: task_queue.release(connection, call, kind, said, pause=pause))
    if stored is None:
        _unless_locked(engine, call, partial(_book_failure, call, error, True))
        return Tally(call.data_type)
    _unless_locked(engine, call, partial(_close, call, stored[0], True))
    return stored[1]


def _put_off(engine: Engine, call: Call, ids: set[int]) -> None:
    """Another session has locked what an answer changes: its tasks wait a while, and cost no attempt."""
    said = f"the answer could not be stored, for another session has locked a row of it; {LOCKED_PAGE}"
    _LOG.warning(
        "call %d to %s: %d of its tasks wait for %.0f s: %s",
        call.id,
        call.provider,
        len(ids),
        _LOCKED_PAUSE,
        said,
    )
    kind = FailureKind.DATABASE_CONFLICT
    pause = _LOCKED_PAUSE
    transact(
        engine, lambda connection: task_queue.release(connection, call, kind, said, ids=ids, pause=pause)
    )


def _unless_locked(engine: Engine, call: Call, settle: Callable[[Connection], object]) -> None:
    """Settle a call, unless another session has locked what that changes, or a task of it that could not be given back.

    A task in work has an open call. Such a call is settled by its estimate when its tasks are recovered.
    """

    def work(connection: Connection) -> None:
        if task_queue.is_in_work(connection, call):
            _LOG.warning(
                "tasks of call %d to %s are locked, and come back by their lease", call.id, call.provider
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
    held = task_queue.held(connection, call)
    # Whoever writes to a provider's rows has its other locks already: see the order in functions/queue/queue.sql.
    _book_failure(call, error, bool(held), connection)
    pause: float | None = None
    if held and kind in (FailureKind.THROTTLED, FailureKind.KEY_REFUSED):
        asked = error.retry_after if isinstance(error, Throttled) else _KEY_REFUSED_PAUSE
        pause = limits.throttle(connection, call.provider, call.key_name, asked, str(error))
    # In a batch, one symbol may have spoiled the call for the others: those deserve another try.
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
    # Of one symbol alone a provider would have said so in its answer: it refuses the key the endpoint.
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
