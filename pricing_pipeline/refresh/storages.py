"""Where the answers of each kind of contents go. A new kind joins here, and nowhere else in the refresh.

Prices have their own way (storing.py): their values are judged against the history, and may be quarantined. Everything
else is stored as its provider says it, by one module with the functions of `Storage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from sqlalchemy import Connection, Engine

from pricing_pipeline.commodities import storage as commodities
from pricing_pipeline.domain.answers import Answer, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call, Preparation
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.inventory import storage as inventory
from pricing_pipeline.prices import documents


class Storage(Protocol):
    """The tables of one kind of contents, and what counts as a change of them."""

    def store(self, connection: Connection, call: Call, answer: Answer) -> Sequence[Stored | SymbolFailure]:
        """Store the records of an answer in the caller's transaction, and confirm its pairs (`pricing.confirm_pairs`).

        What is unchanged writes nothing; a change leaves a revision. Every symbol of the answer that has records, or
        none by the provider's valid answer, is in the result: its records added and revised, or why they cannot be
        stored as things are set up. The caller has locked the tasks of these symbols.
        """


@runtime_checkable
class Preparing(Storage, Protocol):
    """A storage without whose contents a provider cannot be asked."""

    def prepare(self, connection: Connection, call: Call) -> Preparation:
        """What the call needs of what is stored; only reads."""


STORAGES: Mapping[Contents, Storage] = {
    Contents.DOCUMENTS: documents,
    Contents.INVENTORY: inventory,
    Contents.COMMODITIES: commodities,
}


def prepare(engine: Engine, call: Call) -> Preparation:
    """What a call needs of what is stored; mostly nothing but its own window, and then no transaction."""
    storage = STORAGES.get(call.fetcher.contents)
    if not isinstance(storage, Preparing):
        return Preparation(call.window, {})
    with engine.begin() as connection:
        return storage.prepare(connection, call)
