"""Who may do what in the database (B2, B5, B7): tried as each role, on a database as `db upgrade` leaves it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, sample_template
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.pages import ROOT

template = sample_template

Login = psycopg.Connection[Any]


@contextmanager
def a_login(server: TestServer, database_url: str, *groups: str) -> Iterator[tuple[str, str]]:
    """A person's role that is a member of some groups, for the block: its name, and its URL of a database."""
    name, password = f"person_{uuid4().hex[:12]}", uuid4().hex
    there = make_url(server.admin_url).set(database=make_url(database_url).database)
    person = sql.Identifier(name)
    with psycopg.connect(there.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(person, password))
        try:
            for group in groups:
                admin.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), person))
            url = make_url(database_url).set(username=name, password=password)
            yield name, url.render_as_string(hide_password=False)
        finally:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(person))
            admin.execute(sql.SQL("DROP ROLE {}").format(person))


@contextmanager
def a_session(server: TestServer, database_url: str, *groups: str) -> Iterator[tuple[str, Login]]:
    """A session of a person that is a member of some groups: name and connection."""
    with (
        a_login(server, database_url, *groups) as (name, url),
        psycopg.connect(url, autocommit=True) as session,
    ):
        yield name, session


@pytest.fixture
def client(server: TestServer, database_url: str) -> Iterator[tuple[str, Login]]:
    """A person who may call the functions for clients."""
    with a_session(server, database_url, "pricing_client") as found:
        yield found


@pytest.fixture
def reader(server: TestServer, database_url: str) -> Iterator[tuple[str, Login]]:
    """A person who may read."""
    with a_session(server, database_url, "pricing_reader") as found:
        yield found


@pytest.fixture
def worker(database_url: str) -> Iterator[Login]:
    """A session of the role that the pipeline's processes have."""
    with psycopg.connect(database_url, autocommit=True) as session:
        yield session


def relations(session: Login, kinds: str = "rpv") -> list[str]:
    rows = session.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = ANY (%s) ORDER BY 1",
        [list(kinds)],
    )
    return [row[0] for row in rows]


def refuses(session: Login, statement: str, *parameters: object) -> None:
    with pytest.raises(errors.InsufficientPrivilege) as refused:
        session.execute(statement, parameters or None)
    assert refused.value.sqlstate == "42501"


# ── Worker ───────────────────────────────────────────────────────────────────────────────────────────────

OWNERS_TABLES = (
    "data_type_registry",
    "registry_state",
    "data_collectors",
    "provider_capabilities",
    "provider_limits",
    "provider_routing",
    "user_caps",
    "alembic_version",
)


@pytest.mark.parametrize("table", OWNERS_TABLES)
def test_b2_a_worker_changes_nothing_that_the_owner_decides(worker: Login, table: str) -> None:
    (column,) = worker.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 LIMIT 1",
        [f"pricing.{table}"],
    ).fetchone() or ("",)
    worker.execute(f"SELECT * FROM pricing.{table}")
    for statement in (
        f"INSERT INTO pricing.{table} DEFAULT VALUES",
        f"UPDATE pricing.{table} SET {column} = {column}",
        f"DELETE FROM pricing.{table}",
        f"TRUNCATE pricing.{table} CASCADE",
        f"MERGE INTO pricing.{table} t USING (SELECT 1) s ON false WHEN MATCHED THEN DELETE",
        f"SELECT * FROM pricing.{table} FOR UPDATE",
        f"ALTER TABLE pricing.{table} DISABLE TRIGGER ALL",
        f"DROP TABLE pricing.{table}",
    ):
        refuses(worker, statement)


def test_b2_a_worker_makes_and_replaces_nothing_in_the_schema(worker: Login, connection: Login) -> None:
    for statement in (
        "CREATE TABLE pricing.mine ()",
        "CREATE FUNCTION pricing.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
        "DROP FUNCTION pricing.clock() CASCADE",
        "CREATE SCHEMA mine",
        "SET ROLE pricing_owner",
        "ALTER ROLE pricing_owner PASSWORD 'known'",
        "CREATE ROLE mine",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
        "CREATE POLICY mine ON pricing.active_subscriptions",
    ):
        refuses(worker, statement)
    for table in relations(connection, "rp"):
        refuses(worker, f"ALTER TABLE pricing.{table} ADD COLUMN mine text")


def test_f3_a_worker_deletes_no_price(worker: Login) -> None:
    for table in ("latest_prices", "price_history", "price_revisions", "price_history_equity_quote"):
        refuses(worker, f"DELETE FROM pricing.{table}")
        refuses(worker, f"TRUNCATE pricing.{table}")
    refuses(worker, "UPDATE pricing.price_revisions SET amount = 0")
    for view in [name for name in relations(worker, "v") if name.startswith("latest_price_")]:
        refuses(worker, f"DELETE FROM pricing.{view}")


def test_f3_what_a_worker_takes_from_a_history_stays_as_revisions(core: Core, worker: Login) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    known = "SELECT array_agg(ROW(symbol, observed_at, amount, scale)::text) FROM pricing."
    before = core.one(f"{known}price_history")
    assert before is not None
    worker.execute("SELECT pricing.change_basis('equity_quote', 'AAPL', 1, 'raw', '{}', true)")
    assert core.one(f"{known}price_history") is None
    assert core.one(f"{known}price_revisions") == before


def test_b2_a_new_type_needs_no_grant_by_hand(core: Core, worker: Login, reader: tuple[str, Login]) -> None:
    """What the registry's trigger makes, and what an owner makes for it, can be read and judged at once."""
    core.rows("CREATE TABLE pricing.my_prices (symbol text, at timestamptz, cache_ttl_minutes integer)")
    core.rows(
        "CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    )
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class,"
        " table_name, timestamp_column, staleness_function)"
        " VALUES ('crypto_quote', 'quote', 2, 'crypto', 'my_prices', 'at', 'is_old'),"
        " ('metal_quote', 'quote', 2, 'metal', '', 'fetched_at', 'is_data_stale')"
    )
    core.heartbeat("ann", ("crypto_quote", "BTC/USD"), ("metal_quote", "XAU"))
    assert core.refresh() == 2
    for session in (worker, reader[1]):
        assert session.execute("SELECT symbol FROM pricing.latest_price_metal_quote").fetchall() == [("XAU",)]
        assert session.execute("SELECT symbol FROM pricing.price_history_metal_quote").fetchall() == [
            ("XAU",)
        ]
        assert session.execute("SELECT pricing.is_stale('metal_quote', NULL, 1)").fetchone() == (True,)
    refuses(worker, "DELETE FROM pricing.price_history_metal_quote")


CLIENTS_FUNCTIONS = [
    "pricing.document(text,text,timestamp with time zone)",
    "pricing.heartbeat(text[],text[])",
    "pricing.history(text,text,date,date,timestamp with time zone,text)",
    "pricing.hold(text[],text[])",
    "pricing.price(text)",
    "pricing.release(text[],text[])",
    "pricing.unsubscribe(text[],text[])",
]

# ── Client ───────────────────────────────────────────────────────────────────────────────────────────────


def test_b7_a_client_watches_and_reads_by_functions(core: Core, client: tuple[str, Login]) -> None:
    name, session = client
    row = session.execute("SELECT pricing.heartbeat(ARRAY['equity_quote'], ARRAY['AAPL'])").fetchone()
    assert row == (1,)
    assert core.rows("SELECT user_id, data_type, symbol FROM pricing.active_subscriptions") == [
        (name, QUOTE, "AAPL")
    ]
    core.enqueue_due()
    core.refresh(price="146.5500")
    (price,) = session.execute(
        "SELECT data_type, symbol, price, currency, fresh, provider FROM pricing.price('AAPL')"
    ).fetchall()
    assert price == (QUOTE, "AAPL", Decimal("146.55"), "USD", True, "twelvedata")
    (bar,) = session.execute(
        "SELECT close, open, currency FROM pricing.history('equity_quote', 'AAPL', current_date - 1, current_date + 1)"
    ).fetchall()
    assert bar == (Decimal("146.55"), None, "USD")
    assert session.execute("SELECT pricing.unsubscribe(ARRAY['equity_quote'], ARRAY['AAPL'])").fetchone() == (
        1,
    )
    assert core.rows("SELECT FROM pricing.active_subscriptions") == []


def test_b29_a_client_reads_documents_as_they_are_and_were(
    core: Core, client: tuple[str, Login], clock: Clock
) -> None:
    session = client[1]
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    assert session.execute("SELECT * FROM pricing.document('earned', 'AAPL')").fetchall() == []
    core.enqueue_due()
    assert [task.data_type for task in core.tasks("AAPL")] == ["earned"], "a read asks for what is missing"
    merge = (
        "SELECT pricing.merge_documents('earned', 'fmp', 1, '{AAPL}', '{AAPL}', '{AAPL}', '{2026-10-29}',"
        " ARRAY[CAST(:body AS jsonb)])"
    )
    core.call(merge, body='{"eps": 1.850}')
    then = core.clock()
    clock.advance(60)
    core.call(merge, body='{"eps": 1.86}')
    read = "SELECT period, body->>'eps', fresh FROM pricing.document('earned', 'AAPL'"
    assert session.execute(f"{read})").fetchall() == [(date(2026, 10, 29), "1.86", True)]
    assert session.execute(f"{read}, %s)", [then]).fetchall() == [(date(2026, 10, 29), "1.850", True)]
    with pytest.raises(errors.InvalidParameterValue, match="no data type of documents"):
        session.execute("SELECT * FROM pricing.document('equity_quote', 'AAPL')")


def test_a7_a_client_holds_and_releases_for_itself(core: Core, client: tuple[str, Login]) -> None:
    name, session = client
    core.hold("ann", (QUOTE, "AAPL"))
    lists = "(ARRAY['equity_quote'], ARRAY['AAPL'])"
    assert session.execute(f"SELECT pricing.hold{lists}").fetchone() == (1,)
    refuses(session, "SELECT pricing.release('ann', ARRAY['equity_quote'], ARRAY['AAPL'])")
    assert session.execute(f"SELECT pricing.release{lists}").fetchone() == (1,)
    held = core.rows("SELECT user_id, status FROM pricing.holdings ORDER BY 1")
    assert [tuple(row) for row in held] == [("ann", "active"), (name, "closed")]


def test_a10_a_clients_read_answers_and_asks(core: Core, client: tuple[str, Login]) -> None:
    session = client[1]
    assert session.execute("SELECT * FROM pricing.price('AAPL')").fetchall() == []
    core.enqueue_due()
    assert {task.data_type for task in core.tasks("AAPL")} == {QUOTE, DAILY}
    session.execute("SET default_transaction_read_only = on")
    assert session.execute("SELECT * FROM pricing.price('IBM')").fetchall() == []
    core.enqueue_due()
    assert core.tasks("IBM") == []


def test_a9_a_client_gets_every_digit(core: Core, client: tuple[str, Login]) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET amount = 123456789012345678, scale = 17")
    assert client[1].execute("SELECT price FROM pricing.price('AAPL')").fetchone() == (
        Decimal("1.23456789012345678"),
    )


def test_b5_a_client_is_its_login_whatever_it_says(core: Core, client: tuple[str, Login]) -> None:
    """FAULTS 18: another user's subscriptions stay untouched, and nobody else's can be made."""
    name, session = client
    core.heartbeat("ann", (QUOTE, "AAPL"))
    refuses(session, "SELECT pricing.heartbeat('ann', ARRAY['equity_quote'], ARRAY['MSFT'])")
    refuses(session, "SELECT pricing.unsubscribe('ann', ARRAY['equity_quote'], ARRAY['AAPL'])")
    refuses(session, "SET SESSION AUTHORIZATION pricing_worker")
    assert session.execute("SELECT pricing.unsubscribe(ARRAY['equity_quote'], ARRAY['AAPL'])").fetchone() == (
        0,
    )
    session.execute("SET ROLE pricing_client")
    session.execute("SELECT pricing.heartbeat(ARRAY['equity_quote'], ARRAY['AAPL'])")
    seen = core.rows("SELECT user_id FROM pricing.active_subscriptions ORDER BY 1")
    assert [row.user_id for row in seen] == ["ann", name]


def test_b7_a_client_may_call_these_functions_and_nothing_else(
    client: tuple[str, Login], connection: Login
) -> None:
    name, session = client
    for relation in relations(connection, "rpvS"):
        refuses(session, f"SELECT * FROM pricing.{relation}")
    callable_ = connection.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'pricing'::regnamespace"
        " AND has_function_privilege(%s, p.oid, 'EXECUTE') ORDER BY 1",
        [name],
    ).fetchall()
    assert [row[0] for row in callable_] == CLIENTS_FUNCTIONS


def test_b7_no_definer_function_runs_what_its_caller_brought(
    core: Core, client: tuple[str, Login], connection: Login
) -> None:
    """Temporary tables, functions and types of a session never come before ours.

    With an empty search_path the types do: a domain named text in pg_temp ran its CHECK as the owner.
    """
    _, session = client
    session.execute("CREATE TEMP TABLE loot (who pg_catalog.text)")
    session.execute("GRANT ALL ON loot TO PUBLIC")
    session.execute(
        "CREATE FUNCTION pg_temp.evil() RETURNS boolean LANGUAGE sql AS $$"
        " INSERT INTO pg_temp.loot VALUES (current_user) RETURNING true $$"
    )
    for table in relations(connection, "rp"):
        session.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} (data_type pg_catalog.text)")
    for function in ("clock()", "is_stale(text, timestamptz, integer)", "unnest(text[])"):
        session.execute(
            f"CREATE FUNCTION pg_temp.{function} RETURNS boolean LANGUAGE sql AS 'SELECT pg_temp.evil()'"
        )
    for name in ("text", "timestamptz", "date", "uuid", "jsonb", "numeric", "bool", "int4"):
        session.execute(f"CREATE DOMAIN pg_temp.{name} AS pg_catalog.{name} CHECK (pg_temp.evil())")
    session.execute(
        "SELECT pricing.heartbeat('{equity_quote}'::pg_catalog._text, '{AAPL}'::pg_catalog._text)"
    )
    core.enqueue_due()
    core.refresh()
    assert session.execute("SELECT pg_catalog.count(*) FROM pricing.price('AAPL')").fetchone() == (1,)
    session.execute(
        "SELECT pg_catalog.count(*) FROM pricing.history('equity_quote', 'AAPL', '2020-01-01', '2030-01-01')"
    )
    session.execute(
        "SELECT pricing.unsubscribe('{equity_quote}'::pg_catalog._text, '{AAPL}'::pg_catalog._text)"
    )
    assert session.execute("SELECT who FROM loot").fetchall() == []


def test_b7_every_function_looks_in_temporary_schemas_last(connection: Login) -> None:
    """What has the owner's rights is listed in test_ledgers.py."""
    functions = connection.execute(
        "SELECT p.oid::regprocedure::text, p.proconfig FROM pg_proc p"
        " WHERE p.pronamespace = 'pricing'::regnamespace"
    ).fetchall()
    assert functions
    for name, config in functions:
        # Without a path of their own they can be inlined; all that they name is qualified or arithmetic.
        inlined = (
            "same_amount",
            "same_part",
            "kept_text",
            "clock",
            "is_document",
            "is_of_level",
            "is_unreadable",
            "backfilled",
            "believable_actions",
            "longest_window",
            "price_of_kin",
            "said_by_others",
            "same_bar",
            "sessions_to_ask",
        )
        if not name.startswith(tuple(f"pricing.{word}(" for word in inlined)):
            paths = [setting for setting in config or () if setting.startswith("search_path=")]
            assert paths == ["search_path=pg_temp"], name


# ── Reader ───────────────────────────────────────────────────────────────────────────────────────────────


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
    "SELECT key_name, units_left FROM pricing.key_room('twelvedata', pricing.clock())",
]


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("report", REPORTS)
def test_f2_a_reader_is_told_what_a_worker_is_told(
    core: Core, reader: tuple[str, Login], worker: Login, report: str
) -> None:
    """Reports are of everybody's subscriptions, of which a reader sees its own only."""
    core.heartbeat("ann", (QUOTE, "AAPL"), ("mf_nav", "118632"))
    _, session = reader
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
    }  # unions, a choice, a join
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


# ── Nobody in particular ─────────────────────────────────────────────────────────────────────────────────


def test_whoever_has_no_role_of_ours_gets_nothing(
    server: TestServer, database_url: str, connection: Login
) -> None:
    with a_session(server, database_url) as (_, session):
        refuses(session, "SELECT * FROM pricing.latest_prices")
        refuses(session, "SELECT pricing.clock()")
    public = connection.execute(
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'pricing'::regnamespace"
        " AND (p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0))"
    ).fetchall()
    assert public == []


def test_a_function_made_by_hand_is_not_for_everybody(connection: Login) -> None:
    connection.execute("CREATE FUNCTION pricing.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    for role, may in (("pricing_worker", True), ("pricing_client", False), ("pricing_reader", False)):
        row = connection.execute("SELECT has_function_privilege(%s, 'pricing.mine()', 'EXECUTE')", [role])
        assert row.fetchone() == (may,), role


# ── What the page says ───────────────────────────────────────────────────────────────────────────────────

WORDS = {"read": "SELECT", "add": "INSERT", "change": "UPDATE", "delete": "DELETE"}


def test_the_page_tells_every_right(connection: Login) -> None:
    page = (ROOT / "docs/security.md").read_text()
    (table,) = re.findall(
        r"^\| table \| worker \| client \| reader \|\n.*\n((?:\|.*\n)+)", page, re.MULTILINE
    )
    told: dict[str, list[set[str]]] = {}
    for line in table.splitlines():
        names, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rights = [{WORDS[word] for word in WORDS if word in re.split(r"\W+", cell)} for cell in cells]
        for name in re.findall(r"`(\w+)`", names) or ["every other table"]:
            told[name] = rights
    tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    ).fetchall()
    assert {name for name in told if name != "every other table"} <= {name for (name,) in tables}
    for (name,) in tables:
        rights = told.get(name, told["every other table"])
        for role, expected in zip(
            ("pricing_worker", "pricing_client", "pricing_reader"), rights, strict=True
        ):
            row = connection.execute(
                "SELECT coalesce(array_agg(p), '{}') FROM unnest(%s::text[]) p WHERE has_table_privilege(%s, %s, p)",
                [
                    ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"],
                    role,
                    f"pricing.{name}",
                ],
            ).fetchone()
            assert row is not None
            assert set(row[0]) == expected, (role, name)
