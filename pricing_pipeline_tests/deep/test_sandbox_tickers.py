"""Any ticker of any exchange, as the sandbox's providers quote it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.exchanges import Exchange, exchanges
from pricing_pipeline.providers.canonical import TICKER
from pricing_pipeline.providers.fmp import Fmp
from pricing_pipeline.providers.twelvedata import TwelveData
from pricing_pipeline.providers.yahoo import Yahoo
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)
TICKERS = st.from_regex(TICKER, fullmatch=True, alphabet=st.characters(codec="ascii")).filter(
    lambda ticker: len(ticker) <= 12 and not ticker.startswith("NOPE")
)


@settings(max_examples=25)  # each new exchange has its calendar worked out
@given(TICKERS, st.sampled_from([one for one in exchanges().values() if one.suffix]))
@example("7203", exchanges()["XTKS"])
@example("VOLV B", exchanges()["XSTO"])
@example("BRK-A", exchanges()["XETR"])
def test_a5_any_ticker_has_one_price_in_the_unit_of_its_exchange_at_every_provider(
    ticker: str, exchange: Exchange
) -> None:
    """By the spelling that the pipeline asks with, and stable: this is a sandbox of its own for each example."""
    symbol = f"{ticker}:{exchange.mic}"
    asked = Asked(NOON)
    quote = parsed(asked.twelvedata("quote", symbol=TwelveData().spell(symbol, "equity")))
    (series,) = parsed(asked.yahoo(f"v8/finance/chart/{Yahoo().spell(symbol, 'equity')}", range="1d"))["chart"][
        "result"
    ]
    (row,) = parsed(asked.fmp("quote", symbol=Fmp().spell(symbol, "equity")))
    assert quote["mic_code"] == exchange.mic
    assert quote["currency"] == series["meta"]["currency"]
    assert quote["currency"] == (exchange.minor_unit or exchange.currency or quote["currency"])
    assert series["meta"]["exchangeTimezoneName"] == exchange.zone
    assert Decimal(quote["close"]) == Decimal(str(series["meta"]["regularMarketPrice"]))
    assert Decimal(quote["close"]) == Decimal(str(row["price"])) > 0
