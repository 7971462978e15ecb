"""F5: an overlap of what is stored and what comes, and what its differences say."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.judging.knowledge import Doubt, Known
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.judging.restatement import RestatementKind, find

FIRST = datetime(2010, 3, 1, tzinfo=UTC)
CENT = Decimal("0.01")


def walk(days: int, seed: int = 1, start: str = "400.00") -> list[Decimal]:
    dice, price, found = random.Random(seed), Decimal(start), []
    for _ in range(days):
        price = (price * Decimal(str(1 + dice.uniform(-0.02, 0.02)))).quantize(CENT)
        found.append(price)
    return found


def at(number: int) -> datetime:
    return FIRST + timedelta(days=number)


def stored(values: list[Decimal]) -> dict[datetime, Decimal]:
    return {at(number): value for number, value in enumerate(values)}


def rows(values: list[Decimal], adjustment: Adjustment = Adjustment.SPLITS) -> list[Observation]:
    return [
        Observation("AAPL", at(number), value, str(value), adjustment=adjustment) for number, value in enumerate(values)
    ]


def divided(values: list[Decimal], ratio: str, until: int) -> list[Decimal]:
    """The first values divided and rounded to cents, as sources do."""
    return [
        (value / Decimal(ratio)).quantize(CENT, ROUND_HALF_EVEN) if number < until else value
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("ratio", "kind"),
    [
        ("4", RestatementKind.SPLIT),
        ("1.5", RestatementKind.SPLIT),
        ("0.1", RestatementKind.SPLIT),
        ("1.25", RestatementKind.SPLIT),
        ("1.0083", RestatementKind.DIVIDEND),
        ("1.0312", RestatementKind.DIVIDEND),
    ],
)
@pytest.mark.parametrize("days", [3, 300])
@pytest.mark.parametrize("seed", range(2))
def test_f5_one_ratio_for_all_older_days_is_an_adjustment(
    ratio: str, kind: RestatementKind, days: int, seed: int
) -> None:
    before = walk(days + 4, seed)
    found = find(stored(before), rows(divided(before, ratio, days)))
    assert found is not None
    assert (found.kind, found.is_constant, len(found.times)) == (kind, True, days)
    assert found.ratio is not None
    assert abs(found.ratio / Decimal(ratio) - 1) < Decimal("0.0002")
    assert (found.first_at, found.last_at) == (at(0), at(days - 1))


@pytest.mark.parametrize("seed", range(5))
def test_f5_corrections_here_and_there_are_no_adjustment(seed: int) -> None:
    dice, before = random.Random(seed), walk(30, seed)
    after = [value + CENT * dice.randint(1, 300) if dice.random() < 0.3 else value for value in before]
    found = find(stored(before), rows(after))
    assert found is not None
    assert (found.kind, found.ratio) == (RestatementKind.SCATTERED, None)
    assert found.times == {at(n) for n in range(30) if before[n] != after[n]}
    assert found.largest == max(abs(a / b - 1) for a, b in zip(after, before, strict=True))


def test_f5_two_days_prove_nothing_and_a_day_between_stays_as_it_was() -> None:
    before = walk(10)
    two = find(stored(before), rows(divided(before, "4", 2)))
    assert two is not None
    assert two.kind is RestatementKind.SCATTERED
    gap = divided(before, "4", 6)
    gap[2] = before[2]
    found = find(stored(before), rows(gap))
    assert found is not None
    assert found.kind is RestatementKind.SCATTERED


def test_f5_what_comes_as_it_is_stored_or_was_not_final_says_nothing() -> None:
    before = walk(10)
    assert find(stored(before), rows(before)) is None
    assert find({}, rows(before)) is None
    changed = [*before[:-1], before[-1] + 1]
    assert find(stored(before), rows(changed), {at(9)}) is None
    assert find(stored(before), rows(changed)) is not None


def known(before: list[Decimal]) -> Known:
    return Known(adjustment=Adjustment.SPLITS, stored=stored(before), newest_at=at(len(before) - 1))


@pytest.mark.parametrize(("ratio", "kind"), [("1.25", Doubt.SPLIT), ("1.0083", Doubt.DIVIDEND)])
def test_f5_an_adjustment_that_is_not_known_is_quarantined_however_small(ratio: str, kind: Doubt) -> None:
    """Each day alone would pass for a correction."""
    before = walk(300)
    again = divided(before, ratio, 290)
    verdict = judge(known(before), rows(again), Fetcher.DAILY_BARS, is_latest=False)
    assert {doubt.kind for doubt in verdict.doubted} == {kind}
    assert [doubt.observation.observed_at for doubt in verdict.doubted] == [at(n) for n in range(285, 290)]
    assert {row.observed_at for row in verdict.good} == {at(n) for n in range(290, 300)}
    assert verdict.restatement is not None
    assert len(verdict.restatement.times) == 290


def test_f5_corrections_pass() -> None:
    before = walk(30)
    again = [*before[:10], before[10] + 1, *before[11:]]
    verdict = judge(known(before), rows(again), Fetcher.DAILY_BARS, is_latest=False)
    assert (verdict.doubted, len(verdict.good)) == ((), 30)
    assert verdict.restatement is not None
    assert verdict.restatement.kind is RestatementKind.SCATTERED
