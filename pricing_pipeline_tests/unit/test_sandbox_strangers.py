"""What the sandbox is to clients that others wrote: they send parameters of their own, which services ignore."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline_tests.support.sandbox_server import Asked

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "endpoint", "params"),
    [
        ("twelvedata", "quote", {"symbol": "AAPL"}),
        ("twelvedata", "time_series", {"symbol": "AAPL,IBM", "interval": "1day"}),
        ("twelvedata", "symbol_search", {"symbol": "vodafone"}),
        ("yahoo", "v8/finance/chart/AAPL", {"range": "5d"}),
        ("yahoo", "v7/finance/spark", {"symbols": "AAPL,IBM", "range": "1d"}),
        ("fmp", "stable/quote", {"symbol": "AAPL"}),
        ("fmp", "stable/historical-price-eod/full", {"symbol": "AAPL", "from": "2026-11-02"}),
        ("mfapi", "mf/118632", {}),
        ("mfapi", "mf/118632/latest", {}),
        ("uex", "commodities_prices", {"id_terminal": "1"}),
        ("uex", "commodities", {}),
    ],
)
def test_parameters_that_no_service_knows_change_nothing(
    provider: str, endpoint: str, params: dict[str, str]
) -> None:
    asked = Asked(NOON)
    headers = {"apikey": asked.settings.key, "authorization": f"Bearer {asked.settings.key}"}
    params = params | {"apikey": asked.settings.key}
    plain = asked.ask(provider, endpoint, params, headers)
    more = {"lang": "en-US", "_": "1", "formatted": "true", "corsDomain": "finance.example.com", "x[]": "a"}
    assert plain.status == 200
    assert asked.ask(provider, endpoint, params | more, headers).body == plain.body
