"""Bars of Saturdays and Sundays: quarantined where the exchange never trades then, and stored where it may."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

WEEK = Window(date(2026, 3, 9), date(2026, 3, 15))
"""Monday to Sunday."""


@pytest.fixture(autouse=True)
def _then(clock: Clock) -> None:
    clock.set(datetime(2026, 3, 16, 6, tzinfo=UTC))


def trade(core: Core, *special: date) -> None:
    """XNYS trades on weekdays of 2026, and on some days more."""
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(365)]
    days = [day for day in days if day.weekday() < 5 or day in special]
    core.call(
        "SELECT pricing.store_sessions('XNYS', '2026-01-01', '2026-12-31', :days, :opens, :closes)",
        days=days,
        opens=[datetime(day.year, day.month, day.day, 14, 30, tzinfo=UTC) for day in days],
        closes=[datetime(day.year, day.month, day.day, 21, tzinfo=UTC) for day in days],
    )


def bring(core: Core, window: Window | None = WEEK, closes: Sequence[str] = ("100.00",) * 7) -> None:
    rows: list[Observation] = [
        observation("AAPL", close, midnight(WEEK.start + timedelta(days=n))) for n, close in enumerate(closes)
    ]
    core.lift_limits()
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(DAILY, "AAPL", days=None if window is None else (window.start, window.end))
    settling.settle_answer(
        core.engine,
        core.claim_one(),
        Fetched(Answer(observations=Rows(rows), actions_since={"AAPL": WEEK.start}), 200, 2, body=b"{}"),
    )


def stored(core: Core) -> list[int]:
    rows = core.rows("SELECT observed_at FROM pricing.price_history WHERE symbol = 'AAPL' ORDER BY 1")
    return [row.observed_at.day for row in rows]


def test_f6_a_bar_of_a_day_on_which_its_exchange_never_trades_is_quarantined(core: Core) -> None:
    trade(core)
    bring(core, window=None)
    assert stored(core) == [9, 10, 11, 12, 13]
    latest = core.latest("AAPL", DAILY)
    assert latest is not None
    assert latest.observed_at.day == 13, "nor is it the latest price"
    found = core.rows("SELECT value_id, kind, reason FROM pricing.quarantined_values ORDER BY observed_at")
    assert [row.kind for row in found] == ["refused", "refused"]
    assert found[0].reason.startswith(
        "it is of a Saturday, and XNYS has traded on none within a year of 2026-03-14"
    )
    assert reviews.release(core.engine, found[0].value_id, "ann").outcome == "released"
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14], "a person knew better, and is asked no more"


def test_f6_a_split_that_becomes_known_makes_no_bar_of_a_closed_day_a_price(core: Core) -> None:
    trade(core)
    bring(core, closes=["400.00", "400.00", "400.00", "400.00", "100.00", "100.00", "100.00"])
    assert stored(core) == [9, 10, 11, 12]
    core.rows("SELECT pricing.enter_action('equity', 'AAPL', '2026-03-13', 'split', 4, 1, NULL, NULL, 'ann')")
    assert {one.outcome for one in reviews.judge_anew(core.engine)} == {"released"}
    assert stored(core) == [9, 10, 11, 12, 13]


@pytest.mark.parametrize("special", [date(2026, 3, 14), date(2026, 11, 7)])
def test_f6_a_market_with_special_sessions_at_weekends_keeps_their_bars(core: Core, special: date) -> None:
    """Its calendar may not know the newest of them."""
    trade(core, special)
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14]


def test_f6_the_week_of_currencies_begins_on_sunday(core: Core) -> None:
    core.rows("INSERT INTO pricing.calendars (calendar) VALUES ('FX') ON CONFLICT DO NOTHING")
    core.call("SELECT pricing.store_own_sessions('FX', '2026-01-01', '2026-12-31')")
    core.rows("UPDATE pricing.instruments SET calendar = 'FX' WHERE symbol = 'AAPL'")
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14, 15]


def test_f6_where_no_calendar_is_known_weekends_are_days_like_any_others(core: Core) -> None:
    bring(core)
    assert stored(core) == [9, 10, 11, 12, 13, 14, 15]
