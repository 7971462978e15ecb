"""Revolut: the statement of shares as CSV. The quantity of a split is the change that it makes, with its sign."""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.positions import Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_KINDS = Kinds(
    adds=("buy",),
    takes=("sell", "merger - cash", "position closure"),
    signed=("stock split", "merger - stock", "spinoff"),
    payments=("dividend", "custody fee"),
)


def recognises(header: Header) -> bool:
    """Whether a file with this header has the statement of Revolut."""
    return all(name in header for name in ("Date", "Ticker", "Type", "Quantity", "Price per share", "FX Rate"))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    type_, ticker, currency = map(header.position, ("Type", "Ticker", "Currency"))

    def names_of(row: Row) -> Names:
        return Names(ticker=row[ticker], currency=row[currency])

    def left_out(row: Row) -> str:
        # One company of Revolut hands all holdings to another; the shares were counted when they were bought.
        return "moved within Revolut" if row[type_].casefold().startswith("transfer from revolut") else ""

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: row[type_],
        shares=header.position("Quantity"),
        at=header.position("Date"),
        left_out=left_out,
    )
