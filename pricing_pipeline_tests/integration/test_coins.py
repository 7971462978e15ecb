"""Prices in coins, whose codes may have four letters: asked, stored and shown like those in dollars."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy.exc import IntegrityError

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.refreshing import calls, is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

COIN = "crypto_quote"


def test_a9_a_price_in_a_coin_is_stored_and_shown(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, cli: CommandLine
) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class)"
        " VALUES (:name, 'quote', 2, 'crypto')",
        name=COIN,
    )
    core.heartbeat("ann", (COIN, "BTC/USDT"), (COIN, "BTC/USDC"))
    work_until(refresher, is_idle(core))
    assert calls(sandbox, TWELVEDATA) == [("/quote", 2, 200)]
    assert core.one("SELECT count(*) FROM pricing.quarantined_values") == 0
    for coin in ("USDT", "USDC"):
        assert core.one("SELECT currency FROM pricing.instruments WHERE symbol = :pair", pair=f"BTC/{coin}") == coin
        (price,) = cli("price", "show", f"BTC/{coin}", "--json").json["prices"]
        assert (price["currency"], price["provider"]) == (coin, TWELVEDATA)
        latest = core.latest(f"BTC/{coin}", COIN)
        assert latest is not None
        assert Decimal(price["price"]) == latest.price
    assert "USDT" in cli("price", "show", "BTC/USDT").stdout.replace("BTC/USDT", "")


def test_b18_a_price_in_no_currency_that_is_known_is_refused_and_the_code_told(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    sandbox.behave("currency", value="USDX", provider=TWELVEDATA)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, lambda: core.one("SELECT count(*) FROM pricing.quarantined_values"))
    assert core.latest("AAPL") is None
    (told,) = core.rows("SELECT reason FROM pricing.quarantined_values")
    assert "currency 'USDX' is neither an ISO 4217 code nor a coin" in told.reason


def test_b18_the_database_refuses_what_is_no_code(core: Core) -> None:
    for code in ("", "US", "usd", "USDTTT", "US D", "USD\n"):
        with pytest.raises(IntegrityError, match="currency_is_code"):
            core.rows(
                "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('crypto', 'X', :code)",
                code=code,
            )
