"""Planning backfills: what is asked for, in which pieces, and what is not asked for again.

Fetching them from the sandbox is in acceptance/test_refresher.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.errors import reason
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Backfill, Listed, Progress
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import price_writer
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, in_zone
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples

FIVE = ["AAPL", "GOOG", "IBM", "META", "MSFT"]
DAY = timedelta(days=1)


@pytest.fixture
def refresher(core: Core) -> Refresher:
    """One that only plans: it has no clients."""
    return Refresher(core.engine, {}, worker="planner")


def plan(refresher: Refresher, first: str, last: str, *symbols: str, data_type: str = DAILY) -> Backfill:
    window = Window(date.fromisoformat(first), date.fromisoformat(last))
    return refresher.plan_backfill(data_type, window, list(symbols) or None)


def progress(core: Core, backfill: Backfill) -> Progress:
    with core.engine.begin() as connection:
        return backfills.progress(connection, backfill.id)


def listed(core: Core, backfill: Backfill) -> Listed:
    """A backfill as the list shows it, which is as it is shown alone."""
    with core.engine.connect() as connection:
        (one,) = [row for row in backfills.recent(connection, 50) if row.backfill_id == backfill.id]
        assert backfills.find(connection, backfill.id) == one
    return one


def spans(core: Core, symbol: str) -> list[tuple[str, str]]:
    return sorted((str(task.first_day), str(task.last_day)) for task in core.tasks(symbol) if task.status == "pending")


def cover(core: Core, first: str, last: str, *symbols: str) -> None:
    with core.engine.begin() as connection:
        price_writer.cover(connection, DAILY, symbols, date.fromisoformat(first), date.fromisoformat(last))


def work(core: Core, provider: str = TWELVEDATA) -> None:
    """Answer every call with nothing, as a worker would."""
    while calls := core.claim(provider, max_calls=10):
        for call in calls:
            assert call.window
            with core.engine.begin() as connection:
                price_writer.cover(connection, call.data_type, call.symbols, call.window.start, call.window.end)
            core.complete(call)
            core.settle(call, 100)


def test_g6_a_plan_queues_every_instrument_behind_all_other_work(core: Core, refresher: Refresher) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    planned = plan(refresher, "2000-03-01", "2013-02-28")
    tasks = [task for task in core.tasks() if task.data_type == DAILY]
    assert planned.tasks == len(tasks) == 5
    assert sorted(task.symbol for task in tasks) == FIVE
    assert {(task.priority, str(task.first_day), str(task.last_day)) for task in tasks} == {
        (-2, "2000-03-01", "2013-02-28")
    }
    (row,) = core.rows("SELECT data_type, symbols, tasks, finished_at FROM pricing.backfills")
    assert tuple(row) == (DAILY, None, 5, None)


def test_g6_a_plan_for_some_symbols_asks_for_these_only(core: Core, refresher: Refresher) -> None:
    core.heartbeat("ann", (DAILY, "NEW"))
    core.refresh()
    assert plan(refresher, "2010-01-01", "2010-12-31", "IBM", "NEW").tasks == 2
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == {"IBM", "NEW"}


def test_g6_a_plan_leaves_out_instruments_that_are_not_fetched(core: Core, refresher: Refresher) -> None:
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = 'AAPL'")
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = 'META'")
    assert plan(refresher, "2010-01-01", "2010-12-31").tasks == 3


# Pieces


@pytest.mark.parametrize(
    ("days", "most", "pieces"),
    [(10, 10, 1), (31, 10, 4), (20, 1, 20)],
)
def test_g6_a_long_span_is_asked_for_in_pieces_that_fit_one_call(
    core: Core, refresher: Refresher, days: int, most: int, pieces: int
) -> None:
    """Every day is in exactly one piece."""
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = :most", most=most)
    first = date(2011, 2, 1)
    planned = refresher.plan_backfill(DAILY, Window(first, first + (days - 1) * DAY), ["AAPL"])
    assert planned.tasks == pieces
    tasks = core.tasks("AAPL")
    assert all((task.last_day - task.first_day).days < most for task in tasks)
    asked = [
        task.first_day + number * DAY for task in tasks for number in range((task.last_day - task.first_day).days + 1)
    ]
    assert sorted(asked) == [first + number * DAY for number in range(days)]


@pytest.mark.own_sessions
def test_g6_pieces_are_the_same_in_every_session_zone(core: Core, database_url: str) -> None:
    """In Sao Paulo 2017-10-15 began at 1 h, on Samoa there was no 2011-12-30."""
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 1")
    for zone in ("UTC", "America/New_York", "America/Sao_Paulo", "Pacific/Apia"):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        engine = make_engine(in_zone(database_url, zone))
        try:
            there = Refresher(engine, {}, worker="planner")
            assert plan(there, "2017-10-13", "2017-10-17", "AAPL").tasks == 5
            assert plan(there, "2011-12-28", "2012-01-01", "AAPL").tasks == 5
        finally:
            engine.dispose()


# Coverage


def test_g6_only_what_is_not_covered_is_asked_for(core: Core, refresher: Refresher) -> None:
    cover(core, "2010-03-01", "2010-03-31", "AAPL", "IBM")
    cover(core, "2010-04-01", "2010-06-30", "AAPL")
    cover(core, "2010-06-15", "2010-07-31", "AAPL")
    cover(core, "2010-10-01", "2010-10-01", "AAPL")
    assert plan(refresher, "2010-01-01", "2010-12-31", "AAPL", "IBM", "META").tasks == 6
    assert spans(core, "AAPL") == [
        ("2010-01-01", "2010-02-28"),
        ("2010-08-01", "2010-09-30"),
        ("2010-10-02", "2010-12-31"),
    ]
    assert spans(core, "IBM") == [("2010-01-01", "2010-02-28"), ("2010-04-01", "2010-12-31")]
    assert spans(core, "META") == [("2010-01-01", "2010-12-31")]


def test_g6_adjacent_coverage_becomes_one_span(core: Core) -> None:
    for first, last in (
        ("2010-01-01", "2010-01-31"),
        ("2010-03-01", "2010-03-31"),
        ("2010-02-01", "2010-02-28"),
    ):
        cover(core, first, last, "AAPL")
    assert core.one("SELECT covered::text FROM pricing.history_coverage") == "{[2010-01-01,2010-04-01)}"


def test_g6_a_second_backfill_has_nothing_to_do(core: Core, refresher: Refresher) -> None:
    first = plan(refresher, "2000-03-01", "2013-02-28")
    work(core)
    assert progress(core, first) == Progress(5, 0, 0)
    again = plan(refresher, "2000-03-01", "2013-02-28")
    assert again.tasks == 0
    assert progress(core, again).is_finished
    assert core.claim() == []
    assert core.one("SELECT count(*) FROM pricing.backfills WHERE finished_at IS NULL") == 0


def test_g6_today_is_asked_for_and_never_covered(core: Core, clock: Clock, refresher: Refresher) -> None:
    """Its bar is not final; what lies ahead is not asked for."""
    clock.set(datetime(2026, 3, 10, 0, 0, 5, tzinfo=UTC))
    for _ in range(2):
        plan(refresher, "2026-03-01", "2026-12-31", "AAPL")
        work(core)
        assert core.one("SELECT covered::text FROM pricing.history_coverage") == "{[2026-03-01,2026-03-10)}"
    asked = [(str(task.first_day), str(task.last_day)) for task in core.tasks("AAPL")]
    assert asked == [("2026-03-01", "2026-03-10"), ("2026-03-10", "2026-03-10")]
    clock.set(datetime(2026, 3, 11, 23, 59, tzinfo=UTC))
    plan(refresher, "2026-03-01", "2026-03-10", "AAPL")
    work(core)
    assert plan(refresher, "2026-03-01", "2026-03-10", "AAPL").tasks == 0


def test_g6_what_is_queued_already_is_waited_for_and_not_asked_twice(core: Core, refresher: Refresher) -> None:
    """Two people ask at once, for days that overlap."""
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 1")
    first = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    second = plan(refresher, "2010-04-01", "2010-09-30", "AAPL")
    third = plan(refresher, "2010-02-01", "2010-03-31", "AAPL")
    assert spans(core, "AAPL") == [("2010-01-01", "2010-06-30"), ("2010-07-01", "2010-09-30")]
    assert (first.tasks, second.tasks, third.tasks) == (2, 2, 1)
    (call,) = core.claim(max_calls=1)
    assert (call.symbols, call.window) == (["AAPL"], Window(date(2010, 1, 1), date(2010, 6, 30)))
    core.complete(call)
    assert [progress(core, one).open for one in (first, second, third)] == [1, 1, 0]
    work(core)
    assert [progress(core, one).open for one in (first, second, third)] == [0, 0, 0]


def test_g6_a_backfill_does_not_wait_for_one_that_was_asked_for_later(core: Core, refresher: Refresher) -> None:
    first = plan(refresher, "2010-01-01", "2010-06-30", "AAPL")
    work(core)
    core.rows("DELETE FROM pricing.history_coverage")
    plan(refresher, "2010-01-01", "2010-06-30", "AAPL")
    assert progress(core, first).is_finished


def test_g6_what_another_backfill_waits_for_stays_when_one_is_cancelled(core: Core, refresher: Refresher) -> None:
    first = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    second = plan(refresher, "2010-04-01", "2010-09-30", "AAPL")
    assert core.call("SELECT pricing.cancel_backfill(:id)", id=first.id) == 1
    assert core.tasks("IBM")[0].status == "cancelled"
    assert spans(core, "AAPL") == [("2010-01-01", "2010-06-30"), ("2010-07-01", "2010-09-30")]
    assert progress(core, first).is_finished
    assert progress(core, second).open == 2
    assert core.call("SELECT pricing.cancel_backfill(:id)", id=second.id) == 2
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_live") == 0


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    asked=st.lists(
        st.tuples(st.integers(1, 12), st.integers(0, 5), st.sets(st.sampled_from(FIVE), max_size=3), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    worked=st.integers(0, 3),
)
def test_g6_whatever_is_cancelled_all_others_get_their_days(
    core: Core, refresher: Refresher, asked: list[tuple[int, int, set[str], bool]], worked: int
) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("DELETE FROM pricing.history_coverage")
    core.rows("DELETE FROM pricing.backfills")
    windows = [(f"2010-{month:02}-01", f"2010-{min(month + more, 12):02}-28") for month, more, *_ in asked]
    planned = [
        plan(refresher, *window, *sorted(symbols)) for window, (*_, symbols, _) in zip(windows, asked, strict=True)
    ]
    for _ in range(worked):
        for call in core.claim(max_calls=1):
            core.finish_call(call)
            cover(core, str(call.window.start), str(call.window.end), *call.symbols)
    for one, (*_, is_cancelled) in zip(planned, asked, strict=True):
        if is_cancelled:
            core.call("SELECT pricing.cancel_backfill(:id)", id=one.id)
    if all(is_cancelled for *_, is_cancelled in asked):
        assert core.one("SELECT count(*) FROM pricing.api_call_queue_live") == 0
    work(core)
    for one, window, (*_, symbols, is_cancelled) in zip(planned, windows, asked, strict=True):
        assert progress(core, one).open == 0
        if not is_cancelled:
            assert plan(refresher, *window, *sorted(symbols)).tasks == 0


def test_g6_failed_tasks_are_counted_and_may_be_asked_for_again(core: Core, refresher: Refresher) -> None:
    first = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    shared = plan(refresher, "2010-01-01", "2010-06-30", "IBM")
    core.fail(core.claim_one(), FailureKind.PLAN_RESTRICTED, "not in your plan")
    assert progress(core, first) == Progress(2, 0, 2)
    assert progress(core, shared) == Progress(1, 0, 1)
    again = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    assert progress(core, again) == Progress(2, 2, 0)


def test_g6_a_second_backfill_of_the_same_days_is_shown_as_far_as_its_days_are(
    core: Core, refresher: Refresher
) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 1")
    first = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    shared = plan(refresher, "2010-04-01", "2010-09-30", "AAPL", "IBM")
    other = plan(refresher, "2010-04-01", "2010-09-30", "MSFT")
    for open_ in (2, 1):
        assert [listed(core, one).open for one in (first, shared, other)] == [open_, open_ + 2, 1]
        assert listed(core, shared).state == "running"
        (call,) = core.claim(max_calls=1)
        core.fail(call, FailureKind.PLAN_RESTRICTED, "not in your plan")
    work(core)
    shown = listed(core, shared)
    assert (shown.state, shown.tasks, shown.done, shown.failed, shown.open) == ("failed", 4, 2, 2, 0)
    assert progress(core, shared) == Progress(4, 0, 2)
    assert listed(core, other).state == "done"
    with core.engine.connect() as connection:
        failures = backfills.failures(connection, shared.id)
    assert [failure.symbol for failure in failures] == ["AAPL", "IBM"]
    again = plan(refresher, "2010-04-01", "2010-06-30", "AAPL", "IBM")
    assert (listed(core, again).open, listed(core, again).failed) == (2, 0), "what failed before is not its own"


def test_g6_a_cancelled_backfill_whose_task_is_retried_runs_again(core: Core, refresher: Refresher) -> None:
    cancelled = plan(refresher, "2010-01-01", "2010-06-30", "AAPL", "IBM")
    core.call("SELECT pricing.cancel_backfill(:id)", id=cancelled.id)
    assert listed(core, cancelled).state == "cancelled"
    retried = core.task("AAPL").id
    core.call("SELECT outcome FROM pricing.retry_tasks(ARRAY[CAST(:id AS bigint)])", id=retried)
    assert (listed(core, cancelled).state, listed(core, cancelled).open) == ("running", 1)
    work(core)
    assert progress(core, cancelled).is_finished
    assert (listed(core, cancelled).state, listed(core, cancelled).cancelled) == ("cancelled", 1)


def test_a5_a_backfill_without_a_provider_fails_and_says_so(core: Core, refresher: Refresher) -> None:
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    cover(core, "2010-03-01", "2010-03-31", "AAPL")
    planned = plan(refresher, "2010-01-01", "2010-12-31", "AAPL", "IBM")
    assert progress(core, planned) == Progress(3, 0, 3)
    core.rows("DELETE FROM pricing.provider_routing")
    planned = plan(refresher, "2010-01-01", "2010-12-31", "AAPL")
    assert progress(core, planned) == Progress(2, 0, 2)
    dead = core.tasks("AAPL")[-1]
    assert (dead.status, dead.failure_kind) == ("failed", "misconfigured")
    pair = core.demand_of(DAILY, "AAPL")
    assert pair is not None
    assert pair.backoff_until is None, "the pair's latest price is another matter"


# Ranges


def refusal(refresher: Refresher, *asked: Any, **more: Any) -> str:
    with pytest.raises(DBAPIError) as refused:
        plan(refresher, *asked, **more)
    return reason(refused.value)


def test_g6_ranges_that_make_no_sense_are_refused_in_a_sentence(core: Core, clock: Clock, refresher: Refresher) -> None:
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    assert "the range 2010-02-01 to 2010-01-31 ends before it begins. Give the earlier day first." in refusal(
        refresher, "2010-02-01", "2010-01-31"
    )
    before = "no history of equity_daily to fetch before 2000-01-01 or after 2026-03-10"
    assert before in refusal(refresher, "1980-01-01", "1999-12-31")
    assert before in refusal(refresher, "2026-03-11", "2027-01-01")
    assert "unknown data type equity_dayly" in refusal(refresher, "2010-01-01", "2010-01-31", data_type="equity_dayly")
    quotes = "equity_quote keeps no history that could be backfilled. A quote is the current price."
    assert quotes in refusal(refresher, "2010-01-01", "2010-01-31", data_type=QUOTE)
    assert core.rows("SELECT FROM pricing.backfills") == []
    assert core.tasks() == []


def test_g6_a_range_is_cut_to_where_history_can_be(core: Core, clock: Clock, refresher: Refresher) -> None:
    clock.set(datetime(2026, 3, 10, 12, tzinfo=UTC))
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 100000")
    plan(refresher, "1800-01-01", "2300-12-31", "AAPL")
    assert spans(core, "AAPL") == [("2000-01-01", "2026-03-10")]


def test_g6_each_type_plans_with_its_own_provider_and_start(core: Core, refresher: Refresher) -> None:
    planned = plan(refresher, "2000-01-01", "2010-12-31", data_type=NAV)
    assert planned.tasks == 4
    assert {(task.provider, str(task.first_day)) for task in core.tasks()} == {(MFAPI, "2006-04-01")}
