"""What the pages say to do as the embedded server's administrator."""

from __future__ import annotations

import re
import subprocess
import sys

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.support.pages import ROOT, blocks

PAGES = [ROOT / "docs/running.md", ROOT / "docs/operations.md"]


def block(language: str, part: str) -> str:
    """The block of these pages that holds this text."""
    (found,) = [text for page in PAGES for text in blocks(page, language) if part in text]
    return found


def administrator(home: str) -> tuple[str, dict[str, str]]:
    """The address that the page prints, and the options that they set."""
    recipe = block("sh", "ADMIN=")
    (code,) = re.findall(r"ADMIN=\$\(python -c '(.+)'\)", recipe)
    (options,) = re.findall(r"export PGOPTIONS='(.+)'", recipe)
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PRICING_HOME": home}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip(), {"options": options}


def test_an_administrator_gives_a_person_a_login(make_server: MakeServer) -> None:
    with make_server() as server:
        upgrade(server.url("pricing"))
        url, options = administrator(str(server.home))
        login = block("text", "CREATE ROLE ann LOGIN")
        with psycopg.connect(url, autocommit=True, **options) as admin:
            admin.execute(login.encode())
        person = make_url(server.url("pricing")).set(username="ann", password="choose one")
        with psycopg.connect(person.render_as_string(hide_password=False).replace(" ", "%20")) as session:
            row = session.execute("SELECT user, pg_has_role('pricing_client', 'MEMBER')").fetchone()
        assert row == ("ann", True)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(server.url("pricing"), login)


def test_an_administrator_finds_and_ends_a_session_that_locks(make_server: MakeServer) -> None:
    find, end, *_ = block("sql", "pg_terminate_backend").replace("5 seconds", "0 seconds").split(";")
    with make_server() as server:
        upgrade(server.url("pricing"))
        url, options = administrator(str(server.home))
        with psycopg.connect(server.url("pricing", "worker")) as session:
            session.execute("DELETE FROM pricing.active_subscriptions")
            assert ask(server.url("pricing"), find) is None, "an owner does not see it"
            with psycopg.connect(url, autocommit=True, **options) as admin:
                row = admin.execute(find.encode()).fetchone()
                assert row is not None
                assert row[:2] == (session.info.backend_pid, "pricing_worker")
                admin.execute(re.sub(r"\d+", str(row[0]), end).encode())
            with pytest.raises(psycopg.OperationalError):
                session.execute("SELECT 1")
