"""Columns of bars are judged as the same bars one by one."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.bars import Bars, StoredValues
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.judging.knowledge import Known, Point
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.unit.test_bars import column, stored, years


def some(bars: Bars, dice: random.Random) -> Bars:
    """A year or two of them."""
    start = dice.randrange(max(len(bars) - 200, 1))
    part = slice(start, start + dice.choice((15, 200, 500)))
    return Bars(
        *("A", bars.currency, bars.adjustment, bars.ordinals[part], bars.scale),
        [prices[part] for prices in (bars.opens, bars.highs, bars.lows, bars.closes)],
        bars.volumes[part],
        bars.texts[part],
    )


def with_fault(bars: Bars, dice: random.Random) -> Bars:
    """The same with some days multiplied, as by a unit, a typing error or a split."""
    factor, first = dice.choice((2, 4, 10, 100, 3)), dice.randrange(len(bars))
    last = first + dice.choice((1, 1, 3, 30, len(bars)))

    factors = column([factor if first <= place < last else 1 for place in range(len(bars))])
    return Bars(
        *("A", bars.currency, bars.adjustment, bars.ordinals, bars.scale),
        [prices * factors for prices in (bars.opens, bars.highs, bars.lows, bars.closes)],
        bars.volumes,
        bars.texts,
    )


def with_odd_part(bars: Bars, dice: random.Random) -> Bars:
    """The same with one price of one day multiplied or divided, so that it contradicts its close, or nearly does."""
    prices = [bars.opens.copy(), bars.highs.copy(), bars.lows.copy(), bars.closes.copy()]
    which, place = dice.randrange(3), dice.randrange(len(bars))
    up, down = dice.choice(((10, 1), (1, 10), (2, 1), (1, 2), (5, 1), (1, 5), (101, 100), (100, 101), (10**6, 1)))
    prices[which][place] = max(int(prices[which][place]) * up // down, 1)
    return Bars(*("A", bars.currency, bars.adjustment, bars.ordinals, bars.scale), prices, bars.volumes, bars.texts)


def knowns(bars: Bars, dice: random.Random) -> Known:
    """Something of what may be known before an answer comes."""
    start = dice.randrange(len(bars))
    days = range(start, min(start + dice.choice((1, 40, 4000)), len(bars)))
    newest = bars[dice.randrange(len(bars))]
    return Known(
        currency=dice.choice((None, "USD", "USD", "EUR")),
        adjustment=dice.choice((None, Adjustment.RAW, Adjustment.RAW, Adjustment.SPLITS)),
        lowest=dice.choice((None, None, min(row.low or row.close for row in bars), Decimal("50"))),
        highest=dice.choice((None, None, max(row.high or row.close for row in bars), Decimal("90"))),
        newest_at=newest.observed_at,
        are_jumps_trusted=dice.random() < 0.2,
        stored=dice.choice((StoredValues(), stored(bars, days), stored(bars, days, 7), stored(bars, days, by=2))),
        anchors=tuple(
            Point(at, newest.close * dice.choice((1, 1, 1, Decimal("1.2"), 3)))
            for at in (
                newest.observed_at,
                newest.observed_at + timedelta(hours=13),
                bars[0].observed_at - timedelta(days=dice.choice((3, 400))),
                bars[-1].observed_at + timedelta(days=1),
            )
            if dice.random() < 0.3
        ),
        splits=dice.choice(((), (), ((date(2008, 2, 28), 2.0),), ((newest.observed_at.date(), 4.0),))),
        are_splits_reported=dice.random() < 0.5,
    )


@pytest.mark.parametrize("symbol", ["AAPL", "IBM", "META"])
def test_f6_columns_are_judged_as_their_bars_are_one_by_one(symbol: str) -> None:
    """Whatever is known and whatever is wrong: what the columns let pass, each bar passes; and the other way round."""
    dice = random.Random(symbol)
    for _ in range(25):
        whole = some(years(symbol), dice)
        bars = with_fault(whole, dice) if dice.random() < 0.5 else whole
        bars = with_odd_part(bars, dice) if dice.random() < 0.5 else bars
        known = knowns(whole, dice)
        short = judge(known, bars, Fetcher.DAILY_BARS, is_latest=False)
        long = judge(known, list(bars), Fetcher.DAILY_BARS, is_latest=False)
        assert list(short.good) == list(long.good)
        assert (short.doubted, short.other_basis, short.restatement) == (
            long.doubted,
            long.other_basis,
            long.restatement,
        )
