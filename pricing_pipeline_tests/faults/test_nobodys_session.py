"""No session stops others: whatever it keeps locked, for however long, is passed over (FAULTS 27).

Invariant: while any role holds any lock that it can take in an open transaction, each step of a drain, each duty, a
sensor's look and another user's call ends within two seconds; after the lock is gone, all that is watched is served.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.demand import drains, staleness, viewers
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.errors import DatabaseError, ProviderDown
from pricing_pipeline.providers.client import Fetched
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.settling import settle_answer, settle_failure
from pricing_pipeline_tests.faults.test_contention import at_once
from pricing_pipeline_tests.fixtures.core import (
    DAILY,
    FX,
    NAV,
    QUOTE,
    TWELVEDATA,
    Core,
    observation,
    sample_template,
)
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.integration.test_roles import a_login
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.workers import Worker
from pricing_pipeline_tests.tools.audit import audit

template = sample_template

AAPL, IBM, MSFT, EURUSD = (QUOTE, "AAPL"), (QUOTE, "IBM"), (QUOTE, "MSFT"), (FX, "EUR/USD")
BOUND = 2.0 + 0.9  # what a busy machine takes for the statements themselves

# What a client can do in an open transaction, of pairs that others want, too: known ones, and one that is new.
CLIENTS = {
    "heartbeat": "SELECT pricing.heartbeat('{equity_quote,equity_quote,fx_rate}', '{AAPL,NEW,EUR/USD}')",
    "unsubscribe": "SELECT pricing.unsubscribe('{equity_quote,fx_rate}', '{IBM,EUR/USD}')",
    "hold": "SELECT pricing.hold('{equity_quote,equity_quote}', '{AAPL,NEW}')",
    "release": "SELECT pricing.release('{equity_quote}', '{IBM}')",
    "price": "SELECT pricing.price('AAPL'), pricing.price('IBM'), pricing.price('EUR/USD')",
    "history": "SELECT pricing.history('equity_quote', 'AAPL', '2020-01-01', '2030-01-01')",
    "document": "SELECT pricing.document('earned', 'AAPL')",
}

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
    "the fence": "SELECT pricing.hold_tasks(array_agg(id), (array_agg(claim_token))[1])"
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


@pytest.fixture
def sessions(server: TestServer, database_url: str, owner_url: str) -> Iterator[Callable[[str], Any]]:
    """Opens a session of a role; it stays open until the test's end."""
    with (
        a_login(server, database_url, "pricing_client") as (_, client),
        a_login(server, database_url, "pricing_reader") as (_, reader),
        ExitStack() as opened,
    ):
        urls = {"client": client, "reader": reader, "worker": database_url, "owner": owner_url}

        def session(role: str) -> psycopg.Connection[Any]:
            connection = psycopg.connect(urls[role])
            opened.callback(connection.close)
            return connection

        yield session


def in_work(core: Core, clock: Clock) -> tuple[Call, Call]:
    """Prices that are due again, of which two are asked for at this moment, each by a call of its own."""
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


def good(core: Core, call: Call) -> Fetched:
    at = core.clock() - timedelta(seconds=1)
    return Fetched(Answer(tuple(observation(symbol, "101.00", at) for symbol in call.symbols)), 200, 900)


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


def seconds(work: Callable[[], object]) -> float:
    """How long it took; being refused a lock is one way to end."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    began = time.monotonic()
    thread.start()
    thread.join(PATIENCE / 4)
    took = time.monotonic() - began
    for fault in faults:
        is_lock = isinstance(fault, (DBAPIError, psycopg.Error)) and "55P03" in (
            getattr(getattr(fault, "orig", fault), "sqlstate", None) or ""
        )
        if not is_lock:
            raise fault
    return took


def let_time_pass(core: Core, clock: Clock) -> None:
    """Four minutes of what drains do."""
    for _ in range(8):
        clock.advance(31)
        core.heartbeat("ann", AAPL, IBM, MSFT, EURUSD)
        for act in ("run_duties", "enqueue_due", "promote_tasks"):
            core.call(f"SELECT pricing.{act}() IS NOT NULL")
        core.refresh()


def served(core: Core) -> None:
    """Whoever watches has demand, and a price, and nothing is forgotten in the middle."""
    unserved = core.rows(
        "SELECT a.user_id, a.data_type, a.symbol, d.due_at, d.became_due_at FROM pricing.active_subscriptions a"
        " LEFT JOIN pricing.demand d USING (data_type, symbol)"
        " LEFT JOIN pricing.latest_prices l USING (data_type, symbol)"
        " WHERE coalesce(d.held_until, '-infinity') < pricing.clock()"
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
            took = seconds(work)
            if took > BOUND:
                slow[step] = round(took, 1)
        assert slow == {}
        getattr(holder, end)()
        holder.close()
        let_time_pass(core, clock)
    served(core)
    audit(core)


def test_fault_27_each_table_that_everybody_needs_is_among_those_that_are_locked(core: Core) -> None:
    """What is not named changes by people, and by rarer kinds of answers: no claim, check or heartbeat meets it."""
    there = core.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r'"
    )
    assert set(TABLES) <= {row.relname for row in there}


# Frozen workers


@pytest.mark.parametrize(
    ("data_type", "point"), [(QUOTE, "claimed"), (QUOTE, "answered"), (DAILY, "stored"), (QUOTE, "committed")]
)
def test_fault_27_a_worker_frozen_at_any_point_stops_nobody_and_its_late_finish_is_refused(
    core: Core, clock: Clock, database_url: str, sandbox: RunningSandbox, data_type: str, point: str
) -> None:
    """Behind the fence it holds locks in an open transaction: the server ends its session, and its lease runs out."""
    symbols = ["AAPL", "FB", "IBM"]
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 600")
    core.heartbeat("ann", *((data_type, symbol) for symbol in symbols))
    arguments: dict[str, Any] = {"url": database_url, "sandbox": sandbox.url, "halt": point, "idle": "500ms"}
    with Worker("drain", **arguments, seconds=600).start() as worker:
        worker.says("halted")
        worker.signal(signal.SIGSTOP)
        for act in (core.enqueue_due, core.promote, lambda: core.call("SELECT pricing.run_duties() IS NULL")):
            assert seconds(act) < BOUND
        assert seconds(lambda: core.heartbeat("bob", (data_type, "AAPL"), (data_type, "MSFT"))) < BOUND
        clock.advance(61)
        wait_until(
            lambda: (
                core.one(
                    "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
                    " AND datname = current_database() AND pid <> pg_backend_pid()"
                )
                == 0
            )
        )
        core.recover()
        core.call("SELECT pricing.expire_calls()")
        with refreshing(core.engine, sandbox.url, worker="heir") as heir:
            work_until(heir, lambda: set(core.statuses().values()) == {"completed"})
        stored = core.rows("SELECT t::text FROM pricing.price_history t ORDER BY 1")
        latest = core.rows("SELECT t::text FROM pricing.latest_prices t ORDER BY 1")
        worker.signal(signal.SIGCONT)
        worker.kill()
    assert core.rows("SELECT t::text FROM pricing.price_history t ORDER BY 1") == stored
    assert core.rows("SELECT t::text FROM pricing.latest_prices t ORDER BY 1") == latest
    assert {task.status for task in core.tasks()} == {"completed"}
    audit(core)


def test_fault_27_a_worker_frozen_behind_the_fence_comes_back_too_late(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    call = core.claim_one()
    with core.engine.connect() as frozen:
        frozen.execute(text("SET idle_in_transaction_session_timeout = '100ms'"))
        assert task_queue.held(frozen, call) == set(call.task_ids)
        clock.advance(61)
        wait_until(lambda: core.recover() == 1)
        heir = core.claim_one(worker="heir")
        with pytest.raises(DatabaseError):
            task_queue.complete(frozen, call.task_ids, call.claim_token)
    core.finish(heir)
    assert core.task("AAPL").worker == "heir"
    audit(core)


# Locks in the way of an answer


def test_fault_27_an_answer_is_stored_but_for_what_is_locked_and_that_waits_ten_seconds(
    core: Core, clock: Clock, sessions: Any
) -> None:
    """The provider is not asked again each second, no attempt is lost, and the neighbours are served."""
    core.lift_limits(batch_size=10)
    names = [f"S{number}" for number in range(8)]
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.refresh()
    clock.advance(120)
    core.enqueue(QUOTE, *names)
    call = core.claim_one()
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.latest_prices WHERE symbol = 'S3' FOR UPDATE")
    tally = settle_answer(core.engine, call, good(core, call))
    assert tally.symbols == {*names} - {"S3"}
    live = {task.symbol: task for task in core.tasks() if task.status != "completed"}
    assert set(live) == {"S3"}
    assert (live["S3"].status, live["S3"].attempt) == ("scheduled", 0)
    assert 5 < (live["S3"].run_after - core.clock()).total_seconds() <= 10
    assert live["S3"].errors[-1]["kind"] == "database_conflict"
    holder.rollback()
    audit(core)


def test_fault_27_an_answer_that_meets_locks_is_stored_out_of_turn(
    core: Core, clock: Clock, sessions: Any
) -> None:
    """Four answers are stored at a time. Eight with locked rows kept all others waiting for eight seconds."""
    core.lift_limits(batch_size=100)
    names = [f"S{number}" for number in range(60)]
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.refresh()
    clock.advance(120)
    core.enqueue(QUOTE, *names)
    call = core.claim_one()
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.latest_prices FOR UPDATE")
    in_turn: list[float] = []

    @contextmanager
    def turn() -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            in_turn.append(time.monotonic() - began)

    took = seconds(lambda: settle_answer(core.engine, call, good(core, call), turn=turn()))
    assert in_turn[0] < 1 < took
    assert {task.status for task in core.tasks() if task.status != "completed"} == {"scheduled"}


def test_fault_27_a_locked_row_of_duties_stops_no_duty_and_no_look(
    core: Core, clock: Clock, sessions: Any
) -> None:
    """After a pause of five minutes each look wanted to note something there, waited for two seconds and failed."""
    core.call("SELECT pricing.run_duties()")
    holder = sessions("owner")
    holder.execute(
        "UPDATE pricing.duties SET last_error = NULL WHERE duty IN ('clean_subscriptions', 'follow_clock')"
    )
    for step in (300, -3600, 86400 * 2):
        clock.advance(step)
        for _ in range(3):
            clock.advance(20)
            assert seconds(lambda: core.call("SELECT pricing.run_duties()")) < BOUND
        holder.execute("SELECT 1")
    clock.advance(20)
    assert "recover_tasks" in core.call("SELECT pricing.run_duties()")


def test_fault_27_a_provider_that_is_locked_is_passed_over_and_said_once(
    core: Core, sandbox: RunningSandbox, sessions: Any, caplog: pytest.LogCaptureFixture
) -> None:
    core.heartbeat("ann", AAPL, (NAV, "118632"))
    holder = sessions("owner")
    holder.execute("SELECT FROM pricing.provider_state WHERE provider = 'twelvedata' FOR UPDATE")
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, lambda: core.task("118632").status == "completed")
        work_until(refresher, lambda: "is passed over" in caplog.text)
        assert core.task("AAPL").status == "pending"
        holder.rollback()
        work_until(refresher, lambda: core.task("AAPL").status == "completed")
    said = [record.message for record in caplog.records if "is passed over" in record.message]
    assert len(said) == 1
    assert "twelvedata" in said[0]


def test_fault_27_a_check_passes_over_the_one_task_that_is_not_committed(core: Core, sessions: Any) -> None:
    """Of 200 pairs that fell due one is in the way: the others are queued within a second, and it is warned of."""
    names = [f"S{number:03}" for number in range(200)]
    core.heartbeat("ann", *((QUOTE, name) for name in names))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.demand SET became_due_at = NULL")
    holder = sessions("owner")
    holder.execute("SELECT pricing.enqueue('equity_quote', '{S123}', '{1}')")
    assert seconds(core.enqueue_due) < BOUND
    assert set(core.statuses()) == {*names} - {"S123"}
    (said,) = core.rows("SELECT subject, message, sqlstate FROM pricing.warnings")
    assert said == (QUOTE, "S123 is passed over: another session has locked it", "55P03")
    holder.rollback()
    assert core.enqueue_due() == 1


# Many sessions of one user, and who comes while others leave


def test_fault_32_twenty_sessions_of_one_user_keep_its_caps_and_never_deadlock(
    core: Core, server: TestServer, database_url: str
) -> None:
    """In shuffled lists, known pairs and new ones, leaving beside looking: the sum stays within the cap."""
    core.rows("UPDATE pricing.user_caps SET pairs_per_user = 60, new_pairs_per_minute = 100000")
    names = [f"S{number:03}" for number in range(100)]
    most: list[int] = []
    with a_login(server, database_url, "pricing_client") as (user, url):
        count = "SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = :user"

        def work(number: int) -> None:
            random = Random(number)
            with psycopg.connect(url, autocommit=True) as connection:
                for _ in range(12):
                    mine = random.sample(names, 25)
                    word = random.choice(["heartbeat", "heartbeat", "unsubscribe", "hold", "release"])
                    # A busy machine's turn may come too late; a deadlock is neither.
                    with suppress(psycopg.errors.ConfigurationLimitExceeded, psycopg.errors.LockNotAvailable):
                        connection.execute(f"SELECT pricing.{word}(%s, %s)", [[QUOTE] * 25, mine])
                    most.append(core.one(count, user=user))

        assert at_once(20, work) == []
    assert 25 <= max(most) <= 60
    core.call("SELECT pricing.serve_requests()")
    assert core.one("SELECT pricing.adopt_pairs()") == 0, "each request was served"


@pytest.mark.parametrize("turn", range(3))
def test_fault_26_clients_who_come_while_others_leave_lose_no_demand(
    core: Core, server: TestServer, database_url: str, turn: int
) -> None:
    """Requests, their serving and the clean-up without grace, all at once: who watches in the end has demand."""
    names, rounds = [f"S{number}" for number in range(4)], 25
    arguments = [[QUOTE] * 4, names]

    def client(number: int) -> None:
        begin, end = [("heartbeat", "unsubscribe"), ("hold", "release")][number % 2]
        with a_login(server, database_url, "pricing_client") as (_, url), psycopg.connect(url) as connection:
            for one in range(rounds):
                connection.execute(f"SELECT pricing.{begin}(%s, %s)", arguments)
                if one % 3 == 0:
                    time.sleep(0.01)  # its transaction stays open for a while
                connection.commit()
                if one < rounds - 1:
                    connection.execute(f"SELECT pricing.{end}(%s, %s)", arguments)
                    connection.commit()
            stay.wait(PATIENCE)

    def clean(_: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not stay.is_set():
                connection.execute(
                    "UPDATE pricing.demand d SET created_at = created_at - interval '1 hour' FROM"
                    " (SELECT data_type, symbol FROM pricing.demand FOR NO KEY UPDATE SKIP LOCKED) x"
                    " WHERE (d.data_type, d.symbol) = (x.data_type, x.symbol)"
                )
                connection.execute("SELECT pricing.clean_subscriptions()")

    def serve(_: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not stay.is_set():
                connection.execute("SELECT pricing.serve_requests()")

    def end(_: int) -> None:
        time.sleep(2)
        stay.set()

    stay = threading.Event()
    works = [client, client, client, client, clean, serve, serve, end]
    assert at_once(len(works), lambda number: works[number](number)) == []
    core.call("SELECT pricing.serve_requests()")
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions") == 8
    passed = core.rows("SELECT message FROM pricing.warnings WHERE source = 'add_demand'")
    orphans = core.one("SELECT pricing.adopt_pairs()")
    assert orphans == 0 or passed, "none is left to the duty but those that were passed over for a lock"
    assert core.one("SELECT count(*) FROM pricing.demand") == 4


def test_fault_27_a_first_look_of_a_client_is_served_by_the_next_check(core: Core, sessions: Any) -> None:
    client = sessions("client")
    assert client.execute(CLIENTS["heartbeat"]).fetchone() == (3,)
    assert core.enqueue_due() == 0, "it is not committed"
    client.commit()
    with core.engine.begin() as connection:
        outlook = drains.outlook(connection)
        assert task_queue.is_busy(connection)
    assert (outlook.watched, outlook.queued, outlook.queued_types) == (True, True, [QUOTE, FX])
    assert core.enqueue_due() == 3
    assert core.statuses() == {"AAPL": "pending", "NEW": "pending", "EUR/USD": "pending"}


def test_a10_a_hundred_reads_of_a_client_ask_once(core: Core, sessions: Any) -> None:
    core.heartbeat("ann", AAPL, (NAV, "118632"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 day'")
    client = sessions("client")
    client.autocommit = True
    for _ in range(100):
        client.execute("SELECT pricing.price('AAPL')")
    kinds = core.rows("SELECT data_type, kind FROM pricing.pair_requests ORDER BY request_id")
    assert sorted(map(tuple, kinds)) == [
        ("equity_daily", "read"),
        ("equity_daily", "seen"),
        ("equity_quote", "read"),
        ("equity_quote", "seen"),
    ]
    core.enqueue_due()
    assert core.one("SELECT count(*) FROM pricing.pair_requests") == 0
    client.execute("SELECT pricing.price('AAPL')")
    assert core.one("SELECT count(*) FROM pricing.pair_requests") == 0, "it is queued"
