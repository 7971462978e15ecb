"""A reader sees prices and its own subscriptions, is told what a worker is told, and writes nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from psycopg import errors

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.logins import Login, refuses, relations


def test_b5_a_reader_sees_prices_and_of_subscriptions_its_own(core: Core, reader: tuple[str, Login]) -> None:
    name, session = reader
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.heartbeat(name, (QUOTE, "MSFT"))
    core.refresh()
    assert session.execute("SELECT symbol FROM pricing.active_subscriptions").fetchall() == [("MSFT",)]
    assert len(session.execute("SELECT * FROM pricing.latest_prices").fetchall()) == 2
    assert len(session.execute("SELECT * FROM pricing.price('AAPL')").fetchall()) == 1
    session.execute("SELECT pricing.bytes_used('twelvedata', pricing.clock())")


def test_b5_a_reader_cannot_tell_by_transactions_who_asks_for_what(
    core: Core, client: tuple[str, Login], reader: tuple[str, Login], connection: Login
) -> None:
    """A reader sees which session has a transaction number (pg_locks), so it must see no row that has it."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("DELETE FROM pricing.pair_requests")
    _, asking = client
    _, session = reader
    row = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()
    assert row is not None
    for call in (
        "heartbeat('{equity_quote,equity_quote}', '{IBM,AAPL}')",
        "hold('{equity_quote}', '{MSFT}')",
        "price('GOOG')",
        "price('AAPL')",
        "document('earned', 'AAPL')",
        "release('{equity_quote}', '{MSFT}')",
        "unsubscribe('{equity_quote}', '{IBM}')",
    ):
        with suppress(errors.InvalidParameterValue):
            asking.execute(f"SELECT pricing.{call}".encode())
    written = 0
    for table in relations(connection, "rp"):
        query = f"SELECT count(*) FROM pricing.{table} WHERE xmin::text::bigint >= %s::bigint".encode()
        (there,) = connection.execute(query, row).fetchone() or (0,)
        written += there
        with suppress(errors.InsufficientPrivilege):
            assert session.execute(query, row).fetchone() == (0,), table
    assert written > 4, "the owner sees them"


REPORTS = [
    "SELECT * FROM pricing.budget()",
    "SELECT state, sentence FROM pricing.why_old('equity_quote', 'AAPL')",
    "SELECT state FROM pricing.why_old('mf_nav', '118632')",
    "SELECT pricing.is_stale('mf_nav', '118632', pricing.clock(), 5)",
    "SELECT pricing.is_stale('equity_quote', 'AAPL', pricing.clock(), 5)",
    "SELECT key_name, units_left FROM pricing.key_allowances('twelvedata', pricing.clock())",
]


@pytest.mark.usefixtures("still")
def test_f2_a_reader_is_told_what_a_worker_is_told(core: Core, reader: tuple[str, Login], worker: Login) -> None:
    """Reports are of everybody's subscriptions, of which a reader sees its own only."""
    core.heartbeat("ann", (QUOTE, "AAPL"), ("mf_nav", "118632"))
    _, session = reader
    for report in REPORTS:
        told = worker.execute(report).fetchall()
        assert told
        assert session.execute(report).fetchall() == told


def test_a_reader_writes_nothing(reader: tuple[str, Login], connection: Login) -> None:
    _, session = reader
    nobody_can = {
        "latest_answers",
        "counted_calls",
        "chosen_routes",
        "universe",
        "calls",
        "operation_status",
        "trade_routes",
        "game_version_in_play",
    }  # unions, a choice, a join, counts
    for table in set(relations(connection, "rpv")) - nobody_can:
        refuses(session, f"DELETE FROM pricing.{table}")
    for call in (
        "pricing.enqueue('equity_quote', '{AAPL}', '{1}')",
        "pricing.heartbeat('ann', '{equity_quote}', '{AAPL}')",
        "pricing.run_duties()",
        "nextval('pricing.task_id_seq')",
    ):
        refuses(session, f"SELECT {call}")


def test_b5_rows_of_users_are_protected_wherever_they_are(connection: Login) -> None:
    """Every table with a user_id has row security and a policy for each role that may read it."""
    unprotected = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id'"
        " WHERE c.relnamespace = 'pricing'::regnamespace AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity"
        " AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'worker_serves_all')"
        " AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'reader_sees_own'))"
    ).fetchall()
    assert unprotected == []
