"""Many real processes on one database: nothing twice, nothing lost, no error of any kind."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection

from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sessions import at_once
from pricing_pipeline_tests.support.workers import crowd
from pricing_pipeline_tests.tools.audit import audit


def test_a3_no_task_is_ever_taken_twice(core: Core, database_url: str) -> None:
    """64 sessions of four processes on 2,000 tasks, most of them in each other's way."""
    core.lift_limits(batch_size=5)
    assert core.enqueue(QUOTE, *symbols(2000)) == 2000
    results = crowd(4, "claim_all", url=database_url, provider=TWELVEDATA, max_calls=2, threads=16)
    assert [result["errors"] for result in results] == [[]] * 4
    assert [result["refused"] for result in results] == [[]] * 4
    taken = Counter(task for result in results for task in result["claimed"])
    assert len(taken) == 2000
    assert set(taken.values()) == {1}
    assert Counter(core.statuses().values()) == {"completed": 2000}
    assert {task.attempt for task in core.tasks()} == {1}
    for call in core.rows("SELECT symbols FROM pricing.collector_call_log"):
        assert len(call.symbols) <= 5
    core.rows("SELECT pricing.settle_call(call_id, 'ok', 200, 100) FROM pricing.collector_call_log")
    audit(core, acknowledged=2000)


def test_b17_two_providers_are_never_asked_for_one_symbol_at_once(core: Core, database_url: str) -> None:
    """Each claim sees the calls that others, of whatever provider, have claimed."""
    core.lift_limits(batch_size=3)
    rounds, shared = 60, symbols(3)
    for data_type in (QUOTE, NAV):
        core.enqueue(data_type, *shared)
    together = threading.Barrier(2)
    doubled: list[str] = []

    def claim(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for _ in range(rounds):
                together.wait(PATIENCE)
                with suppress(psycopg.errors.LockNotAvailable):
                    connection.execute("SELECT pricing.claim_calls(%s, 'w', 3)", [(TWELVEDATA, MFAPI)[number]])
                if together.wait(PATIENCE) == 0:
                    doubled.extend(
                        row.symbol
                        for row in core.rows(
                            "SELECT symbol FROM pricing.api_call_queue_live WHERE status = 'processing'"
                            " GROUP BY 1 HAVING count(*) > 1"
                        )
                    )
                    core.rows(
                        "SELECT pricing.return_tasks(array_agg(id), claim_token) FROM pricing.api_call_queue_live"
                        " WHERE status = 'processing' GROUP BY claim_token"
                    )
                    core.rows("SELECT pricing.settle_call(call_id, 'ok', 200, 1) FROM pricing.collector_call_log")
                together.wait(PATIENCE)

    assert at_once(2, claim) == []
    assert doubled == []
    assert core.one("SELECT count(DISTINCT provider) FROM pricing.collector_call_log") == 2


def test_a1_sixteen_enqueuers_make_each_task_once(core: Core, database_url: str) -> None:
    """`NOT EXISTS` alone let 501 rows in for 500 symbols."""
    core.be_patient("raise_priorities")
    results = crowd(16, "enqueue", url=database_url, data_type=QUOTE, symbols=symbols(500), rounds=5)
    assert [result["errors"] for result in results] == [[]] * 16
    assert sum(result["added"] for result in results) == 500
    assert len(core.tasks()) == 500
    assert {task.priority for task in core.tasks()} == {15 + 4}
    audit(core, acknowledged=500)


def test_b6_staleness_checks_at_once_queue_nothing_twice(core: Core, database_url: str) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(500)))
    core.lift_limits()
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 hour'")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    results = crowd(4, "enqueue_due", url=database_url, rounds=10)
    assert [result["errors"] for result in results] == [[]] * 4
    assert sum(result["queued"] for result in results) == 500
    assert Counter(task.status for task in core.tasks()) == {"completed": 500, "pending": 500}
    audit(core, acknowledged=1000)


def test_b6_first_heartbeats_by_hundreds_on_one_pair_make_one_task(core: Core, database_url: str) -> None:
    """Nobody waits for anybody, and anyone who is counted is counted once."""

    def look(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for turn in range(40):
                connection.execute(
                    "SELECT pricing.heartbeat(%s, %s, %s)",
                    [f"user {number}.{turn}", [QUOTE, QUOTE, NAV], ["AAPL", "IBM", "118632"]],
                )

    assert at_once(12, look) == []
    assert Counter(task.symbol for task in core.tasks()) == {"AAPL": 1, "IBM": 1, "118632": 1}
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions") == 3 * 12 * 40
    core.heartbeat("the last", (QUOTE, "AAPL"))
    assert max(task.priority for task in core.tasks("AAPL")) == 12 * 40 + 1


def clean_at_once(database_url: str, rounds: int) -> None:
    """The clean-up without its minute of grace: so the race is met all the time."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for _ in range(rounds):
            connection.execute("UPDATE pricing.demand SET created_at = created_at - interval '1 hour'")
            connection.execute("SELECT pricing.clean_subscriptions()")


def test_a7_the_last_leave_and_release_against_new_holders_lose_no_demand(core: Core, database_url: str) -> None:
    """Who holds in the end has demand, whatever the clean-up did meanwhile."""
    arguments = [[QUOTE] * 5, symbols(5)]
    rounds = 30

    def come_and_go(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for turn in range(rounds):
                word, end = [("hold", "release"), ("heartbeat", "unsubscribe")][number % 2]
                connection.execute(f"SELECT pricing.{word}(%s, %s, %s)", [f"user {number}", *arguments])
                if turn < rounds - 1 or number % 2:
                    connection.execute(f"SELECT pricing.{end}(%s, %s, %s)", [f"user {number}", *arguments])

    def clean(number: int) -> None:
        clean_at_once(database_url, rounds)

    def check(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for _ in range(rounds):
                connection.execute("SELECT pricing.enqueue_due()")

    works = [come_and_go, come_and_go, clean, come_and_go, check, come_and_go]
    assert at_once(6, lambda number: works[number](number)) == []
    held = core.rows("SELECT DISTINCT symbol FROM pricing.holdings WHERE status = 'active'")
    assert {row.symbol for row in held} == set(symbols(5))
    core.rows("SELECT pricing.adopt_pairs()")  # those that were passed over for a lock
    assert core.one("SELECT count(*) FROM pricing.demand") == 5
    core.rows("SELECT pricing.repair_demand()")
    core.enqueue_due()
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == set(symbols(5))


def test_b19_everything_at_once_without_a_deadlock(core: Core, database_url: str) -> None:
    """Every verb of the queue on the same few pairs, a person's retries and cancels included."""
    pairs = [(QUOTE, symbol) for symbol in symbols(20)] + [(NAV, code) for code in ("118632", "119551")]
    kinds, names = [kind for kind, _ in pairs], [symbol for _, symbol in pairs]
    core.lift_limits(batch_size=7)
    core.heartbeat("ann", *pairs)
    acts = [
        "SELECT pricing.enqueue_due()",
        "SELECT pricing.recover_tasks()",
        "SELECT pricing.promote_tasks()",
        "SELECT pricing.tend_outages()",
        "INSERT INTO pricing.outages (provider, data_type, since, last_fault_at, answered_at)"
        " SELECT 'twelvedata', 'equity_quote', n.at - interval '1 min', n.at, n.at"
        " FROM (SELECT pricing.clock() AS at) n",
        "SELECT pricing.clean_subscriptions()",
        "SELECT pricing.repair_demand()",
        "SELECT pricing.expire_calls()",
        "SELECT pricing.run_duties()",
        "SELECT pricing.enqueue_scheduled('mf_nav')",
        "SELECT pricing.cancel_tasks(array_agg(id)) FROM (SELECT id FROM pricing.api_call_queue_live"
        " ORDER BY random() LIMIT 4) some_live",
        "SELECT pricing.retry_tasks(array_agg(id)) FROM (SELECT id FROM pricing.api_call_queue_dead"
        " ORDER BY random() LIMIT 9) some_dead",
        "SELECT pricing.end_backoff('equity_quote')",
        "SELECT pricing.resolve_tasks()",
        "SELECT pricing.retire_tasks()",
        "SELECT pricing.prune()",
        # Time passes: what was served is due again, what waits is ripe.
        "UPDATE pricing.demand d SET due_at = pricing.clock() FROM (SELECT data_type, symbol FROM pricing.demand"
        " WHERE became_due_at IS NULL ORDER BY 1, 2 FOR NO KEY UPDATE SKIP LOCKED) ready"
        " WHERE (d.data_type, d.symbol) = (ready.data_type, ready.symbol)",
        "UPDATE pricing.api_call_queue_live q SET run_after = pricing.clock() FROM (SELECT id FROM"
        " pricing.api_call_queue_live WHERE status = 'scheduled' ORDER BY id FOR UPDATE SKIP LOCKED) ripe"
        " WHERE q.id = ripe.id",
    ]
    ends = [
        "SELECT pricing.complete_tasks(%s, %s)",
        "SELECT pricing.fail_tasks(%s, %s, 'provider_down', 'x', false)",
        "SELECT pricing.return_tasks(%s, %s)",
        "SELECT pricing.complete_tasks(%s, %s)",
    ]
    least, most = time.monotonic() + 2.5, time.monotonic() + PATIENCE
    wanted = {"completed", "worker_lost", "cancelled", "retried"}
    was_all_met = threading.Event()

    def met() -> set[str]:
        tasks = core.tasks()
        return {task.status for task in tasks} | {error["kind"] for task in tasks for error in task.errors}

    def act(number: int, turn: int, connection: Connection[Any]) -> None:
        connection.execute(acts[(number + turn) % len(acts)])
        connection.execute("SELECT pricing.heartbeat(%s, %s, %s)", [f"user {number}.{turn % 5}", kinds, names])

    def work(number: int, turn: int, connection: Connection[Any]) -> None:
        provider = (TWELVEDATA, MFAPI)[turn % 2]
        rows: list[tuple[int, UUID, int]] = []
        with suppress(psycopg.errors.LockNotAvailable):  # a claim waits for a moment, as workers know
            rows = connection.execute(
                "SELECT unnest(ids) AS id, claim_token, call_id FROM pricing.claim_calls(%s, %s, 2, lease => '20 ms')",
                [provider, f"w{number}"],
            ).fetchall()
        if not rows:
            return
        claim = [[row[0] for row in rows], rows[0][1]]
        if turn % 7 == 0:
            time.sleep(0.03)  # past its lease
        with connection.transaction():
            connection.execute("SELECT pricing.extend_tasks(%s, %s)", claim)
        if turn % 4 == 3:
            for call in sorted({row[2] for row in rows}):
                ids = [row[0] for row in rows if row[2] == call]
                connection.execute("SELECT pricing.finish_call(%s, %s, %s, 200, 9)", [call, ids, rows[0][1]])
            return
        with connection.transaction():
            connection.execute("SELECT pricing.lock_tasks(%s, %s)", claim)
            kind = "schema_drift" if turn % 10 == 9 else None
            for call in sorted({row[2] for row in rows}):
                connection.execute("SELECT pricing.settle_call(%s, 'ok', 200, 9, NULL, %s, true, 2000)", [call, kind])
            if turn % 3 == 0:
                connection.execute("SELECT pricing.throttle(%s, 'default', interval '1 ms', 'x')", [provider])
            connection.execute(ends[turn // 2 % len(ends)], claim)

    def run(number: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            turn = 0
            while time.monotonic() < (most if not was_all_met.is_set() else least):
                (work if number % 3 else act)(number, turn, connection)
                turn += 1
                if number == 0 and turn % 10 == 0 and wanted <= met():
                    was_all_met.set()

    assert at_once(9, run) == []
    assert core.one("SELECT count(*) FROM pricing.collector_call_log") > 3, "there was work to quarrel about"
    assert wanted <= met()
    audit(core)


def test_a6_eight_processes_never_go_past_a_sliding_window(core: Core, database_url: str) -> None:
    """The seed's look-then-call made 155 calls a second where 20 were allowed."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.provider_limits SET units = 20, window_seconds = 1 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(500))
    results = crowd(8, "claim_for", url=database_url, provider=TWELVEDATA, max_calls=3, logged=50)
    calls = [tuple(row) for row in core.rows("SELECT started_at, units FROM pricing.collector_call_log ORDER BY 1")]
    assert sum(units for _, units in calls) == sum(result["claimed"] for result in results)
    assert len(calls) >= 50, "the limit is used, not only kept"
    for began, _ in calls:
        window = sum(units for at, units in calls if 0 <= (at - began).total_seconds() < 1)
        assert window <= 20
