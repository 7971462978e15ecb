"""Write the judgement of an answer: store believed values, quarantine doubted ones.

All of it happens in the caller's transaction. settling.py finishes the tasks. A new kind of contents joins `_STORAGES`,
and nothing else in the refresh.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from sqlalchemy import Connection, Engine

from pricing_pipeline.commodities import storage as commodities
from pricing_pipeline.domain.answers import Answer, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call, Preparation
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.inventory import storage as inventory
from pricing_pipeline.judging import answers
from pricing_pipeline.judging.answers import Judgement
from pricing_pipeline.judging.knowledge import Doubt, Doubted
from pricing_pipeline.prices import actions, changes, documents, price_writer
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline.registry import calendars

_LOG = logging.getLogger(__name__)


class Storage(Protocol):
    """The tables of records other than prices, and what counts as a change of them."""

    def store(self, connection: Connection, call: Call, answer: Answer) -> Sequence[Stored | SymbolFailure]:
        """Store the records of an answer, and confirm its pairs (`pricing.confirm_pairs`).

        What is unchanged writes nothing; a change leaves a revision. Every symbol of the answer that has records, or
        none by the provider's valid answer, is in the result: its records added and revised, or why they cannot be
        stored as things are set up. The caller has locked the tasks of these symbols.
        """


@runtime_checkable
class Preparing(Storage, Protocol):
    """A storage without whose contents a provider cannot be asked."""

    def prepare(self, connection: Connection, call: Call) -> Preparation:
        """What the call needs from storage; only reads."""


_STORAGES: Mapping[Contents, Storage] = {
    Contents.DOCUMENTS: documents,
    Contents.INVENTORY: inventory,
    Contents.COMMODITIES: commodities,
}


@dataclass(frozen=True, slots=True)
class Written:
    """What writing an answer did: the symbols that it served, why the others were not, and the counts of both."""

    served: set[str]
    failures: list[SymbolFailure]
    tally: Tally


def prepare(engine: Engine, call: Call) -> Preparation:
    """The stored facts that a call needs; mostly only its own window, without a transaction."""
    storage = _STORAGES.get(call.fetcher.contents)
    if not isinstance(storage, Preparing):
        return Preparation(call.window, {})
    with engine.begin() as connection:
        return storage.prepare(connection, call)


def write(connection: Connection, judged: Judgement, fetched: Fetched) -> Written:
    """Write the judgement about symbols whose tasks the caller has locked."""
    call = judged.call
    if call.fetcher.contents is Contents.PRICES:
        results: Sequence[Stored | SymbolFailure] = price_writer.write(connection, judged)
    else:
        results = _STORAGES[call.fetcher.contents].store(connection, call, judged.answer)
        _note_changes(connection, call, [row for row in results if isinstance(row, Stored)])
        for value in judged.answer.rejected:
            _LOG.warning("call %d to %s, %s: %s", call.id, call.provider, value.symbol, value.reason)
    stored = {row.symbol: row for row in results if isinstance(row, Stored)}
    failures = [*judged.failures(stored), *(row for row in results if isinstance(row, SymbolFailure))]
    doubts = answers.doubts(judged.answer, judged.verdicts, actions.store(connection, judged))
    if doubts:
        quarantined_values.quarantine(
            connection, call, doubts, fetched.evidence, fetched.http_status, len(fetched.body)
        )
    closed = {
        doubt.observation.symbol for doubt in doubts if isinstance(doubt, Doubted) and doubt.kind is Doubt.CLOSED_DAY
    }
    if closed:
        calendars.weigh_closed_days(connection, call.data_type, sorted(closed))
    served = (stored.keys() | judged.refetched) - {failure.symbol for failure in failures}
    good = judged.good
    tally = Tally(
        call.data_type,
        added=sum(row.added for row in stored.values()) + len(judged.taken),
        revised=sum(row.revised for row in stored.values()),
        failed=len(failures),
        quarantined=len(doubts),
        trimmed=good.trimmed(),
        records=sum(record.symbol in stored for record in judged.answer.records),
        symbols=served,
        months=good.of(served).months() + judged.taken.months(),
    )
    return Written(served, failures, tally)


def _note_changes(connection: Connection, call: Call, stored: Sequence[Stored]) -> None:
    """Functions that store prices do this themselves."""
    changed = {row.symbol: row.added + row.revised for row in stored}
    if call.fetcher.contents is Contents.DOCUMENTS:
        changes.note_latest(connection, call.data_type, sum(changed.values()))
    else:
        changes.note_shared(connection, call.fetcher, changed)
