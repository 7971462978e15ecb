"""True moves are believed, by their trading or by a second provider; lies of the same size are not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Doubt, Known, Point, Rival, Traded, Verdict
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.examples import examples

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
USUAL = 1_000_000


def days(closes: Sequence[float], volumes: Sequence[float] | None = None) -> list[Observation]:
    """Bars of days that follow each other."""
    return [
        Observation(
            "AAPL",
            MONDAY + timedelta(days=number),
            Decimal(f"{close:.6f}"),
            f"{close:.6f}",
            "USD",
            volume=None if volumes is None else Decimal(int(volumes[number])),
        )
        for number, close in enumerate(closes)
    ]


def moved(factor: float, trading: float, before: int = 40, after: int = 40) -> list[Observation]:
    """A calm share that moves by a factor, with so many times the usual volume on that day."""
    calm = [100 * (1 + 0.004 * (number % 5 - 2)) for number in range(before + after)]
    closes = [price * (factor if number >= before else 1) for number, price in enumerate(calm)]
    return days(closes, [USUAL * (trading if number == before else 1) for number in range(before + after)])


def in_one(rows: Sequence[Observation], **known: bool) -> list[Observation]:
    """What is quarantined when all days come at once."""
    return _quarantined(judge(Known(**known), rows, Fetcher.DAILY_BARS, is_latest=False))  # type: ignore[arg-type]


def day_by_day(rows: Sequence[Observation], stored: int, **known: bool) -> list[Observation]:
    """What is never believed when the last five days come each day, beside so many days that are stored."""
    believed = {row.observed_at: row.close for row in rows[:stored]}
    doubted: dict[datetime, Observation] = {}
    for end in range(stored + 1, len(rows) + 1):
        answer = rows[max(0, end - 5) : end]
        before = [Point(at, close) for at, close in sorted(believed.items()) if at < answer[0].observed_at]
        about = Known(
            stored=believed,
            anchors=(*before[-1:], Point(newest := max(believed), believed[newest])),
            witnesses=tuple(Point(row.observed_at, row.close) for row in doubted.values()),
            trading=tuple(
                Traded(row.observed_at, row.close, row.volume)
                for row in rows
                if row.volume and row.observed_at < answer[0].observed_at and row.observed_at in believed
            ),
            **known,  # type: ignore[arg-type]
        )
        verdict = judge(about, answer, Fetcher.DAILY_BARS, is_latest=True)
        believed |= {row.observed_at: row.close for row in verdict.good}
        doubted |= {row.observed_at: row for row in _quarantined(verdict)}
    return [row for row in rows if row.observed_at not in believed]


def _quarantined(verdict: Verdict) -> list[Observation]:
    return [doubt.observation for doubt in verdict.doubted]


def kinds(verdict: Verdict) -> set[Doubt]:
    return {doubt.kind for doubt in verdict.doubted}


# Trading


@pytest.mark.parametrize(
    ("factor", "trading"),
    [(0.162, 60), (5.0, 200), (15.46, 500), (0.4, 8), (0.5, 6), (0.5, 10), (30.0, 1000), (0.2, 25)],
)
def test_f6_a_move_that_its_trading_proves_is_believed_however_large(factor: float, trading: float) -> None:
    """A drug that failed (26.48 to 4.30), one that did not (2.49 to 38.49), and moves of whole factors."""
    for are_splits_reported in (True, False):
        rows = moved(factor, trading)
        assert in_one(rows, are_splits_reported=are_splits_reported) == []
        assert day_by_day(rows, 40, are_splits_reported=are_splits_reported) == []


@pytest.mark.parametrize(
    ("factor", "trading"),
    [(0.5, 1), (0.25, 4), (0.1, 10), (4.0, 1), (4.0, 0.25), (0.25, 1e6), (4.0, 1e6), (10.0, 4), (0.01, 300)],
    ids=str,
)
def test_f6_trading_proves_no_split_no_other_unit_and_nothing_absurd(factor: float, trading: float) -> None:
    """A split that was not applied moves as many more shares, and no more money; 10^12 shares are a mistake."""
    for before, after in ((40, 10), (10, 40)):
        rows = moved(factor, trading, before, after)
        assert in_one(rows, are_splits_reported=True) in (rows[:before], rows[before:])


# A peak

PEAKS = {
    "Volkswagen": ([211] * 30 + [210.85, 520, 945, 517, 512, 506, 490, 450, 400, 380], [2] * 31 + [12, 8, 4] + [2] * 6),
    "a pump": ([5] * 30 + [5.1, 16, 5.3, 5.2, 5.1], [1] * 31 + [80, 30, 9, 1]),
    "two days": ([5] * 30 + [16, 15.5, 5.3, 5.2, 5.1], [1] * 30 + [80, 30, 1, 1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PEAKS)
def test_f6_a_peak_with_heavy_trading_is_believed_and_so_is_its_end(name: str) -> None:
    closes, volumes = PEAKS[name]
    rows = days(closes, [USUAL * volume for volume in volumes])
    for are_splits_reported in (True, False):
        assert in_one(rows, are_splits_reported=are_splits_reported) == []
        assert day_by_day(rows, 30, are_splits_reported=are_splits_reported) == []
    peak = max(rows, key=lambda row: row.close)
    quiet = days(closes, [USUAL] * len(closes))
    assert peak.observed_at in {row.observed_at for row in in_one(quiet, are_splits_reported=True)}


# A stretch of wrong days

FACTORS = st.one_of(st.floats(1.6, 400), st.floats(0.003, 0.6))


@given(
    pattern=st.lists(FACTORS, min_size=1, max_size=10),
    before=st.integers(12, 60),
    after=st.integers(12, 60),
    are_splits_reported=st.booleans(),
    is_stored=st.booleans(),
    seed=st.randoms(use_true_random=False),
)
@settings(max_examples=examples(200), deadline=None)
def test_f6_of_a_wrong_stretch_each_day_is_quarantined_and_no_other(
    pattern: list[float], before: int, after: int, are_splits_reported: bool, is_stored: bool, seed: object
) -> None:
    """Invariant: whatever factors up to ten days between right ones are wrong by. Their trading is as usual."""
    count = before + len(pattern) + after
    right = [100 * (1 + 0.001 * seed.randrange(-5, 6)) for _ in range(count)]  # type: ignore[attr-defined]
    sent = list(right)
    for place, factor in enumerate(pattern, before):
        sent[place] *= factor
    rows = days(sent, [USUAL * (1 + 0.01 * (number % 7)) for number in range(count)])
    wrong = rows[before : before + len(pattern)]
    around = {row.observed_at: row.close for row in rows if row not in wrong} if is_stored else {}
    known = Known(stored=around, are_splits_reported=are_splits_reported)
    verdict = judge(known, rows, Fetcher.DAILY_BARS, is_latest=False)
    assert {row.observed_at for row in _quarantined(verdict)} == {row.observed_at for row in wrong}
    assert len(verdict.good) == before + after


# What has no splits


@given(factor=st.floats(1.4, 19), is_up=st.booleans(), after=st.integers(1, 30), is_latest=st.booleans())
def test_f6_what_has_no_splits_is_never_taken_for_split(
    factor: float, is_up: bool, after: int, is_latest: bool
) -> None:
    """Invariant: a devaluation of any size waits for two days at most, though its source names all splits."""
    rows = moved(factor if is_up else 1 / factor, 1, 30, after)
    known = Known(are_splits_reported=True, has_splits=False)
    verdict = judge(known, rows, Fetcher.DAILY_BARS, is_latest=is_latest)
    assert kinds(verdict) <= {Doubt.JUMP}
    assert not verdict.doubted or after < 3


def test_f6_a_past_of_what_has_no_splits_that_comes_divided_is_of_another_unit() -> None:
    rows = days([100.0] * 5 + [50.0])
    known = Known(has_splits=False, stored={row.observed_at: row.close * 2 for row in rows[:5]})
    assert kinds(judge(known, rows, Fetcher.DAILY_BARS, is_latest=True)) == {Doubt.UNIT}
    single = Known(has_splits=False, stored={rows[5].observed_at: Decimal(100)})
    assert kinds(judge(single, rows[5:], Fetcher.DAILY_BARS, is_latest=True)) == {Doubt.JUMP}


# A second provider


@pytest.mark.parametrize("price", ["125", "350", "10000", "0.5"])
def test_f6_two_providers_that_say_the_same_of_a_time_confirm_each_other(price: str) -> None:
    """Also where the other's word is quarantined, and its believed price is the old one."""
    at = MONDAY
    row = Observation("AAPL", at, Decimal(price), price, "USD")
    old = Rival(at - timedelta(minutes=2), Decimal(100), "yahoo")
    alone = Known(anchors=(Point(at - timedelta(minutes=1), Decimal(100)),), others={old.at: old})
    assert judge(alone, [row], Fetcher.QUOTE, is_latest=True).doubted
    for said, is_believed in ((Decimal(price), True), (Decimal(price) * Decimal("1.2"), False)):
        newest = Rival(at - timedelta(seconds=1), said, "yahoo")
        known = Known(anchors=alone.anchors, others=alone.others, unsettled={newest.at: newest})
        assert bool(judge(known, [row], Fetcher.QUOTE, is_latest=True).good) is is_believed


def test_f6_what_one_provider_alone_says_and_is_quarantined_doubts_nobody_else() -> None:
    row = Observation("AAPL", MONDAY, Decimal(101), "101", "USD")
    lie = Rival(MONDAY, Decimal(250), "yahoo")
    known = Known(anchors=(Point(MONDAY - timedelta(minutes=1), Decimal(100)),), unsettled={lie.at: lie})
    assert not judge(known, [row], Fetcher.QUOTE, is_latest=True).doubted
