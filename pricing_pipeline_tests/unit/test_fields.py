"""What of a bar is stored beside its close: all that can be true, and nothing that contradicts it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.exact import MAX_DIGITS, scale_of, to_amount
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.fields import with_sound_parts
from pricing_pipeline.judging.knowledge import Doubt, Known, Point
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars

DAY = datetime(2026, 11, 19, tzinfo=UTC)
PARTS = ("open", "high", "low")


def bar(close: str, open_: str | None, high: str | None, low: str | None, at: datetime = DAY) -> Observation:
    parts = (None if one is None else Decimal(one) for one in (open_, high, low))
    return Observation("ELCO.L", at, Decimal(close), close, "GBP", *parts, Decimal(100))


def believing(close: str) -> Known:
    return Known(currency="GBP", anchors=(Point(DAY - timedelta(days=1), Decimal(close)),))


def kept(row: Observation, known: Known | None = None) -> tuple[dict[str, str], str | None]:
    (found,) = with_sound_parts(known or Known(), [row])
    given_ = {name: getattr(found, name) for name in PARTS}
    return {name: str(value) for name, value in given_.items() if value is not None}, found.quality


@pytest.mark.parametrize(
    ("parts", "dropped", "quality"),
    [
        (("10.2", "10.5", "10.1"), "", None),
        ((None, None, None), "", None),
        (("10.4", "10.3", "10.2"), "high", "high 10.3 is below the close 10.4"),
        (("10.4", "10.6", "10.45"), "open low", None),
        (("10.4", "10.6", "10.5"), "low", "low 10.5 is above the close 10.4"),
        (("10.7", "10.6", "10.1"), "open high", "open 10.7 is above high 10.6"),
        (("10.0", "10.6", "10.1"), "open low", "open 10.0 is below low 10.1"),
        (("104", "10.6", "10.1"), "open", "open 104 is far from the close 10.4"),
        (("1.04", "10.6", "10.1"), "open", "open 1.04 is far from the close 10.4"),
        (("10.4", "106", "10.1"), "high", "high 106 is far from the close 10.4"),
        (("10.4", "99999999999", "10.1"), "high", "high 99999999999 is far from the close 10.4"),
        (("10.4", "10.6", "0.00001"), "low", "low 0.00001 is far from the close 10.4"),
        (("10.4", "10.6", "1.01"), "low", "low 1.01 is far from the close 10.4"),
        (("10.4", "9", "11"), "high low", "high 9 is below the close 10.4; low 11 is above the close 10.4"),
    ],
)
def test_b18_parts_that_cannot_be_true_beside_the_close_are_dropped_and_named(
    parts: tuple[str | None, str | None, str | None], dropped: str, quality: str | None
) -> None:
    found, said = kept(bar("10.4", *parts))
    sent = {name: value for name, value in zip(PARTS, parts, strict=True) if value is not None}
    if quality is None and dropped:  # the low is above the close, and the open beside it is right
        dropped, quality = "low", "low 10.45 is above the close 10.4"
    assert found == {name: value for name, value in sent.items() if name not in dropped.split()}
    assert said == quality


def test_b18_a_day_that_crashed_or_soared_began_near_the_last_close() -> None:
    """SPI Energy on 2020-09-23 went from 1.02 to 14.60, and 46.67 between; Luna on 2022-05-12 to a thousandth."""
    assert kept(bar("14.60", "1.05", "46.67", "1.05"), believing("1.02"))[1] is None
    assert kept(bar("0.00017", "1.07", "1.07", "0.00010"), believing("1.05"))[1] is None
    assert "open 1.05 is far" in str(kept(bar("14.60", "1.05", "46.67", "1.05"))[1])
    first = bar("1.02", "1.00", "1.05", "0.99", DAY - timedelta(days=1))
    assert [row.quality for row in with_sound_parts(Known(), [first, bar("14.60", "1.05", "46.67", "1.05")])] == [
        None,
        None,
    ]


def calm(*, high: str = "10.2", low: str = "9.8", open_: str = "10", volume: int = 1000) -> list[str]:
    """What is dropped of a day, of which nothing but these is unusual, among thirty calm ones."""
    days = [bar("10", "10", "10.1", "9.9", DAY - timedelta(days=n)) for n in range(1, 31)]
    odd = replace(bar("10", open_, high, low), volume=Decimal(volume))
    *quiet, found = with_sound_parts(Known(), [*reversed(days), odd])
    assert all(row.quality is None for row in quiet)
    return [name for name in (*PARTS, "volume") if getattr(found, name) is None]


def test_b18_a_part_that_is_far_for_a_calm_share_is_dropped() -> None:
    """A high of 4.9 times the close, a low of 0.21, an open of 4.5 and a volume of a thousand million times."""
    assert calm() == calm(high="19.9", low="5.1", open_="12", volume=100_000_000) == []
    assert calm(high="49") == ["high"]
    assert calm(low="2.1") == ["low"]
    assert calm(open_="45", high="45") == ["open", "high"]
    assert calm(volume=10**12) == ["volume"]


def test_b18_a_wild_share_and_a_day_of_a_great_move_may_go_far() -> None:
    wild = [bar("10", "10", "11.5", "9.5", DAY - timedelta(days=n)) for n in range(1, 31)]
    assert with_sound_parts(Known(), [*reversed(wild), bar("10", "10", "45", "9.9")])[-1].quality is None
    quiet = [bar("1.02", "1.02", "1.03", "1.01", DAY - timedelta(days=n)) for n in range(1, 31)]
    moved = bar("14.60", "1.05", "46.67", "1.05")
    assert with_sound_parts(Known(), [*reversed(quiet), moved])[-1].quality is None


def test_b18_on_the_day_of_a_split_a_high_of_ten_times_is_not_excused_by_the_close_before_it() -> None:
    found, said = kept(bar("125", "126", "1280", "124"), believing("500"))
    assert (set(found), said) == ({"open", "low"}, "high 1280 is far from the close 125")


def test_b18_a_part_outside_its_symbols_bounds_is_dropped_and_a_close_outside_is_quarantined() -> None:
    known = Known(lowest=Decimal(10), highest=Decimal(11))
    row = bar("10.4", "10.5", "11.1", "9.9")
    verdict = judge(known, [row], Fetcher.DAILY_BARS, is_latest=True)
    assert [(one.close, one.high, one.low) for one in verdict.good] == [(Decimal("10.4"), None, None)]
    assert verdict.good[0].quality == "high 11.1 is above the bound of 11; low 9.9 is below the bound of 10"
    verdict = judge(known, [bar("12", "10.5", "10.9", "10.1")], Fetcher.DAILY_BARS, is_latest=True)
    assert [doubt.kind for doubt in verdict.doubted] == [Doubt.BOUNDS]


def test_b18_the_close_is_judged_as_always() -> None:
    """It stands alone where its parts contradict it, and is quarantined where its neighbours do."""
    verdict = judge(believing("10.4"), [bar("1040", "10.4", "10.6", "10.1")], Fetcher.DAILY_BARS, is_latest=True)
    (doubt,) = verdict.doubted
    assert doubt.kind is Doubt.UNIT
    assert not verdict.good


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_b18_thirteen_years_of_true_days_lose_nothing(symbol: str) -> None:
    rows = [
        bar(
            one.close,
            one.open,
            one.high,
            one.low,
            datetime(one.day.year, one.day.month, one.day.day, tzinfo=UTC),
        )
        for one in recorded_bars()[symbol]
    ]
    assert with_sound_parts(Known(), rows) == rows


PRICES = st.one_of(
    st.decimals("0.00001", "99999999999", places=5),
    st.decimals("8", "12", places=2),
    st.integers(1, 10**18 - 1).map(Decimal),
    st.integers(1, 10**6).map(lambda amount: Decimal(amount).scaleb(-18)),
)


@given(
    close=PRICES,
    parts=st.tuples(*[st.none() | PRICES] * 3),
    last=st.none() | PRICES,
    bounds=st.tuples(st.none() | PRICES, st.none() | PRICES),
)
@example(Decimal("123456789012345"), (Decimal("123456789012345.67891"),) * 3, None, (None, None))
def test_fault_14_whatever_comes_what_is_stored_is_consistent_and_the_close_is_as_sent(
    close: Decimal,
    parts: tuple[Decimal | None, ...],
    last: Decimal | None,
    bounds: tuple[Decimal | None, Decimal | None],
) -> None:
    """Parts are as sent or missing; missing only where the bar says why; what is left agrees, and fits one amount."""
    row = replace(bar("1", None, None, None), close=close, open=parts[0], high=parts[1], low=parts[2])
    known = Known(
        lowest=bounds[0],
        highest=bounds[1],
        anchors=() if last is None else (Point(DAY - timedelta(days=1), last),),
    )
    (found,) = with_sound_parts(known, [row])
    assert replace(found, open=None, high=None, low=None, quality=None) == replace(row, open=None, high=None, low=None)
    left = {name: value for name in PARTS if (value := getattr(found, name)) is not None}
    assert all(value == getattr(row, name) for name, value in left.items())
    assert (found.quality is None) == (found == row)
    high, low = left.get("high", Decimal("Infinity")), left.get("low", Decimal(0))
    assert low <= close <= high
    assert low <= left.get("open", close) <= high
    nearest = [close, *([] if last is None else [last])]
    assert all(min(nearest) / 5 <= value <= max(nearest) * 5 for value in left.values())
    assert all(value >= (bounds[0] or 0) and value <= (bounds[1] or value) for value in left.values())
    scale = scale_of(found, 2)
    assert all(abs(to_amount(value, scale)) < 10**MAX_DIGITS for value in (close, *left.values()))
    assert with_sound_parts(known, [found]) == [found], "once is enough"


@given(st.lists(st.decimals("8", "12", places=2), min_size=4, max_size=4))
def test_b18_of_a_bar_that_agrees_nothing_is_dropped(prices: list[Decimal]) -> None:
    low, open_, close, high = sorted(prices)
    assume(low)
    for first, last in ((open_, close), (close, open_)):
        row = replace(bar("1", None, None, None), close=last, open=first, high=high, low=low)
        assert with_sound_parts(Known(), [row])[0] is row
