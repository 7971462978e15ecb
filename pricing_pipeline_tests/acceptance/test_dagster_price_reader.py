"""Histories that the price reader gives to code of others, in every library."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from pricing_pipeline.dagster import PricingReader
from pricing_pipeline.prices import price_reader
from pricing_pipeline.prices.files import open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.orchestration.test_price_reader import prices, told, url
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.filing import export_all, fill, keep, move_all, reads_of

__all__ = ["prices", "url"]

SYMBOLS = ("FA", "fa.X")


def test_g8_where_there_is_nothing_a_frame_has_the_same_columns(core: Core, prices: PricingReader) -> None:
    reads = (
        prices.latest(QUOTE),
        prices.history(QUOTE),
        prices.history(QUOTE, ["AAPL"]),
        prices.history(QUOTE, []),
    )
    for found in reads:
        nothing = found.pandas()
        assert (len(nothing), found.polars().height, found.arrow().num_rows) == (0, 0, 0)
        assert list(nothing.columns) == found.polars().columns == found.arrow().column_names
    before = [(dict(read.pandas().dtypes), read.arrow().schema, read.polars().schema) for read in reads]
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    assert len(reads[0].pandas()) == len(reads[1].pandas()) == len(reads[2].pandas()) == 1
    assert before == [(dict(read.pandas().dtypes), read.arrow().schema, read.polars().schema) for read in reads]


@pytest.mark.parametrize("seed", range(3 if is_thorough() else 1))
def test_g8_histories_are_what_was_believed_on_any_basis(
    core: Core,
    prices: PricingReader,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    seed: int,
) -> None:
    """Random ones with revisions, splits and dividends, of one symbol or all, whose old months are in files."""
    dice = random.Random(seed)
    reads = reads_of(dice, SYMBOLS, fill(core, dice, SYMBOLS), 3)
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    store = open_store(load_settings())
    keep(core, 3)
    export_all(core, store)
    assert move_all(core, store)
    for read in reads:
        about = {"as_of": read["as_of"], "adjust": read["adjust"]}
        first, last = read["span"]
        for symbols in ([read["symbol"]], None):
            with core.engine.connect() as connection:
                expected = [
                    (
                        symbol,
                        bar.observed_at,
                        bar.open,
                        bar.close,
                        bar.volume,
                        bar.adjustment,
                        bar.call_id,
                        bar.quality,
                    )
                    for symbol in symbols or SYMBOLS
                    for bar in price_reader.bars(connection, symbol, DAILY, first, last, **about)
                ]
            found = prices.history(DAILY, symbols, first_day=first, last_day=last, **about)
            rows = told(found.pandas())
            columns = ("symbol", "observed_at", "open", "close", "volume", "adjustment", "call_id", "quality")
            assert [tuple(row[name] for name in columns) for row in rows] == [
                (symbol, at.isoformat(), *rest) for symbol, at, *rest in expected
            ], read
            assert rows == told(found.polars()) == told(found.arrow())
    whole = told(prices.history(DAILY).pandas())
    assert whole == told(prices.history(DAILY, first_day=date(2019, 1, 1), last_day=date(2030, 1, 1)).arrow())
