"""Every instrument under every spelling, at every provider of the sandbox."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pricing_pipeline.sandbox.spellings import of_fmp
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed
from pricing_pipeline_tests.unit.test_sandbox_spellings import NOON, asked, twelvedata

__all__ = ["asked"]

pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out


@pytest.mark.parametrize(
    ("spelling", "knows"),
    [
        ("AAPL", "twelvedata yahoo fmp"),
        ("aapl", ""),
        ("BRK.B", "twelvedata"),
        ("BRK-B", "yahoo fmp"),
        ("VOD", "twelvedata yahoo fmp"),
        ("VOD:LSE", "twelvedata"),
        ("VOD:XLON", "twelvedata"),
        ("VOD.L", "yahoo fmp"),
        ("VOD.LSE", ""),
        ("VOD:", ""),
        ("VOD:NYSE:LSE", ""),
        ("NOPE.L", ""),
        ("NOPE:XTKS", ""),
        ("VOD:XXXX", ""),
        ("7203:JPX", "twelvedata"),
        ("7203.T", "yahoo fmp"),
        ("7203", ""),
        ("BAJAJ-AUTO.NS", "yahoo fmp"),
        ("M&M:XNSE", "twelvedata"),
        ("VOLV B:XSTO", "twelvedata"),
        ("VOLV-B.ST", "yahoo fmp"),
        ("AC:Euronext", "twelvedata"),
        ("EUR/USD", "twelvedata"),
        ("EURUSD=X", "yahoo"),
        ("EURUSD", ""),
        ("BTC/USD", "twelvedata"),
        ("BTC-USD", "yahoo"),
        ("BTCUSD", ""),
        ("XAU/USD", "twelvedata"),
        ("XAUUSD=X", ""),
        ("EUR-USD", ""),
        ("BTCUSD=X", ""),
        ("1INCH/USD", "twelvedata"),
        ("1INCH-USD", "yahoo"),
        ("NOPE/USD", ""),
        ("^GSPC", "yahoo"),
        ("^NOPE", ""),
        ("GC=F", "yahoo"),
        ("NOPE=F", ""),
    ],
)
def test_a_spelling_is_known_where_it_is_the_providers_own(asked: Asked, spelling: str, knows: str) -> None:
    found = set()
    if "symbol" in twelvedata(asked, symbol=spelling):
        found.add("twelvedata")
    if asked.yahoo(f"v8/finance/chart/{spelling}", range="1d").status == 200:
        found.add("yahoo")
    if of_fmp(spelling) is not None and parsed(asked.fmp("quote", symbol=spelling)):
        found.add("fmp")
    assert found == set(knows.split())


def test_exchanges_of_one_name_at_twelvedata_have_prices_of_their_own(asked: Asked) -> None:
    """Budapest, which is BSE there, was priced as Bombay if Bombay was asked first."""
    for mic in ("XBOM", "XBUD"):
        told = [twelvedata(one, symbol=f"ABC:{mic}")["close"] for one in (asked, Asked(NOON))]
        assert told[0] == told[1], mic


def test_london_is_in_pence_and_sydney_on_its_own_day(asked: Asked) -> None:
    (series,) = parsed(asked.yahoo("v8/finance/chart/VOD.L", range="1d"))["chart"]["result"]
    assert (series["meta"]["currency"], series["meta"]["exchangeTimezoneName"]) == ("GBp", "Europe/London")
    price = Decimal(str(series["meta"]["regularMarketPrice"]))
    assert price == Decimal(twelvedata(asked, symbol="VOD:LSE")["close"])
    (row,) = parsed(asked.fmp("quote", symbol="VOD.L"))
    assert (row["symbol"], row["exchange"], Decimal(str(row["price"]))) == ("VOD.L", "LSE", price)

    (series,) = parsed(asked.yahoo("v8/finance/chart/BHP.AX", range="1mo"))["chart"]["result"]
    assert series["meta"]["gmtoffset"] == 11 * 3600
    opening = datetime.fromtimestamp(series["timestamp"][0], UTC)
    assert (opening.hour, opening.minute) == (23, 0), "it opens at ten, which is the day before in UTC"
