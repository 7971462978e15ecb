"""Of real histories no true day is refused, and every fault that is put into one is quarantined."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.judging.knowledge import Doubt, Known, Point, Verdict
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.real_histories import bars, daily, navs, quarantined, stretch, times

# Whole histories


def test_b18_f6_of_real_navs_only_a_mistake_of_the_source_is_refused() -> None:
    """119551, a bond fund, was published 13 % higher for one day of June 2024."""
    verdict = judge(Known(), navs("119551"), Fetcher.NAV, is_latest=False)
    assert quarantined(verdict) == {datetime(2024, 6, 24, tzinfo=UTC): Doubt.SPIKE}


def lived(rows: Sequence[Observation], fetcher: Fetcher, a_time: int) -> Iterator[tuple[Observation, Verdict]]:
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
        for doubt in verdict.doubted:
            doubted[doubt.observation.observed_at] = doubt.observation
        for row in verdict.good:
            believed[row.observed_at] = row
            doubted.pop(row.observed_at, None)
        believed = dict(sorted(believed.items())[-10:])
        yield rows[end - 1], verdict


def test_b18_f6_day_by_day_no_nav_is_refused() -> None:
    assert not [row for row, verdict in lived(navs("119551"), Fetcher.NAV, 1) if verdict.doubted]


# Faults put into real histories


@pytest.mark.parametrize("symbol", ["AAPL", "META"])
def test_b18_f6_another_unit_in_all_of_an_answer_is_quarantined_beside_what_is_stored(symbol: str) -> None:
    rows, draw = bars(symbol), random.Random(symbol)
    for factor in ("100", "0.01"):
        for _ in range(20):
            start = draw.randrange(1, len(rows) - 6)
            before = rows[start - 1]
            known = Known(anchors=(Point(before.observed_at, before.close),), newest_at=before.observed_at)
            wrong = [times(row, Decimal(factor)) for row in rows[start : start + 5]]
            verdict = judge(known, wrong, Fetcher.DAILY_BARS, is_latest=True)
            assert (len(verdict.doubted), verdict.good) == (5, Rows())


@pytest.mark.parametrize("symbol", ["AAPL", "META"])
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
        assert quarantined(verdict) == {rows[at].observed_at: Doubt.SPLIT}
        assert list(verdict.good) == answer[:-1]


@pytest.mark.parametrize("before", [1, 2, 3, 10])
@pytest.mark.parametrize("after", [2, 3, 10])
def test_b18_f6_a_span_around_a_split_needs_no_more_days_than_it_has(before: int, after: int) -> None:
    """A true split of raw prices, at the beginning of an answer too: what comes after it shows that it stays."""
    rows = bars("AAPL")
    (split,) = (n for n, row in enumerate(rows) if row.observed_at.date().isoformat() == "2005-02-28")
    assert daily(Known(), rows[split - before : split + after]).doubted == ()


def test_b18_f6_a_spike_is_quarantined_and_its_neighbours_are_not() -> None:
    draw = random.Random(7)
    for factor in ("1.6", "0.6", "2.2", "3", "5", "0.1"):
        for length in (1, 2, 4):
            rows = stretch(bars("IBM"), draw)
            start = draw.randrange(30, len(rows) - 30)
            wrong = {row.observed_at for row in rows[start : start + length]}
            mixed = [times(row, Decimal(factor)) if row.observed_at in wrong else row for row in rows]
            assert set(quarantined(daily(Known(), mixed))) == wrong, (factor, length)
