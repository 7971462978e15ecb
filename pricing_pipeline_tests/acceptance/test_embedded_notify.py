"""The server's queue of notifications belongs to all its sessions, and any login can fill it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline import sample
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.support.patience import wait_until

WRITES = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND database = 0 AND objid = 0)"
"""Whether a commit has the lock under which notifications are written."""
WORK = [
    "SELECT pricing.heartbeat('ann', '{equity_quote}', '{AAPL}')",
    "SELECT pricing.hold('ann', '{equity_quote}', '{IBM}')",
    "SELECT pricing.request_pairs('seen', '{equity_quote}', '{MSFT}')",
    "SELECT pricing.enqueue('equity_quote', '{GOOG}', '{1}')",
    "SELECT pricing.run_duties()",
]


def with_a_short_queue(make_server: MakeServer) -> EmbeddedServer:
    """A server that holds half a megabyte of notifications, not 8 GB."""
    server = make_server()
    with (server.data_dir / "postgresql.conf").open("a") as settings:
        settings.write("max_notify_queue_pages = 64\n")
    return server


def fill(thief: psycopg.Connection[object]) -> None:
    """Notify until the server refuses it."""
    for number in range(1000):
        try:
            thief.execute("SELECT pg_notify('z', repeat('a', 7900) || %s)", [number])
        except psycopg.errors.ProgramLimitExceeded:
            return
    raise AssertionError("the queue is not full")


def test_b6_a_session_that_notifies_much_stops_no_work(make_server: MakeServer) -> None:
    with make_server() as server:
        upgrade(server.url("pricing"))
        sample.load(server.url("pricing"))
        superuser, worker = server.url("postgres", "superuser"), server.url("pricing", "worker")
        with psycopg.connect(superuser, autocommit=True) as thief, ThreadPoolExecutor(1) as thread:
            much = "SELECT count(pg_notify('z', repeat('a', 7900) || g)) FROM generate_series(1, 30000) g"
            writing = thread.submit(thief.execute, much)
            wait_until(lambda: ask(superuser, WRITES) or writing.done())
            assert not writing.done()
            for statement in WORK:
                ask(worker, f"SET lock_timeout = '50ms'; {statement}")
            writing.result()


def test_b6_a_full_queue_of_notifications_stops_no_work(make_server: MakeServer) -> None:
    with with_a_short_queue(make_server) as server:
        upgrade(server.url("pricing"))
        sample.load(server.url("pricing"))
        superuser, worker = server.url("postgres", "superuser"), server.url("pricing", "worker")
        url = make_url(server.url("pricing")).set(username="ann")
        ask(superuser, f"CREATE ROLE ann LOGIN PASSWORD '{url.password}' IN ROLE pricing_client")
        person = url.render_as_string(hide_password=False)
        with psycopg.connect(person) as listener, psycopg.connect(person, autocommit=True) as thief:
            listener.execute("LISTEN z")
            listener.commit()
            listener.execute("SELECT 1")  # and stays in this transaction
            fill(thief)
            for statement in WORK:
                ask(worker, statement)
        # Nobody empties the queue when the thief has gone, but by looking at it.
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            ask(worker, "NOTIFY run_events, 'as Dagster does'")
        ask(worker, "SELECT pricing.run_duties()")
        ask(worker, "NOTIFY run_events, 'as Dagster does'")
