"""Degiro: the portfolio and the transactions as CSV, in any language.

The labels have as many languages as it has countries, but each column has its place. An amount has its currency in a
column without a name: behind the amount in transactions, before it in the portfolio. There are no tickers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import sortable
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Entry, LeftOut, Names, Read
from pricing_pipeline.holdings_files.shapes import is_isin
from pricing_pipeline.holdings_files.tables import Header, Row, Table, lines_of
from pricing_pipeline.holdings_files.venues import mic_at

_TITLE, _ISIN_OF_POSITION, _AMOUNT, _LOCAL = 0, 1, 2, 4
_DAY, _TIME, _PRODUCT, _ISIN, _VENUE, _QUANTITY, _PRICE_CURRENCY = 0, 1, 2, 3, 4, 6, 8
_CODE = re.compile(r"\b[A-Z]{3}\b|\bGBX\b|\bGBp\b")
_IN_ENGLISH = ("product", "symbol/isin", "quantity", "amount", "date", "time")


def recognises_portfolio(header: Header) -> bool:
    """Whether a header is that of its portfolio."""
    return len(header.names) >= 6 and bool(re.fullmatch(r"\w+/isin", header.names[_ISIN_OF_POSITION]))


def recognises_transactions(header: Header) -> bool:
    """Whether a header is that of its transactions."""
    names = header.names
    return (
        len(names) >= 16
        and names[_ISIN] in ("isin", "code isin")
        and names[_PRICE_CURRENCY] == ""
        and names[_QUANTITY] != ""
    )


def read_portfolio(table: Table) -> Iterator[Read]:
    """Each line as a position, or why it has none."""
    quantity = table.numbers(_AMOUNT, _usual(table.header))

    def names_of(row: Row) -> Names:
        isin = row[_ISIN_OF_POSITION].upper()
        local = _CODE.search(row[_LOCAL]) or _CODE.search(row[_LOCAL + 1]) or _CODE.search(row[_LOCAL - 1])
        return Names(
            isin=isin if is_isin(isin) else "",
            ticker="" if is_isin(isin) else isin,
            currency=local[0] if local else "",
            title=row[_TITLE],
        )

    def position(row: Row, names: Names) -> Read:
        if not row[_ISIN_OF_POSITION]:
            return LeftOut(row.line, names.title, "cash")
        return Entry(row.line, names, quantity(row))

    return lines_of(table, names_of, position)


def read_transactions(table: Table) -> Iterator[Read]:
    """Each line as a signed change of a quantity, or why it has none."""
    quantity = table.numbers(_QUANTITY, _usual(table.header))

    def names_of(row: Row) -> Names:
        return Names(
            isin=row[_ISIN].upper(),
            exchange=mic_at("degiro", row[_VENUE]),
            currency=row[_PRICE_CURRENCY],
            title=row[_PRODUCT],
        )

    def change(row: Row, names: Names) -> Read:
        if not names.isin:
            return LeftOut(row.line, names.title, "it names no instrument")
        return Entry(row.line, names, quantity(row), sortable(f"{row[_DAY]} {row[_TIME]}"))

    return lines_of(table, names_of, change)


def _usual(header: Header) -> Mark:
    return Mark.POINT if header.names[0] in _IN_ENGLISH and header.names[1] in _IN_ENGLISH else Mark.COMMA
