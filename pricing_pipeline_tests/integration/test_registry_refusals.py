"""The registry refuses a row that cannot work: no name in it reaches SQL unchecked or takes what belongs to another."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.registry_rows import add, relations

pytestmark = pytest.mark.usefixtures("still")


def test_b2_a_name_that_would_be_cut_is_not_taken_for_what_it_is_cut_to(core: Core) -> None:
    """PostgreSQL cuts identifiers at 63 bytes without a word."""
    cut = "a" * 63
    core.rows(f"CREATE FUNCTION pricing.{cut}(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'")
    core.rows(f"CREATE TABLE pricing.{cut} ({cut} text PRIMARY KEY, at timestamptz, cache_ttl_minutes integer)")
    names = {"table_name": cut, "symbol_column": cut, "timestamp_column": "at", "staleness_function": cut}
    for column in names:
        with pytest.raises(DBAPIError):
            add(core, **{**names, column: cut + "a"})
    add(core, **names)


def test_b2_the_longest_name_still_fits_its_storage(core: Core) -> None:
    """Identifiers are cut at 63 bytes without a word, and two cut names could be one."""
    names = ["a", "a" * 48, "a" * 47 + "b"]
    for name in names:
        add(core, data_type=name)
    assert {f"{kind}_{name}" for kind in ("price_history", "latest_price") for name in names} <= relations(core)
    core.heartbeat("ann", *((name, "BTC/USD") for name in names))
    assert core.refresh() == 3


def test_b1_a_row_that_cannot_work_is_refused(core: Core) -> None:
    for column, value in (
        ("ttl", 0),
        ("ttl", -5),
        ("ttl", None),
        ("fetcher", "alchemy"),
        ("fetcher", None),
        ("timezone", "Mars/Olympus"),
    ):
        with pytest.raises(DBAPIError):
            add(core, **{column: value})


def test_b14_a_scheduled_type_has_a_schedule_and_no_other_has(core: Core) -> None:
    for strategy, schedule in (("scheduled", None), ("on-demand", "0 0 * * *"), ("sometimes", None)):
        with pytest.raises(DBAPIError, match=r"scheduled_types_have_a_schedule|strategy_is_known"):
            core.rows(
                "INSERT INTO pricing.data_type_registry"
                " (data_type, fetcher, default_ttl_minutes, refresh_strategy, refresh_schedule)"
                " VALUES ('crypto_quote', 'quote', 5, :strategy, :schedule)",
                strategy=strategy,
                schedule=schedule,
            )


def test_b2_a_table_of_ones_own_has_the_right_shape(core: Core) -> None:
    for columns, missing in (
        ("symbol integer, fetched_at timestamptz, cache_ttl_minutes integer", "symbol"),
        ("symbol text, fetched_at timestamp, cache_ttl_minutes integer", "fetched_at"),
        ("symbol text, fetched_at timestamptz, cache_ttl_minutes text", "cache_ttl_minutes"),
    ):
        core.rows(f"CREATE TABLE pricing.{missing}_is_odd ({columns})")
        with pytest.raises(DBAPIError, match=rf"lacks column\(s\) {missing}\b"):
            add(core, table_name=f"{missing}_is_odd")


def test_b2_what_is_no_table_is_not_taken_for_one(core: Core) -> None:
    for name, made in (("steps", "SEQUENCE pricing.steps"), ("mine", "TYPE pricing.mine AS (symbol text)")):
        core.rows(f"CREATE {made}")
        with pytest.raises(DBAPIError, match="not a table or view that a data type may name"):
            add(core, table_name=name)


def test_b2_what_somebody_else_made_in_the_schema_is_not_taken(core: Core, server: TestServer) -> None:
    database = core.owner.url.database or ""
    admin_url = make_url(server.admin_url).set(database=database)
    with psycopg.connect(admin_url.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute("CREATE TABLE pricing.my_prices (symbol text, fetched_at timestamptz, cache_ttl_minutes integer)")
        admin.execute(
            "CREATE FUNCTION pricing.is_old(timestamptz, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
    with pytest.raises(DBAPIError, match="not a table or view that a data type may name"):
        add(core, table_name="my_prices")
    with pytest.raises(DBAPIError, match=r"staleness function pricing\.is_old"):
        add(core, staleness_function="is_old")


def test_b2_no_name_of_a_type_takes_what_belongs_to_another(core: Core) -> None:
    """The index of a history is called price_history_<type>_pkey, which could be a type's history."""
    add(core)
    with pytest.raises(DBAPIError, match=r"pricing\.price_history_crypto_quote_pkey is taken"):
        add(core, data_type="crypto_quote_pkey")
    with pytest.raises(DBAPIError, match="cannot be renamed"):
        core.rows("UPDATE pricing.data_type_registry SET data_type = 'coin' WHERE data_type = 'crypto_quote'")


def test_b2_a_name_with_a_nul_never_arrives(core: Core) -> None:
    for column in ("data_type", "table_name", "symbol_column", "staleness_function"):
        with pytest.raises((DBAPIError, psycopg.DataError)):
            add(core, **{column: "equity\0quote"})
