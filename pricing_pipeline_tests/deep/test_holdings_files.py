"""Portfolios as any broker may write them, and files without an end."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files import text as text_module
from pricing_pipeline.holdings_files.formats import YAHOO_CUSTOM, read_file
from pricing_pipeline.holdings_files.positions import HoldingsFile, Names
from pricing_pipeline.holdings_files.venues import meant_by
from pricing_pipeline_tests.support.brokers import OWN_COLUMNS, Owned, Style
from pricing_pipeline_tests.unit.test_holdings_files import _STYLES, _T212, _WRITERS

_NO_TICKERS = ("degiro-transactions", "degiro-portfolio", "trade-republic", "parqet")
_NO_ISINS = ("columns", "revolut", "xtb", "ghostfolio")

_EXCHANGES = st.sampled_from([("", "US", "USD"), ("XLON", "GB", "GBP"), ("XETR", "DE", "EUR"), ("XNSE", "IN", "INR")])
_TICKERS = st.from_regex(r"[A-Z]{2,5}", fullmatch=True)
_QUANTITIES = st.one_of(
    st.integers(0, 2_000_000).map(Decimal), st.decimals("0.0001", 90_000, places=4), st.just(Decimal(0))
)


@st.composite
def portfolios(draw: st.DrawFn) -> list[Owned]:
    tickers = draw(st.lists(_TICKERS, min_size=1, max_size=8, unique=True))
    owned = []
    for place, ticker in enumerate(tickers):
        mic, country, currency = draw(_EXCHANGES)
        isin = f"{country}{place:09d}0"
        title = draw(st.sampled_from(["Müller & Söhne", 'The "A" Company', "A, B; C", "Ünïted <Co>"]))
        symbol = f"{ticker}:{mic}" if mic else ticker
        owned.append(Owned(symbol, isin, currency, f"{title} {place}", draw(_QUANTITIES)))
    return owned


def of_file(content: bytes, format_: str) -> HoldingsFile:
    return read_file(content, columns=OWN_COLUMNS if format_ == "columns" else None)


def symbol_of(names: Names, format_: str) -> str:
    (symbol, *others) = meant_by(names, bare_is_american=format_ in YAHOO_CUSTOM).symbols
    assert not others
    return symbol.replace(".NS", ":XNSE").replace(".DE", ":XETR").replace(".L", ":XLON")


@pytest.mark.parametrize("case", _WRITERS)
@given(portfolio=portfolios(), style=_STYLES, seed=st.integers(0, 2**32))
def test_a7_a_portfolio_written_by_any_broker_is_read_back_as_the_same_holdings(
    case: str, portfolio: list[Owned], style: Style, seed: int
) -> None:
    format_, write = _WRITERS[case]
    if case == "interactive brokers" and style.encoding in ("utf-16-le", "cp1252", "latin-1"):
        style = Style()
    file = of_file(write(portfolio, random.Random(seed), style), format_)
    assert (file.format, file.faults) == (format_, [])
    held = {owned.isin: owned.quantity for owned in portfolio if owned.quantity}
    if format_ not in _NO_ISINS:
        assert {one.names.isin: one.quantity for one in file.positions} == held
    for position, owned in zip(file.positions, [one for one in portfolio if one.quantity], strict=True):
        assert position.quantity == owned.quantity
        assert position.names.title in (owned.title, "")
        if format_ == "columns":
            assert position.names.ticker == owned.symbol
        elif format_ not in _NO_TICKERS and (position.names.isin or format_ == "ghostfolio"):
            assert symbol_of(position.names, format_) == owned.symbol


def test_a7_no_file_is_read_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MOST_BYTES", 100)
    with pytest.raises(HoldingsFileRefused, match="at most 100 are read"):
        read_file(_T212.encode() + b" " * 100)
    monkeypatch.undo()
    many = "".join(f"Market buy,2026-01-05,,T{number},x,1,1,USD\n" for number in range(2001))
    with pytest.raises(HoldingsFileRefused, match="more than 2,000 instruments"):
        read_file((_T212 + many).encode())
    odd = "".join(f"Market gift,2026-01-05,,T{number},x,1,1,USD\n" for number in range(501))
    with pytest.raises(HoldingsFileRefused, match="more than 500 lines cannot be read"):
        read_file((_T212 + odd).encode())
    with pytest.raises(HoldingsFileRefused, match="more than 200,000 lines"):
        read_file((_T212 + "x\n" * 200_001).encode())
