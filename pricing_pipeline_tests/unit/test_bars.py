"""Bars by columns are read, judged and made amounts as they are one by one, only faster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import starmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pricing_pipeline.domain.bars import Bars, StoredValues
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.exact import amounts_of, scale_of, to_amount
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.knowledge import Known, Point
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.providers import flat
from pricing_pipeline.providers.values import (
    bar_of,
    calendar_day,
    midnight,
    plain_bars,
)
from pricing_pipeline.sandbox.recorded import recorded_bars
from pricing_pipeline_tests.support.examples import examples

PLAIN = ("2026-03-10", "1.50000", "2.50000", "1.40000", "2.00000", "1000")
YEAR = Window(date(2026, 1, 1), date(2026, 12, 31))

Row = tuple[Any, Any, Any, Any, Any, Any]
"""Day, open, high, low, close and volume as an answer spells them."""


NAMES = ("date", "open", "high", "low", "close", "volume")


def read(*rows: Row, window: Window = YEAR) -> Bars | None:
    lines = [dict(zip(NAMES, map(as_json, row), strict=True)) for row in rows]
    found = flat.read(json.dumps({"bars": lines}, separators=(",", ":")).encode(), "bars")
    return None if found is None else plain_bars("A", "USD", found[1], window)


def as_json(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else value


def one_by_one(day: str, *prices_and_volume: str) -> Observation:
    given = dict(zip(NAMES[1:], prices_and_volume, strict=True))
    return bar_of("A", midnight(calendar_day(day)), given, "USD")


@pytest.mark.parametrize(
    "rows",
    [
        [PLAIN],
        [
            ("2026-03-10", "1.5", "1.5", "1.5", "1.5", "0"),
            ("2026-03-11", "2.5", "3.5", "1.4", "2.0", "1" + "0" * 15),
        ],
        [("2026-03-10", "123456789.123456789", "123456789.200000000", "0.000000001", "5.000000000", "1")],
        [PLAIN, ("2026-12-31", *PLAIN[1:])],
        [("2026-03-10", "9.50000", "1.50000", "2.40000", "2.00000", "1000")],
    ],
)
def test_b18_the_short_way_gives_what_the_long_one_gives(rows: list[Row]) -> None:
    bars = read(*rows)
    assert bars is not None
    long = list(starmap(one_by_one, rows))
    assert list(bars) == long
    assert (bars[0], bars[-1], list(bars[:1]), len(bars)) == (long[0], long[-1], long[:1], len(long))
    assert [format(one, "f") for one in (bars[0].open, bars[0].high, bars[0].low) if one] == list(rows[0][1:4])
    assert bars.spans() == Rows(long).spans()
    assert bars.months() == Rows(long).months()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((0, day) for day in ("2026-02-30", "2026-3-1", "20260310", "2026-W11-2", "2025-12-31", "2027-01-01")),
        *((0, day) for day in ("2026-03-1\u0661", "2026-03-10T00:00", 20260310, None)),
        *((3, low) for low in ("0.00000", "-1.4000", "+1.40000", "1_0.00000", " 1.40000")),
        *((place, "0.00000") for place in (1, 2, 4)),
        *((4, close) for close in ("NaN", "2e3", "2", "2.0", "2.0000000000", "1234567890.50000", "2.00000\n")),
        *((4, close) for close in ("\u0661.50000", "2,00000", "2.0.0000", "200000.", ".200000", "", None)),
        *((4, close) for close in (Decimal("2.00000"), 2, True)),
        *((5, volume) for volume in ("-1", "10.5", "", "1,000", "1_000", "9" * 19, None, 1000)),
    ],
)
def test_b18_what_is_not_plain_goes_the_long_way_with_all_its_neighbours(place: int, value: object) -> None:
    odd = (*PLAIN[:place], value, *PLAIN[place + 1 :])
    assert read(odd) is None  # type: ignore[arg-type]
    before, behind = ("2026-03-09", *PLAIN[1:]), ("2026-03-11", *PLAIN[1:])
    assert read(before, PLAIN, behind) is not None
    assert read(before, odd, behind) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("close", ["12.0000", "12.000000", "12.00000.", "120.0000"])
def test_b18_prices_of_other_places_are_told_by_their_comma(close: str) -> None:
    """Without its point, such a price would be ten times another."""
    prices = ("11.50000", "150.50000", "11.40000")
    even, odd = (
        [(f"2026-03-{day}", *prices, said, "1") for day, said in zip((10, 11, 12), closes, strict=True)]
        for closes in (("12.00000",) * 3, ("12.00000", close, "12.00000"))
    )
    assert read(*even) is not None
    assert read(*odd) is None


def test_b18_a_comma_cannot_make_two_values_of_one() -> None:
    shifted = ("2026-03-10", "1.50000,1.50000", "2.50000", "1.40000", "2.00000", "1000")
    assert read(shifted, ("2026-03-11", "1.50000", "2.50000", "1.40000", "2.00000", "1000")) is None
    assert read(PLAIN, PLAIN) is None, "no day twice"
    assert read(("2026-03-11", *PLAIN[1:]), PLAIN) is None, "in the order of time"
    assert read() is None


def recorded(symbol: str) -> list[Row]:
    """Thirteen years of days that came true, with their splits."""
    return [
        (
            bar.day.isoformat(),
            *(f"{Decimal(text):.5f}" for text in (bar.open, bar.high, bar.low, bar.close)),
            str(bar.volume),
        )
        for bar in recorded_bars()[symbol]
    ]


ALL = Window(date(1990, 1, 1), date(2026, 1, 1))


@cache
def years(symbol: str) -> Bars:
    found = read(*recorded(symbol), window=ALL)
    assert found is not None
    return found


def column(amounts: Sequence[int]) -> NDArray[np.int64]:
    return np.array(amounts, dtype=np.int64)


def stored(bars: Bars, days: range, scale: int = 5, by: int = 1) -> StoredValues:
    part = slice(days.start, days.stop)
    closes = bars.closes[part] * 10 ** (scale - bars.scale) + by - 1
    return StoredValues(bars.microseconds[part].tolist(), closes.tolist(), [scale] * len(days))


def test_f6_a_calm_history_is_judged_without_an_object_for_each_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """New, and once more when it is stored; between what is believed before it and after."""
    bars = years("IBM")
    first, last = bars[0], bars[-1]
    around = (
        Point(first.observed_at - timedelta(days=3), first.close),
        Point(last.observed_at + timedelta(days=3), last.close),
    )
    new = Known(currency="USD", lowest=Decimal(1), highest=Decimal(1000), anchors=around)
    again = replace(new, stored=stored(bars, range(len(bars)), 6), newest_at=last.observed_at)

    def refuse(self: Bars, number: int) -> Observation:
        raise AssertionError("a bar was made")

    monkeypatch.setattr(Bars, "_made", refuse)
    for known in (new, again):
        assert judge(known, bars, Fetcher.DAILY_BARS, is_latest=False).good is bars


def test_f5_one_stored_day_that_comes_otherwise_is_seen() -> None:
    bars = years("IBM")
    for days in (range(len(bars)), range(700, 900), range(5)):
        assert stored(bars, days).are_in(bars)
        assert stored(bars, days, 7).are_in(bars)
        assert not stored(bars, days, 7, by=2).are_in(bars)
    other = StoredValues([int(bars.microseconds[0]) - 86_400_000_000], [1], [0])
    assert other.are_in(bars), "a day that does not come again says nothing"
    assert dict(stored(bars, range(2), 7)) == {row.observed_at: row.close for row in bars[:2]}


@given(
    st.integers(1, 9).flatmap(
        lambda scale: st.tuples(st.just(scale), st.lists(st.integers(1, 10 ** (9 + scale) - 1), min_size=4, max_size=4))
    ),
    st.integers(0, 12),
    st.integers(0, 8),
)
@settings(max_examples=examples(200), deadline=None)
def test_a9_amounts_of_columns_are_those_of_each_bar(price: tuple[int, list[int]], at_least: int, zeros: int) -> None:
    scale, amounts = price
    low, open_, close, high = sorted(max(amount // 10**zeros, 1) * 10**zeros for amount in amounts)
    prices = [column([amount, 10**scale]) for amount in (open_, high, low, close)]
    ordinals = column([date(2026, 3, day).toordinal() for day in (10, 11)])
    bars = Bars("A", "USD", Adjustment.RAW, ordinals, scale, prices, column([1, 10**18 - 1]), ["", ""])
    exact = amounts_of(bars, at_least)
    if at_least > 9:
        assert exact is None
        return
    assert exact is not None
    scales, amounts_ = exact
    assert scales.tolist() == [scale_of(row, at_least) for row in bars]
    for prices_, name in zip(amounts_, ("open", "high", "low", "close"), strict=True):
        assert prices_.tolist() == [
            to_amount(getattr(row, name), scale) for row, scale in zip(bars, scales.tolist(), strict=True)
        ]


def test_f6_where_no_bar_is_left_there_is_nothing_to_compare() -> None:
    """All of them are on another basis, and a split of theirs is known."""
    known = Known(adjustment=Adjustment.SPLITS, splits=((date(2005, 2, 28), 2.0),))
    verdict = judge(known, years("IBM"), Fetcher.DAILY_BARS, is_latest=False)
    assert (verdict.good, verdict.doubted, verdict.other_basis) == (Rows(), (), len(years("IBM")))


def test_f5_only_what_is_after_a_moment_counts_as_recent() -> None:
    bars = years("IBM")
    at = datetime(2013, 2, 1, tzinfo=UTC)
    for moment in (at, at + timedelta(seconds=1), at - timedelta(seconds=1), at + timedelta(days=400)):
        assert list(bars.after(moment)) == list(Rows(bars).after(moment))


def test_b18_no_day_of_a_clock_that_was_never_set_and_no_volume_that_nothing_trades() -> None:
    old = Window(date(1960, 1, 1), date(1980, 1, 1))
    assert read(("1969-12-31", *PLAIN[1:]), ("1970-01-02", *PLAIN[1:]), window=old) is not None
    assert read(("1969-12-31", *PLAIN[1:]), ("1970-01-01", *PLAIN[1:]), window=old) is None
    assert read((*PLAIN[:5], str(10**18 - 1))) is not None
    assert read((*PLAIN[:5], str(10**18))) is None
