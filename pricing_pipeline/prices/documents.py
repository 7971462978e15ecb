"""Documents: stored with every digit and with revisions, read as of now or of a past time. Never a float."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from pricing_pipeline.db.errors import by_the_way
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.answers import Answer, Document, Scalar, Stored
from pricing_pipeline.domain.calls import Call

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document, believed since `recorded_at` (UTC). `period` as in `domain.Document`."""

    period: date | None
    body: Mapping[str, Scalar]
    recorded_at: datetime
    provider: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a read, the newest period first; times are UTC.

    `fetched_at` is when a provider last confirmed the pair, None if none has; `age_seconds` counts from it.
    `is_requested`: the read has queued a refresh, because the pair was missing or stale.
    """

    documents: list[StoredDocument]
    fetched_at: datetime | None
    age_seconds: float | None
    fresh: bool
    is_requested: bool


@dataclass(frozen=True, slots=True)
class DocumentCount:
    """How many documents a symbol has, and since when (UTC) the last one is believed."""

    symbol: str
    documents: int
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class SampleDocument:
    """A line of a small table of documents."""

    symbol: str
    period: date | None
    recorded_at: datetime
    provider: str


def store(connection: Connection, call: Call, answer: Answer) -> list[Stored]:
    """Store the answer's documents within the caller's transaction.

    An unchanged body writes nothing, a changed one leaves the old one in pricing.revisions. Symbols with documents in
    the answer, or without any by its own words, count as confirmed now. Documents that the answer no longer lists are
    withdrawn, unless a period of the symbol was rejected. Call it only for symbols whose tasks the claim still owns.
    """
    rows = [record for record in answer.records if isinstance(record, Document)]
    answered = {row.symbol for row in rows} | answer.empty
    if not answered:
        return []
    merged = connection.execute(
        query("documents.merge"),
        {
            "data_type": call.data_type,
            "provider": call.provider,
            "call_id": call.id,
            "answered": sorted(answered),
            "whole": sorted(answered - {value.symbol for value in answer.rejected}),
            "symbols": [row.symbol for row in rows],
            "periods": [row.period for row in rows],
            "bodies": [to_json(row.body) for row in rows],
        },
    )
    return [Stored(row.symbol, row.added, row.revised) for row in merged]


def read(connection: Connection, data_type: str, symbol: str, user_id: str | None = None) -> Reading:
    """The current documents of a pair, and a request if they are missing or stale: for one viewer, or within the caps
    of a user; a worker serves it a moment later.

    Never waits for a provider. The request is part of the connection's transaction, which the caller commits. If the
    request is not possible (on a read replica, by a role that only reads), the result is the same.
    """
    current = _read(connection, data_type, symbol, None)
    pair = connection.execute(query("documents.pair"), {"data_type": data_type, "symbol": symbol}).one_or_none()
    parameters = {"data_type": data_type, "symbol": symbol, "user_id": user_id}
    name = "documents.request" if user_id is None else "documents.request_for"
    requested = by_the_way(connection, lambda: connection.execute(query(name), parameters).scalar_one())
    if pair is None:
        return Reading(current, None, None, False, bool(requested))
    return Reading(current, pair.fetched_at, pair.age_seconds, pair.fresh, bool(requested))


def as_of(connection: Connection, data_type: str, symbol: str, moment: datetime) -> list[StoredDocument]:
    """The documents of a pair as believed at a moment (aware), the newest period first."""
    return _read(connection, data_type, symbol, moment)


def newest(connection: Connection, data_type: str, symbols: Collection[str]) -> list[DocumentCount]:
    """The stock of each of the symbols that has documents, by symbol."""
    parameters = {"data_type": data_type, "symbols": list(symbols)}
    rows = connection.execute(query("documents.newest"), parameters)
    return [DocumentCount(row.symbol, row.documents, row.recorded_at) for row in rows]


def sample(connection: Connection, data_type: str, at_most: int) -> list[SampleDocument]:
    """A few documents of a data type, the latest believed first, for people to look at."""
    rows = connection.execute(query("documents.sample"), {"data_type": data_type, "at_most": at_most})
    return [SampleDocument(row.symbol, row.period, row.recorded_at, row.provider) for row in rows]


def to_json(body: Mapping[str, Scalar]) -> str:
    """A body as JSON text, numbers in all their digits."""
    return "{" + ", ".join(f"{json.dumps(name)}: {_literal(value)}" for name, value in body.items()) + "}"


def _literal(value: Scalar) -> str:
    # json.dumps knows no Decimal, and a float would round it.
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)


def _read(connection: Connection, data_type: str, symbol: str, moment: datetime | None) -> list[StoredDocument]:
    parameters = {"data_type": data_type, "symbol": symbol, "as_of": moment}
    return [
        StoredDocument(row.period, json.loads(row.body, parse_float=Decimal), row.recorded_at, row.provider)
        for row in connection.execute(query("documents.read"), parameters)
    ]
