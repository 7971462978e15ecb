"""Portfolio Performance: transactions as CSV, with German or English labels.

Its shares have no sign; the type of a transaction says which way they went. It corrects them for splits itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import Entry, Fault, LeftOut, Names, Read
from pricing_pipeline.holdings_files.tables import Header, Row, Table, lines_of

_DATE = ("Datum", "Date")
_TYPE = ("Typ", "Type")
_SHARES = ("Stück", "Shares")
_TITLE = ("Wertpapiername", "Security Name")
_TICKER = ("Ticker-Symbol", "Ticker Symbol", "Ticker")
_CURRENCY = ("Buchungswährung", "Transaction Currency")
_OWN_CURRENCY = ("Währung Bruttobetrag", "Currency Gross Amount")

_IN = frozenset(
    {"kauf", "buy", "einlieferung", "delivery (inbound)", "umbuchung (eingang)", "transfer (inbound)"}
)
_OUT = frozenset(
    {"verkauf", "sell", "auslieferung", "delivery (outbound)", "umbuchung (ausgang)", "transfer (outbound)"}
)
_CASH = frozenset(
    {
        "einlage",
        "deposit",
        "entnahme",
        "removal",
        "zinsen",
        "interest",
        "zinsbelastung",
        "interest charge",
        "dividende",
        "dividend",
        "gebühren",
        "fees",
        "gebührenerstattung",
        "fees refund",
        "steuern",
        "taxes",
        "steuerrückerstattung",
        "tax refund",
    }
)


def recognises(header: Header) -> bool:
    """Whether a header is that of its transactions."""
    return all(header.position(*names) is not None for names in (_TYPE, _SHARES, _TITLE, _CURRENCY))


def read(table: Table) -> Iterator[Read]:
    """Each line as a change of a quantity, or why it has none."""
    header = table.header
    at, type_, shares = header.position(*_DATE), header.position(*_TYPE), header.position(*_SHARES)
    isin, wkn, ticker = header.position("ISIN"), header.position("WKN"), header.position(*_TICKER)
    title, currency = header.position(*_TITLE), header.position(*_CURRENCY)
    own_currency = header.position(*_OWN_CURRENCY)
    assert shares is not None  # noqa: S101 - recognised by it
    usual = Mark.COMMA if "Stück" in header else Mark.POINT
    quantity = table.numbers(shares, usual)

    def names_of(row: Row) -> Names:
        return Names(
            isin=row[isin].upper(),
            ticker=row[ticker],
            # The account's currency; that of the security stands beside it where it is another one.
            currency=(row[own_currency] or row[currency]).upper(),
            title=row[title],
            wkn=row[wkn],
        )

    def change(row: Row, names: Names) -> Read:
        what, kind = names.in_words or row[type_], row[type_].casefold()
        if kind in _CASH or not names.in_words:
            return LeftOut(row.line, what, "cash" if not names.in_words else "a payment")
        if kind not in _IN | _OUT:
            return Fault(row.line, what, f"{row[type_]!r} is no type of transaction that is known here")
        amount = abs(quantity(row))
        return Entry(row.line, names, amount if kind in _IN else -amount, row[at])

    return lines_of(table, names_of, change)
