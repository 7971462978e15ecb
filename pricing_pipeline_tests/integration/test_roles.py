"""What the worker may do in the database, that nobody else gets anything, and that the page tells every right."""

from __future__ import annotations

import re

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import Login, a_session, refuses, relations
from pricing_pipeline_tests.support.pages import ROOT

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


def test_b2_a_worker_changes_nothing_that_the_owner_decides(worker: Login) -> None:
    for table in OWNERS_TABLES:
        (column,) = worker.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 LIMIT 1",
            [f"pricing.{table}"],
        ).fetchone() or ("",)
        worker.execute(f"SELECT * FROM pricing.{table}".encode())
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


def test_f3_what_a_worker_withdraws_of_payments_stays_as_revisions(core: Core, worker: Login) -> None:
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, part, new_shares, old_shares, amount,"
        " scale, currency, provider, call_id, recorded_at, entered_by) VALUES"
        " ('equity', 'AAPL', '2010-03-01', 'split', 1, 2, 1, NULL, NULL, NULL, 'yahoo', 1, '2010-03-02', NULL),"
        " ('equity', 'AAPL', '2010-03-01', 'dividend', 1, NULL, NULL, 5, 1, 'USD', 'yahoo', 1, '2010-03-02', NULL),"
        " ('equity', 'AAPL', '2010-03-01', 'dividend', 2, NULL, NULL, 6, 1, 'USD', 'by hand', 0, '2010-03-02', 'ann')"
    )
    worker.execute("SELECT pricing.withdraw_payments(array_agg(c), now(), 1) FROM pricing.corporate_actions c")
    parts = "SELECT array_agg(ROW(kind, part)::text ORDER BY kind, part) FROM pricing.corporate_action"
    assert core.one(f"{parts}s") == ["(dividend,2)", "(split,1)"]
    kept = "SELECT array_agg(ROW(old->>'kind', old->'part')::text) FROM pricing.revisions"
    assert core.one(kept) == ["(dividend,1)"]


def test_b2_a_new_type_needs_no_grant_by_hand(core: Core, worker: Login, reader: tuple[str, Login]) -> None:
    """What the registry's trigger makes, and what an owner makes for it, can be read and judged at once."""
    core.rows("CREATE TABLE pricing.my_prices (symbol text PRIMARY KEY, at timestamptz, cache_ttl_minutes integer)")
    core.rows("CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
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
        assert session.execute("SELECT symbol FROM pricing.price_history_metal_quote").fetchall() == [("XAU",)]
        assert session.execute("SELECT pricing.is_stale('metal_quote', NULL, 1)").fetchone() == (True,)
    refuses(worker, "DELETE FROM pricing.price_history_metal_quote")


# ── Nobody in particular ─────────────────────────────────────────────────────────────────────────────────


def test_whoever_has_no_role_of_ours_gets_nothing(server: TestServer, database_url: str, connection: Login) -> None:
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
    (table,) = re.findall(r"^\| table \| worker \| client \| reader \|\n.*\n((?:\|.*\n)+)", page, re.MULTILINE)
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
        for role, expected in zip(("pricing_worker", "pricing_client", "pricing_reader"), rights, strict=True):
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
