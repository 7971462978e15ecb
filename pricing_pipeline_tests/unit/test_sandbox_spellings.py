"""The sandbox is as strict as the providers: one spelling each, and no other finds an instrument."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pricing_pipeline.sandbox.instruments import Instrument, Kind, find_instrument, known_instruments
from pricing_pipeline.sandbox.spellings import for_fmp, of_fmp, of_twelvedata, of_yahoo
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


def for_yahoo(instrument: Instrument) -> str:
    """The one spelling by which `of_yahoo` finds it."""
    if instrument.kind is Kind.FOREX:
        return f"{instrument.symbol.replace('/', '')}=X"
    if instrument.kind is Kind.CRYPTO:
        return instrument.symbol.replace("/", "-")
    return for_fmp(instrument)


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


@pytest.mark.parametrize("params", [{"symbol": ""}, {"outputsize": "121"}], ids=str)
def test_values_out_of_bounds_are_refused(asked: Asked, params: dict[str, str]) -> None:
    reply = asked.twelvedata("symbol_search", **{"symbol": "AAPL"} | params)
    told = parsed(reply)
    assert (reply.status, told["code"], told["status"]) == (400, 400, "error")
    assert any(name in told["message"] for name in params)


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
