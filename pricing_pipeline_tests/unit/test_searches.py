"""The searches of providers: what they list, as instruments with canonical symbols; and what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.searches import SEARCHES, Listing
from pricing_pipeline.sandbox.calls import Reply
from pricing_pipeline.sandbox.instruments import known_instruments
from pricing_pipeline_tests.fixtures.server import ScriptedServer
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.sandbox_server import Asked
from pricing_pipeline_tests.support.scripted_client import KEY, twelvedata
from pricing_pipeline_tests.unit.test_spellings import CLASSES, canonical_symbols

NOW = datetime(2026, 11, 18, 17, tzinfo=UTC)


def response(body: object, status: int = 200) -> Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, {}, content, len(content))


def read(provider: str, reply: Response | Reply) -> list[Listing]:
    if isinstance(reply, Reply):
        reply = Response(reply.status, reply.headers, reply.body, len(reply.body))
    return SEARCHES[provider].read(reply, NOW)


def test_each_instrument_of_the_sandbox_is_found_under_its_canonical_symbol() -> None:
    asked = Asked(NOW)
    expected = {(asset_class, symbol) for asset_class, symbols in canonical_symbols().items() for symbol in symbols}
    for one in known_instruments():
        mic = f":{one.venue.mic_code}" if one.venue.suffix else ""
        own = (CLASSES[one.kind], f"{one.symbol}{mic}")
        assert own in expected
        found = read("twelvedata", asked.twelvedata("symbol_search", symbol=one.symbol, outputsize="120"))
        assert own in {(listing.asset_class, listing.symbol) for listing in found}
        if own[0] == "equity":
            found = read("fmp", asked.fmp("search-symbol", query=one.symbol))
            assert own in {(listing.asset_class, listing.symbol) for listing in found}


def test_an_isin_is_that_of_one_share_or_of_none() -> None:
    asked = Asked(NOW)
    for isin, symbols in {
        "US0378331005": ["AAPL"],
        "GB0030913577": ["BT.A:XLON"],
        "FR0000120271": [],
        "BBG000B9XRY4": [],
    }.items():
        for name, answer in (
            ("twelvedata", asked.twelvedata("symbol_search", symbol=isin)),
            ("fmp", asked.fmp("search-symbol", query=isin)),
        ):
            assert [listing.symbol for listing in read(name, answer)] == symbols


def test_what_is_found_is_spelled_as_it_was_listed() -> None:
    asked = Asked(NOW)
    for query in ("S", "VOD", "B"):
        rows = json.loads(asked.fmp("search-symbol", query=query).body)
        found = read("fmp", asked.fmp("search-symbol", query=query))
        assert [PROVIDERS["fmp"].spell(one.symbol, one.asset_class) for one in found] == [row["symbol"] for row in rows]


def test_recorded_searches_are_read() -> None:
    found = read("twelvedata", recorded("twelvedata", "symbol_search_IBM_multi_exchange.json"))
    assert {one.symbol: one.currency for one in found if one.symbol.startswith("IBM:")} == {
        "IBM:XBUE": "ARS",
        "IBM:XMEX": "MXN",
        "IBM:XFRA": "EUR",
        "IBM:XETR": "EUR",
        "IBM:XLON": "USD",
    }
    assert [one for one in found if one.symbol == "IBM"] == [
        Listing("IBM", "equity", "International Business Machines Corp", "NYSE", "USD")
    ]
    assert not any("Bovespa" in one.symbol for one in found), "no symbol here has small letters"
    assert read("mfapi", recorded("mfapi", "mf_search_parag.json")) == [
        Listing("122639", "fund", "Parag Parikh Flexi Cap Fund - Direct Plan - Growth", "", "INR")
    ]


def test_fmps_pairs_and_foreign_shares() -> None:
    rows = [
        {"symbol": "EURUSD", "name": "EUR/USD", "currency": "USD", "exchange": "FOREX"},
        {"symbol": "BTCUSD", "name": "Bitcoin", "currency": "USD", "exchange": "CRYPTO"},
        {"symbol": "BRK-B", "name": "Berkshire", "currency": "USD", "exchange": "NYSE"},
        {"symbol": "VOD.L", "name": "Vodafone\n\x1b[31m", "currency": "GBp", "exchange": "LSE"},
        {"symbol": "7203.T", "name": None, "currency": "JPY", "exchange": "JPX"},
        {"symbol": "7203.T", "name": "again", "currency": "JPY", "exchange": "JPX"},
        {"symbol": "not one", "name": "x", "currency": "USD", "exchange": "NYSE"},
        {"name": "nameless"},
    ]
    assert read("fmp", response(rows)) == [
        Listing("EUR/USD", "fx", "EUR/USD", "FOREX", "USD"),
        Listing("BTC/USD", "crypto", "Bitcoin", "CRYPTO", "USD"),
        Listing("BRK.B", "equity", "Berkshire", "NYSE", "USD"),
        Listing("VOD:XLON", "equity", "Vodafone [31m", "LSE", "GBP"),
        Listing("7203:XTKS", "equity", "", "JPX", "JPY"),
    ]


@pytest.mark.parametrize("provider", SEARCHES)
def test_nothing_found_is_an_empty_list(provider: str) -> None:
    assert read(provider, response({"data": [], "status": "ok"} if provider == "twelvedata" else [])) == []


@pytest.mark.parametrize(
    ("provider", "answer", "kind"),
    [
        ("twelvedata", response({"code": 401, "message": "bad key", "status": "error"}), KeyRefused),
        ("twelvedata", response({"code": 429, "message": "slow", "status": "error"}, 429), Throttled),
        ("twelvedata", response({"code": 400, "message": "no", "status": "error"}, 400), RequestRefused),
        ("twelvedata", response({"data": {}}), SchemaDrift),
        ("twelvedata", response({"data": [{"symbol": 7}]}), SchemaDrift),
        ("twelvedata", response(b"error code: 520", 520), ProviderDown),
        ("twelvedata", response(b"<html>"), SchemaDrift),
        ("fmp", response({"Error Message": "Limit Reach . Please upgrade"}), Throttled),
        ("fmp", response({"Error Message": "Invalid API KEY."}, 401), KeyRefused),
        ("fmp", response({"Error Message": "what?"}), RequestRefused),
        ("fmp", response(b"Special Endpoint : not available", 402), PlanRestricted),
        ("fmp", response({}), SchemaDrift),
        ("mfapi", response({"error": "q is missing"}, 400), RequestRefused),
        ("mfapi", response([{"schemeCode": "x"}]), SchemaDrift),
    ],
)
def test_what_is_no_listing_is_refused(provider: str, answer: Response, kind: type[ProviderError]) -> None:
    with pytest.raises(ProviderError) as caught:
        read(provider, answer)
    assert type(caught.value) is kind
    assert provider in str(caught.value)


def test_a_key_that_a_search_repeats_is_hidden() -> None:
    rows = [{"symbol": "AAPL", "instrument_name": f"Apple {KEY}", "country": "United States"}]
    body = json.dumps({"data": rows, "status": "ok"}).encode()
    with (
        ScriptedServer(lambda connection: connection.answer(body)) as server,
        twelvedata(server.url) as client,
    ):
        searched = client.search("apple")
        assert KEY.encode() not in server.connections[0].request.split(b"\r\n")[0]
    assert [one.symbol for one in searched.listings] == ["AAPL"]
    assert KEY not in searched.listings[0].name
    assert searched.receipt.wire_bytes > len(body)


def test_a_provider_without_a_search_says_so() -> None:
    with (
        ProviderClient(PROVIDERS["yahoo"]) as yahoo,
        pytest.raises(SettingsError, match="yahoo has no search"),
    ):
        yahoo.search("apple")
