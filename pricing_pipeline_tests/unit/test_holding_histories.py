"""F13: a history sums to what a ledger of it holds, whatever tracker wrote it, and its oddities change no quantity."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.formats import read_file
from pricing_pipeline.holdings_files.histories import sortable
from pricing_pipeline.holdings_files.numbers import Mark
from pricing_pipeline.holdings_files.positions import HoldingsFile, Names
from pricing_pipeline.holdings_files.venues import meant_by

SAMPLES = Path(__file__).parents[1] / "data/holdings"
ISINS = ("US0378331005", "GB00BH4HKS39", "IE00B3RBWM25", "DE0007164600")


# The model: a ledger that does one thing after the other

EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Booking:
    """What happens to an instrument on a day: buy, sell, in, out, or split, with the shares that come or go."""

    day: int
    isin: str
    what: str
    quantity: Decimal


_QUANTITIES = st.one_of(
    st.integers(1, 9_000).map(Decimal),
    st.decimals("0.000001", "99999999999", places=6),
    # Coins have eighteen decimals, and some of them are held by the billion.
    st.builds("{}.{:018}".format, st.sampled_from([0, 98_765_432_109]), st.integers(1, 10**18 - 1)).map(Decimal),
)
_SPLITS = st.sampled_from([Decimal(2), Decimal(10), Decimal("1.5"), Decimal("0.5"), Decimal("0.1")])


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[list[Booking], dict[str, Decimal]]:
    """The bookings of some years, and what is held at their end."""
    bookings, held = list[Booking](), dict.fromkeys(ISINS, Decimal(0))
    for step in range(draw(st.integers(1, 12))):
        isin = draw(st.sampled_from(ISINS))
        what = draw(st.sampled_from(["buy", "in", "sell", "out", "sell all", "split"]))
        if what in ("buy", "in"):
            quantity = draw(_QUANTITIES)
        elif not held[isin]:
            continue
        elif what == "split":
            quantity = exact(EXACT.multiply(held[isin], draw(_SPLITS) - 1))
        else:
            part = Decimal(draw(st.integers(1, 3))) / 4
            quantity = held[isin] if what == "sell all" else exact(EXACT.multiply(held[isin], part))
            what = "sell" if what == "sell all" else what
        if not quantity:
            continue
        bookings.append(Booking(step // 3, isin, what, quantity))
        held[isin] = after(held[isin], bookings[-1])
    return bookings, held


def after(held: Decimal, booking: Booking) -> Decimal:
    return (EXACT.subtract if booking.what in ("sell", "out") else EXACT.add)(held, booking.quantity)


def exact(quantity: Decimal) -> Decimal:
    """No more decimals than a tracker has."""
    return EXACT.quantize(quantity, Decimal("1e-18")) if EXACT.abs(quantity) > 1 else quantity


def shown(quantity: Decimal) -> str:
    return f"{quantity:f}"


def csv_of(header: str, rows: Sequence[Sequence[str]], separator: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows([header.split(","), *rows])
    return text.getvalue().encode()


# The same bookings as each tracker tells them


def trading212(bookings: Sequence[Booking], held: Mapping[Booking, Decimal]) -> bytes:
    """A split is told as all old shares that go and all new ones that come."""
    rows = list[list[str]]()
    words = {"buy": "Market buy", "sell": "Limit sell", "in": "Transfer in", "out": "Transfer out"}
    for one in bookings:
        at, rest = f"2026-01-{one.day + 1:02d} 10:00:00", ["10.25", "USD"]
        known = [one.isin, "TICK", "A name"]
        if one.what == "split":
            before = held[one]
            rows.append(["Stock split close", at, *known, shown(before), *rest])
            rows.append(["Stock split open", at, *known, shown(after(before, one)), *rest])
        else:
            rows.append([words[one.what], at, *known, shown(one.quantity), *rest])
    return csv_of("Action,Time,ISIN,Ticker,Name,No. of shares,Price / share,Currency (Price / share)", rows)


def trade_republic(bookings: Sequence[Booking], _: object) -> bytes:
    words = {
        "buy": ("TRADING", "BUY", 1),
        "sell": ("TRADING", "SELL", -1),
        "in": ("DELIVERY", "FREE_RECEIPT", 1),
        "out": ("DELIVERY", "FREE_DELIVERY", -1),
        "split": ("CORPORATE_ACTION", "SPLIT", 1),
    }
    rows = [
        [
            at(one.day),
            *words[one.what][:2],
            "STOCK",
            "A name",
            one.isin,
            shown(EXACT.multiply(words[one.what][2], one.quantity)),
        ]
        for one in bookings
    ]
    return csv_of("datetime,category,type,asset_class,name,symbol,shares", rows, ";")


def revolut(bookings: Sequence[Booking], _: object) -> bytes:
    """Its shares have tickers only, and it knows no transfers from elsewhere."""
    words = {"buy": "BUY - MARKET", "in": "BUY - LIMIT", "sell": "SELL - MARKET", "out": "SELL - STOP"}
    rows = [
        [
            at(one.day),
            one.isin[-4:],
            words.get(one.what, "STOCK SPLIT"),
            shown(one.quantity),
            "$1",
            "$1",
            "USD",
            "1",
        ]
        for one in bookings
    ]
    return csv_of("Date,Ticker,Type,Quantity,Price per share,Total Amount,Currency,FX Rate", rows)


def own_table(bookings: Sequence[Booking], _: object) -> bytes:
    words = {"buy": "Buy", "in": "Transfer in", "sell": "Sell", "out": "Transfer out", "split": "Stock split"}
    rows = [[at(one.day), one.isin, words[one.what], shown(one.quantity)] for one in bookings]
    return csv_of("When,Isin,What,Shares", rows)


def ghostfolio(bookings: Sequence[Booking], _: object) -> bytes:
    """It knows no splits: one is entered as a purchase or a sale. Numbers of its JSON have more digits than a float."""
    activities = list[str]()
    for one in bookings:
        is_sale = one.what in ("sell", "out") or one.quantity < 0
        known = {"type": "SELL" if is_sale else "BUY", "date": at(one.day), "dataSource": "YAHOO"}
        activity = json.dumps(known | {"symbol": one.isin[-4:]})
        activities.append(activity.replace("}", f', "quantity": {shown(EXACT.abs(one.quantity))}}}'))
    return f'{{"activities": [{", ".join(activities)}]}}'.encode()


def at(day: int) -> str:
    return f"2026-01-{day + 1:02d}T10:00:00.000Z"


WRITERS: Mapping[str, Callable[[Sequence[Booking], Mapping[Booking, Decimal]], bytes]] = {
    "trading212": trading212,
    "trade-republic": trade_republic,
    "revolut": revolut,
    "ghostfolio": ghostfolio,
    "columns": own_table,
}
COLUMNS = {"isin": "Isin", "action": "What", "quantity": "Shares", "time": "When"}


@pytest.mark.parametrize("format_", WRITERS)
@given(ledger=ledgers(), seed=st.integers(0, 2**32), newest_first=st.booleans())
def test_f13_a_history_sums_to_what_a_ledger_holds_in_any_order_of_the_lines_of_a_day(
    format_: str, ledger: tuple[list[Booking], dict[str, Decimal]], seed: int, newest_first: bool
) -> None:
    bookings, held = ledger
    chance, before = random.Random(seed), dict[Booking, Decimal]()
    so_far = dict.fromkeys(ISINS, Decimal(0))
    for one in bookings:
        before[one] = so_far[one.isin]
        so_far[one.isin] = after(so_far[one.isin], one)
    told = sorted(bookings, key=lambda one: (-one.day if newest_first else one.day, chance.random()))
    if not told:
        return
    file = read_file(
        WRITERS[format_](told, before), columns=COLUMNS if format_ == "columns" else None, decimal=Mark.POINT
    )
    assert (file.format, file.faults) == (format_, [])
    name = (lambda isin: isin) if format_ in ("trading212", "trade-republic", "columns") else (lambda isin: isin[-4:])
    touched = {one.isin for one in bookings}
    assert {one.names.isin or one.names.ticker: one.quantity for one in file.positions} == {
        name(isin): quantity for isin, quantity in held.items() if quantity
    }
    assert {one.what.rpartition("(")[2].rstrip(")") for one in file.left_out} == {
        name(isin) for isin in touched if not held[isin]
    }
    assert {one.reason for one in file.left_out} <= {"all of it was sold"}


# What each tracker's own file says


def quantities(file: HoldingsFile) -> dict[str, str]:
    return {one.names.isin or one.names.ticker or one.names.title: f"{one.quantity:f}" for one in file.positions}


@pytest.mark.parametrize(
    ("name", "held", "sold", "refused"),
    [
        (
            "trade_republic.csv",
            {
                "US0378331005": "4.5",
                "US67066G1040": "15",
                "IE00B3RBWM25": "12.25",
                "BTC": "0.0042",
            },
            "Intel (US4581401001)",
            [],
        ),
        (
            "parqet.csv",
            {"DE0005140008": "1200.5", "US0378331005": "2.25", "BTC": "0.0105"},
            "Intel (US4581401001)",
            [],
        ),
        (
            "freetrade.csv",
            {
                "GB00BH4HKS39": "100",
                "US0378331005": "1.5",
                "IE00B3XXRP09": "4",
                "IE00B3RBWM25": "1",
            },
            None,
            [(12, "'STOCK_SPLIT' is no kind of transaction that is known here")],
        ),
        (
            "revolut.csv",
            {"TSLA": "4.75", "KO": "10.5", "MSFT": "0.76672417"},
            "SPCE",
            [(16, "'' is not a number")],
        ),
        (
            "xtb.csv",
            {"SAP": "1.5", "VOD": "100", "AAPL": "1"},
            "CD Projekt (CDR)",
            [(17, "it is sold short, and only what is owned is held")],
        ),
        (
            "ghostfolio.json",
            {
                "MSFT": "5",
                "VOD.L": "99.5",
                "JSE.JO": "5",
                "BTCUSD": "0.01",
                "IE00B4L5Y983": "12.125",
                "Apartment": "1",
            },
            "INTC",
            [],
        ),
    ],
)
def test_f13_a_file_of_each_tracker_sums_to_its_holdings(
    name: str, held: dict[str, str], sold: str | None, refused: list[tuple[int, str]]
) -> None:
    file = read_file((SAMPLES / name).read_bytes())
    assert quantities(file) == held
    assert {one.what for one in file.left_out if one.reason == "all of it was sold"} == ({sold} if sold else set())
    assert [(fault.line, fault.reason) for fault in file.faults] == refused


def test_f13_a_name_that_looks_like_an_ending_is_a_name() -> None:
    rows = ["ID;Type;Time;Symbol;Comment;Amount"]
    rows += [f"1;Stock purchase;05.01.2026 10:00:00;{symbol};OPEN BUY 3 @ 2.5;-7.5" for symbol in ("FI", "FI.FI")]
    bare, at_helsinki = read_file("\n".join(rows).encode()).positions
    assert (bare.names.ticker, bare.names.exchange) == ("FI", "")
    assert (at_helsinki.names.ticker, at_helsinki.names.exchange) == ("FI", "XHEL")


def test_f13_the_line_of_a_split_takes_no_currency_away() -> None:
    rows = [
        "datetime;category;type;asset_class;name;symbol;shares;currency",
        "2026-01-05T10:00:00Z;TRADING;BUY;STOCK;Old name;US67066G1040;2;EUR",
        "2026-01-06T10:00:00Z;TRADING;BUY;STOCK;New name;US67066G1040;1;EUR",
        "2026-01-07T10:00:00Z;CORPORATE_ACTION;SPLIT;STOCK;A split;US67066G1040;27;",
    ]
    (position,) = read_file("\n".join(rows).encode()).positions
    assert (position.quantity, position.names.currency, position.names.title) == (30, "EUR", "New name")


def test_f13_a_bond_a_draft_and_what_moves_within_a_broker_are_left_out_by_name() -> None:
    reasons = {
        name: {one.reason for one in read_file((SAMPLES / name).read_bytes()).left_out}
        for name in ("trade_republic.csv", "ghostfolio.json", "revolut.csv")
    }
    assert reasons["trade_republic.csv"] >= {"a bond", "a derivative", "a payment", "cash"}
    assert "a draft, whose day is still to come" in reasons["ghostfolio.json"]
    assert "moved within Revolut" in reasons["revolut.csv"]


# Oddities of files

T212 = "Action,Time,ISIN,Ticker,Name,No. of shares,Price / share,Currency (Price / share)\n"


def test_f13_the_files_of_some_years_may_be_joined_even_if_their_columns_differ() -> None:
    first = T212 + "Market buy,2024-01-05,US0378331005,AAPL,Apple,10,1,USD\n"
    second = (
        "\ufeffAction,Time (UTC),ISIN,Ticker,Name,Notes,ID,No. of shares,Price / share,Currency (Price / share)\n"
        "Market sell,2025-01-05,US0378331005,AAPL,Apple,,EOF1,4,1,USD\n"
    )
    assert quantities(read_file((first + second + first).encode())) == {"US0378331005": "16"}
    other = "Action,Time,ISIN,Ticker,Name,Currency (Price / share)\nMarket sell,x,US0378331005,AAPL,Apple,USD\n"
    with pytest.raises(HoldingsFileRefused, match="a second header, of another format"):
        read_file((first + other).encode())
    with pytest.raises(HoldingsFileRefused, match="line 2 has a header behind other text"):
        read_file((first.rstrip() + second).encode())


@pytest.mark.parametrize(
    ("cell", "ticker"),
    [('="0700"', "0700"), ("0700", "0700"), ("=1+1", "=1+1"), ("=cmd|' /C calc'!A0", None)],
)
def test_f13_zeros_stay_and_no_formula_is_computed(cell: str, ticker: str | None) -> None:
    content = f"Ticker,At,Shares\n{cell},XHKG,3\n".encode()
    columns = {"symbol": "Ticker", "exchange": "At", "quantity": "Shares"}
    (position,) = read_file(content, columns=columns).positions
    assert position.names.ticker == (ticker or cell)
    assert meant_by(position.names).symbols == [f"{ticker or cell}:XHKG"]
    (fault,) = read_file(b"Ticker,At,Shares\nAAPL,,=3+4\n", columns=columns).faults
    assert fault.reason == "'=3+4' is not a number"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("05.11.2026", "2026-11-05"),
        ("5.1.2026 10:00", "2026-01-05 10:00"),
        ("05-11-2026 09:04", "2026-11-05 09:04"),
        ("11/27/2026", "2026-11-27"),
        ("2026-11-05T10:00:00Z", "2026-11-05T10:00:00Z"),
        ("", ""),
    ],
)
def test_f13_days_come_before_months_except_where_they_cannot(time: str, expected: str) -> None:
    assert sortable(time) == expected


@pytest.mark.parametrize(
    ("unit", "mic"), [("GBX", "XLON"), ("GBp", "XLON"), ("gbx", "XLON"), ("ZAc", "XJSE"), ("ILA", "XTAE")]
)
def test_f13_parts_of_a_currency_name_the_exchange_and_change_no_quantity(unit: str, mic: str) -> None:
    columns = {"symbol": "Ticker", "currency": "In", "quantity": "Shares"}
    (position,) = read_file(f"Ticker,In,Shares\nABC,{unit},1500\n".encode(), columns=columns).positions
    assert (position.quantity, meant_by(position.names).symbols) == (1500, [f"ABC:{mic}"])


def test_f13_a_split_that_joins_shares_takes_some_away_and_a_ratio_is_no_number_of_shares() -> None:
    rows = ["Ticker,What,Shares", "SPCE,Buy,100", "SPCE,Stock split,-95", "IBM,Buy,3", "IBM,Split,2:1"]
    columns = {"symbol": "Ticker", "action": "What", "quantity": "Shares"}
    file = read_file("\n".join(rows).encode(), columns=columns)
    assert quantities(file) == {"SPCE": "5", "IBM": "3"}
    assert [(fault.line, fault.reason) for fault in file.faults] == [(5, "'2:1' is not a number")]


def test_f13_thousands_are_read_by_the_marks_of_their_column_and_what_may_be_two_numbers_is_refused() -> None:
    columns = {"symbol": "Ticker", "quantity": "Shares"}
    shares = ["1.500", "1,5", "2,500.25", "1 234,5", "12'000"]
    rows = [f"T{place};{text}" for place, text in enumerate(shares)]
    file = read_file("\n".join(["Ticker;Shares", *rows]).encode(), columns=columns)
    assert quantities(file) == {"T1": "1.5", "T2": "2500.25", "T3": "1234.5", "T4": "12000"}
    assert "can be two numbers" in file.faults[0].reason


@pytest.mark.parametrize(
    ("quantity", "reason"),
    [
        ('"5,5,5"', "'5,5,5' is not a number"),
        ("1e400", "'1e400' is not a quantity of anything"),
        ("NaN", "'' is not a number"),
        ("true", "'' is not a number"),
        ("null", "'' is not a number"),
        ("1.10000000000000000000000000001", None),
    ],
)
def test_f13_numbers_of_json_are_exact_or_refused(quantity: str, reason: str | None) -> None:
    activity = f'{{"type": "BUY", "quantity": {quantity}, "dataSource": "YAHOO", "symbol": "A\\u0000\\ud800"}}'
    file = read_file(f'{{"activities": [{activity}]}}'.encode())
    if reason is None:
        assert quantities(file) == {"A\ufffd\ufffd": quantity}
    else:
        assert [(fault.line, fault.reason) for fault in file.faults] == [(1, reason)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "JSON and no export of Ghostfolio"),
        (b'{"activities": [1]}', "JSON and no export of Ghostfolio"),
        (b'{"activities": ', "no valid JSON"),
        (b'{"activities": ' + b"[" * 100_000, "no valid JSON"),
        (b'{"activities": []}', "a header, and nothing below it"),
    ],
)
def test_f13_json_that_is_no_export_is_refused_in_words(content: bytes, said: str) -> None:
    with pytest.raises(HoldingsFileRefused, match=said):
        read_file(content)


def test_f13_a_security_number_of_one_country_tells_apart_what_has_no_isin() -> None:
    header = "datetime;shares;type;assettype;identifier;wkn;currency;holdingname"
    rows = ["2026-01-05;3;Buy;Security;;514000;EUR;Bank", "2026-01-06;2;Buy;Security;;716460;EUR;Bank"]
    file = read_file("\n".join([header, *rows]).encode())
    assert [(one.names.number, one.quantity) for one in file.positions] == [("514000", 3), ("716460", 2)]
    assert Names(number="514000", title="Bank").in_words == "Bank (514000)"
