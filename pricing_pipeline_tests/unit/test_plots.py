"""Plots in metadata: short enough to be shown at once, true to what they show."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from pricing_pipeline.defs.plots import MOST_CHARACTERS, freshness_plot, price_plot
from pricing_pipeline.prices.quality import FreshnessSample, PlotSeries, PlotValue

SVG = "{http://www.w3.org/2000/svg}"
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def values(prices: Sequence[object], step: timedelta = DAY, revised: Sequence[int] = ()) -> list[PlotValue]:
    return [
        PlotValue(START + step * index, Decimal(str(price)), index in revised)
        for index, price in enumerate(prices)
        if price is not None
    ]


def said(of: Sequence[PlotValue]) -> str:
    return str(price_plot(PlotSeries("AAPL", "USD", of))["price_plot"].value)


def picture(markdown: str) -> ElementTree.Element:
    """The picture, as a browser would read it."""
    (data,) = re.findall(r"\(data:image/svg\+xml,([^ ()<>]+)\)$", markdown)
    return ElementTree.fromstring(unquote(data))


def drawn(markdown: str) -> dict[str, str]:
    """Paths of the picture by their colour, but for the axes."""
    found = {}
    for path in picture(markdown).iter(f"{SVG}path"):
        colour = path.get("stroke") or path.get("fill")
        found[str(colour)] = str(path.get("d"))
        assert re.fullmatch(r"(?:M-?\d+,-?\d+|[hHvV]-?\d+|l(?:-?\d+,-?\d+,?)+)+", str(path.get("d"))), path.get("d")
    assert found.pop("#999") == "M0,0V60H240", "the axes"
    return found


def words(markdown: str) -> list[str]:
    """What is written on the picture: the scale from its lowest, the times, the legend."""
    texts = ["".join(text.itertext()).strip() for text in picture(markdown).iter(f"{SVG}text")]
    low, high, last, first, legend = texts
    return [low, high, first, last, legend]


def points(path: str) -> list[list[tuple[int, int]]]:
    """The corners of each stroke of a price's line."""
    strokes = []
    for stroke in path.split("M")[1:]:
        start, _, steps = stroke.partition("l")
        x, y = map(int, start.split(","))
        corners = [(x, y)]
        numbers = [int(number) for number in steps.split(",") if number]
        for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
            corners.append((corners[-1][0] + dx, corners[-1][1] + dy))
        strokes.append(corners)
    return strokes


def test_a_price_is_a_line_from_its_first_to_its_last_value() -> None:
    ((*_, last),) = points(drawn(said(values([10, 20, 15])))["#36c"])
    assert points(drawn(said(values([10, 20, 15])))["#36c"]) == [[(0, 58), (120, 2), (240, 30)]]
    assert last == (240, 30)
    assert said(values([10, 20, 15])).startswith("AAPL 15 USD, 2026-01-01 to 2026-01-03\n")
    assert words(said(values([10, 20, 15]))) == ["10", "20", "2026-01-01", "2026-01-03", "price"]


def test_prices_of_one_day_are_told_by_their_minutes() -> None:
    assert said(values([2, 3], timedelta(minutes=1))).startswith("AAPL 3 USD, 01-01 00:00 to 01-01 00:01 UTC\n")


def test_gaps_are_bands_and_the_line_does_not_cross_them() -> None:
    text = said(values([10] * 20 + [None] * 20 + [20] * 20))
    assert "; 1 gap\n" in text
    first, second = points(drawn(text)["#36c"])
    assert {y for _, y in first} == {58}
    assert {y for _, y in second} == {2}
    assert drawn(text)["#f80"].startswith(f"M{first[-1][0]},0h{second[0][0] - first[-1][0]}v60")
    assert words(text)[-1] == "price gap"


def test_gaps_are_those_of_the_calendar_where_there_is_one() -> None:
    """Three days that trade may be missing although a holiday is longer."""
    found = values([10] * 20 + [None] * 3 + [20] * 20)
    assert "#f80" not in drawn(said(found))
    missing = [((START + 20 * DAY).date(), (START + 22 * DAY).date())]
    text = str(price_plot(PlotSeries("AAPL", "USD", found, missing))["price_plot"].value)
    assert "; 1 gap\n" in text
    assert drawn(text)["#f80"] == f"M{round(240 * 20 / 42)},0h{round(240 * 22 / 42) - round(240 * 20 / 42)}v60H114"
    assert len(points(drawn(text)["#36c"])) == 2
    holidays = values([10] * 20 + [None] * 20 + [20] * 20)
    assert "#f80" not in drawn(str(price_plot(PlotSeries("AAPL", "USD", holidays, []))["price_plot"].value))


def test_weekends_are_no_gaps() -> None:
    days = [10 if (START + DAY * index).weekday() < 5 else None for index in range(100)]
    assert "gap" not in said(values(days))


def test_revised_values_are_dots() -> None:
    text = said(values(range(10, 20), revised=[9]))
    assert "; 1 revision\n" in text
    assert drawn(text)["#d22"] == "M240,2h0"
    assert words(text)[-1] == "price revised"
    assert "#d22" not in drawn(said(values(range(10, 20))))


@pytest.mark.parametrize("count", [2, 59, 2000])
@pytest.mark.parametrize("seed", range(2))
def test_a_plot_is_shown_at_once_however_wild_its_values(count: int, seed: int) -> None:
    wild = random.Random(seed)
    prices = [None if wild.random() < 0.1 else round(wild.uniform(1, 1e6), 5) for _ in range(count)]
    found = values([1, *prices, 2], revised=range(0, count, 3))
    text = said(found)
    assert len(text) <= MOST_CHARACTERS
    drawn(text)


def test_one_value_is_no_plot() -> None:
    assert price_plot(None) == {}
    assert price_plot(PlotSeries("AAPL", None, values([5]))) == {}
    assert freshness_plot([]) == {}


def test_freshness_is_drawn_at_its_worst_and_late_times_are_marked() -> None:
    step = timedelta(minutes=5)
    samples = [FreshnessSample(START + step * i, 10, 0 if i == 100 else 10, int(i == 100)) for i in range(288)]
    text = str(freshness_plot(samples)["freshness_plot"].value)
    assert text.startswith("fresh 10 of 10 at 01-01 23:55 UTC\n")
    assert len(text) <= MOST_CHARACTERS
    found = drawn(text)
    assert "v52" in found["#292"]
    assert len(re.findall("M", found["#d22"])) == 1
    assert words(text) == ["0 %", "100 %", "01-01 00:00", "01-01 23:55", "fresh some late"]
    calm = str(freshness_plot(samples[:50])["freshness_plot"].value)
    assert "#d22" not in drawn(calm)
    assert re.fullmatch(r"M0,2(?:h\d+)+M238,2h2", drawn(calm)["#292"])
    assert words(calm)[-1] == "fresh"


def test_times_without_samples_are_as_wide_as_they_were_and_empty() -> None:
    """The pipeline stood still for the second and third of four hours; in the last one a price was late."""
    step = timedelta(minutes=5)
    samples = [FreshnessSample(START + step * i, 10, 10, int(i >= 36)) for i in range(48) if not 12 <= i < 36]
    found = drawn(str(freshness_plot(samples)["freshness_plot"].value))
    first, second, now = found["#292"].split("M")[1:]
    assert now == "238,2h2"
    assert first.startswith("0,2h")
    left = round(240 * 180 / 235)
    assert second.startswith(f"{left},2h")
    assert sum(map(int, re.findall(r"h(\d+)", first))) == round(240 * 60 / 235)
    assert sum(map(int, re.findall(r"h(\d+)", second))) == 240 - left
    assert re.fullmatch(rf"M{left},58(?:H\d+)*H240M238,58H240", found["#d22"])


def test_many_troubled_hours_are_still_shown_at_once() -> None:
    wild = random.Random(1)
    samples = [
        FreshnessSample(START + timedelta(minutes=5 * i), 99_999, wild.randrange(99_999), wild.randrange(2))
        for i in range(288)
    ]
    assert len(str(freshness_plot(samples)["freshness_plot"].value)) <= MOST_CHARACTERS
