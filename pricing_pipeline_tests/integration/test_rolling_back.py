"""The tables are a migration ahead of the code, as while a release is deployed, or after it was rolled back."""

from __future__ import annotations

from typing import Any

import psycopg

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

AHEAD = """
ALTER TABLE pricing.latest_prices ADD COLUMN of_the_next_release text;
ALTER TABLE pricing.api_call_queue ADD COLUMN of_the_next_release integer NOT NULL DEFAULT 0;
ALTER TABLE pricing.demand ADD COLUMN of_the_next_release timestamptz;
CREATE TABLE pricing.of_the_next_release (id bigint PRIMARY KEY);
CREATE FUNCTION pricing.of_the_next_release() RETURNS integer LANGUAGE sql AS 'SELECT 1';
UPDATE pricing.alembic_version SET version_num = '9999';
"""
"""What a migration may do while the release before it still runs: it adds."""


def test_code_works_on_tables_that_are_a_migration_ahead(
    core: Core, sandbox: RunningSandbox, connection: psycopg.Connection[Any], cli: CommandLine
) -> None:
    """Demand, claims, stored prices and reads go on, so the release before can be started again."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    connection.execute(AHEAD)
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
    with refreshing(core.engine, sandbox.url) as refresher:
        work_until(refresher, is_idle(core))
    assert core.one("SELECT count(*) FROM pricing.latest_prices") == 2
    assert cli("price", "show", "AAPL", "--json").exit_code == 0
    assert cli("status").exit_code == 0


def test_an_older_release_does_not_touch_tables_of_a_newer_one(
    core: Core, connection: psycopg.Connection[Any], cli: CommandLine, owner_url: str
) -> None:
    """Its upgrade would deploy its own functions over the newer ones, so it is refused and changes nothing."""
    functions = "SELECT md5(string_agg(oid::text || xmin::text, ',' ORDER BY oid)) FROM pg_proc"
    connection.execute(AHEAD)
    before = connection.execute(functions).fetchall()
    said = cli("db", "upgrade", owner_url=owner_url)
    assert said.exit_code == 1
    assert "the database is at migration 9999" in said.error
    assert "another version made it. Use that version" in said.error
    assert connection.execute(functions).fetchall() == before
    assert core.one("SELECT version_num FROM pricing.alembic_version") == "9999"
