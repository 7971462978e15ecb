"""SQL and Python that the pages show runs, and the runbook's remedies do what they are there for."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.embedded import ask
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.harm import HARMFUL, LOCKS
from pricing_pipeline_tests.support.pages import PAGES, ROOT, blocks, relative

RUNBOOK = ROOT / "docs/operations.md"


# The SQL of recipes is that of other programs, and has tests of its own.
WITH_SQL = [page for page in PAGES if blocks(page, "sql") and page.parent.name != "recipes"]


@pytest.mark.parametrize("page", WITH_SQL, ids=relative)
def test_the_sql_of_a_page_runs_in_its_order(page: Path, connection: psycopg.Connection[Any]) -> None:
    for block in blocks(page, "sql"):
        connection.execute(block.encode())


ASKING = [page for page in PAGES if any("engine" in block for block in blocks(page, "python"))]


@pytest.mark.parametrize("page", ASKING, ids=relative)
def test_the_python_of_a_page_runs(
    page: Path,
    core: Core,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    core.heartbeat("someone", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    monkeypatch.setenv("PRICING_DATABASE_URL", database_url)
    for block in blocks(page, "python"):
        names: dict[str, Any] = {}
        exec(compile(block, relative(page), "exec"), names)
        names["engine"].dispose()
    assert capsys.readouterr().out.startswith("AAPL 146.55 USD ")


def test_b2_what_an_administrator_runs_keeps_people_from_what_harms_the_whole_server(
    server: TestServer,
) -> None:
    """In a database that nobody has closed, on whatever server."""
    block = (ROOT / "deploy/rights.sql").read_text()
    database = f"plain_{uuid4().hex[:12]}"
    server.create(database, "template0")
    admin = make_url(server.admin_url).set(database=database).render_as_string(hide_password=False)
    try:
        with a_login(server, server.url(database)) as (_, person):
            ask(person, "SELECT pg_advisory_lock(1)")
            ask(person, "DO $$ BEGIN END $$")
            for _ in range(2):
                ask(admin, block)
            for statement in HARMFUL:
                with pytest.raises(errors.InsufficientPrivilege):
                    ask(person, statement)
            for url in (server.url(database), server.url_of_owner(database)):
                for statement in (*LOCKS, "DO $$ BEGIN END $$"):
                    ask(url, statement)
    finally:
        server.drop(database)


def test_the_runbooks_command_lets_a_blocked_provider_be_called(core: Core, cli: CommandLine) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.throttle("twelvedata", 600)
    assert core.claim() == []
    (command,) = re.findall(r"^ *pricing-pipeline (key change .* --unblock)$", RUNBOOK.read_text(), re.MULTILINE)
    assert cli(*command.split()).exit_code == 0
    assert core.claim_one().symbols == ["AAPL"]


def test_the_runbooks_limit_and_quota_count_from_the_next_claim(core: Core, cli: CommandLine) -> None:
    before = core.allowance()
    commands = r"^ *pricing-pipeline (limit set \w+ minute 8|provider change \w+ --quota \w+)$"
    lower, raise_quota = re.findall(commands, RUNBOOK.read_text(), re.MULTILINE)
    for command in (lower, raise_quota):
        assert cli(*command.split()).exit_code == 0
    after = core.allowance()
    assert (before.units_left, after.units_left) == (2000, 8)
    assert after.quota_bytes > before.quota_bytes


def test_a_ttl_of_a_pairs_own_makes_it_due_by_that_ttl(core: Core, cli: CommandLine) -> None:
    core.heartbeat("u", (QUOTE, "AAPL"))
    core.refresh()
    page = (ROOT / "docs/adding-a-data-type.md").read_text()
    (command,) = re.findall(r"^ *pricing-pipeline (type set-ttl \w+ AAPL .*)$", page, re.MULTILINE)
    assert cli(*command.split()).exit_code == 0
    core.enqueue_due()
    demand = core.demand_of(QUOTE, "AAPL")
    assert demand is not None
    assert demand.due_at - core.clock() > timedelta(minutes=4)
