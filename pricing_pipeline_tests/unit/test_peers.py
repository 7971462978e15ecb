"""B18: a quote and the bar of its day are of one price. What contradicts is quarantined, and no true day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Doubt, Known, Peer, Point
from pricing_pipeline.judging.peers import contradiction
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars

DAYS = [(symbol, number) for symbol in SYMBOLS for number in range(1, len(recorded_bars()[symbol]))]
SPLIT_DAYS = [
    (symbol, number)
    for symbol, number in DAYS
    if recorded_bars()[symbol][number].split != recorded_bars()[symbol][number - 1].split
]


def bar_of(symbol: str, number: int, currency: str | None = "USD") -> Observation:
    bar = recorded_bars()[symbol][number]
    at = datetime(bar.day.year, bar.day.month, bar.day.day, tzinfo=UTC)
    close, open_, high, low = (Decimal(text) for text in (bar.close, bar.open, bar.high, bar.low))
    return Observation(symbol, at, close, bar.close, currency, open_, high, low, Decimal(bar.volume))


def quote_of(bar: Observation, price: Decimal, hours: float = 15, currency: str | None = "USD") -> Observation:
    return Observation(bar.symbol, bar.observed_at + timedelta(hours=hours), price, str(price), currency)


def beside(believed: Observation, *splits: float, **more: object) -> Known:
    """What is known when the counterpart of a day is believed."""
    is_bar = believed.high is not None
    kind = "equity_daily" if is_bar else "equity_quote"
    peer = Peer(
        *(believed.observed_at, believed.close, believed.low, believed.high),
        *(believed.currency, kind, is_bar, splits),
    )
    return replace(Known(currency=believed.currency, peer=peer), **more)  # type: ignore[arg-type]


@given(
    st.sampled_from(DAYS) | st.sampled_from(SPLIT_DAYS),
    st.floats(0, 1),
    st.integers(0, 23),
    st.sampled_from(["USD", None]),
)
def test_b18_no_quote_of_a_true_day_contradicts_its_bar_nor_the_bar_the_quote(
    day: tuple[str, int], place: float, hour: int, currency: str | None
) -> None:
    bar = bar_of(*day)
    assert bar.low is not None
    assert bar.high is not None
    quote = quote_of(bar, bar.low + (bar.high - bar.low) * Decimal(place), hour, currency)
    assert contradiction(beside(bar), quote, Fetcher.QUOTE, 3) is None
    assert contradiction(beside(quote), bar, Fetcher.DAILY_BARS, 3) is None


@given(st.sampled_from(SPLIT_DAYS))
def test_b18_a_quote_from_before_the_session_of_a_known_split_contradicts_nothing(
    day: tuple[str, int],
) -> None:
    symbol, number = day
    before, bar = bar_of(symbol, number - 1), bar_of(symbol, number)
    history = recorded_bars()[symbol]
    ratio = float(history[number - 1].split / history[number].split)
    quote = quote_of(bar, before.close, 8)
    assert contradiction(beside(bar, ratio), quote, Fetcher.QUOTE, 3) is None
    told = ((bar.observed_at.date(), ratio),)
    assert contradiction(beside(quote, splits=told), bar, Fetcher.DAILY_BARS, 3) is None


@given(
    st.sampled_from(DAYS),
    st.decimals("3.1", "5000", places=2),
    st.booleans(),
    st.booleans(),
)
def test_b18_whatever_is_a_factor_away_from_all_of_its_day_is_quarantined(
    day: tuple[str, int], factor: Decimal, is_above: bool, is_quote: bool
) -> None:
    bar = bar_of(*day)
    assert bar.low is not None
    assert bar.high is not None
    assert bar.open is not None
    by = factor if is_above else 1 / factor
    edge = bar.high if is_above else bar.low
    if is_quote:
        wrong, known, fetcher = quote_of(bar, edge * by), beside(bar), Fetcher.QUOTE
    else:
        true = quote_of(bar, bar.high if not is_above else bar.low)
        shifted = {name: getattr(bar, name) * by for name in ("open", "high", "low", "close")}
        wrong, known, fetcher = replace(bar, **shifted), beside(true), Fetcher.DAILY_BARS
        assert wrong.low is not None
        assert wrong.high is not None
        assume(wrong.low / true.close > 3 if is_above else true.close / wrong.high > 3)
    assert judge(known, [wrong], fetcher, is_latest=True).doubted


FIRST = bar_of("AAPL", 3000)


@pytest.mark.parametrize("factor", [200, Decimal("0.005")])
def test_b18_a_fault_is_quarantined_also_where_the_last_stored_day_is_so_long_ago_that_any_step_may_be(
    factor: Decimal,
) -> None:
    """It was seen: a history until 2013, a watched quote, and then a first daily bar two hundred times as high."""
    bar = replace(FIRST, low=None, high=None, open=None, close=FIRST.close * factor)
    old = Point(FIRST.observed_at - timedelta(days=13 * 365), FIRST.close)
    quote = quote_of(FIRST, FIRST.close)
    known = beside(quote, anchors=(old, Point(quote.observed_at, quote.close)))
    assert [one.kind for one in judge(known, [bar], Fetcher.DAILY_BARS, is_latest=True).doubted] == [Doubt.JUMP]


def test_b18_another_currency_another_day_and_what_is_stored_are_not_compared() -> None:
    wrong = replace(FIRST, low=None, high=None, open=None, close=FIRST.close * 200)
    quote = quote_of(FIRST, FIRST.close)
    assert contradiction(beside(quote), wrong, Fetcher.DAILY_BARS, 3) is not None
    for known in (
        beside(replace(quote, currency="GBP")),
        beside(replace(quote, observed_at=quote.observed_at + timedelta(days=1))),
        beside(quote, stored={wrong.observed_at: wrong.close}),
        beside(quote, are_jumps_trusted=True),
    ):
        assert contradiction(known, wrong, Fetcher.DAILY_BARS, 3) is None


def test_b18_quotes_of_an_hour_make_a_level_believed_beside_an_early_bar_as_beside_an_early_quote() -> None:
    wild = quote_of(FIRST, FIRST.close * 5, 20)
    earlier = [quote_of(FIRST, FIRST.close * 5, hours) for hours in (18.5, 19)]
    points = tuple(Point(one.observed_at, one.close) for one in earlier)
    assert contradiction(beside(FIRST, witnesses=points[1:]), wild, Fetcher.QUOTE, 3) is not None
    assert contradiction(beside(FIRST, witnesses=points), wild, Fetcher.QUOTE, 3) is None
    mad = replace(wild, close=FIRST.close * 200)
    points = tuple(Point(one.at, mad.close) for one in points)
    assert contradiction(beside(FIRST, witnesses=points), mad, Fetcher.QUOTE, 3) is not None


def test_b18_a_unit_is_named_as_one() -> None:
    pence = quote_of(FIRST, FIRST.close * 100)
    found = contradiction(beside(FIRST), pence, Fetcher.QUOTE, 3)
    assert found is not None
    assert found.kind is Doubt.UNIT
    assert "a factor of 100" in found.reason
    assert "equity_daily" in found.reason
