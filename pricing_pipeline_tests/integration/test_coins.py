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


@pytest.mark.parametrize("coin", ["USDT", "USDC"])
def test_a9_a_price_in_a_coin_is_stored_and_shown(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, cli: CommandLine, coin: str
) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class)"
        " VALUES (:name, 'quote', 2, 'crypto')",
        name=COIN,
    )
    core.heartbeat("ann", (COIN, f"BTC/{coin}"))
    work_until(refresher, is_idle(core))
    assert calls(sandbox, TWELVEDATA) == [("/quote", 1, 200)]
    assert core.one("SELECT currency FROM pricing.instruments WHERE symbol LIKE 'BTC/%'") == coin
    assert core.one("SELECT count(*) FROM pricing.quarantined_values") == 0
    (price,) = cli("price", "show", f"BTC/{coin}", "--json").json["prices"]
    assert (price["currency"], price["provider"]) == (coin, TWELVEDATA)
    latest = core.latest(f"BTC/{coin}", COIN)
    assert latest is not None
    assert Decimal(price["price"]) == latest.price
    assert coin in cli("price", "show", f"BTC/{coin}").stdout.replace(f"BTC/{coin}", "")


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
