"""Parqet: the activities as CSV, with decimal commas."""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Kind, Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_KINDS = Kinds(
    adds=("buy", "transferin"),
    takes=("sell", "transferout"),
    payments=("dividend", "interest", "deposit", "withdrawal", "fee", "tax", "cost"),
)


def recognises(header: Header) -> bool:
    """Whether a file with this header has the activities of Parqet."""
    return all(name in header for name in ("datetime", "shares", "type", "assettype", "identifier", "wkn"))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    type_, class_, identifier = map(header.position, ("type", "assettype", "identifier"))
    wkn, currency, title = map(header.position, ("wkn", "currency", "holdingname"))

    def names_of(row: Row) -> Names:
        if row[class_] == "Crypto":
            return Names(ticker=row[identifier], currency=row[currency], title=row[title], kind=Kind.COIN)
        return Names(isin=row[identifier].upper(), currency=row[currency], title=row[title], number=row[wkn])

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: row[type_],
        shares=header.position("shares"),
        at=header.position("datetime"),
        usual=Mark.COMMA,
        left_out=lambda row: "cash" if row[class_] == "Cash" else "",
    )
