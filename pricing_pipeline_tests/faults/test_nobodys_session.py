"""No session stops others: whatever it keeps locked, for however long, is passed over.

While any role holds any lock that it can take in an open transaction, each step of a drain, each duty, a sensor's look
and another user's call waits for two seconds at most; after the lock is gone, all that is watched is served.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pricing_pipeline.demand import drains, staleness, viewers
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.errors import ProviderDown
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer, settle_failure
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.open_sessions import (
    AAPL,
    BOUND,
    CLIENTS,
    EURUSD,
    IBM,
    MSFT,
    good,
    waited,
)
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.tools.audit import audit

# A worker can take an advisory lock of any name; other logins cannot (test_embedded_roles.py).
ADVISORY = "SELECT " + ", ".join(
    f"pg_advisory_lock(hashtextextended('pricing.{name}', 0))"
    for name in (
        "begin_drain",
        "run_duties",
        "walk_schedules",
        "add_demand",
        "enqueue_due equity_quote",
        "plan_backfill equity_daily",
    )
)

# What somebody at psql, or a frozen process, may have left open.
PERSONS = {
    "an uncommitted task": "SELECT pricing.enqueue('equity_quote', '{AAPL,IBM,MSFT,NEW}', '{9,9,9,9}')",
    "a task inserted by hand": "INSERT INTO pricing.api_call_queue_live"
    " (data_type, symbol, provider, priority, cadence_minutes, est_bytes)"
    " VALUES ('equity_quote', 'NEW', 'twelvedata', 1, 5, 100)",
    "an uncommitted first look": "SELECT pricing.heartbeat('eve', '{equity_quote}', '{NEW}')",
    "an uncommitted read": "SELECT pricing.request_prices('{equity_quote}', '{NEW}')",
    "uncommitted demand": "INSERT INTO pricing.demand (data_type, symbol, due_at)"
    " VALUES ('equity_quote', 'NEW', pricing.clock())",
    "an uncommitted instrument": "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'NEW')",
    "a claim": "SELECT pricing.claim_calls('twelvedata', 'frozen', 3)",
    "the fence": "SELECT pricing.lock_tasks(array_agg(id), (array_agg(claim_token))[1])"
    " FROM pricing.api_call_queue_live WHERE status = 'processing'",
    "duties": "SELECT pricing.run_duties()",
    "a check": "SELECT pricing.enqueue_due()",
    "a walk": "SELECT pricing.enqueue_scheduled('mf_nav')",
    "a clean-up": "SELECT pricing.clean_subscriptions()",
    "a cancel": "SELECT pricing.cancel_tasks(array_agg(id)) FROM pricing.api_call_queue_live WHERE symbol = 'IBM'",
    "a new TTL": "UPDATE pricing.data_type_registry SET default_ttl_minutes = default_ttl_minutes + 1",
    "a pause": "UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = 'IBM'",
}

TABLES = [
    "active_subscriptions",
    "api_call_queue_dead",
    "api_call_queue_live",
    "api_data_usage",
    "check_marks",
    "collector_call_log",
    "data_collectors",
    "data_type_registry",
    "demand",
    "drains",
    "duties",
    "holdings",
    "instruments",
    "latest_prices",
    "limit_counts",
    "pair_requests",
    "pair_views",
    "price_history_equity_quote",
    "provider_keys",
    "provider_limits",
    "provider_routing",
    "provider_state",
    "read_charges",
    "registry_state",
    "schedule_walks",
    "size_estimates",
    "turns",
    "user_allowances",
    "user_caps",
    "warnings",
]

LOCKS = [
    *(("client", name, sql) for name, sql in CLIENTS.items()),
    ("worker", "advisory locks", ADVISORY),
    *((role, name, sql) for role in ("worker", "owner") for name, sql in PERSONS.items()),
    *(("owner", f"rows of {name}", f"SELECT FROM pricing.{name} FOR UPDATE") for name in TABLES),
]
# A worker may not change the registry or make instruments anew; the owner does.
LOCKS = [lock for lock in LOCKS if lock[:2] != ("worker", "a new TTL")]
LOCKS_AND_ENDS = [
    pytest.param(role, name, sql, end, id=f"{role}: {name}-{end}")
    for role, name, sql in LOCKS
    for end in ("rollback", "commit")
    if end == "rollback" or not sql.endswith("FOR UPDATE")  # which changes no row: both ends are the same
]


def in_work(core: Core, clock: Clock) -> tuple[Call, Call]:
    """Prices that are due again, of which two are being requested, each by a call of its own."""
    core.lift_limits(batch_size=1)
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    core.heartbeat("ann", AAPL, IBM, MSFT, EURUSD)
    core.hold("ann", IBM)
    core.refresh()
    clock.advance(3 * 86_400)
    core.heartbeat("ann", AAPL, IBM, MSFT, EURUSD)
    core.enqueue_due()
    first, second = core.claim_one(), core.claim_one()
    return first, second


def look(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


def steps(core: Core, calls: tuple[Call, Call], other: str) -> dict[str, Callable[[], object]]:
    """All that must go on, each by itself."""

    def claim() -> None:
        with core.engine.begin() as connection:
            task_queue.claim(connection, TWELVEDATA, "other", 1, None)

    def a_look(connection: Any) -> None:
        task_queue.is_busy(connection)
        task_queue.providers_with_work(connection)
        drains.outlook(connection)

    def within(work: Callable[[Any], object]) -> Callable[[], None]:
        def run() -> None:
            with core.engine.begin() as connection:
                work(connection)

        return run

    return {
        "another client's heartbeat": lambda: look(
            other, "SELECT pricing.heartbeat('{equity_quote,equity_quote}', '{AAPL,NEW}')"
        ),
        "another client's read": lambda: look(other, "SELECT pricing.price('AAPL')"),
        "another user's heartbeat": within(lambda c: viewers.heartbeat(c, "bob", [AAPL, (QUOTE, "NEW")])),
        "another user's leave": within(lambda c: viewers.unsubscribe(c, "bob", [AAPL])),
        "the check": within(staleness.enqueue_due),
        "promotion": within(task_queue.promote),
        "the claim": claim,
        "an answer": lambda: settle_answer(core.engine, calls[0], good(core, calls[0])),
        "a failure": lambda: settle_failure(core.engine, calls[1], ProviderDown("it hung up")),
        "the duties": within(staleness.run_duties),
        "the duties, once more": within(staleness.run_duties),
        "the sensor's look": within(a_look),
    }


def let_time_pass(core: Core, clock: Clock) -> None:
    """Four minutes of what drains do."""
    for _ in range(8):
        clock.advance(31)
        core.heartbeat("ann", AAPL, IBM, MSFT, EURUSD)
        for act in ("run_duties", "enqueue_due", "promote_tasks"):
            core.call(f"SELECT pricing.{act}() IS NOT NULL")
        core.refresh()


def served(core: Core) -> None:
    """Anyone who watches has demand, and a price, and nothing is forgotten in the middle."""
    unserved = core.rows(
        "SELECT a.user_id, a.data_type, a.symbol, d.due_at, d.became_due_at FROM pricing.active_subscriptions a"
        " LEFT JOIN pricing.demand d USING (data_type, symbol)"
        " LEFT JOIN pricing.latest_prices l USING (data_type, symbol)"
        " WHERE coalesce(d.backoff_until, '-infinity') < pricing.clock()"
        " AND (d.data_type IS NULL OR l.data_type IS NULL OR l.fetched_at < pricing.clock() - interval '1 day')"
    )
    assert unserved == []
    assert core.one("SELECT count(*) FROM pricing.pair_requests") == 0
    assert core.one("SELECT count(*) FROM pricing.api_call_queue_live WHERE status = 'processing'") == 0


@pytest.mark.parametrize(("role", "name", "sql", "end"), LOCKS_AND_ENDS)
def test_fault_27_whatever_a_session_keeps_locked_nobody_else_waits_and_nothing_is_lost(
    core: Core,
    clock: Clock,
    sessions: Callable[[str], psycopg.Connection[Any]],
    server: TestServer,
    database_url: str,
    role: str,
    name: str,
    sql: str,
    end: str,
) -> None:
    calls = in_work(core, clock)
    holder = sessions(role)
    holder.execute(sql)
    slow = {}
    with a_login(server, database_url, "pricing_client") as (_, other):
        for step, work in steps(core, calls, other).items():
            seconds = waited(core, work)
            if seconds > BOUND:
                slow[step] = round(seconds, 1)
        assert slow == {}
        getattr(holder, end)()
        holder.close()
        let_time_pass(core, clock)
    served(core)
    audit(core)


def test_fault_27_each_table_that_everybody_needs_is_among_those_that_are_locked(core: Core) -> None:
    """What is not named changes by people, and by rarer kinds of answers: no claim, check or heartbeat meets it."""
    there = core.rows("SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r'")
    assert set(TABLES) <= {row.relname for row in there}


@pytest.mark.own_sessions
def test_b5_what_a_client_that_died_had_asked_for_ends_and_locks_nothing(engine: Engine, server: TestServer) -> None:
    with engine.connect() as client, server.admin() as admin, ThreadPoolExecutor(1) as beside:
        driver: Any = client.connection.dbapi_connection
        pid = driver.info.backend_pid
        asked = beside.submit(driver.execute, f"SELECT pg_sleep({2 * PATIENCE})")
        wait_until(lambda: is_there(admin, pid, asking="pg_sleep"))
        with socket.socket(fileno=os.dup(driver.fileno())) as theirs:
            theirs.shutdown(socket.SHUT_RDWR)
        assert isinstance(asked.exception(PATIENCE), psycopg.OperationalError)
        wait_until(lambda: not is_there(admin, pid))
        client.invalidate()


def is_there(connection: psycopg.Connection[Any], pid: int, asking: str = "") -> bool:
    found = "SELECT FROM pg_stat_activity WHERE pid = %s AND strpos(query, %s) > 0"
    return bool(connection.execute(found, [pid, asking]).fetchall())
