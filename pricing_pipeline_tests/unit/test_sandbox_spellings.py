"""The sandbox is as strict as the providers: one spelling each, and no other finds an instrument."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.sandbox.instruments import find_instrument, known_instruments
from pricing_pipeline.sandbox.spellings import for_fmp, for_yahoo, of_fmp, of_twelvedata, of_yahoo
from pricing_pipeline_tests.support.recordings import recorded_json
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out
NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)
SHARES = [one for one in known_instruments() if one.kind == "equity"]


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked(NOON)


def twelvedata(asked: Asked, endpoint: str = "quote", **params: str) -> dict[str, Any]:
    found = parsed(asked.twelvedata(endpoint, **params))
    assert isinstance(found, dict)
    return found


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


def test_what_is_spelled_is_what_was_meant() -> None:
    for one in known_instruments():
        if one.kind != "equity":
            assert of_twelvedata(one.symbol) == one
        if not one.symbol.startswith("X") or one.kind != "forex":
            assert of_yahoo(for_yahoo(one)) == one
    for share in SHARES:
        assert of_fmp(for_fmp(share)) == share
        assert of_twelvedata(f"{share.symbol}:{share.exchange}") == share
        assert of_twelvedata(share.symbol, mic_code=share.mic_code) == share


def test_one_ticker_on_two_markets_is_two_shares(asked: Asked) -> None:
    home, abroad = (twelvedata(asked, symbol=symbol) for symbol in ("VOD", "VOD:LSE"))
    assert [(one["symbol"], one["exchange"], one["currency"]) for one in (home, abroad)] == [
        ("VOD", find_instrument("VOD").exchange, "USD"),  # type: ignore[union-attr]
        ("VOD", "LSE", "GBp"),
    ]
    assert home["close"] != abroad["close"]
    for told in ({"exchange": "LSE"}, {"mic_code": "XLON"}, {"country": "United Kingdom"}):
        assert twelvedata(asked, symbol="VOD", **told) == abroad
    for told in (
        {"exchange": "XETR", "country": "Japan"},
        {"mic_code": "XNYS2"},
        {"type": "ETF"},
        {"exchange": "NYSE", "mic_code": "XLON"},
    ):
        assert twelvedata(asked, symbol="VOD", **told)["code"] == 404
    assert list(twelvedata(asked, symbol="VOD:LSE,VOD")) == ["VOD:LSE", "VOD"]


def test_exchanges_of_one_name_at_twelvedata_have_prices_of_their_own(asked: Asked) -> None:
    """Budapest, which is BSE there, was priced as Bombay if Bombay was asked first."""
    for mic in ("XBOM", "XBUD"):
        told = [twelvedata(one, symbol=f"ABC:{mic}")["close"] for one in (asked, Asked(NOON))]
        assert told[0] == told[1], mic


@pytest.mark.parametrize(
    ("symbol", "currency", "kind", "low", "high"),
    [
        ("^GSPC", "USD", "INDEX", 1350, 21600),
        ("ZC=F", "USX", "FUTURE", 110, 1760),
    ],
)
def test_indices_and_futures_are_in_their_unit(
    asked: Asked, symbol: str, currency: str, kind: str, low: int, high: int
) -> None:
    (series,) = parsed(asked.yahoo(f"v8/finance/chart/{symbol}", range="1mo"))["chart"]["result"]
    assert (series["meta"]["currency"], series["meta"]["instrumentType"]) == (currency, kind)
    assert low < series["meta"]["regularMarketPrice"] < high
    assert len(series["timestamp"]) >= 20


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


def test_decimals_are_as_many_as_asked_for(asked: Asked) -> None:
    plain = twelvedata(asked, symbol="IBM")
    for decimals in (0, 2, 8):
        found = twelvedata(asked, symbol="IBM", dp=str(decimals))
        for name in ("open", "high", "low", "close", "change", "percent_change"):
            assert found[name] == f"{Decimal(plain[name]):.{decimals}f}"
        assert (found["timestamp"], found["volume"]) == (plain["timestamp"], plain["volume"])
    assert twelvedata(asked, symbol="IBM", dp="-1") == plain
    rate = asked.twelvedata("exchange_rate", symbol="EUR/USD", dp="2").body.decode()
    assert len(rate.split('"rate":')[1].split(",")[0].partition(".")[2]) == 2


def test_searches_find_by_ticker_and_by_name(asked: Asked) -> None:
    found = twelvedata(asked, "symbol_search", symbol="vod")
    assert found["status"] == "ok"
    assert {(row["symbol"], row["exchange"]) for row in found["data"]} == {
        ("VOD", twelvedata(asked, symbol="VOD")["exchange"]),
        ("VOD", "LSE"),
    }
    (apple,) = (
        row for row in twelvedata(asked, "symbol_search", symbol="apple inc")["data"] if row["symbol"] == "AAPL"
    )
    theirs = recorded_json("twelvedata", "symbol_search_IBM_multi_exchange.json")["data"][0]
    assert apple.keys() - {"mic_code"} == theirs.keys()
    for unknown in ("no such thing", "FR0000120271"):
        assert twelvedata(asked, "symbol_search", symbol=unknown)["data"] == []
    assert len(twelvedata(asked, "symbol_search", symbol="us dollar", outputsize="3")["data"]) == 3

    shares = parsed(asked.fmp("search-symbol", query="VOD"))
    assert {(row["symbol"], row["currency"]) for row in shares} == {("VOD", "USD"), ("VOD.L", "GBp")}
    assert [row["symbol"] for row in parsed(asked.fmp("search-symbol", query="VOD", exchange="LSE"))] == ["VOD.L"]
    assert len(parsed(asked.fmp("search-symbol", query="S", limit="2"))) == 2
    assert asked.fmp("search-symbol").status == 400

    schemes = parsed(asked.mfapi("mf/search", q="parag parikh flexi"))
    assert schemes == recorded_json("mfapi", "mf_search_parag.json")
    assert parsed(asked.mfapi("mf/search", q="no such scheme")) == []
    assert asked.mfapi("mf/search").status == 400
