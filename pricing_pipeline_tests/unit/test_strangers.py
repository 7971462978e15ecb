"""A symbol that was given to another instrument, and values of what has been written off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.judging.knowledge import Doubt, Known, Point
from pricing_pipeline.judging.plausibility import judge

START = datetime(2026, 3, 2, tzinfo=UTC)
PRICES = ("72.50", "72.60", "71.90", "73.10", "73.40", "72.80")


def rows(prices: Sequence[str], currency: str) -> Rows:
    return Rows(
        Observation("ABC", START + timedelta(days=n), Decimal(price), price, currency) for n, price in enumerate(prices)
    )


def reasons(prices: Sequence[str]) -> set[str]:
    stored = {row.observed_at: row.close for row in rows(PRICES, "USD")}
    known = Known(currency="USD", stored=stored, anchors=(Point(START, Decimal("72.50")),))
    doubted = judge(known, rows(prices, "EUR"), Fetcher.DAILY_BARS, is_latest=False).doubted
    assert {one.kind for one in doubted} == {Doubt.CURRENCY}
    return {one.reason for one in doubted}


def test_a9_other_prices_in_another_currency_are_those_of_another_instrument() -> None:
    (reason,) = reasons(("3.10", "3.25", "2.90", "3.60", "3.05", "3.45"))
    assert reason == (
        "it is in EUR, and this instrument in USD; 6 days that are stored come with other prices, too: it seems to be "
        "another instrument, which has this symbol now. Rename or retire this one"
    )


def test_a9_the_same_prices_or_those_at_a_rate_are_not_another_instrument() -> None:
    rates = map(Decimal, ("0.920", "0.923", "0.918", "0.925", "0.921", "0.917"))
    at_a_rate = [str(round(Decimal(price) * rate, 2)) for price, rate in zip(PRICES, rates, strict=True)]
    for prices in (PRICES, at_a_rate, PRICES[:2]):
        assert reasons(prices) == {"it is in EUR, and this instrument in USD"}


def test_b18_a_value_of_0_is_no_step() -> None:
    known = Known(currency="INR", anchors=(Point(START - timedelta(days=1), Decimal("72.40")),))
    verdict = judge(known, rows((*PRICES[:2], "0", "0"), "INR"), Fetcher.NAV, is_latest=False)
    assert [row.close for row in verdict.good] == [Decimal(p) for p in (*PRICES[:2], "0", "0")]
    bounded = Known(currency="INR", lowest=Decimal(1))
    (doubt,) = judge(bounded, rows(("0",), "INR"), Fetcher.NAV, is_latest=True).doubted
    assert doubt.kind is Doubt.BOUNDS
