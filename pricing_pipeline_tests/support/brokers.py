"""Files of holdings, written as brokers write them: the same portfolio in each format, with its history made up."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from xml.sax.saxutils import quoteattr

US, LONDON, XETRA, NSE = "NASDAQ", "LSE", "XETRA", "NSE"


@dataclass(frozen=True, slots=True)
class Owned:
    """Something that is held: its one spelling here, and what brokers know of it."""

    symbol: str
    isin: str
    currency: str
    title: str
    quantity: Decimal

    @property
    def ticker(self) -> str:
        """Without exchange and class: BRK B, as brokers have it."""
        return self.symbol.partition(":")[0].replace(".", " ")

    @property
    def mic(self) -> str:
        return self.symbol.partition(":")[2]


@dataclass(frozen=True, slots=True)
class Style:
    """How a file is spelled: its encoding, separator, decimal mark, and sign between thousands."""

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    line_end: str = "\r\n"

    def number(self, value: Decimal) -> str:
        text = f"{value:,f}".replace(",", "\0").replace(".", self.decimal)
        return text.replace("\0", self.thousands)


def trades(owned: Owned, chance: random.Random) -> list[Decimal]:
    """Buys and sells that end with what is owned; a quantity of 0 was all sold."""
    extra = Decimal(chance.randint(1, 5000)) / (1 if chance.random() < 0.5 else 100)
    some = (owned.quantity + extra) / 4
    first = some.quantize(Decimal("0.01"))
    return [one for one in (first, owned.quantity + extra - first, -extra) if one]


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=style.separator, lineterminator=style.line_end)
    writer.writerows([header, *rows])
    return text.getvalue().encode(style.encoding)


_PP = {
    "de": (
        "Datum,Typ,Wert,Buchungswährung,Bruttobetrag,Währung Bruttobetrag,Wechselkurs,Gebühren,Steuern,Stück,ISIN,WKN,"
        "Ticker-Symbol,Wertpapiername,Notiz",
        ("Kauf", "Verkauf", "Einlage", "Dividende"),
    ),
    "en": (
        "Date,Type,Value,Transaction Currency,Gross Amount,Currency Gross Amount,Exchange Rate,Fees,Taxes,Shares,ISIN,"
        "WKN,Ticker Symbol,Security Name,Note",
        ("Buy", "Sell", "Deposit", "Dividend"),
    ),
}
_YAHOO = {"": "", "XLON": ".L", "XETR": ".DE", "XNSE": ".NS", "XPAR": ".PA"}


def portfolio_performance(
    portfolio: Sequence[Owned], chance: random.Random, style: Style, language: str
) -> bytes:
    header, (buy, sell, deposit, dividend) = _PP[language]
    rows = [["2026-01-02T00:00", deposit, style.number(Decimal("5000.50")), "EUR", *[""] * 11]]
    for owned in portfolio:
        ticker = owned.ticker.replace(" ", "-") + _YAHOO[owned.mic]
        if "/" in owned.symbol:
            ticker = owned.symbol.replace("/", "") + "=X"
        for quantity in trades(owned, chance):
            value = style.number(abs(quantity) * Decimal("10.25"))
            rows.append(
                [
                    f"2026-0{chance.randint(1, 9)}-05T00:00",
                    buy if quantity > 0 else sell,
                    value,
                    "EUR",
                    value,
                    owned.currency if owned.currency != "EUR" else "",
                    style.number(Decimal("1.0825")),
                    style.number(Decimal("0.00")),
                    style.number(Decimal("0.00")),
                    style.number(abs(quantity)),
                    owned.isin,
                    "",
                    ticker,
                    owned.title,
                    "",
                ]
            )
        paid = style.number(Decimal("12.40"))
        rows.append(
            ["2026-10-05T00:00", dividend, paid, "EUR", *[""] * 6, owned.isin, "", ticker, owned.title, ""]
        )
    return _csv(header.split(","), rows, style)


def trading212(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    header = (
        "Action,Time,ISIN,Ticker,Name,Notes,ID,No. of shares,Price / share,Currency (Price / share),Exchange rate,"
        "Total,Currency (Total)"
    )
    rows = [["Deposit", "2026-01-02 09:00:00", *[""] * 9, "500.00", "EUR"]]
    for owned in portfolio:
        known = [owned.isin, owned.ticker.replace(" ", "."), owned.title, "", "EOF1"]
        price = ["10.25", "GBX" if owned.mic == "XLON" else owned.currency, "1.08", "10.00", "EUR"]
        for quantity in trades(owned, chance):
            action = chance.choice(["Market ", "Limit ", "Stop "]) + ("buy" if quantity > 0 else "sell")
            time = f"2026-0{chance.randint(1, 9)}-05 15:25:08"
            rows.append([action, time, *known, f"{abs(quantity):f}", *price])
        rows.append(["Dividend (Ordinary)", "2026-10-05 08:00:00", *known, f"{owned.quantity:f}", *price])
    rows.append(["Interest on cash", "2026-10-06 08:00:00", *[""] * 9, "0.10", "EUR"])
    return _csv(header.split(","), rows, style)


_DEGIRO_EXCHANGES = {"": "NDQ", "XLON": "LSE", "XETR": "XET", "XPAR": "EPA", "XNSE": "NSE"}
_DEGIRO = {
    "en": "Date,Time,Product,ISIN,Reference exchange,Venue,Quantity,Price,,Local value,,Value EUR,Exchange rate,"
    "AutoFX Fee,Transaction and/or third party fees EUR,Total EUR,Order ID,",
    "nl": "Datum,Tijd,Product,ISIN,Beurs,Uitvoeringsplaats,Aantal,Koers,,Lokale waarde,,Waarde,,Wisselkoers,"
    "Transactiekosten en/of,,Totaal,,Order ID",
}


def degiro_transactions(
    portfolio: Sequence[Owned], chance: random.Random, style: Style, language: str
) -> bytes:
    header = _DEGIRO[language].split(",")
    rows = []
    for owned in portfolio:
        currency = "GBX" if owned.mic == "XLON" else owned.currency
        for quantity in trades(owned, chance):
            start = ["05-11-2026", "09:04", owned.title, owned.isin, _DEGIRO_EXCHANGES[owned.mic], "XXXX"]
            price = style.number(Decimal("1110.25"))
            row = [*start, style.number(quantity), price, currency, price, currency, price]
            rows.append(row + [""] * (len(header) - len(row)))
    return _csv(header, rows, style)


def degiro_portfolio(portfolio: Sequence[Owned], _: random.Random, style: Style, language: str) -> bytes:
    header = {
        "en": "Product,Symbol/ISIN,Quantity,Closing,Local value,,Value in EUR",
        "nl": "Product,Symbool/ISIN,Aantal,Slotkoers,Lokale waarde,,Waarde in EUR",
    }[language]
    worth = style.number(Decimal("1143.20"))
    rows = [["CASH & CASH FUND & FTX CASH (EUR)", "", "", "", "EUR", worth, worth]]
    rows += [
        [owned.title, owned.isin, style.number(owned.quantity), worth, owned.currency, worth, worth]
        for owned in portfolio
    ]
    return _csv(header.split(","), rows, style)


_IB_EXCHANGES = {"": "NASDAQ", "XLON": "LSE", "XETR": "IBIS", "XPAR": "SBF", "XNSE": "NSE"}


def interactive_brokers(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    lines = []
    for number, owned in enumerate(portfolio, 1):
        about = {
            "accountId": "U1",
            "currency": owned.currency,
            "assetCategory": "CRYPTO" if "/" in owned.symbol else "STK",
            "symbol": owned.symbol.partition("/")[0] if "/" in owned.symbol else owned.ticker,
            "description": owned.title,
            "conid": str(1000 + number),
            "isin": owned.isin,
            "listingExchange": "PAXOS" if "/" in owned.symbol else _IB_EXCHANGES[owned.mic],
            "multiplier": "1",
            "reportDate": "2026-11-27",
        }
        quantities = [("SUMMARY", owned.quantity)]
        if chance.random() < 0.5:
            quantities += [("LOT", owned.quantity / 2)] * 2
        elif chance.random() < 0.3:
            quantities = [("LOT", owned.quantity - 1), ("LOT", Decimal(1))]
        for level, quantity in quantities:
            row = about | {"position": f"{quantity:,f}", "levelOfDetail": level}
            lines.append(
                "<OpenPosition "
                + " ".join(f"{name}={quoteattr(value)}" for name, value in row.items())
                + " />"
            )
    text = (
        '<FlexQueryResponse queryName="all" type="AF">\n<FlexStatements count="1">\n'
        '<FlexStatement accountId="U1" fromDate="2026-11-27">\n<OpenPositions>\n'
        + "\n".join(lines)
        + "\n</OpenPositions>\n</FlexStatement>\n</FlexStatements>\n</FlexQueryResponse>\n"
    )
    return text.encode(style.encoding)


def own_table(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    """A table that no broker writes, with two columns of one name and one without a name."""
    rows = []
    for owned in portfolio:
        for quantity in trades(owned, chance):
            side = "BUY" if quantity > 0 else "SELL"
            rows.append(
                [
                    owned.title,
                    side,
                    "",
                    owned.symbol,
                    style.number(abs(quantity)),
                    style.number(Decimal("3.5")),
                ]
            )
    return _csv(["Amount", "Side", "", "What", "Amount", "Price"], rows, style)


OWN_COLUMNS: Mapping[str, str] = {"symbol": "What", "action": "side", "quantity": "#5"}

Writer = Callable[[Sequence[Owned], random.Random, Style], bytes]
