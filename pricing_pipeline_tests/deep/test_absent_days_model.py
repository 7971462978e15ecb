"""Absent days against a plain model: whatever days answers lack and however late those come, they are stored (F10)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_absent_days import (
    DAY,
    MARCH,
    NOW,
    SESSIONS,
    answer,
    ask,
    bar,
    due,
    know_trading_days,
    stored,
)
from pricing_pipeline_tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("still")

NEVER = 10_000


def test_f10_every_day_that_the_provider_ever_has_is_stored_in_the_end(core: Core, clock: Clock) -> None:
    """Invariant, and calls are bounded."""
    know_trading_days(core, clock)
    days_late = st.one_of(st.just(0), st.just(0), st.integers(1, 60), st.just(NEVER))
    lateness = st.lists(days_late, min_size=len(SESSIONS), max_size=len(SESSIONS))
    extras = st.lists(st.sampled_from(SESSIONS), max_size=4)

    def at(days: Mapping[date, int], n: int) -> set[date]:
        return {day for day, late in days.items() if late <= n}

    @settings(max_examples=examples(16), deadline=None)
    @example([0] * (len(SESSIONS) - 1) + [NEVER], SESSIONS[:1], False)  # an answer of another day alone
    @given(lateness, extras, st.booleans())
    def comes(late: list[int], unasked: list[date], has_neighbour: bool) -> None:
        clock.set(NOW)
        for table in (
            "price_history",
            "latest_prices",
            "history_coverage",
            "absent_days",
            "quarantined_values",
        ):
            core.rows(f"DELETE FROM pricing.{table}")
        for table in ("live", "dead"):
            core.rows(f"DELETE FROM pricing.api_call_queue_{table}")
        days = dict(zip(SESSIONS, late, strict=True))
        if has_neighbour:
            ask(core, MARCH, "IBM")
            answer(core, [bar(day, symbol="IBM") for day in SESSIONS], "IBM")
        ask(core, MARCH)
        answer(core, [bar(day) for day in sorted(at(days, 0))])
        calls = 0
        for n in range(1, 130):
            clock.advance(DAY)
            for first, last in due(core):
                calls += 1
                has = at(days, n)
                rows = {day for day in has if first <= day <= last} | (has & set(unasked))
                answer(core, [bar(day) for day in sorted(rows)])
        # Who is alone on its exchange is asked three times, the last one 13 days later.
        assert stored(core) >= at(days, 60 if has_neighbour else 13)
        assert stored(core) <= at(days, 130)
        attempts = 4 if unasked else 1  # an answer without a day that was asked for is tried again
        assert calls <= attempts * (3 + (130 // 30 + 1 if has_neighbour else 0) * 2)

    comes()
