"""A table whose columns a person names: `symbol` is the column Ticker, `quantity` is the column Shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pricing_pipeline.domain.exchanges import exchanges
from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.histories import sortable
from pricing_pipeline.holdings_files.numbers import Mark, is_vague, number
from pricing_pipeline.holdings_files.positions import Entry, LeftOut, Names, Read, VagueNumber
from pricing_pipeline.holdings_files.tables import Header, Row, Table, lines_of

FIELDS = ("symbol", "isin", "exchange", "currency", "name", "quantity", "action", "time")
"""The fields that a column can have. One of symbol and isin must be given."""

_IN = (
    "buy",
    "bought",
    "bot",
    "kauf",
    "achat",
    "acquisto",
    "compra",
    "koop",
    "purchase",
    "transfer in",
    "deposit of",
    "b",
)
_OUT = (
    "sell",
    "sold",
    "sld",
    "verkauf",
    "vente",
    "venta",
    "venda",
    "verkoop",
    "vendita",
    "sale",
    "transfer out",
    "s",
)


def require_fields(columns: Mapping[str, str]) -> None:
    """Raise HoldingsFileRefused unless these name fields that there are, and one that says what is held."""
    odd = [name for name in columns if name not in FIELDS]
    if odd:
        raise HoldingsFileRefused(f"{odd[0]!r} is nothing that a column can be; there are: {', '.join(FIELDS)}.")
    if not columns.keys() & {"symbol", "isin"}:
        raise HoldingsFileRefused("name the column that says what is held: symbol or isin.")


def recognises(header: Header, columns: Mapping[str, str]) -> bool:
    """Whether a header has all columns that are named."""
    return all(_positions(header, name) for name in columns.values())


def read(table: Table, columns: Mapping[str, str]) -> Iterator[Read]:
    """Each line as a quantity. With an action, that says which way it went; quantities with a sign are summed."""
    at = {field: _one(table.header, name) for field, name in columns.items()}
    shares = at.get("quantity")
    quantity = table.numbers(shares, Mark.POINT) if shares is not None else None
    is_guessed = shares is not None and not table.shows_mark(shares)

    def names_of(row: Row) -> Names:
        exchange, currency = row[at.get("exchange")], row[at.get("currency")]
        names = Names(
            isin=row[at.get("isin")].upper(),
            ticker=row[at.get("symbol")],
            exchange=exchange if exchange in exchanges() else "",
            currency=currency.upper() if currency.islower() else currency,  # GBp are pence
            title=row[at.get("name")],
        )
        if exchange and not names.exchange and names.ticker:
            # judge_symbols knows exchanges by many names.
            names = Names(names.isin, f"{names.ticker}:{exchange}", "", names.currency, names.title)
        return names

    def change(row: Row, names: Names) -> Read:
        if not (names.isin or names.ticker):
            return LeftOut(row.line, names.in_words, "it names no instrument")
        amount = None if quantity is None else quantity(row)
        if "action" in at:
            said = row[at["action"]]
            way = _way(said)
            if way and amount is not None:
                amount = way * abs(amount)
            # The quantity of a split has a sign: a reverse split takes shares away.
            elif not way and "split" not in said.casefold():
                return LeftOut(row.line, names.in_words, f"{said!r} neither buys nor sells")
        text = row[shares]
        vague = None
        if is_guessed and is_vague(text):
            vague = VagueNumber(row.line, text, number(text, Mark.POINT), number(text, Mark.COMMA))
        return Entry(row.line, names, amount, sortable(row[at.get("time")]), vague)

    return lines_of(table, names_of, change)


def _way(action: str) -> int:
    said = action.strip().casefold()
    if said in _IN or said.startswith(_IN[:-1]) or said.endswith(" buy"):
        return 1
    return -1 if said in _OUT or said.startswith(_OUT[:-1]) or said.endswith(" sell") else 0


def _positions(header: Header, name: str) -> list[int]:
    """The columns of a name; #3 is the third one."""
    by_number = [place for place in range(len(header.names)) if name == f"#{place + 1}"]
    return by_number or header.positions(name)


def _one(header: Header, name: str) -> int:
    places = _positions(header, name)
    if len(places) > 1:
        numbers = ", ".join(f"#{place + 1}" for place in places)
        raise HoldingsFileRefused(f"{len(places)} columns are called {name!r}. Name one by its number: {numbers}.")
    return places[0]
