"""Thirteen years from the sandbox through our clients."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Dividend, Split
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.sandbox.recorded import recorded_bars
from pricing_pipeline_tests.integration.test_sandbox_with_clients import NOON, clients, fmp_client, yahoo_client
from pricing_pipeline_tests.support.sandbox_server import running_sandbox


def test_g6_the_client_reads_thirteen_years_to_the_last_digit():
    with running_sandbox() as sandbox, clients(sandbox) as (twelvedata, _):
        window = Window(date(2000, 3, 1), date(2013, 2, 28))
        found = twelvedata.fetch(Fetcher.DAILY_BARS, ["AAPL", "META", "GOOG", "IBM", "MSFT"], window).answer
        assert not found.failures
        for symbol, bars in recorded_bars().items():
            expected = [
                (bar.day, *map(Decimal, (bar.open, bar.high, bar.low, bar.close, bar.volume)))
                for bar in bars
                if bar.day <= window.end
            ]
            assert expected == [
                (one.observed_at.date(), one.open, one.high, one.low, one.close, one.volume)
                for one in found.observations
                if one.symbol == symbol
            ]
        assert sum(call["units"] for call in sandbox.calls()) == 5


def test_a9_yahoos_client_undoes_noise_and_splits_of_thirteen_years():
    """Among them are Apple's split of 2005, 2000 and Microsoft's of 2003; what comes out is what was recorded."""
    window = Window(date(2000, 3, 1), date(2013, 2, 28))
    with running_sandbox(clock=lambda: NOON) as sandbox, yahoo_client(sandbox) as yahoo:
        for symbol, bars in recorded_bars().items():
            found = yahoo.fetch(Fetcher.DAILY_BARS, [symbol], window, now=NOON).answer
            assert not found.rejected
            assert {one.adjustment for one in found.observations} == {Adjustment.RAW}
            assert [
                (one.observed_at.date(), one.open, one.high, one.low, one.close, one.volume)
                for one in found.observations
            ] == [
                (bar.day, *map(Decimal, (bar.open, bar.high, bar.low, bar.close, bar.volume)))
                for bar in bars
                if bar.day <= window.end
            ]
    assert {bar.split for bar in recorded_bars()["AAPL"]} == {1, 2, 4}


@pytest.mark.parametrize("symbol", ["AAPL", "IBM"])
def test_f5_two_providers_tell_the_same_dividends_and_splits(symbol: str) -> None:
    """Yahoo's are divided by later splits, FMP's are of their day: what comes out is what was paid."""
    window = Window(date(2000, 3, 1), date(2013, 2, 28))
    with (
        running_sandbox(clock=lambda: NOON) as sandbox,
        yahoo_client(sandbox) as yahoo,
        fmp_client(sandbox) as fmp,
    ):
        along = yahoo.fetch(Fetcher.DAILY_BARS, [symbol], window, now=NOON).answer
        lists = [fmp.fetch(one, [symbol], now=NOON).answer for one in (Fetcher.DIVIDENDS, Fetcher.SPLITS)]
    assert along.actions_since == {symbol: window.start}
    told = {(one.ex_on, type(one)): one for one in along.actions}
    listed = {(one.ex_on, type(one)): one for answer in lists for one in answer.actions}
    # An answer of Yahoo tells what follows its window, too; the day before its first there is no price to pay from.
    since = min(day for day, _ in told)
    assert told.keys() == {key for key in listed if key[0] >= since}
    assert len(told) > 100
    for key, one in told.items():
        match one:
            case Dividend():
                assert one.amount == listed[key].amount, one
            case Split():
                assert one.new_shares / one.old_shares == listed[key].new_shares / listed[key].old_shares
