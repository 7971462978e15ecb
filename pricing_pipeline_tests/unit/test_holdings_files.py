"""A7: files of holdings are read as what they say, whatever the broker, the language and the encoding."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.formats import FORMATS, read_file
from pricing_pipeline.holdings_files.numbers import Mark, NotANumber, mark_of, number
from pricing_pipeline.holdings_files.positions import Kind, Names
from pricing_pipeline.holdings_files.venues import meant_by
from pricing_pipeline_tests.support import brokers
from pricing_pipeline_tests.support.brokers import Style, Writer

_WRITERS: Mapping[str, tuple[str, Writer]] = {
    "portfolio performance, German": (
        "portfolio-performance",
        partial(brokers.portfolio_performance, language="de"),
    ),
    "portfolio performance, English": (
        "portfolio-performance",
        partial(brokers.portfolio_performance, language="en"),
    ),
    "trading 212": ("trading212", brokers.trading212),
    "degiro, transactions in English": (
        "degiro-transactions",
        partial(brokers.degiro_transactions, language="en"),
    ),
    "degiro, transactions in Dutch": (
        "degiro-transactions",
        partial(brokers.degiro_transactions, language="nl"),
    ),
    "degiro, portfolio in Dutch": ("degiro-portfolio", partial(brokers.degiro_portfolio, language="nl")),
    "interactive brokers": ("interactive-brokers", brokers.interactive_brokers),
    "trade republic": ("trade-republic", brokers.trade_republic),
    "parqet": ("parqet", brokers.parqet),
    "freetrade": ("freetrade", brokers.freetrade),
    "revolut": ("revolut", brokers.revolut),
    "xtb": ("xtb", brokers.xtb),
    "ghostfolio": ("ghostfolio", brokers.ghostfolio),
    "own table": ("columns", brokers.own_table),
}


SAMPLES = Path(__file__).parents[1] / "data" / "holdings"


_STYLES = st.builds(
    Style,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    separator=st.sampled_from([",", ";", "\t"]),
    decimal=st.just(","),
    thousands=st.sampled_from(["", ".", "\u00a0", "'"]),
    line_end=st.sampled_from(["\r\n", "\n"]),
) | st.builds(
    Style,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"]),
    separator=st.sampled_from([",", ";"]),
    thousands=st.sampled_from(["", ",", "\u00a0", "'"]),
)


@given(value=st.decimals(-(10**9), 10**9, places=3), style=_STYLES)
def test_a7_a_number_is_read_by_the_decimal_mark_that_numbers_show(value: Decimal, style: Style) -> None:
    shown = [style.number(Decimal("1234.5")), style.number(Decimal("0.25")), "05.11.2026", "EUR", ""]
    mark = mark_of(shown)
    assert mark is (Mark.COMMA if style.decimal == "," else Mark.POINT)
    assert number(style.number(value), mark) == value


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("1.500,00", None, "1500"),
        ("1,500.00", None, "1500"),
        ("1.500", Mark.COMMA, "1500"),
        ("1.500", Mark.POINT, "1.5"),
        ("12,34,567", None, "1234567"),
        ("1 950,60", None, "1950.60"),
        ("(12)", None, "-12"),
        ("12-", None, "-12"),
        ("\u221212", None, "-12"),
        ("$52.07", None, "52.07"),
        ("USD 150.25", None, "150.25"),
        ("1E-8", None, "0.00000001"),
        ("0.125", None, "0.125"),
    ],
)
def test_a7_numbers_are_read_as_they_are_spelled(text: str, mark: Mark | None, value: str) -> None:
    assert number(text, mark) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["1.500", "", "-", "NaN", "Infinity", "05.11.2026", "1.2.3", "\u0661", "1e999", "9" * 80]
)
def test_a7_what_is_no_number_or_could_be_two_is_refused(text: str) -> None:
    with pytest.raises(NotANumber):
        number(text, None)


_T212 = "Action,Time,ISIN,Ticker,Name,No. of shares,Price / share,Currency (Price / share)\n"


def test_a7_lines_that_cannot_be_read_are_named_by_number_and_the_others_count() -> None:
    file = read_file(
        (
            _T212
            + 'Market buy,2026-01-05,US0378331005,AAPL,"Apple\nInc.",10,1,USD\n'
            + "Market buy,2026-01-05,US5949181045,MSFT,Microsoft,ten,1,USD\n"
            + "Market gift,2026-01-05,US5949181045,MSFT,Microsoft,3,1,USD\n"
            + "Market buy,2026-01-05,US4592001014,IBM,IBM, Inc.,3,1,USD\n"
            + "Market sell,2026-01-05,US0846707026,BRK.B,Berkshire,3,1,USD\n"
        ).encode()
    )
    assert [(one.names.ticker, one.lines) for one in file.positions] == [("AAPL", (2,))]
    assert [(fault.line, fault.what) for fault in file.faults] == [
        (4, "Microsoft (US5949181045)"),
        (5, "Microsoft (US5949181045)"),
        (6, "IBM (US4592001014)"),
        (7, "Berkshire (US0846707026)"),
    ]
    assert "not the whole history" in file.faults[-1].reason


def test_a7_a_split_changes_the_shares_and_the_newest_ticker_counts() -> None:
    file = read_file(
        (
            _T212
            + "Stock split open,2026-03-05,US30303M1027,META,Meta,40,1,USD\n"
            + "Stock split close,2026-03-05,US30303M1027,META,Meta,4,1,USD\n"
            + "Market buy,2026-01-05,US30303M1027,FB,Meta,4,1,USD\n"
        ).encode()
    )
    (position,) = file.positions
    assert (position.names.ticker, position.quantity) == ("META", 40)


@pytest.mark.parametrize(
    ("names", "symbols"),
    [
        (Names(ticker="VOD", isin="GB00BH4HKS39", currency="GBX"), ["VOD:XLON"]),
        (Names(ticker="BP.", isin="GB0007980591", currency="GBP"), ["BP.:XLON"]),
        (Names(ticker="700", isin="KYG875721634", exchange="XHKG"), ["700:XHKG"]),
        (Names(ticker="VOLV.B", isin="SE0000115446", currency="SEK"), ["VOLV.B:XSTO"]),
        (Names(ticker="BRK B", isin="US0846707026", exchange="XNYS"), ["BRK B"]),
        (Names(ticker="APTV", isin="JE00BTDN8H13", currency="USD"), ["APTV", "APTV:XLON"]),
        (Names(ticker="BTC", currency="USD", kind=Kind.COIN), ["BTC/USD"]),
        (Names(ticker="0P0000XVU2.BO", isin="INF204K01XI3"), []),
        (Names(ticker="118632", isin="INF204K01XI3"), ["118632"]),
        (Names(isin="INE002A01018", exchange="XNSE"), []),
        (Names(ticker="VOD LN"), ["VOD LN"]),
        (Names(ticker="TSCO", currency="GBP"), ["TSCO:XLON"]),
        (Names(ticker="118632", currency="INR"), ["118632"]),
        (Names(ticker="AAPL"), ["AAPL"]),
    ],
)
def test_a7_the_symbol_follows_from_ticker_exchange_country_and_currency(names: Names, symbols: list[str]) -> None:
    assert list(meant_by(names).symbols) == symbols
    assert not meant_by(names).doubt


def test_a7_a_guess_is_no_answer() -> None:
    """A share of London that is paid in EUR may trade in London or in Frankfurt, whatever Yahoo's custom."""
    british = Names(ticker="VOD", isin="GB00BH4HKS39", currency="EUR")
    assert meant_by(british, bare_is_american=True).symbols[:2] == ["VOD:XLON", "VOD:XETR"]
    irish = Names(ticker="ACN", isin="IE00B4BNMY34", currency="EUR")
    assert meant_by(irish, bare_is_american=True).symbols == ["ACN"]
    venture = Names(ticker="ABC", isin="CA0000000000", currency="CAD", exchange="VENTURE")
    assert "VENTURE is not in our table" in meant_by(venture).doubt


def test_a7_lots_do_not_double_a_position_and_what_has_no_price_is_left_out_by_name() -> None:
    rows = [
        'symbol="AAPL" assetCategory="STK" conid="1" position="10" levelOfDetail="SUMMARY"',
        'symbol="AAPL" assetCategory="STK" conid="1" position="6" levelOfDetail="LOT"',
        'symbol="AAPL" assetCategory="STK" conid="1" position="4" levelOfDetail="LOT"',
        'symbol="IBM" assetCategory="STK" conid="2" position="1,500" levelOfDetail="LOT"',
        'symbol="IBM" assetCategory="STK" conid="2" position="500" levelOfDetail="LOT"',
        'symbol="TSLA" assetCategory="STK" conid="3" position="-5" levelOfDetail="SUMMARY"',
        'symbol="AAPL  261218C00200000" assetCategory="OPT" conid="4" position="1"',
        'symbol="T 4 1/4" assetCategory="BOND" conid="5" position="1000"',
    ]
    text = "".join(f"<OpenPosition {row} listingExchange='NASDAQ'/>\n" for row in rows)
    file = read_file(f"<FlexQueryResponse>{text}</FlexQueryResponse>".encode())
    assert [(one.names.ticker, one.quantity) for one in file.positions] == [
        ("AAPL", 10),
        ("IBM", 2000),
        ("TSLA", -5),
    ]
    assert [(one.line, one.reason) for one in file.left_out] == [(7, "an option"), (8, "a bond")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04abc", "Excel workbook"),
        (b"%PDF-1.7", "a PDF"),
        (b"a\0b\0\0\0\0c", "not text"),
        (
            b"one,two\n1,2\n",
            "no known format. Its columns seem to be 'one', 'two'. Name the columns yourself, as in --column symbol=",
        ),
        (b"hello", "no known format"),
        (b"<html></html>", "no Flex query"),
        (b"<FlexQueryResponse></FlexQueryResponse>", "no OpenPosition"),
        (b"<FlexQueryResponse>", "no valid XML at line 1"),
        (
            b'<!DOCTYPE x [<!ENTITY a "b">]><FlexQueryResponse>&a;</FlexQueryResponse>',
            "declares a document type",
        ),
        (b"<FlexQueryResponse>" + b"<a>" * 100, "nested too deep"),
        (_T212.encode() + b"\n\n", "a header, and nothing below it"),
    ],
)
def test_a7_a_file_that_cannot_be_read_is_refused_with_the_way_out(content: bytes, said: str) -> None:
    with pytest.raises(HoldingsFileRefused, match=said.replace("[", r"\[")):
        read_file(content)


def test_a7_a_name_of_a_column_that_repeats_is_asked_for_by_number() -> None:
    content = b"Amount,Currency,What,Amount\nApple,USD,AAPL,3\n"
    with pytest.raises(HoldingsFileRefused, match=r"2 columns are called 'Amount'.*#1, #4"):
        read_file(content, columns={"symbol": "What", "quantity": "Amount"})
    with pytest.raises(HoldingsFileRefused, match=r"'Ticker'.*Its columns seem to be 'Amount', 'Currency', 'What'"):
        read_file(content, columns={"symbol": "Ticker"})
    with pytest.raises(HoldingsFileRefused, match="'ticker' is nothing that a column can be"):
        read_file(content, columns={"ticker": "What"})
    (position,) = read_file(content, columns={"symbol": "what", "quantity": "#4"}).positions
    assert (position.names.ticker, position.quantity) == ("AAPL", 3)


def test_a7_a_named_format_is_not_guessed() -> None:
    with pytest.raises(HoldingsFileRefused, match="not of the format degiro-portfolio"):
        read_file(_T212.encode(), "degiro-portfolio")
    with pytest.raises(HoldingsFileRefused, match="there is no format 'degiro'; there are: portfolio-performance"):
        read_file(_T212.encode(), "degiro")
    assert set(FORMATS) >= {format_ for format_, _ in _WRITERS.values() if format_ != "columns"}


@given(content=st.binary(max_size=400) | st.text(max_size=400).map(lambda text: (_T212 + text).encode()))
def test_a7_any_bytes_are_read_or_refused_in_words(content: bytes) -> None:
    with contextlib.suppress(HoldingsFileRefused):
        read_file(content)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.csv")), ids=lambda path: path.stem)
def test_a7_a_line_whose_name_has_a_separator_without_quotes_is_refused_and_the_others_count(
    path: Path,
) -> None:
    """Each later cell of it stands in another column."""
    content = path.read_bytes()
    separator = b";" if b";" in content.splitlines()[0] else b","
    longest = max(content.splitlines()[1:], key=len)
    odd = b"Strange" + separator + b" Inc." + separator + longest.split(separator, 1)[1]
    whole, file = read_file(content), read_file(content.rstrip() + b"\n" + odd)
    (fault,) = [fault for fault in file.faults if fault not in whole.faults]
    assert fault.line == len(content.rstrip().splitlines()) + 1
    assert file.positions == whole.positions


@pytest.mark.parametrize(
    ("note", "later", "said"),
    [
        ('"good', "", "line 3 is not a line of a table.*Close its quotes"),
        ('"good', '"better"', "line 3 is not a line of a table.*Close its quotes"),
    ],
)
def test_a7_a_quote_that_nobody_closes_takes_no_lines_away(note: str, later: str, said: str) -> None:
    """All that follows would be a part of that text, and nobody would miss it."""
    rows = [
        "Date;Type;Shares;ISIN;Ticker Symbol;Security Name;Transaction Currency;Note",
        "2026-01-05T00:00;Buy;1;US4592001014;IBM;IBM;USD;",
        f"2026-01-05T00:00;Buy;1;US0378331005;AAPL;Apple;USD;{note}",
        "2026-01-05T00:00;Buy;1;US5949181045;MSFT;Microsoft;USD;",
        f"2026-01-05T00:00;Buy;1;US5949181045;MSFT;Microsoft;USD;{later}",
    ]
    with pytest.raises(HoldingsFileRefused, match=said):
        read_file("\n".join(rows).encode())
    with pytest.raises(HoldingsFileRefused, match=said.replace("3", "5")):
        read_file("\n".join(['Of "Ann"', '"My "best" account"', *rows]).encode())
    whole = [row.replace(note, '"good ""old"" days"').replace(later or "-", "") for row in rows]
    assert len(read_file("\n".join(whole).encode()).positions) == 3


@pytest.mark.parametrize("none", ["-", "N/A", "US000"])
def test_a7_what_has_no_isin_is_told_apart_by_its_ticker_whatever_stands_for_none(none: str) -> None:
    content = f"Ticker,ISIN,Shares\nAAPL,US0378331005,3\nMSFT,{none},2\nAAPL,{none},1\n"
    columns = {"symbol": "Ticker", "isin": "ISIN", "quantity": "Shares"}
    held = {
        one.names.ticker: (one.quantity, one.names.in_words)
        for one in read_file(content.encode(), columns=columns).positions
    }
    assert held == {"AAPL": (4, "US0378331005"), "MSFT": (2, "MSFT")}


def test_a7_an_action_is_known_in_the_words_of_many_brokers() -> None:
    words = ["BOT,SLD", "Acquisto,Vendita", "Compra,Venda", "Kauf,Verkauf", "B,S"]
    rows = [f"T{place},{word},2" for place, pair in enumerate(words) for word in (pair.split(",")[0], *pair.split(","))]
    columns = {"symbol": "Ticker", "action": "Side", "quantity": "Shares"}
    file = read_file("\n".join(["Ticker,Side,Shares", *rows]).encode(), columns=columns)
    assert [one.quantity for one in file.positions] == [2] * len(words)


def test_a7_two_listings_that_are_held_are_two_positions() -> None:
    """A fund held in London and in Amsterdam, and a share in pence and in dollars, have two prices each."""
    rows = [
        'symbol="VUSA" isin="IE00B3XXRP09" currency="GBP" listingExchange="LSEETF"',
        'symbol="VUSA" isin="IE00B3XXRP09" currency="EUR" listingExchange="AEB"',
        'symbol="BTC" assetCategory="CRYPTO" currency="USD" listingExchange="PAXOS"',
        'symbol="BTC" assetCategory="CRYPTO" currency="EUR" listingExchange="PAXOS"',
    ]
    text = "".join(f'<OpenPosition {row} position="1"/>' for row in rows)
    flex = read_file(f"<FlexQueryResponse>{text}</FlexQueryResponse>".encode())
    assert [(one.names.ticker, one.names.currency) for one in flex.positions] == [
        ("VUSA", "GBP"),
        ("VUSA", "EUR"),
        ("BTC", "USD"),
        ("BTC", "EUR"),
    ]
    columns = {"symbol": "Ticker", "currency": "In", "quantity": "Shares"}
    file = read_file(b"Ticker,In,Shares\nVOD,gbx,1\nVOD,USD,2\n", columns=columns)
    assert [list(meant_by(one.names).symbols) for one in file.positions] == [["VOD:XLON"], ["VOD"]]


def test_a7_a_purchase_without_a_number_of_shares_is_a_fault_and_a_dividend_is_a_payment() -> None:
    file = read_file(
        (
            _T212
            + "Market buy,2026-01-05,US0378331005,AAPL,Apple,,1,USD\n"
            + "Lending interest,2026-01-05,US0378331005,AAPL,Apple,,1,USD\n"
        ).encode()
    )
    assert [(one.line, one.reason) for one in file.faults] == [(2, "'' is not a number")]
    assert [(one.line, one.reason) for one in file.left_out] == [(3, "a payment")]


def test_a7_no_text_of_a_file_is_told_at_length_or_in_several_lines() -> None:
    with pytest.raises(HoldingsFileRefused) as caught:
        read_file(",".join(["x" * 10_000] * 100).encode())
    assert len(str(caught.value)) < 3_000
    for column in ("#\u00b2", "#0", "#" + "9" * 200):
        with pytest.raises(HoldingsFileRefused, match="no line of the file has all of the columns"):
            read_file(b"Ticker,Shares\nAAPL,1\n", columns={"symbol": column})
    (position,) = read_file((_T212 + 'Market buy,2026-01-05,,AAPL,"Apple\nInc.",1,1,USD\n').encode()).positions
    assert position.names.in_words == "Apple Inc. (AAPL)"


def test_a7_a_line_with_more_cells_than_the_header_says_so() -> None:
    file = read_file((_T212 + "Market buy,2026-01-05,US4592001014,IBM,IBM, Inc.,3,1,USD\n").encode())
    assert [(fault.line, fault.reason, fault.proposal) for fault in file.faults] == [
        (2, "the line has more cells than the header", "put quotes around its texts")
    ]
