"""A client calls the functions that are for it, acts for itself alone, and touches nothing else."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from psycopg import errors

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.logins import Login, refuses, relations

CLIENTS_FUNCTIONS = [
    "pricing.all_or_nothing(jsonb)",
    "pricing.availability(text,date,date,integer,text,boolean,timestamp with time zone)",
    "pricing.best_routes(text,integer)",
    "pricing.commodity(text,timestamp with time zone)",
    "pricing.document(text,text,timestamp with time zone)",
    "pricing.heartbeat(text[],text[])",
    "pricing.history(text,text,date,date,timestamp with time zone,text)",
    "pricing.hold(text[],text[],numeric[])",
    "pricing.price(text)",
    "pricing.release(text[],text[])",
    "pricing.terminal(text,timestamp with time zone)",
    "pricing.unsubscribe(text[],text[])",
]


def test_b7_a_client_watches_and_reads_by_functions(core: Core, client: tuple[str, Login]) -> None:
    name, session = client
    row = session.execute("SELECT pricing.heartbeat(ARRAY['equity_quote'], ARRAY['AAPL']) -> 'changed'").fetchone()
    assert row == (1,)
    assert core.rows("SELECT user_id, data_type, symbol FROM pricing.active_subscriptions") == [(name, QUOTE, "AAPL")]
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
    assert session.execute("SELECT pricing.unsubscribe(ARRAY['equity_quote'], ARRAY['AAPL'])").fetchone() == (1,)
    assert core.rows("SELECT FROM pricing.active_subscriptions") == []


def test_b29_a_client_reads_documents_as_they_are_and_were(core: Core, client: tuple[str, Login], clock: Clock) -> None:
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
    with pytest.raises(errors.InvalidParameterValue, match="not a data type of documents"):
        session.execute("SELECT * FROM pricing.document('equity_quote', 'AAPL')")


def test_a7_a_client_holds_and_releases_for_itself(core: Core, client: tuple[str, Login]) -> None:
    name, session = client
    core.hold("ann", (QUOTE, "AAPL"))
    lists = "(ARRAY['equity_quote'], ARRAY['AAPL'])"
    assert session.execute(f"SELECT pricing.hold{lists} -> 'changed'").fetchone() == (1,)
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
    assert client[1].execute("SELECT price FROM pricing.price('AAPL')").fetchone() == (Decimal("1.23456789012345678"),)


def test_b5_a_client_is_its_login_whatever_it_says(core: Core, client: tuple[str, Login]) -> None:
    """Another user's subscriptions stay untouched, and nobody else's can be made."""
    name, session = client
    core.heartbeat("ann", (QUOTE, "AAPL"))
    refuses(session, "SELECT pricing.heartbeat('ann', ARRAY['equity_quote'], ARRAY['MSFT'])")
    refuses(session, "SELECT pricing.unsubscribe('ann', ARRAY['equity_quote'], ARRAY['AAPL'])")
    refuses(session, "SET SESSION AUTHORIZATION pricing_worker")
    assert session.execute("SELECT pricing.unsubscribe(ARRAY['equity_quote'], ARRAY['AAPL'])").fetchone() == (0,)
    session.execute("SET ROLE pricing_client")
    session.execute("SELECT pricing.heartbeat(ARRAY['equity_quote'], ARRAY['AAPL'])")
    seen = core.rows("SELECT user_id FROM pricing.active_subscriptions ORDER BY 1")
    assert [row.user_id for row in seen] == ["ann", name]


@pytest.mark.own_database  # a lent one has a clock that can be moved
def test_b7_a_client_may_call_these_functions_and_nothing_else(client: tuple[str, Login], connection: Login) -> None:
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
        session.execute(f"CREATE FUNCTION pg_temp.{function} RETURNS boolean LANGUAGE sql AS 'SELECT pg_temp.evil()'")
    for name in ("text", "timestamptz", "date", "uuid", "jsonb", "numeric", "bool", "int4"):
        session.execute(f"CREATE DOMAIN pg_temp.{name} AS pg_catalog.{name} CHECK (pg_temp.evil())")
    session.execute("SELECT pricing.heartbeat('{equity_quote}'::pg_catalog._text, '{AAPL}'::pg_catalog._text)")
    core.enqueue_due()
    core.refresh()
    assert session.execute("SELECT pg_catalog.count(*) FROM pricing.price('AAPL')").fetchone() == (1,)
    session.execute(
        "SELECT pg_catalog.count(*) FROM pricing.history('equity_quote', 'AAPL', '2020-01-01', '2030-01-01')"
    )
    session.execute("SELECT pricing.unsubscribe('{equity_quote}'::pg_catalog._text, '{AAPL}'::pg_catalog._text)")
    assert session.execute("SELECT who FROM loot").fetchall() == []


def test_b7_every_function_looks_in_temporary_schemas_last(connection: Login) -> None:
    """What has the owner's rights is listed in test_ledgers.py."""
    functions = connection.execute(
        "SELECT p.oid::regprocedure::text, p.proconfig FROM pg_proc p WHERE p.pronamespace = 'pricing'::regnamespace"
    ).fetchall()
    assert functions
    for name, config in functions:
        # Without a path of their own they can be inlined; all that they name is qualified or arithmetic.
        inlined = (
            "same_amount",
            "same_part",
            "kept_text",
            "utc_month",
            "clock",
            "format_iso",
            "about_price",
            "is_daily",
            "is_past_ttl",
            "stretches_in_force",
            "is_of_level",
            "instant_of",
            "zone_of",
            "said_slots",
            "exchanges_marked",
            "said_days",
            "pairs_at",
            "revisions_as_of",
            "slots_as_of",
            "offers_as_of",
            "categories_as_of",
            "options_as_of",
            "takes",
            "unit_of",
            "is_unreadable",
            "backfilled",
            "ttl_of",
            "ttl_beside",
            "stale_at",
            "next_value_at",
            "publish_lag",
            "usual_publish_lag",
            "is_source_old",
            "basis_day",
            "is_traded_by_others",
            "longest_window",
            "same_bar",
            "sessions_to_ask",
            "is_short_window",
            "quota_for",
            "is_kept_for_page",
            "is_provider_fault",
            "is_outage",
            "is_symbol_fault",
            "batch_size",
            "group_calls",
            "provider_use",
            "await_disk",
        )
        if not name.startswith(tuple(f"pricing.{word}(" for word in inlined)):
            paths = [setting for setting in config or () if setting.startswith("search_path=")]
            assert paths == ["search_path=pg_temp"], name
