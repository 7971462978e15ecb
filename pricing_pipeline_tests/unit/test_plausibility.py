"""What is believed beside what is known: every fault is held, and no true day of a real history."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Adjustment, Observation
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars
from pricing_pipeline.validation.knowledge import Doubt, Known, Point, Rival, Verdict
from pricing_pipeline.validation.plausibility import judge
from pricing_pipeline_tests.support.recordings import recorded

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SCHEMES = ("118632", "119551", "120841", "125497")


def quote(price: str, at: datetime = NOON, currency: str | None = "USD") -> Observation:
    return Observation("AAPL", at, Decimal(price), price, currency)


def believing(price: str, ago: timedelta = timedelta(minutes=1)) -> Known:
    """One value is known, so long ago."""
    return Known(currency="USD", newest_at=NOON - ago, anchors=(Point(NOON - ago, Decimal(price)),))


def bars(symbol: str, adjustment: Adjustment = Adjustment.RAW) -> list[Observation]:
    """Thirteen years as they were recorded: raw, or divided by the splits that came later."""
    found = []
    for bar in recorded_bars()[symbol]:
        by = bar.split if adjustment is Adjustment.SPLITS else 1
        at = datetime(bar.day.year, bar.day.month, bar.day.day, tzinfo=UTC)
        prices = (Decimal(text) / by for text in (bar.close, bar.open, bar.high, bar.low))
        close, open_, high, low = prices
        volume = Decimal(bar.volume * by)
        found.append(Observation(symbol, at, close, bar.close, "USD", open_, high, low, volume, adjustment))
    return found


def navs(code: str) -> list[Observation]:
    answer = recorded("mfapi", f"mf_{code}_full_history.json")
    window = Window(date(2006, 1, 1), NOON.date())
    parsed = PROVIDERS["mfapi"].parse(Fetcher.NAV, [code], window, answer, now=NOON)
    return list(parsed.observations)


def times(row: Observation, factor: Decimal) -> Observation:
    shifted = {
        name: value * factor
        for name in ("close", "open", "high", "low")
        if (value := getattr(row, name)) is not None
    }
    return replace(row, **shifted)


def held(verdict: Verdict) -> dict[datetime, Doubt]:
    return {doubt.observation.observed_at: doubt.kind for doubt in verdict.held}


def daily(known: Known, rows: Sequence[Observation]) -> Verdict:
    return judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)


# Two providers


def test_f6_days_on_which_another_provider_differs_by_more_than_a_tenth_are_held() -> None:
    rows = bars("IBM")[:30]
    told = {row.observed_at: Rival(row.observed_at, row.close, "yahoo") for row in rows}
    known = Known(currency="USD", others=told)
    assert not daily(known, rows).held
    odd, unfinished = rows[10], rows[20]
    told |= {
        row.observed_at: replace(told[row.observed_at], value=row.close / 2) for row in (odd, unfinished)
    }
    known = replace(known, provisional=frozenset({unfinished.observed_at}))
    assert held(daily(known, rows)) == {odd.observed_at: Doubt.DISAGREEMENT}
    assert odd.observed_at not in {row.observed_at for row in daily(known, rows).good}
    assert not daily(replace(known, are_jumps_trusted=True), rows).held, "a person knows better"


# One value


def test_b18_an_expensive_share_is_a_share_like_any_other() -> None:
    assert not judge(believing("699000"), [quote("700123.45")], Fetcher.QUOTE, is_latest=True).held
    assert not judge(Known(), [quote("700123.45")], Fetcher.QUOTE, is_latest=True).held


@pytest.mark.parametrize(
    ("known", "price", "currency", "kind"),
    [
        (believing("72.50"), "72.60", "GBP", Doubt.CURRENCY),
        (believing("72.50"), "7260", "USD", Doubt.UNIT),
        (believing("7250"), "72.60", "USD", Doubt.UNIT),
        (believing("72.50"), "72600", "USD", Doubt.UNIT),
        (believing("72.50"), "3000", "USD", Doubt.JUMP),
        (believing("72.50"), "300", "USD", Doubt.JUMP),
        (believing("72.50"), "0.0001", "USD", Doubt.UNIT),
        (replace(believing("72.50"), highest=Decimal(80)), "80.01", "USD", Doubt.BOUNDS),
        (replace(believing("72.50"), lowest=Decimal(70)), "69.99", "USD", Doubt.BOUNDS),
    ],
)
def test_b18_f6_a_quote_that_cannot_be_true_is_held(
    known: Known, price: str, currency: str, kind: Doubt
) -> None:
    row = quote(price, currency=currency)
    verdict = judge(known, [row], Fetcher.QUOTE, is_latest=True)
    assert (held(verdict), verdict.good) == ({NOON: kind}, [])


@pytest.mark.parametrize("price", ["72.50", "60", "100", "36.25", "145.00", "24.50", "210"])
def test_b18_a_quote_within_three_times_the_last_is_believed(price: str) -> None:
    assert not judge(believing("72.50"), [quote(price)], Fetcher.QUOTE, is_latest=True).held


def test_b18_bounds_do_not_move_with_the_spelling_and_are_inclusive() -> None:
    known = replace(believing("72.50"), lowest=Decimal("72.5"), highest=Decimal("72.5"))
    assert not judge(known, [quote("72.500")], Fetcher.QUOTE, is_latest=True).held


def test_b18_a_source_without_a_currency_is_not_in_another_one() -> None:
    assert not judge(believing("72.50"), [quote("73", currency=None)], Fetcher.QUOTE, is_latest=True).held


def test_b18_a_price_may_have_gone_far_in_a_year() -> None:
    known = believing("10", timedelta(days=365))
    assert not judge(known, [quote("65")], Fetcher.QUOTE, is_latest=True).held


def test_b18_what_a_person_trusts_is_believed_but_for_currency_and_bounds() -> None:
    known = replace(believing("72.50"), are_jumps_trusted=True)
    assert not judge(known, [quote("7250")], Fetcher.QUOTE, is_latest=True).held
    assert judge(known, [quote("7250", currency="GBP")], Fetcher.QUOTE, is_latest=True).held


def test_b18_f6_a_day_that_comes_again_by_a_factor_is_held_and_a_correction_is_not() -> None:
    day = bars("IBM")[100]
    known = Known(stored={day.observed_at: day.close})
    for factor, kind in (("2", Doubt.SPLIT), ("100", Doubt.UNIT), ("1.5", Doubt.JUMP), ("1.05", None)):
        verdict = judge(known, [times(day, Decimal(factor))], Fetcher.DAILY_BARS, is_latest=True)
        assert [doubt.kind for doubt in verdict.held] == ([] if kind is None else [kind])


# Repetition


def witnesses(prices: Sequence[str], apart: timedelta) -> tuple[Point, ...]:
    count = len(prices)
    return tuple(Point(NOON - apart * (count - n), Decimal(price)) for n, price in enumerate(prices))


def test_b18_quotes_that_stay_on_a_level_for_an_hour_are_believed() -> None:
    known = replace(
        believing("20", timedelta(hours=3)), witnesses=witnesses(["100", "101"], timedelta(minutes=31))
    )
    assert not judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).held
    known = replace(known, witnesses=witnesses(["100", "101"], timedelta(minutes=20)))
    assert judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).held, "not yet an hour"
    known = replace(known, witnesses=witnesses(["100", "20"], timedelta(minutes=31)))
    assert judge(known, [quote("102")], Fetcher.QUOTE, is_latest=True).held, "they contradict each other"


@pytest.mark.parametrize("price", ["2000", "0.2"])
def test_b18_another_unit_is_not_believed_however_often_it_comes(price: str) -> None:
    repeated = witnesses([price] * 50, timedelta(hours=1))
    known = replace(believing("20", timedelta(hours=51)), witnesses=repeated)
    assert judge(known, [quote(price)], Fetcher.QUOTE, is_latest=True).held


# Adjustment


def test_b18_a_history_has_one_basis() -> None:
    rows = bars("AAPL", Adjustment.SPLITS)[:5]
    known = Known(adjustment=Adjustment.RAW, newest_at=rows[-2].observed_at)
    span = judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
    assert (span.good, span.held, span.other_basis) == ([], [], 5)
    newest = judge(known, rows, Fetcher.DAILY_BARS, is_latest=True)
    assert (newest.good, newest.other_basis) == (rows[-1:], 4), (
        "no split has come after the answer's newest day"
    )


def test_b18_a_gap_is_not_filled_with_days_of_another_basis() -> None:
    """Days between the stored ones and the answer's newest may lie before a split, and be divided by it."""
    rows = bars("AAPL", Adjustment.SPLITS)[:8]
    known = Known(adjustment=Adjustment.RAW, newest_at=rows[0].observed_at)
    verdict = judge(known, rows[::-1], Fetcher.DAILY_BARS, is_latest=True)
    assert (verdict.good, verdict.other_basis) == (rows[-1:], 7)
    late = Known(adjustment=Adjustment.RAW, newest_at=rows[-1].observed_at + timedelta(days=1))
    assert judge(late, rows, Fetcher.DAILY_BARS, is_latest=True).good == []


# Whole histories


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("adjustment", Adjustment)
def test_b18_f6_no_day_of_thirteen_real_years_is_refused(symbol: str, adjustment: Adjustment) -> None:
    """Crashes of 2000 and 2008 and, raw, four splits included."""
    assert daily(Known(), bars(symbol, adjustment)).held == []


@pytest.mark.parametrize("code", SCHEMES)
def test_b18_f6_of_real_navs_only_a_mistake_of_the_source_is_refused(code: str) -> None:
    """119551, a bond fund, was published 13 % higher for one day of June 2024."""
    rows = navs(code)
    assert len(rows) > 3000
    verdict = judge(Known(), rows, Fetcher.NAV, is_latest=False)
    expected = {datetime(2024, 6, 24, tzinfo=UTC): Doubt.SPIKE} if code == "119551" else {}
    assert held(verdict) == expected


def lived(
    rows: Sequence[Observation], fetcher: Fetcher, a_time: int
) -> Iterator[tuple[Observation, Verdict]]:
    """The verdict of each day as it would have come: with the days before it, beside what was believed by then."""
    believed: dict[datetime, Observation] = {}
    doubted: dict[datetime, Observation] = {}
    for end in range(1, len(rows) + 1):
        answer = rows[max(0, end - a_time) : end]
        earlier = [row for at, row in believed.items() if at < answer[0].observed_at][-1:]
        anchors = [*earlier, *list(believed.values())[-1:]]
        known = Known(
            newest_at=max(believed, default=None),
            anchors=tuple(Point(row.observed_at, row.close) for row in anchors),
            witnesses=tuple(Point(row.observed_at, row.close) for row in doubted.values()),
        )
        verdict = judge(known, answer, fetcher, is_latest=True)
        for doubt in verdict.held:
            doubted[doubt.observation.observed_at] = doubt.observation
        for row in verdict.good:
            believed[row.observed_at] = row
            doubted.pop(row.observed_at, None)
        believed = dict(sorted(believed.items())[-10:])
        yield rows[end - 1], verdict


@pytest.mark.parametrize(
    ("symbol", "splits"),
    [
        ("AAPL", {"2000-06-21", "2000-06-22", "2005-02-28", "2005-03-01"}),
        ("MSFT", {"2003-02-18", "2003-02-19"}),
        ("IBM", set()),
        ("GOOG", set()),
        ("FB", set()),
    ],
)
def test_b18_f6_day_by_day_only_splits_wait_two_days(symbol: str, splits: set[str]) -> None:
    """Not Apple's loss of half its price on 2000-09-29, on which 22 times the usual volume was traded."""
    doubted: dict[str, Doubt] = {}
    last = Verdict()
    for _, last in lived(bars(symbol), Fetcher.DAILY_BARS, 5):
        doubted |= {at.date().isoformat(): kind for at, kind in held(last).items()}
    assert doubted == dict.fromkeys(splits, Doubt.SPLIT)
    assert not last.held


@pytest.mark.parametrize("code", SCHEMES)
def test_b18_f6_day_by_day_no_nav_is_refused(code: str) -> None:
    assert not [row for row, verdict in lived(navs(code), Fetcher.NAV, 1) if verdict.held]


# Faults put into real histories


@pytest.mark.parametrize("symbol", ["AAPL", "IBM"])
@pytest.mark.parametrize("factor", ["100", "0.01", "1000", "0.001", "10000"])
def test_b18_f6_another_unit_is_held_wherever_it_comes(symbol: str, factor: str) -> None:
    """FAULTS 14, x100: a day, a week, or all days from one on; the days between are stored."""
    rows, draw = bars(symbol), random.Random(f"{symbol} {factor}")
    for length in (1, 2, 5, 9, 400) * 4:
        start = draw.randrange(30, len(rows) - length)
        wrong = {row.observed_at for row in rows[start : start + length]}
        mixed = [times(row, Decimal(factor)) if row.observed_at in wrong else row for row in rows]
        verdict = daily(Known(), mixed)
        assert set(held(verdict)) == wrong
        assert len(verdict.good) == len(rows) - length


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_b18_f6_another_unit_in_all_of_an_answer_is_held_beside_what_is_stored(symbol: str) -> None:
    rows, draw = bars(symbol), random.Random(symbol)
    for factor in ("100", "0.01"):
        for _ in range(20):
            start = draw.randrange(1, len(rows) - 6)
            before = rows[start - 1]
            known = Known(anchors=(Point(before.observed_at, before.close),), newest_at=before.observed_at)
            wrong = [times(row, Decimal(factor)) for row in rows[start : start + 5]]
            verdict = judge(known, wrong, Fetcher.DAILY_BARS, is_latest=True)
            assert (len(verdict.held), verdict.good) == (5, [])


@pytest.mark.parametrize("code", SCHEMES)
def test_b18_f6_a_nav_in_another_unit_is_held_wherever_it_comes(code: str) -> None:
    rows, draw = navs(code), random.Random(code)
    usual = set(held(judge(Known(), rows, Fetcher.NAV, is_latest=False)))
    for length in (1, 3, 300) * 4:
        start = draw.randrange(30, len(rows) - length)
        wrong = {row.observed_at for row in rows[start : start + length]}
        mixed = [times(row, Decimal(100)) if row.observed_at in wrong else row for row in rows]
        assert set(held(judge(Known(), mixed, Fetcher.NAV, is_latest=False))) - usual == wrong - usual


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("factor", [2, 3, 4, 7, 10])
def test_b18_f6_a_split_that_was_not_applied_is_held(symbol: str, factor: int) -> None:
    """FAULTS 14: from some day back, adjusted prices are too high by a whole factor. The newest days are right."""
    rows, draw = bars(symbol, Adjustment.SPLITS), random.Random(f"{symbol} {factor}")
    for _ in range(5):
        split = draw.randrange(10, len(rows) - 30)
        mixed = [times(row, Decimal(factor)) if n < split else row for n, row in enumerate(rows)]
        newest = rows[-1]
        known = Known(anchors=(Point(newest.observed_at, newest.close),), adjustment=Adjustment.SPLITS)
        verdict = daily(known, mixed)
        assert set(held(verdict)) == {row.observed_at for row in rows[:split]}


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_b18_f6_a_split_that_begins_today_waits_for_its_confirmation(symbol: str) -> None:
    rows, draw = bars(symbol), random.Random(symbol)
    for factor in (2, 3, 4, 5, 7, 10, 15):
        at = draw.randrange(30, len(rows) - 5)
        before = rows[at - 5]
        known = Known(
            anchors=(
                Point(before.observed_at, before.close),
                Point(rows[at - 1].observed_at, rows[at - 1].close),
            )
        )
        answer = [*rows[at - 4 : at], times(rows[at], 1 / Decimal(factor))]
        verdict = judge(known, answer, Fetcher.DAILY_BARS, is_latest=True)
        assert held(verdict) == {rows[at].observed_at: Doubt.SPLIT}
        assert verdict.good == answer[:-1]


@pytest.mark.parametrize("before", [1, 2, 3, 10])
@pytest.mark.parametrize("after", [2, 3, 10])
def test_b18_f6_a_span_around_a_split_needs_no_more_days_than_it_has(before: int, after: int) -> None:
    """A true split of raw prices, at the beginning of an answer too: what comes after it shows that it stays."""
    rows = bars("AAPL")
    (split,) = (n for n, row in enumerate(rows) if row.observed_at.date().isoformat() == "2005-02-28")
    assert daily(Known(), rows[split - before : split + after]).held == []


def test_b18_f6_a_spike_is_held_and_its_neighbours_are_not() -> None:
    rows, draw = bars("IBM"), random.Random(7)
    for factor in ("1.6", "0.6", "2.2", "3", "5", "0.1"):
        for length in (1, 2, 4):
            start = draw.randrange(30, len(rows) - 30)
            wrong = {row.observed_at for row in rows[start : start + length]}
            mixed = [times(row, Decimal(factor)) if row.observed_at in wrong else row for row in rows]
            assert set(held(daily(Known(), mixed))) == wrong, (factor, length)


def test_b18_a_reason_names_both_values_and_the_factor() -> None:
    (doubt,) = judge(believing("72.50"), [quote("7250")], Fetcher.QUOTE, is_latest=True).held
    assert "7250" in doubt.reason
    assert "72.5" in doubt.reason
    assert "factor of 100" in doubt.reason


@given(
    shares=st.sampled_from([2, 3, 4, 5, 10, 0.1]),
    steps=st.lists(st.integers(-20, 20), min_size=6, max_size=30),
    split_at=st.integers(1, 25),
    cut=st.integers(1, 30),
    is_divided=st.booleans(),
    is_stored=st.booleans(),
)
def test_f5_nothing_divided_by_a_split_that_is_not_named_is_believed_as_traded(
    shares: float, steps: list[int], split_at: int, cut: int, is_divided: bool, is_stored: bool
) -> None:
    """Invariant: what is believed of an answer that leaves out a known split is the price as traded, to the digit.

    Where its days show which it is, they are believed or known already; else none before the split is.
    """
    split_at = min(split_at, len(steps) - 1)
    ex_on, ratio = date(2026, 3, 2) + timedelta(days=split_at), Decimal(str(shares))
    todays = [Decimal(10000 + sum(steps[: number + 1])) / 100 for number in range(len(steps))]
    at = [datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days=number) for number in range(len(steps))]
    traded = {
        day: price * ratio if day.date() < ex_on else price for day, price in zip(at, todays, strict=True)
    }
    sent = dict(zip(at, todays, strict=True)) if is_divided else traded
    rows = [Observation("AAPL", day, sent[day], "", "USD") for day in at[:cut]]
    known = Known(
        splits=((ex_on, float(shares)),),
        unnamed=((ex_on, float(shares)),),
        are_splits_told=True,
        stored=dict(list(traded.items())[:1]) if is_stored else {},
    )
    verdict = judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
    assert all(row.close == traded[row.observed_at] for row in verdict.good)
    is_seen = cut > split_at or (is_stored and not is_divided)
    believed = {row.observed_at for row in [*verdict.good, *verdict.confirmed]}
    if not is_divided and is_seen:
        assert believed == set(at[:cut])
    if not is_seen and not is_stored:
        assert not believed
    assert believed >= {day for day in at[:cut] if day.date() >= ex_on}


# Splits and the trading of their day

RATIOS = ((2, 1), (3, 1), (4, 1), (3, 2), (7, 5), (5, 4), (13, 1), (1, 4), (1, 10), (11, 25))


@given(
    ratio=st.sampled_from(RATIOS),
    steps=st.lists(st.integers(-20, 20), min_size=30, max_size=60),
    split_at=st.integers(10, 20),
    told_late=st.integers(-5, 5),
    is_volume_divided=st.booleans(),
    is_applied=st.booleans(),
)
def test_f5_a_known_split_is_applied_to_each_day_that_is_believed(
    ratio: tuple[int, int],
    steps: list[int],
    split_at: int,
    told_late: int,
    is_volume_divided: bool,
    is_applied: bool,
) -> None:
    """Invariant: whatever a known split is, and whatever is traded, no day that misses it is believed.

    A source tells it, some days off, and did not divide its prices, so that they stand too high once it is undone; with
    volumes of either basis. Where it was applied, all days are believed.
    """
    shares = Decimal(ratio[0]) / ratio[1]
    first = datetime(2026, 3, 2, tzinfo=UTC)
    at = [first + timedelta(days=number) for number in range(len(steps))]
    is_small = shares < Decimal("1.3")  # such a step is looked for on the split's own day alone
    told_on = (at[split_at] + timedelta(days=0 if is_applied or is_small else told_late)).date()
    rows = []
    for number, (day, step) in enumerate(zip(at, steps, strict=True)):
        undone = shares if day.date() < told_on else Decimal(1)
        missed = shares if number < split_at and not is_applied else Decimal(1)
        close = Decimal(10000 + step) / 100 * undone * missed
        volume = Decimal(10**6 + step * 10**4) / (missed if is_volume_divided else 1) / undone
        rows.append(Observation("AAPL", day, close, "", "USD", volume=volume))
    known = Known(splits=((told_on, float(shares)),), are_splits_told=True)
    verdict = daily(known, rows)
    good = {row.observed_at for row in verdict.good}
    if is_applied:
        assert good == set(at)
    else:
        missing = set(at[:split_at])
        assert not good & missing
        assert good >= {day for day in at[split_at:] if day.date() >= told_on}


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("ratio", [1.25, 1.4, 1.5, 2.0, 3.0])
def test_f5_no_true_day_around_a_split_that_was_applied_is_held(symbol: str, ratio: float) -> None:
    """A split in any month of thirteen real years makes no move of these years doubtful, not even a crash."""
    rows = bars(symbol, Adjustment.SPLITS)
    for first in range(0, len(rows), 21):
        ex_on = rows[first].observed_at.date()
        undone = [
            replace(
                times(row, Decimal(str(ratio))),
                adjustment=Adjustment.RAW,
                volume=(row.volume or 0) / Decimal(str(ratio)),
            )
            if row.observed_at.date() < ex_on
            else replace(row, adjustment=Adjustment.RAW)
            for row in rows[max(0, first - 60) : first + 60]
        ]
        known = Known(splits=((ex_on, ratio),), are_splits_told=True)
        assert daily(known, undone).held == [], (symbol, ratio, ex_on)


JAPAN = (
    *((20205, 1224400), (20175, 1003800), (20155, 1392300), (19900, 1401300), (20610, 1748300)),
    *((20430, 1096000), (20885, 1792300), (20960, 1191900), (20710, 901100), (4206, 6514500)),
    *((4161, 5535200), (4275, 9608400), (4182, 7076800), (4155, 6780600), (4088, 6063700)),
)
"""Closes and volumes of 4063.T around its split of 5:1 as Yahoo sent them: divided on the last day before it alone."""


def test_f5_yfinance_a_split_of_tokyo_that_was_applied_to_one_day_is_held() -> None:
    """ranaroussi/yfinance, tests/data/4063-T-1d-bad-stock-split.csv: five times the usual volume was no crash."""
    rows = sent(JAPAN, date(2023, 3, 30), 10, Decimal(5))
    known = Known(splits=((date(2023, 3, 30), 5.0),), are_splits_told=True)
    assert set(held(daily(known, rows))) == {row.observed_at for row in rows[:9]}
    assert set(held(daily(known, rows)).values()) == {Doubt.SPLIT}


def test_f5_yfinance_a_consolidation_of_sydney_that_was_not_applied_is_held() -> None:
    """ranaroussi/yfinance, tests/data/DEX-AX-1d-bad-stock-split.csv: 0.4406:1, of a share that nobody trades."""
    rows = sent([("0.053", 0)] * 15 + [("0.12029", 0)] * 8, date(2023, 5, 30), 21, Decimal("0.4406"))
    known = Known(splits=((date(2023, 5, 30), 0.4406),), are_splits_told=True)
    assert set(held(daily(known, rows))) == {row.observed_at for row in rows[:15]}


def sent(lines: Sequence[tuple[object, int]], ex_on: date, before: int, shares: Decimal) -> list[Observation]:
    """Daily closes and volumes as a chart has them, with the split undone of the first so many."""
    first = datetime(ex_on.year, ex_on.month, ex_on.day, tzinfo=UTC) - timedelta(days=before)
    return [
        Observation(
            "AAPL",
            first + timedelta(days=number),
            Decimal(str(close)) * (shares if number < before else 1),
            str(close),
            "USD",
            volume=Decimal(volume) / (shares if number < before else 1),
        )
        for number, (close, volume) in enumerate(lines)
    ]
