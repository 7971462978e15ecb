"""Freetrade: the activity as CSV. It does not say how many shares a split adds, so the line of a split is refused."""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.positions import Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_KINDS = Kinds(
    adds=("order buy", "freeshare_order"),
    takes=("order sell",),
    payments=("dividend", "special_dividend", "property", "interest"),
)


def recognises(header: Header) -> bool:
    """Whether a file with this header has the activity of Freetrade."""
    return all(name in header for name in ("Title", "Type", "Buy / Sell", "Quantity", "Instrument Currency"))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    type_, side, title = map(header.position, ("Type", "Buy / Sell", "Title"))
    isin, ticker, venue = map(header.position, ("ISIN", "Ticker", "Venue"))
    currency = header.position("Instrument Currency")

    def names_of(row: Row) -> Names:
        return Names(
            isin=row[isin].upper(),
            ticker=row[ticker],
            exchange="XLON" if row[venue] == "London Stock Exchange" else "",
            currency=row[currency],
            title=row[title],
        )

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: f"{row[type_]} {row[side]}",
        shares=header.position("Quantity"),
        at=header.position("Timestamp"),
    )
