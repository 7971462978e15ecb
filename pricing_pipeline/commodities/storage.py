"""Store what providers say about commodities: prices of terminals, and the lists of the ETL.

All of it happens in the caller's transaction. reads.py reads, etl.py decides what is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.answers import Answer, FailureKind, Stored, SymbolFailure
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.commodities import Commodity, Listed, Terminal, TerminalPrices


@dataclass(frozen=True, slots=True)
class ListStored:
    """What storing a list did: rows added, revised, and marked as vanished."""

    added: int
    revised: int
    vanished: int = 0


def store(connection: Connection, call: Call, answer: Answer) -> list[Stored | SymbolFailure]:
    """Store the prices of a call's terminals; a terminal without prices, by the provider's valid answer, counts as
    confirmed.

    An unchanged price writes nothing, a changed one leaves the old one in pricing.revisions. A terminal is not
    confirmed if all its prices are older than the stored ones. Call it only for symbols whose tasks the claim still
    owns.
    """
    records = [record for record in answer.records if isinstance(record, TerminalPrices)]
    stored = store_prices(connection, call.provider, call.id, records)
    confirmed = {row.symbol for row in stored if not row.is_stale_source} | answer.empty
    confirm(connection, call.data_type, call.provider, call.id, sorted(confirmed))
    older = "the provider's time is older than the stored one"
    return [
        *(SymbolFailure(row.symbol, FailureKind.STALE_SOURCE, older) if row.is_stale_source else row for row in stored),
        *(Stored(symbol, 0, 0) for symbol in sorted(answer.empty)),
    ]


def store_prices(
    connection: Connection, provider: str, call_id: int, terminals: Sequence[TerminalPrices]
) -> list[Stored]:
    """Store the prices of some terminals, without confirming any pair."""
    if not terminals:
        return []
    rows = [(terminal.symbol, price) for terminal in terminals for price in terminal.prices]
    merged = connection.execute(
        query("commodities.merge"),
        {
            "provider": provider,
            "call_id": call_id,
            "terminals": [terminal.symbol for terminal in terminals],
            "terminal_names": [terminal.name for terminal in terminals],
            "terminal_codes": [terminal.code for terminal in terminals],
            "whole": [terminal.is_whole for terminal in terminals],
            "symbols": [symbol for symbol, _ in rows],
            "commodity_ids": [price.commodity_id for _, price in rows],
            "qualities": [price.quality for _, price in rows],
            "names": [price.name for _, price in rows],
            "codes": [price.code for _, price in rows],
            "slugs": [price.slug for _, price in rows],
            "buys": [price.buy for _, price in rows],
            "sells": [price.sell for _, price in rows],
            "stocks": [price.stock for _, price in rows],
            "demands": [price.demand for _, price in rows],
            "versions": [price.game_version for _, price in rows],
            "stamps": [price.modified_at for _, price in rows],
        },
    )
    return [Stored(row.symbol, row.added, row.revised, row.is_stale_source) for row in merged]


def confirm(connection: Connection, data_type: str, provider: str, call_id: int, symbols: Sequence[str]) -> None:
    """Note that the provider has answered for these terminals."""
    if symbols:
        parameters = {"data_type": data_type, "symbols": symbols, "provider": provider, "call_id": call_id}
        connection.execute(query("commodities.confirm"), parameters)


def data_types(connection: Connection) -> list[str]:
    """The active data types of prices of terminals."""
    return list(connection.execute(query("commodities.types")).scalars())


def store_versions(connection: Connection, live: str, test: str | None = None) -> ListStored:
    """Note which version of the game people play, and which is for tests. Prices of others are of an older version from
    now on.
    """
    if test is not None:
        connection.execute(query("commodities.note_test_version"), {"version": test})
    is_new = call_sql(connection, "go_live", live).scalar_one()
    return ListStored(int(is_new), 0)


def store_terminals(connection: Connection, call_id: int, listed: Listed[Terminal]) -> ListStored:
    """Store the list of terminals, which become instruments. What it lacks vanishes if every row could be read."""
    rows = listed.rows
    row = call_sql(
        connection,
        "merge_terminals",
        call_id,
        not listed.faults,
        [row.symbol for row in rows],
        [row.name for row in rows],
        [row.code for row in rows],
        [row.system for row in rows],
        [row.planet for row in rows],
        [row.moon for row in rows],
        [row.place for row in rows],
        [row.is_available for row in rows],
        [row.modified_at for row in rows],
    ).one()
    return ListStored(row.added, row.revised, row.vanished)


def store_commodities(connection: Connection, call_id: int, listed: Listed[Commodity]) -> ListStored:
    """Store the list of commodities. What it lacks vanishes if every row could be read."""
    rows = listed.rows
    row = call_sql(
        connection,
        "merge_commodities",
        call_id,
        not listed.faults,
        [row.commodity_id for row in rows],
        [row.name for row in rows],
        [row.code for row in rows],
        [row.slug for row in rows],
        [row.kind for row in rows],
        [row.is_available for row in rows],
    ).one()
    return ListStored(row.added, row.revised, row.vanished)
