"""Store an answer: its believed prices, its records and corporate actions; quarantine its other values.

All of it happens in the caller's transaction. judgement.py decides which values are believed, settling.py finishes the
tasks.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from pricing_pipeline.domain.answers import Answer, RejectedValue, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.observations import Rows, joined
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import actions, changes, price_writer, quarantined_values, rebasing
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.providers.values import unasked as unasked_value
from pricing_pipeline.quarantine import judgement
from pricing_pipeline.refresh.storages import STORAGES
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.registry import calendars
from pricing_pipeline.validation.knowledge import Doubt, Doubted

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What storing an answer did: the symbols that it served, why the others were not, and the counts of both."""

    served: set[str]
    failures: list[SymbolFailure]
    tally: Tally


def store_answer(
    connection: Connection, call: Call, fetched: Fetched, symbols: Collection[str]
) -> StoredAnswer:
    """Judge and store an answer for `symbols`, whose tasks the caller has locked."""
    if call.fetcher.contents is Contents.PRICES:
        return _store_prices(connection, call, fetched, symbols)
    return _store_records(connection, call, fetched, symbols)


def _store_records(
    connection: Connection, call: Call, fetched: Fetched, symbols: Collection[str]
) -> StoredAnswer:
    """Store what is no price, and the corporate actions that a provider tells with its documents."""
    answer = fetched.answer.of(symbols)
    results = STORAGES[call.fetcher.contents].store(connection, call, answer)
    stored = {row.symbol: row for row in results if isinstance(row, Stored)}
    changed = {symbol: row.added + row.revised for symbol, row in stored.items()}
    if call.fetcher.contents is Contents.DOCUMENTS:
        changes.note_latest(connection, call.data_type, sum(changed.values()))
    else:
        changes.note_shared(connection, call.fetcher, changed)
    failures = [*answer.failures, *(row for row in results if isinstance(row, SymbolFailure))]
    wrong = actions.doubted(connection, call, answer, set(symbols))
    actions.store(connection, call, answer, set(symbols), without=wrong)
    doubts = judgement.doubts(answer, {}, wrong.values())
    for value in doubts:
        if isinstance(value, RejectedValue):
            _LOG.warning("call %d to %s, %s: %s", call.id, call.provider, value.symbol, value.reason)
    _quarantine(connection, call, doubts, fetched)
    served = (stored.keys() | answer.empty) - {failure.symbol for failure in failures}
    tally = _tally(call, stored, failures, doubts)
    tally.records = sum(record.symbol in stored for record in answer.records)
    tally.symbols = served
    return StoredAnswer(served, failures, tally)


def _store_prices(
    connection: Connection, call: Call, fetched: Fetched, symbols: Collection[str]
) -> StoredAnswer:
    judged = judgement.judge_answer(connection, call, fetched.answer, symbols)
    answer = judged.answer
    refetched = rebasing.change_bases(connection, call, answer.observations, judged.verdicts, judged.changes)
    good = joined(verdict.good for verdict in judged.verdicts.values())
    stored = {row.symbol: row for row in price_writer.store(connection, call, good, judged.known)}
    # If the level of the prices is doubted, the splits that were undone for them are doubted too.
    sure = set(symbols) - judged.off_level
    wrong = actions.doubted(connection, call, answer, sure)
    actions.store(connection, call, answer, sure, without=wrong)
    if call.fetcher is Fetcher.DAILY_BARS:
        actions.note_overlap(connection, call, judged.verdicts, stored)
    answer, taken = _take_unasked(connection, call, answer, judged)
    doubts = judgement.doubts(answer, judged.verdicts, wrong.values())
    failures = [*answer.failures, *judgement.unserved(judged, stored, refetched)]
    failed = {failure.symbol for failure in failures}
    confirmed = {symbol for symbol, verdict in judged.verdicts.items() if verdict.confirmed}
    served = (stored.keys() | answer.empty | confirmed | refetched) - failed
    _quarantine(connection, call, doubts, fetched)
    if call.window is not None:
        price_writer.cover_read(
            connection, call.data_type, sorted(served - refetched), call.window, answer.unread
        )
    else:
        if answer.empty:
            price_writer.confirm(connection, call.data_type, sorted(answer.empty))
        if call.fetcher is not Fetcher.QUOTE:
            days = {symbol: rows.dates() for symbol, rows in good.by_symbol().items() if symbol in served}
            price_writer.note_absent_days(connection, call.data_type, days)
    tally = _tally(call, stored, failures, doubts)
    tally.trimmed = good.trimmed()
    tally.symbols = served
    tally.months = good.of(stored.keys() - failed).months() + taken.months()
    tally.added += len(taken)
    return StoredAnswer(served, failures, tally)


def _take_unasked(
    connection: Connection, call: Call, answer: Answer, asked: judgement.Judgement
) -> tuple[Answer, Rows]:
    """Store sound values that came unasked, of days without a value; returns the answer without them, and them.

    A day that an earlier answer lacked may come with one about other days. They are judged after the values that were
    asked for, and by them; they never change what is believed of those, and one in doubt is only counted.
    """
    doubted = {symbol for symbol, verdict in asked.verdicts.items() if verdict.doubted}
    unasked = Rows(row for value in answer.rejected for row in value.unasked if row.symbol not in doubted)
    missing = _one_a_day(price_writer.lacking(connection, call.data_type, unasked)) if unasked else Rows()
    if not missing:
        return answer, Rows()
    days = missing.dates()
    span = replace(call, window=Window(min(days), max(days)))
    judged = judgement.judge_answer(
        connection,
        span,
        replace(answer, observations=missing, failures=(), unconfirmed=None),
        missing.symbols(),
    )
    taken = Rows(
        row for verdict in judged.verdicts.values() if verdict.restatement is None for row in verdict.good
    )
    price_writer.store(connection, span, taken, judged.known)
    rest, places = [], {(row.symbol, row.observed_at) for row in taken}
    for value in answer.rejected:
        left = [row for row in value.unasked if (row.symbol, row.observed_at) not in places]
        if len(left) == len(value.unasked):
            rest.append(value)
        elif left:
            rest.append(unasked_value(value.symbol, left, "came unasked, and were not stored"))
    return replace(answer, rejected=tuple(rest)), taken


def _one_a_day(rows: Rows) -> Rows:
    """The values of days of which the answer has only one, in order of time."""
    times = Counter((row.symbol, row.observed_at) for row in rows)
    return Rows(
        sorted(
            (row for row in rows if times[row.symbol, row.observed_at] == 1),
            key=lambda row: (row.symbol, row.observed_at),
        )
    )


def _quarantine(
    connection: Connection,
    call: Call,
    doubts: Sequence[Doubted | RejectedValue | SymbolFailure],
    fetched: Fetched,
) -> None:
    if doubts:
        size = len(fetched.body)
        quarantined_values.quarantine(connection, call, doubts, fetched.evidence, fetched.http_status, size)
        closed = {
            doubt.observation.symbol
            for doubt in doubts
            if isinstance(doubt, Doubted) and doubt.kind is Doubt.CLOSED_DAY
        }
        if closed:
            calendars.weigh_closed_days(connection, call.data_type, sorted(closed))


def _tally(call: Call, stored: Mapping[str, Stored], failures: Sized, doubts: Sized) -> Tally:
    return Tally(
        call.data_type,
        added=sum(row.added for row in stored.values()),
        revised=sum(row.revised for row in stored.values()),
        failed=len(failures),
        quarantined=len(doubts),
    )
