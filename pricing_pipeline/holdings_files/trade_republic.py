"""Trade Republic: the transactions as CSV. Shares have a sign; those of a split are the change that it makes."""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.positions import Kind, Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_KINDS = Kinds(
    takes=("trading sell", "delivery free_delivery"),
    signed=("trading", "corporate_action", "delivery"),
    payments=("cash",),
)
_NOT_HELD = {"BOND": "a bond", "DERIVATIVE": "a derivative", "PRIVATE_FUND": "a fund without a price"}


def recognises(header: Header) -> bool:
    """Whether a file with this header has the transactions of Trade Republic."""
    return all(name in header for name in ("datetime", "category", "type", "asset_class", "symbol", "shares"))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    category, type_, class_ = map(header.position, ("category", "type", "asset_class"))
    symbol, name, currency = map(header.position, ("symbol", "name", "currency"))

    def names_of(row: Row) -> Names:
        if row[class_] == "CRYPTO":
            # Splits and gifts name no currency. Trade Republic keeps all coins in euros.
            return Names(ticker=row[symbol], currency=row[currency] or "EUR", title=row[name], kind=Kind.COIN)
        return Names(isin=row[symbol].upper(), currency=row[currency], title=row[name])

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: f"{row[category]} {row[type_]}",
        shares=header.position("shares"),
        at=header.position("datetime"),
        left_out=lambda row: _NOT_HELD.get(row[class_], ""),
    )
