"""Trading 212: the history as CSV.

Columns come and go with the years and are read by their names. A split is two lines: the old shares go, the new come.
"""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.positions import Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_ORDERS = ("market", "limit", "stop", "stop limit")
_KINDS = Kinds(
    adds=(
        *(f"{order} buy" for order in _ORDERS),
        "stock split open",
        "stock distribution",
        "transfer in",
    ),
    takes=(*(f"{order} sell" for order in _ORDERS), "stock split close", "transfer out"),
)


def recognises(header: Header) -> bool:
    """Whether a file with this header has the history of Trading 212."""
    return all(name in header for name in ("Action", "ISIN", "Ticker", "No. of shares"))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    action, isin, ticker = header.position("Action"), header.position("ISIN"), header.position("Ticker")
    title, currency = header.position("Name"), header.position("Currency (Price / share)")

    def names_of(row: Row) -> Names:
        return Names(isin=row[isin].upper(), ticker=row[ticker], currency=row[currency], title=row[title])

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: row[action],
        shares=header.position("No. of shares"),
        at=header.position("Time", "Time (UTC)"),
    )
