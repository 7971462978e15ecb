"""What the pages say to do as the embedded server's administrator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db.engine import libpq_url
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.support.pages import ROOT, blocks

PAGES = [ROOT / "docs/running.md", ROOT / "docs/operations.md"]


def block(language: str, part: str) -> str:
    """The block of these pages that holds this text."""
    (found,) = [text for page in PAGES for text in blocks(page, language) if part in text]
    return found


def administrator(home: Path, sql: str) -> str:
    """What psql says to this, opened as the page tells."""
    (recipe,) = re.findall(r"^    pricing-pipeline (db psql .*administrator)$", PAGES[0].read_text(), re.MULTILINE)
    command = [*recipe.split(), "--", "--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "--command", sql]
    done = subprocess.run(
        [sys.executable, "-m", "pricing_pipeline.cli", *command],
        env={"PRICING_HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_administrator_gives_a_person_a_login(make_server: MakeServer) -> None:
    with make_server() as server:
        upgrade(server.url("pricing"))
        login = block("text", "CREATE ROLE ann LOGIN")
        administrator(server.home, login)
        assert administrator(server.home, "SHOW search_path") == "pg_catalog,pg_temp"
        person = make_url(server.url("pricing")).set(username="ann", password="choose one")
        with psycopg.connect(libpq_url(person)) as session:
            row = session.execute("SELECT user, pg_has_role('pricing_client', 'MEMBER')").fetchone()
        assert row == ("ann", True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(server.url("pricing"), login)


def test_an_administrator_finds_and_ends_a_session_that_locks(make_server: MakeServer) -> None:
    find, end, *_ = block("sql", "pg_terminate_backend").replace("5 seconds", "0 seconds").split(";")
    with make_server() as server:
        upgrade(server.url("pricing"))
        with psycopg.connect(server.url("pricing", "worker")) as session:
            session.execute("DELETE FROM pricing.active_subscriptions")
            assert ask(server.url("pricing"), find) is None, "an owner does not see it"
            row = administrator(server.home, find).split("|")
            assert row[:2] == [str(session.info.backend_pid), "pricing_worker"]
            administrator(server.home, re.sub(r"\d+", row[0], end))
            with pytest.raises(psycopg.OperationalError):
                session.execute("SELECT 1")
