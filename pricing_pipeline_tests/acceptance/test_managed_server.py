"""On a managed server nobody is superuser: an administrator makes the roles, and the owner does the rest (B2)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline import sample
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.embedded_home import GROUPS, OWNER, WORKER
from pricing_pipeline.db.engine import libpq_url, make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.roles import role_faults
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.given_postgres import GivenPostgres
from pricing_pipeline_tests.support.pages import ROOT

DEBIANS = Path("/usr/lib/postgresql/15/bin")
SECRET = "choose one"


@pytest.fixture(params=["15", "18"])
def superuser(request: pytest.FixtureRequest, open_folder: Path) -> Iterator[str]:
    """The URL of the superuser of a server without any role of ours."""
    with ExitStack() as stack:
        if request.param == "15":
            if not DEBIANS.exists():
                pytest.skip("no PostgreSQL 15 here (Debian: apt-get install postgresql-15)")
            given = GivenPostgres(DEBIANS, open_folder)
            stack.callback(given.stop)
            given.start()
            url = given.url("postgres", "postgres")
        else:
            url = stack.enter_context(EmbeddedServer(open_folder, for_tests=True)).url("postgres", "superuser")
            with psycopg.connect(url, autocommit=True) as admin:  # as other servers have it
                admin.execute("GRANT CONNECT ON DATABASE postgres TO PUBLIC")
                admin.execute("UPDATE pg_database SET datistemplate = false WHERE datname = 'template1'")
                admin.execute("DROP DATABASE template1")
                admin.execute("CREATE DATABASE template1 TEMPLATE template0 IS_TEMPLATE true")
        with psycopg.connect(url, autocommit=True) as admin:
            for database in ("pricing", "dagster"):
                admin.execute(f"DROP DATABASE IF EXISTS {database}".encode())
            for role in (WORKER, *GROUPS, OWNER):
                for there in ("postgres", "template1"):
                    with psycopg.connect(url, autocommit=True, dbname=there) as inside:
                        inside.execute(f"DROP OWNED BY {role}".encode())
                admin.execute(f"DROP ROLE {role}".encode())
        yield url


@pytest.fixture
def administrator(superuser: str) -> str:
    """The URL of a role that may make roles and databases, as a managed server has it."""
    with psycopg.connect(superuser, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE the_administrator LOGIN CREATEROLE CREATEDB PASSWORD '{SECRET}'".encode())
    there = make_url(superuser).set(username="the_administrator", password=SECRET, database="postgres")
    return libpq_url(there)


def test_b2_an_owner_without_any_right_installs_and_upgrades(superuser: str, administrator: str) -> None:
    """The script that docs/running.md names makes the roles, without a superuser."""

    def url(role: str, database: str = "pricing", secret: str = SECRET) -> str:
        there = make_url(superuser).set(username=role, password=secret, database=database)
        return libpq_url(there)

    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("no psql here (Debian: apt-get install postgresql-client)")
    assert "psql --file deploy/postgres/10-roles.sql" in (ROOT / "docs/running.md").read_text()
    done = subprocess.run(
        [psql, "--no-psqlrc", "--file", ROOT / "deploy/postgres/10-roles.sql", administrator],
        env={**os.environ, "PRICING_OWNER_PASSWORD": SECRET, "PRICING_WORKER_PASSWORD": "choose another"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

    for _ in range(2):  # the second one is the upgrade of what the first has installed
        upgrade(url(OWNER))
    assert sample.load(url(OWNER))
    owner, worker = make_engine(url(OWNER)), make_engine(url(WORKER, secret="choose another"))
    try:
        core = Core(worker, owner)
        rights = core.rows(
            "SELECT rolname FROM pg_roles WHERE rolname LIKE 'pricing%'"
            " AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)"
        )
        assert rights == []
        assert core.rows("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'") == []
        with worker.connect() as connection:
            assert role_faults(connection) == []
        core.heartbeat("ann", (QUOTE, "AAPL"))
        core.refresh(price="146.55")
        price = core.latest("AAPL")
        assert price is not None
        assert str(price.price) == "146.55"
    finally:
        owner.dispose()
        worker.dispose()
