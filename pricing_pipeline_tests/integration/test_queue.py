"""The life of a task in one session: enqueue, claim, complete.

Failures are in test_queue_failures.py; what happens between several processes is in faults/.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import (
    DAILY,
    FX,
    MFAPI,
    NAV,
    QUOTE,
    TWELVEDATA,
    Core,
    rows_read,
    sample_template,
)
from pricing_pipeline_tests.fixtures.database import Clock

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

SPRING = (date(2010, 3, 1), date(2010, 5, 31))
SUMMER = (date(2010, 6, 1), date(2010, 8, 31))


def symbols(count: int, prefix: str = "S") -> list[str]:
    return [f"{prefix}{number:04d}" for number in range(count)]


def claimed(calls: list[Call]) -> list[list[str]]:
    return [call.symbols for call in calls]


# Enqueue


def test_a1_what_is_pending_or_processing_is_not_queued_again(core: Core) -> None:
    assert core.enqueue(QUOTE, "AAPL", "IBM") == 2
    assert core.enqueue(QUOTE, "AAPL", "IBM") == 0
    call = core.claim_one()
    assert core.enqueue(QUOTE, "AAPL", "IBM", "FB") == 1
    assert core.statuses() == {"AAPL": "processing", "IBM": "processing", "FB": "pending"}
    core.complete(call)
    assert core.enqueue(QUOTE, "AAPL") == 1


def test_a1_a_snoozed_task_is_not_queued_again(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.THROTTLED, retry_after=60)
    assert core.enqueue(QUOTE, "AAPL") == 0
    assert core.task("AAPL").status == "scheduled"


def test_a1_enqueuing_again_may_raise_the_priority_but_never_lowers_it(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", priority=2)
    core.enqueue(QUOTE, "AAPL", priority=7)
    assert core.task("AAPL").priority == 7
    core.enqueue(QUOTE, "AAPL", priority=3)
    assert core.task("AAPL").priority == 7


def test_a1_a_priority_that_cannot_be_raised_now_does_not_fail_the_enqueue(core: Core) -> None:
    """`SKIP LOCKED` waits, too, for a row that is updated and locked again while PostgreSQL looks at it: one enqueue of
    sixteen sessions failed of it.
    """
    core.enqueue(QUOTE, "AAPL")
    core.rows(
        "CREATE FUNCTION pricing.locked_again() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = '55P03'; END$$"
    )
    core.rows(
        "CREATE TRIGGER locked_again BEFORE UPDATE OF priority ON pricing.api_call_queue_live"
        " FOR EACH ROW EXECUTE FUNCTION pricing.locked_again()"
    )
    assert core.enqueue(QUOTE, "AAPL", "IBM", priority=7) == 1
    assert [(task.symbol, task.priority) for task in core.tasks()] == [("AAPL", 1), ("IBM", 7)]
    core.rows("DROP TRIGGER locked_again ON pricing.api_call_queue_live")
    assert core.enqueue(QUOTE, "AAPL", priority=7) == 0
    assert core.task("AAPL").priority == 7


def test_a1_an_enqueue_that_changes_nothing_does_not_touch_the_row(core: Core) -> None:
    """FAULTS 3.13: the row version stays, so that no claim has to skip it."""
    core.enqueue(QUOTE, "AAPL", priority=2)
    before = core.rows("SELECT ctid, xmin, xmax FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, "AAPL", priority=2)
    core.enqueue(QUOTE, "AAPL", priority=1)
    assert core.rows("SELECT ctid, xmin, xmax FROM pricing.api_call_queue_live") == before


def test_a1_one_batch_names_a_symbol_twice(core: Core) -> None:
    core.rows(
        "SELECT pricing.enqueue('equity_quote', ARRAY['AAPL', 'IBM', 'AAPL'], ARRAY[1, 1, 4])",
    )
    assert [(task.symbol, task.priority) for task in core.tasks()] == [("AAPL", 4), ("IBM", 1)]


def test_b10_a_batch_is_written_in_key_order(core: Core) -> None:
    """FAULTS 22: two batches that lock the same rows in different orders can deadlock."""
    shuffled = symbols(300)
    random.Random(1).shuffle(shuffled)
    core.enqueue(QUOTE, *shuffled)
    assert [task.symbol for task in core.tasks()] == symbols(300)


def test_a1_each_span_of_days_is_a_task_of_its_own(core: Core) -> None:
    for days in (None, SPRING, SUMMER, SPRING):
        core.enqueue(DAILY, "AAPL", days=days)
    assert len(core.tasks("AAPL")) == 3


def test_a5_a_symbol_may_be_routed_elsewhere_than_its_type(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('other', 'http://127.0.0.1:1')"
    )
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
        " VALUES ('other', 'quote', 1, 1)"
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider) VALUES ('equity_quote', 'IBM', 'other')"
    )
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert {task.symbol: task.provider for task in core.tasks()} == {"AAPL": TWELVEDATA, "IBM": "other"}


def test_a5_without_a_route_a_task_dies_at_once_and_says_so(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.provider_routing SET is_active = false WHERE data_type = 'equity_quote'")
    assert core.enqueue(QUOTE, "AAPL") == 0
    dead = core.tasks("AAPL")[-1]
    assert (dead.status, dead.failure_kind) == ("failed", "misconfigured")
    assert "pricing-pipeline route add" in dead.errors[0]["message"]
    held = core.demand_of(QUOTE, "AAPL")
    assert held is not None
    assert held.held_until > core.clock()


# Claim


def test_a2_watched_goes_before_held_before_scheduled_before_backfill(core: Core) -> None:
    core.lift_limits(batch_size=1)
    for symbol, priority in (("BACK", -2), ("SCHED", -1), ("HELD", 0), ("ONE", 1), ("MANY", 9)):
        core.enqueue(QUOTE, symbol, priority=priority)
    order = ["MANY", "ONE", "HELD", "SCHED", "BACK"]
    calls = core.claim(max_calls=9)
    assert claimed(calls) == [[symbol] for symbol in order]
    for call in calls:
        core.release(call)
    assert [core.claim_one().symbols[0] for _ in range(5)] == order


def test_b6_ties_go_to_the_shorter_cadence_then_to_the_oldest(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(DAILY, "OLDDAILY")
    core.enqueue(FX, "EUR/USD")
    core.enqueue(QUOTE, "ZOLD")
    core.enqueue(QUOTE, "ANEW")
    order = ["ZOLD", "ANEW", "EUR/USD", "OLDDAILY"]
    calls = core.claim(max_calls=9)
    assert claimed(calls) == [[symbol] for symbol in order]
    for call in calls:
        core.release(call)
    assert [core.claim_one().symbols[0] for _ in range(4)] == order, (
        "also where each claim looks at one task only"
    )


def test_f1_tasks_share_calls_up_to_the_batch_size(core: Core) -> None:
    core.enqueue(QUOTE, *symbols(250))
    calls = core.claim(max_calls=8)
    assert [len(call.tasks) for call in calls] == [100, 100, 50]
    assert sorted(symbol for call in calls for symbol in call.symbols) == symbols(250)
    assert {call.fetcher for call in calls} == {Fetcher.QUOTE}


def test_f1_a_call_holds_one_data_type_and_one_span_only(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.enqueue(FX, "EUR/USD")
    core.enqueue(DAILY, "FB", days=SPRING)
    core.enqueue(DAILY, "GOOG", days=SPRING)
    core.enqueue(DAILY, "NFLX", days=(SPRING[0] - timedelta(days=1), SPRING[1]))
    core.enqueue(DAILY, "MSFT")
    seen = {(call.data_type, call.window, tuple(sorted(call.symbols))) for call in core.claim(max_calls=9)}
    assert seen == {
        (QUOTE, None, ("AAPL", "IBM")),
        (FX, None, ("EUR/USD",)),
        (DAILY, Window(*SPRING), ("FB", "GOOG")),
        (DAILY, Window(SPRING[0] - timedelta(days=1), SPRING[1]), ("NFLX",)),
        (DAILY, None, ("MSFT",)),
    }


@pytest.mark.parametrize(
    ("days", "most"), [(1, 120), (16, 120), (30, 66), (100, 20), (366, 5), (1000, 2), (1001, 1), (5000, 1)]
)
def test_f1_spans_share_a_call_while_its_answer_stays_short(core: Core, days: int, most: int) -> None:
    """Twelve Data takes up to 120 symbols a call; of all of them together a call asks for 2,000 days."""
    core.rows("UPDATE pricing.provider_limits SET units = 1000000")
    first = date(2010, 1, 1)
    core.enqueue(DAILY, *symbols(130), days=(first, first + timedelta(days=days - 1)))
    sizes = [len(call.tasks) for call in core.claim(max_calls=2)]
    assert sizes == [most, min(most, 130 - most)]


def test_b17_no_claim_goes_past_max_calls(core: Core) -> None:
    core.lift_limits(batch_size=10)
    core.enqueue(QUOTE, *symbols(100))
    assert [len(call.tasks) for call in core.claim(max_calls=3)] == [10, 10, 10]
    assert [len(call.tasks) for call in core.claim(max_calls=1)] == [10]
    assert list(core.statuses().values()).count("processing") == 40


def test_b17_tasks_of_one_symbol_are_never_in_work_together(core: Core) -> None:
    core.enqueue(DAILY, "AAPL")
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.enqueue(DAILY, "AAPL", days=SPRING, priority=-2)
    order = []
    while calls := core.claim(max_calls=9):
        order.append([(call.data_type, call.window, call.symbols) for call in calls])
        assert core.claim(max_calls=9) == [], "its other tasks wait for this one"
        for call in calls:
            core.complete(call)
    assert order == [
        [(QUOTE, None, ["AAPL", "IBM"])],
        [(DAILY, None, ["AAPL"])],
        [(DAILY, Window(*SPRING), ["AAPL"])],
    ]


def test_b8_a_busy_symbol_with_many_tasks_does_not_hide_the_others(core: Core) -> None:
    """mfapi takes one symbol a call, so a claim of one call looks at one task only."""
    for year in range(2010, 2016):
        core.enqueue(NAV, "118632", priority=-2, days=(date(year, 1, 1), date(year, 12, 31)))
    core.enqueue(NAV, "119551", priority=-2, days=SPRING)
    assert claimed(core.claim(MFAPI)) == [["118632"]]
    assert claimed(core.claim(MFAPI)) == [["119551"]]
    assert core.claim(MFAPI) == []


def test_b10_every_tenth_claim_begins_with_a_backfill(core: Core) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, *symbols(20), priority=5)
    order = [core.claim_one().symbols[0] for _ in range(12)]
    assert order.index("BACK") == 9
    assert core.claim(MFAPI) == [], "and claims that find nothing do not count"


def test_a3_a_claim_knows_its_tasks(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", priority=3)
    before = core.clock()
    call = core.claim_one(worker="drain 7")
    (task,) = call.tasks
    row = core.task("AAPL")
    assert (call.provider, call.data_type, call.window) == (TWELVEDATA, QUOTE, None)
    assert (task.id, task.symbol, task.priority, task.attempt) == (row.id, "AAPL", 3, 1)
    assert (row.worker, row.claim_token, row.call_id, row.attempt) == (
        "drain 7",
        call.claim_token,
        call.id,
        1,
    )
    assert before <= call.claimed_at == row.claimed_at == row.lease_until - timedelta(seconds=60)


def test_a5_an_inactive_provider_is_not_claimed_from(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.rows("UPDATE pricing.data_collectors SET is_active = false")
    assert core.claim() == []


def test_a6_a_claim_in_a_longer_transaction_waits_for_the_disk_with_it(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    with core.engine.begin() as connection:
        connection.execute(text("SET LOCAL synchronous_commit = on"))
        assert task_queue.claim(connection, TWELVEDATA, "w", 1, None)
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        connection.execute(text("SELECT pricing.claim_calls('twelvedata', 'plain SQL', 1)"))
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        connection.execute(text("SELECT pricing.claim_calls('twelvedata', 'w', 1, is_waited_for => false)"))
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "off"


def test_a6_a_claim_of_its_own_is_given_out_when_it_is_on_the_disk_and_not_before(core: Core) -> None:
    """It holds its provider's lock no longer than it works. A call whose claim a crash takes back is made twice."""
    core.enqueue(QUOTE, "AAPL", "IBM")
    alone = autocommitting(core.engine)
    with alone.connect() as connection:
        connection.execute(text("SET synchronous_commit = on"))
        assert task_queue.claim(connection, TWELVEDATA, "w", 1, None)
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        for _ in range(20):
            core.rows("DELETE FROM pricing.warnings")
            written = connection.execute(text("SELECT pg_current_wal_insert_lsn()")).scalar_one()
            connection.execute(text("SELECT pricing.await_disk()"))
            is_there = text("SELECT pg_current_wal_flush_lsn() >= CAST(:written AS pg_lsn)")
            assert connection.execute(is_there, {"written": written}).scalar_one()
    core.rows(
        "CREATE OR REPLACE FUNCTION pricing.await_disk() RETURNS void LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'the disk is away'; END $$"
    )
    core.enqueue(QUOTE, "FB")
    with alone.connect() as connection, pytest.raises(DBAPIError, match="the disk is away"):
        task_queue.claim(connection, TWELVEDATA, "w", 1, None)
    assert core.task("FB").status == "processing", "its lease brings it back"


def test_a6_a_call_is_in_the_log_before_it_is_made(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM", "FB")
    with core.engine.begin() as connection:
        (call,) = task_queue.claim(connection, TWELVEDATA, "drain 7", 1, "run 5")
    (logged,) = core.rows(
        "SELECT call_id, provider, data_type, symbols, outcome, finished_at, units, reserved_bytes, run_id, worker,"
        " started_at FROM pricing.collector_call_log"
    )
    assert (logged.call_id, logged.provider, logged.data_type) == (call.id, TWELVEDATA, QUOTE)
    assert logged.symbols == call.symbols
    assert (logged.outcome, logged.finished_at, logged.units, logged.reserved_bytes) == (
        "open",
        None,
        3,
        1800,
    )
    assert (logged.run_id, logged.worker, logged.started_at) == ("run 5", "drain 7", call.claimed_at)


# Complete


def test_b11_a_completed_task_is_kept_with_its_story(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN, "HTTP 500")
    clock.advance(7)
    core.promote()
    call = core.claim_one()
    assert core.complete(call) == set(call.task_ids)
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.call_id, task.failure_kind) == ("completed", 2, call.id, None)
    assert [error["message"] for error in task.errors] == ["HTTP 500"]
    assert task.finished_at >= call.claimed_at


def test_b9_finished_tasks_are_kept_seven_to_fifteen_days_and_dead_ones_until_they_are_resolved(
    core: Core, clock: Clock
) -> None:
    core.enqueue(QUOTE, "GOOD", "BAD")
    good = core.claim_one()
    ids = {task.symbol: task.id for task in good.tasks}
    with core.engine.begin() as connection:
        task_queue.complete(connection, [ids["GOOD"]], good.claim_token)
        task_queue.fail(
            connection, [ids["BAD"]], good.claim_token, FailureKind.UNKNOWN_SYMBOL, "no such symbol"
        )
    day = 86_400

    def kept() -> dict[str, str]:
        core.one("SELECT pricing.prune()")
        return core.statuses()

    both = {"GOOD": "completed", "BAD": "failed"}
    clock.advance(6.9 * day)
    assert kept() == both
    clock.advance(8.1 * day)
    assert kept() == {"BAD": "failed"}
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = pricing.clock()")
    clock.advance(89 * day)
    assert kept() == {"BAD": "failed"}
    clock.advance(2 * day)
    assert kept() == {}


def test_b9_the_ring_of_finished_tasks_goes_round(core: Core, clock: Clock) -> None:
    """Each week has its leaf; pruning every week empties none of the last seven days."""
    for week in range(20):
        core.enqueue(QUOTE, f"W{week}")
        core.complete(core.claim_one())
        core.one("SELECT pricing.prune()")
        newest = {f"W{number}" for number in (week, week - 1) if number >= 0}
        assert (
            newest <= set(core.statuses()) <= {f"W{number}" for number in range(max(0, week - 2), week + 1)}
        )
        clock.advance(7 * 86_400)


def test_b9_a_clock_that_is_set_back_over_the_end_of_a_week_costs_no_finished_task(
    core: Core, clock: Clock
) -> None:
    """Weeks are those since 1970, so one begins on a Thursday. The leaf of the next week is the oldest of the ring."""
    clock.set(datetime(2026, 11, 26, 0, 0, 1, tzinfo=UTC))
    core.enqueue(QUOTE, "AAPL")
    core.complete(core.claim_one())
    clock.advance(-3600)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"AAPL": "completed"}
    clock.advance(14 * 86_400 + 7200)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {}


def finish_one(core: Core, symbol: str) -> None:
    core.enqueue(QUOTE, symbol)
    core.complete(core.claim_one())


def test_b9_a_missing_leaf_keeps_no_task_from_finishing(core: Core, clock: Clock) -> None:
    for leaf in range(8):
        core.rows(f"DROP TABLE pricing.api_call_queue_completed_{leaf}")
    finish_one(core, "AAPL")
    assert core.statuses() == {"AAPL": "completed"}
    core.one("SELECT pricing.prune()")
    clock.advance(6.9 * 86_400)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"AAPL": "completed"}
    clock.advance(8.1 * 86_400)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {}


@given(
    pauses=st.lists(st.integers(0, 90), min_size=1, max_size=8),
    missing=st.frozensets(st.integers(0, 7), max_size=3),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b9_after_pruning_finished_tasks_are_at_most_fifteen_days_old(
    core: Core, clock: Clock, pauses: list[int], missing: frozenset[int]
) -> None:
    """Invariant: whenever pruning runs, and however long nothing ran before it, what finished in the last seven days is
    there, and nothing that finished more than fifteen days ago."""
    core.rows("TRUNCATE pricing.api_call_queue")
    for leaf in range(8):
        core.rows(
            f"CREATE TABLE IF NOT EXISTS pricing.api_call_queue_completed_{leaf}"
            f" PARTITION OF pricing.api_call_queue_completed (PRIMARY KEY (id)) FOR VALUES IN ({leaf})"
        )
    for leaf in missing:
        core.rows(f"DROP TABLE pricing.api_call_queue_completed_{leaf}")
    ages: dict[str, int] = {}
    for number, days in enumerate(pauses):
        clock.advance(days * 86_400)
        ages = {symbol: age + days for symbol, age in ages.items()}
        finish_one(core, f"S{number}")
        ages[f"S{number}"] = 0
        core.one("SELECT pricing.prune()")
        kept = set(core.statuses())
        assert {symbol for symbol, age in ages.items() if age < 7} <= kept
        assert kept <= {symbol for symbol, age in ages.items() if age <= 15}


def leaf_of_now(core: Core) -> str:
    week: int = core.one("SELECT floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8")
    return f"pricing.api_call_queue_completed_{week}"


def test_b9_a_leaf_that_was_detached_to_be_kept_is_left_alone(core: Core, clock: Clock) -> None:
    """It was emptied two weeks later, by its name."""
    finish_one(core, "AAPL")
    leaf = leaf_of_now(core)
    core.rows(f"ALTER TABLE pricing.api_call_queue_completed DETACH PARTITION {leaf}")
    finish_one(core, "IBM")
    for _ in range(9):
        clock.advance(7 * 86_400)
        core.one("SELECT pricing.prune()")
        assert core.one(f"SELECT count(*) FROM {leaf}") == 1
    assert core.statuses() == {}, "what finished in its weeks since is in the rest, and pruned there"


def test_b9_old_tasks_go_though_a_clock_was_ahead_in_their_leaf(core: Core, clock: Clock) -> None:
    """The newest task of the leaf seemed to be of a week to come, so the old ones stayed for months."""
    finish_one(core, "AAPL")
    clock.advance(8 * 7 * 86_400)
    finish_one(core, "IBM")
    clock.advance(-8 * 7 * 86_400)
    clock.advance(22 * 86_400)
    core.one("SELECT pricing.prune()")
    assert core.statuses() == {"IBM": "completed"}


def test_b9_old_tasks_go_though_their_ids_are_the_highest(core: Core, clock: Clock) -> None:
    """A backlog of 10,000 tasks with lower ids hid them."""
    insert = (
        "INSERT INTO pricing.api_call_queue_completed (id, data_type, symbol, window_start, window_end, provider,"
        " status, priority, cadence_minutes, est_bytes, enqueued_at, attempt, max_attempts, errors, finished_at, ring)"
        " SELECT :first + n, 'equity_quote', :name || n, '-infinity', 'infinity', 'twelvedata', 'completed', 1, 1, 600,"
        " pricing.clock(), 1, 4, '[]', pricing.clock(), floor(extract(epoch FROM pricing.clock()) / 604800)::bigint % 8"
        " FROM generate_series(1, CAST(:count AS integer)) AS n"
    )
    core.rows(insert, first=1_000_000, name="OLD", count=20)
    clock.advance(8 * 7 * 86_400)
    core.rows(insert, first=1000, name="B", count=10_000)
    core.one("SELECT pricing.prune()")
    kept = "SELECT count(*) FROM pricing.api_call_queue_completed"
    assert core.one(kept) == 10_000
    assert core.one(f"{kept} WHERE symbol LIKE 'OLD%'") == 0


def test_b9_an_upgrade_makes_a_leaf_again_that_was_dropped(core: Core, owner_url: str) -> None:
    leaf = leaf_of_now(core)
    core.rows(f"DROP TABLE {leaf}")
    finish_one(core, "AAPL")
    upgrade(owner_url)
    assert core.one(f"SELECT symbol FROM {leaf}") == "AAPL"
    finish_one(core, "IBM")
    assert core.one(f"SELECT count(*) FROM {leaf}") == 2
    assert core.statuses() == {"AAPL": "completed", "IBM": "completed"}


# Reading


def test_b22_depth_and_lists_show_the_queue(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM", priority=4)
    core.enqueue(DAILY, "FB", days=SPRING, priority=-2)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    core.enqueue(QUOTE, "MSFT", priority=2)
    clock.advance(30)
    with core.engine.connect() as connection:
        depth = {(row["data_type"], row["status"]): row for row in task_queue.depth(connection)}
        listed = task_queue.tasks(connection, ["pending", "failed"], 10)
        busy, providers = task_queue.is_busy(connection), task_queue.providers_with_work(connection)
    assert {key: row["tasks"] for key, row in depth.items()} == {(DAILY, "pending"): 1, (QUOTE, "pending"): 1}
    assert 29 < depth[QUOTE, "pending"]["oldest_seconds"] < 60
    assert [(row["symbol"], row["status"], row["window_start"]) for row in listed] == [
        ("MSFT", "pending", None),
        ("FB", "pending", SPRING[0]),
        ("AAPL", "failed", None),
        ("IBM", "failed", None),
    ]
    assert listed[-1]["last_error"] == "no such symbol"
    assert busy
    assert providers == [(TWELVEDATA, 8, 2)]


def test_b11_providers_with_work_are_found_without_reading_the_queue(core: Core) -> None:
    """Before each claim of a drain; nobody has counted the rows of a new queue, and all 3,000 were read."""
    core.enqueue(QUOTE, *(f"S{number}" for number in range(3_000)))
    with core.engine.begin() as connection:
        before = rows_read(connection)
        assert task_queue.providers_with_work(connection) == [(TWELVEDATA, 8, 1)]
        assert rows_read(connection) - before < 100
