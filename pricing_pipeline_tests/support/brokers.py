"""Files of holdings, written as brokers write them: the same portfolio in each format, with its history made up."""

from __future__ import annotations

import csv
import io
import json
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


def portfolio_performance(portfolio: Sequence[Owned], chance: random.Random, style: Style, language: str) -> bytes:
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
        rows.append(["2026-10-05T00:00", dividend, paid, "EUR", *[""] * 6, owned.isin, "", ticker, owned.title, ""])
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


def degiro_transactions(portfolio: Sequence[Owned], chance: random.Random, style: Style, language: str) -> bytes:
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
                "<OpenPosition " + " ".join(f"{name}={quoteattr(value)}" for name, value in row.items()) + " />"
            )
    text = (
        '<FlexQueryResponse queryName="all" type="AF">\n<FlexStatements count="1">\n'
        '<FlexStatement accountId="U1" fromDate="2026-11-27">\n<OpenPositions>\n'
        + "\n".join(lines)
        + "\n</OpenPositions>\n</FlexStatement>\n</FlexStatements>\n</FlexQueryResponse>\n"
    )
    return text.encode(style.encoding)


def trade_republic(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    header = "datetime,date,account_type,category,type,asset_class,name,symbol,shares,price,amount,fee,tax,currency"
    cash = ["2026-01-02T08:00:00Z", "2026-01-02", "DEFAULT", "CASH", "CARD_TRANSACTION", "", "A shop"]
    rows = [[*cash, "", "", "", "-9.49", "", "", "EUR"]]
    for owned in portfolio:
        for quantity in trades(owned, chance):
            day = f"2026-0{chance.randint(1, 9)}-05"
            type_ = ["TRADING", "BUY" if quantity > 0 else "SELL"]
            about = [f"{day}T08:00:00Z", day, "DEFAULT", *type_, "STOCK", owned.title, owned.isin]
            rows.append([*about, f"{quantity:f}", "10.25", "-10.25", "-1.00", "", "EUR"])
        paid = ["2026-10-05T08:00:00Z", "2026-10-05", "DEFAULT", "CASH", "DIVIDEND", "STOCK", owned.title]
        rows.append([*paid, owned.isin, f"{owned.quantity:f}", "", "1.02", "", "-0.15", "EUR"])
    return _csv(header.split(","), rows, style)


def parqet(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    header = (
        "datetime,date,time,price,shares,amount,tax,fee,realizedgains,type,broker,assettype,identifier,wkn,"
        "originalcurrency,currency,fxrate,holding,holdingname,holdingnickname,exchange,avgholdingperiod, "
    )
    price, rows = style.number(Decimal("1110.25")), []
    for owned in portfolio:
        known = ["", "Security", owned.isin, "", "", "EUR", "", "", owned.title, "", "gettex"]
        for quantity in trades(owned, chance):
            month = chance.randint(1, 9)
            at = [f"2026-0{month}-05T08:00:00.000Z", f"05.0{month}.2026", "10:00:00"]
            type_ = chance.choice(["Buy", "TransferIn"] if quantity > 0 else ["Sell", "TransferOut"])
            rows.append([*at, price, style.number(abs(quantity)), price, "0", "0", "", type_, *known])
    return _csv(header.split(","), rows, style)


def freetrade(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    header = "Title,Type,Timestamp,Total Amount,Buy / Sell,Ticker,ISIN,Quantity,Venue,Instrument Currency"
    rows = [["Top up", "TOP_UP", "2026-01-02T08:00:00.000Z", "900.00", *[""] * 6]]
    for owned in portfolio:
        venue = "London Stock Exchange" if owned.mic == "XLON" else "Multiple"
        for quantity in trades(owned, chance):
            at = f"2026-0{chance.randint(1, 9)}-05T08:00:00.000Z"
            known = [owned.ticker, owned.isin, f"{abs(quantity):f}", venue, owned.currency]
            rows.append([owned.title, "ORDER", at, "10.25", "BUY" if quantity > 0 else "SELL", *known])
    return _csv(header.split(","), rows, style)


def revolut(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    """A split brings a part of the shares."""
    header = "Date,Ticker,Type,Quantity,Price per share,Total Amount,Currency,FX Rate"
    rows = [["2026-01-02T08:00:00Z", "", "CASH TOP-UP", "", "", "$1,500", "USD", "1.09"]]
    for owned in portfolio:
        split, *others = trades(owned, chance)
        for type_, quantity in [("STOCK SPLIT", split), *(("", other) for other in others)]:
            at = f"2026-0{chance.randint(1, 9)}-05T08:00:00.100000Z"
            type_ = type_ or ("BUY - MARKET" if quantity > 0 else "SELL - LIMIT")
            shown = f"{quantity:f}" if type_ == "STOCK SPLIT" else f"{abs(quantity):f}"
            rows.append([at, owned.ticker, type_, shown, "$1,052.07", "$85.11", owned.currency, "1.08"])
        moved = "TRANSFER FROM REVOLUT TRADING LTD TO REVOLUT SECURITIES EUROPE UAB"
        rows.append(["2026-10-05T08:00:00Z", owned.ticker, moved, "7", "", "$0", owned.currency, "1.08"])
    return _csv(header.split(","), rows, style)


_XTB_ENDINGS = {"": "US", "XLON": "UK", "XETR": "DE", "XPAR": "FR"}


def xtb(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    """An exchange that XTB has not is told by nothing."""
    rows = [["1", "Deposit", "02.01.2026 08:00:00", "", "a deposit", style.number(Decimal("1500.5"))]]
    for owned in portfolio:
        ending = _XTB_ENDINGS.get(owned.mic)
        symbol = owned.ticker + (f".{ending}" if ending else "")
        for quantity in trades(owned, chance):
            way = "OPEN BUY" if quantity > 0 else "CLOSE BUY"
            part = f"/{2 * abs(quantity):f}" if chance.random() < 0.5 else ""
            at = f"05.0{chance.randint(1, 9)}.2026 13:01:45"
            comment = f"{way} {abs(quantity):f}{part} @ 11.7480"
            rows.append(["2", "Stocks/ETF", at, symbol, comment, style.number(Decimal("-1010.25"))])
        rows.append(["3", "Dividend", "05.10.2026 13:01:45", symbol, f"{symbol} USD 0.6600/ SHR", "1.21"])
    return _csv(["ID", "Type", "Time", "Symbol", "Comment", "Amount"], rows, style)


def ghostfolio(portfolio: Sequence[Owned], chance: random.Random, style: Style) -> bytes:
    activities = []
    for owned in portfolio:
        known = {"dataSource": "YAHOO", "symbol": owned.ticker.replace(" ", "-") + _YAHOO[owned.mic]}
        for quantity in trades(owned, chance):
            activity = {"type": "BUY" if quantity > 0 else "SELL", "quantity": float(abs(quantity))}
            day = {"date": f"2026-0{chance.randint(1, 9)}-05T00:00:00.000Z", "unitPrice": 10.25}
            activities.append(known | activity | day)
        activities.append(known | {"type": "DIVIDEND", "quantity": 5, "date": "2026-10-05T00:00:00.000Z"})
    content = {"meta": {"date": "2026-11-27T08:00:00.000Z"}, "activities": activities}
    return json.dumps(content, indent=chance.choice([None, 2])).encode(style.encoding)


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
