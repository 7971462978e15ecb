"""XTB: the cash operations as CSV, in any language. The quantity is in the comment: OPEN BUY 34/42.5658 @ 11.7480.

The number after the slash is that of the whole order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pricing_pipeline.domain.exchanges import exchanges
from pricing_pipeline.holdings_files.histories import sortable
from pricing_pipeline.holdings_files.numbers import Mark, number
from pricing_pipeline.holdings_files.positions import Entry, Fault, LeftOut, Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table, lines_of
from pricing_pipeline.holdings_files.venues import mic_at

_SYMBOL = ("Symbol", "Ticker")
_TRADE = re.compile(r"(OPEN|CLOSE) (BUY|SELL) ([\d.,]+)(?:/[\d.,]+)? @ .*")


def recognises(header: Header) -> bool:
    """Whether a file with this header has the cash operations of XTB."""
    named = ("ID", "Type", "Time", "Comment", "Amount")
    return all(name in header for name in named) and header.position(*_SYMBOL) is not None


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    symbol, title = header.position(*_SYMBOL), header.position("Instrument")
    comment, time = header.position("Comment"), header.position("Time")

    def names_of(row: Row) -> Names:
        ticker, _, ending = row[symbol].rpartition(".")
        exchange = mic_at("xtb", ending)
        if not ticker or exchange not in exchanges():
            return Names(ticker=row[symbol], title=row[title])
        return Names(ticker=ticker, exchange=exchange, title=row[title])

    def change(row: Row, names: Names) -> Read:
        if not names.in_words:
            return LeftOut(row.line, row[comment], "cash")
        trade = _TRADE.fullmatch(row[comment])
        if trade is None:
            return LeftOut(row.line, names.in_words, "a payment")
        if trade[1] == "OPEN" and trade[2] == "SELL":
            return Fault(row.line, names.in_words, "it is sold short, and only what is owned is held")
        quantity = number(trade[3], Mark.POINT)
        return Entry(row.line, names, quantity if trade[1] == "OPEN" else -quantity, sortable(row[time]))

    return lines_of(table, names_of, change)
