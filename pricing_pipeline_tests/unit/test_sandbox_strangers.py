"""What the sandbox is to clients that others wrote: they send parameters of their own, which services ignore."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "endpoint", "params"),
    [
        ("twelvedata", "time_series", {"symbol": "AAPL,IBM", "interval": "1day"}),
        ("yahoo", "v8/finance/chart/AAPL", {"range": "5d"}),
        ("yahoo", "v7/finance/spark", {"symbols": "AAPL,IBM", "range": "1d"}),
        ("fmp", "stable/historical-price-eod/full", {"symbol": "AAPL", "from": "2026-11-02"}),
        ("mfapi", "mf/118632", {}),
        ("uex", "commodities_prices", {"id_terminal": "1"}),
    ],
)
def test_parameters_that_no_service_knows_change_nothing(provider: str, endpoint: str, params: dict[str, str]) -> None:
    asked = Asked(NOON)
    headers = {"apikey": asked.settings.key, "authorization": f"Bearer {asked.settings.key}"}
    params = params | {"apikey": asked.settings.key}
    plain = asked.ask(provider, endpoint, params, headers)
    more = {"lang": "en-US", "_": "1", "formatted": "true", "corsDomain": "finance.example.com", "x[]": "a"}
    assert plain.status == 200
    assert asked.ask(provider, endpoint, params | more, headers).body == plain.body


def test_a_page_brings_the_cookie_with_which_quotes_are_answered_whole() -> None:
    """Members without which yahoo-finance2 and beanprice believe no quote."""
    asked, quote = Asked(NOON), "v7/finance/quote"
    cookie = asked.yahoo("quote/AAPL").headers["Set-Cookie"].partition(";")[0]
    params = {"symbols": "AAPL,VOD.L,EURUSD=X,BTC-USD", "crumb": "sandbox.crumb"}
    assert asked.ask("yahoo", quote, params, {}).status == 401
    rows = parsed(asked.ask("yahoo", quote, params, {"cookie": cookie}))["quoteResponse"]["result"]
    members = {
        "region",
        "triggerable",
        "tradeable",
        "esgPopulated",
        "sourceInterval",
        "exchangeDataDelayedBy",
    }
    assert all(members <= row.keys() for row in rows)
    assert [(row["market"], row["exchangeTimezoneShortName"], row["gmtOffSetMilliseconds"]) for row in rows] == [
        ("us_market", "EST", -18_000_000),
        ("gb_market", "GMT", 0),
        ("ccy_market", "GMT", 0),
        ("ccc_market", "UTC", 0),
    ]
