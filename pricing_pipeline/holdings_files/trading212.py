"""Trading 212: the history as CSV.

Columns come and go with the years and are read by their names. A split is two lines: the old shares go, the new come.
"""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Entry, Fault, LeftOut, Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table, lines_of

_NEEDED = ("Action", "ISIN", "Ticker", "No. of shares")
_IN = (
    "market buy",
    "limit buy",
    "stop buy",
    "stop limit buy",
    "stock split open",
    "stock distribution",
    "transfer in",
)
_OUT = ("market sell", "limit sell", "stop sell", "stop limit sell", "stock split close", "transfer out")


def recognises(header: Header) -> bool:
    """Whether a header is that of its history."""
    return all(name in header for name in _NEEDED)


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    action, isin, ticker = header.position("Action"), header.position("ISIN"), header.position("Ticker")
    at, title = header.position("Time", "Time (UTC)"), header.position("Name")
    currency, shares = header.position("Currency (Price / share)"), header.position("No. of shares")
    assert shares is not None  # noqa: S101 - recognised by it
    quantity = table.numbers(shares, Mark.POINT)

    def names_of(row: Row) -> Names:
        return Names(isin=row[isin].upper(), ticker=row[ticker], currency=row[currency], title=row[title])

    def change(row: Row, names: Names) -> Read:
        what, done = names.in_words or row[action], row[action].casefold()
        if not (names.isin or names.ticker):
            return LeftOut(row.line, what, "cash")
        if not done.startswith((*_IN, *_OUT)):
            if done.startswith("dividend") or not row[shares]:
                return LeftOut(row.line, what, "a payment")
            return Fault(row.line, what, f"{row[action]!r} is no action that is known here")
        amount = abs(quantity(row))
        return Entry(row.line, names, amount if done.startswith(_IN) else -amount, row[at])

    return lines_of(table, names_of, change)
