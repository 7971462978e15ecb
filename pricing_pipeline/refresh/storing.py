"""Store an answer: its believed values, its corporate actions and documents; quarantine its other values.

All of it happens in the caller's transaction. judgement.py decides which values are believed, settling.py finishes the
tasks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from pricing_pipeline.domain.answers import SymbolFailure
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import joined
from pricing_pipeline.prices import actions, documents, price_writer, quarantined_values, rebasing
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import judgement
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
    answer = judged.answer
    refetched = rebasing.change_bases(connection, call, answer.observations, judged.verdicts, judged.changes)
    good = joined(verdict.good for verdict in judged.verdicts.values())
    if call.fetcher.is_document:
        rows = documents.store(connection, call, answer)
    else:
        rows = price_writer.store(connection, call, good, judged.known)
    stored = {row.symbol: row for row in rows}
    # If the level of the prices is doubted, the splits that were undone for them are doubted too.
    sure = set(symbols) - judged.off_level
    wrong = actions.doubted(connection, call, answer, sure)
    actions.store(connection, call, answer, sure, without=wrong)
    if call.fetcher is Fetcher.DAILY_BARS:
        actions.note_overlap(connection, call, judged.verdicts, stored)
    doubts = judgement.doubts(answer, judged.verdicts, wrong.values())
    failures = [*answer.failures, *judgement.unserved(judged, stored, refetched)]
    failed = {failure.symbol for failure in failures}
    confirmed = {symbol for symbol, verdict in judged.verdicts.items() if verdict.confirmed}
    served = (stored.keys() | answer.empty | confirmed | refetched) - failed
    if doubts:
        size = len(fetched.body)
        quarantined_values.quarantine(connection, call, doubts, fetched.evidence, fetched.http_status, size)
    if call.window is not None:
        price_writer.cover_read(
            connection, call.data_type, sorted(served - refetched), call.window, answer.unread
        )
    elif answer.empty and not call.fetcher.is_document:
        price_writer.confirm(connection, call.data_type, sorted(answer.empty))
    tally = Tally(
        call.data_type,
        added=sum(row.added for row in stored.values()),
        revised=sum(row.revised for row in stored.values()),
        failed=len(failures),
        quarantined=len(doubts),
        trimmed=good.trimmed(),
        documents=sum(document.symbol in stored for document in answer.documents),
        symbols=served,
        months=good.of(stored.keys() - failed).months(),
    )
    return StoredAnswer(served, failures, tally)
