"""Store an answer: its believed values, its corporate actions and documents; quarantine its other values.

All of it happens in the caller's transaction. judgement.py decides which values are believed, settling.py finishes the
tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from pricing_pipeline.domain.answers import CorporateAction, RejectedValue, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import joined
from pricing_pipeline.prices import actions, documents, price_writer, quarantined_values, rebasing
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline.quarantine import judgement
from pricing_pipeline.quarantine.judgement import Judgement
from pricing_pipeline.refresh.tally import Tally


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
    judged = judgement.judge_answer(connection, call, fetched.answer, symbols)
    refetched = rebasing.change_bases(connection, call, judged.observed, judged.verdicts, judged.changes)
    good = joined(verdict.good for verdict in judged.verdicts.values())
    if call.fetcher.is_document:
        rows = documents.store(connection, call, judged.answer, symbols)
    else:
        rows = price_writer.store(connection, call, good, judged.known)
    stored = {row.symbol: row for row in rows}
    wrong = _store_actions(connection, call, judged, symbols, stored)
    doubts = judgement.doubts(judged.answer, judged.verdicts, symbols, wrong.values())
    failures = [failure for failure in judged.answer.failures if failure.symbol in symbols]
    failures += judgement.unserved(call, judged, stored, refetched)
    failed = {failure.symbol for failure in failures}
    confirmed = {symbol for symbol, verdict in judged.verdicts.items() if verdict.confirmed}
    empty = {symbol for symbol in judged.answer.empty if symbol in symbols}
    served = (stored.keys() | empty | confirmed | refetched) - failed
    if doubts:
        size = len(fetched.body)
        quarantined_values.quarantine(connection, call, doubts, fetched.evidence, fetched.http_status, size)
    if call.window is not None:
        price_writer.cover_read(
            connection, call.data_type, sorted(served - refetched), call.window, judged.answer.unread
        )
    elif empty and not call.fetcher.is_document:
        price_writer.confirm(connection, call.data_type, sorted(empty))
    tally = Tally(
        call.data_type,
        added=sum(row.added for row in stored.values()),
        revised=sum(row.revised for row in stored.values()),
        failed=len(failures),
        quarantined=len(doubts),
        trimmed=good.trimmed(),
        documents=sum(document.symbol in stored for document in judged.answer.documents),
        symbols=served,
        months=good.of(stored.keys() - failed).months(),
    )
    return StoredAnswer(served, failures, tally)


def _store_actions(
    connection: Connection,
    call: Call,
    judged: Judgement,
    symbols: Collection[str],
    stored: Mapping[str, Stored],
) -> Mapping[CorporateAction, RejectedValue]:
    """Store the answer's splits and dividends; returns those that cannot be true."""
    # If the level of the prices is doubted, the splits that were undone for them are doubted too.
    sure = [symbol for symbol in symbols if not judged.is_level_doubted(symbol)]
    wrong = actions.doubted(connection, call, judged.answer, sure)
    actions.store(connection, call, judged.answer, sure, without=wrong)
    if call.fetcher is Fetcher.DAILY_BARS:
        judgement.note_unconfirmed(judged.answer, judged.verdicts)
        actions.note_overlap(connection, call, judged.verdicts, stored)
    return wrong
