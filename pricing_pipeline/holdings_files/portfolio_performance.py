"""Portfolio Performance: transactions as CSV, with German or English labels.

Its shares have no sign; the type of a transaction says which way they went. It corrects them for splits itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.histories import Kinds, changes
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table

_DATE = ("Datum", "Date")
_TYPE = ("Typ", "Type")
_SHARES = ("Stück", "Shares")
_TITLE = ("Wertpapiername", "Security Name")
_TICKER = ("Ticker-Symbol", "Ticker Symbol", "Ticker")
_CURRENCY = ("Buchungswährung", "Transaction Currency")
_OWN_CURRENCY = ("Währung Bruttobetrag", "Currency Gross Amount")

_KINDS = Kinds(
    adds=(
        "kauf",
        "buy",
        "einlieferung",
        "delivery (inbound)",
        "umbuchung (eingang)",
        "transfer (inbound)",
    ),
    takes=(
        "verkauf",
        "sell",
        "auslieferung",
        "delivery (outbound)",
        "umbuchung (ausgang)",
        "transfer (outbound)",
    ),
    payments=("divid", "zins", "interest", "gebühr", "fee", "steuer", "tax"),
)


def recognises(header: Header) -> bool:
    """Whether a file with this header has the transactions of Portfolio Performance."""
    return all(header.position(*names) is not None for names in (_TYPE, _SHARES, _TITLE, _CURRENCY))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    isin, wkn, ticker = header.position("ISIN"), header.position("WKN"), header.position(*_TICKER)
    type_, title, currency = header.position(*_TYPE), header.position(*_TITLE), header.position(*_CURRENCY)
    own_currency = header.position(*_OWN_CURRENCY)

    def names_of(row: Row) -> Names:
        return Names(
            isin=row[isin].upper(),
            ticker=row[ticker],
            # The account's currency; that of the security stands beside it where it is another one.
            currency=(row[own_currency] or row[currency]).upper(),
            title=row[title],
            number=row[wkn],
        )

    return changes(
        table,
        _KINDS,
        names_of,
        lambda row: row[type_],
        shares=header.position(*_SHARES),
        at=header.position(*_DATE),
        usual=Mark.COMMA if "Stück" in header else Mark.POINT,
    )
