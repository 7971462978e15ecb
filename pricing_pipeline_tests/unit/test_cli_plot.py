"""Drawing a history with characters."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.cli.plot import Candle, draw, merge


def candle(open_: str, high: str, low: str, close: str, label: str = "2013-02-04") -> Candle:
    return Candle(label, *map(Decimal, (open_, high, low, close)))


def points(*prices: str) -> list[Candle]:
    return [candle(price, price, price, price, f"day {number}") for number, price in enumerate(prices)]


def columns(candles: list[Candle], height: int) -> list[str]:
    """What is drawn of each candle, from top to bottom, without scale and labels."""
    lines = [line.plain for line in draw(candles, 80, height)[:-1]]
    margin = next(line.index("┤") for line in lines) + 1
    return ["".join(line[margin + number] for line in lines) for number in range(len(candles))]


def test_a_body_spans_open_to_close_and_a_line_low_to_high() -> None:
    assert columns([candle("2", "5", "1", "4")], 5) == ["│███│"]


def test_single_values_stand_where_they_are() -> None:
    assert columns(points("1", "3", "2"), 3) == ["  ━", "━  ", " ━ "]


def test_rising_is_green_and_falling_is_red() -> None:
    up, down = candle("1", "2", "1", "2"), candle("2", "2", "1", "1")
    styles = [span.style for line in draw([up, down], 80, 2) for span in line.spans]
    assert set(styles) == {"green", "red"}
    styles = [span.style for line in draw(points("2", "3", "1"), 80, 3) for span in line.spans]
    assert {"green", "red"} <= set(styles)


def test_the_scale_names_highest_and_lowest_and_the_last_line_first_and_last_day() -> None:
    lines = [line.plain for line in draw(points("1.25", "3.75"), 80, 9)]
    assert lines[0].split()[0] == "3.75"
    assert lines[8].split()[0] == "1.25"
    assert lines[4].split()[0] == "2.50"
    assert lines[9].split() == ["day", "0", "day", "1"]


def test_small_prices_keep_their_digits() -> None:
    assert draw(points("0.00001", "0.00002"), 80, 2)[0].plain.split()[0] == "0.00002"


@pytest.mark.parametrize("price", ["0", "7.5"])
def test_one_price_for_all_is_a_flat_line(price: str) -> None:
    assert columns(points(price, price), 3) == [" ━ ", " ━ "]


def test_neighbours_are_joined_when_there_is_no_room() -> None:
    joined = merge([candle("1", "9", "1", "2"), candle("2", "3", "0", "3"), candle("3", "4", "2", "4")], 2)
    assert joined == [candle("1", "9", "1", "2"), candle("2", "4", "0", "4")]


@given(
    prices=st.lists(st.decimals(min_value=0, max_value=10**6, places=2), min_size=1, max_size=300),
    width=st.integers(20, 120),
    height=st.integers(1, 30),
)
def test_it_fits_whatever_is_drawn(prices: list[Decimal], width: int, height: int) -> None:
    lines = draw(points(*map(str, prices)), width, height)
    assert len(lines) == height + 1
    # A scale of wide numbers leaves ten columns at least.
    assert all(len(line.plain) <= max(width, 10 + 2 + len("1000000.00")) for line in lines[:-1])
    assert any(set(line.plain) & set("━█") for line in lines)


def test_f8_a_gap_is_a_dotted_line_before_what_follows_it_and_a_revision_a_dot_below() -> None:
    plain = points("1", "3", "2")
    assert columns([plain[0], replace(plain[1], is_after_gap=True), plain[2]], 3) == ["  ━", "━┊┊", " ━ "]
    *_, marks, labels = (
        line.plain for line in draw([replace(one, is_revised=n == 1) for n, one in enumerate(plain)], 80, 3)
    )
    assert marks.index("•") == labels.index("day") + 1
    assert len(draw(plain, 80, 3)) == 4, "no line of dots where nothing was revised"


def test_f8_marks_survive_when_values_are_joined() -> None:
    many = [
        replace(one, is_after_gap=n == 33, is_revised=n == 70) for n, one in enumerate(points(*"12" * 50))
    ]
    joined = merge(many, 10)
    assert [n for n, one in enumerate(joined) if one.is_after_gap] == [3]
    assert [n for n, one in enumerate(joined) if one.is_revised] == [7]
