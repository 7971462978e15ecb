"""`db upgrade` on servers where the roles are not there yet. A server of its own: roles belong to all its databases."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import make_url

from pricing_pipeline import sample
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.embedded_home import GROUPS
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.roles import RoleFault, role_faults
from pricing_pipeline_tests.fixtures.home import make_open_folder, quickest_place
from pricing_pipeline_tests.support.patience import PATIENCE


@pytest.fixture(scope="module")
def home() -> Iterator[EmbeddedServer]:
    folder = make_open_folder("pricing-tests-", within=quickest_place())
    with EmbeddedServer(folder, for_tests=True) as server:
        yield server
    shutil.rmtree(folder)


class Foreign:
    """The server as an administrator who is not ours has it: no role of ours, databases of one role named app."""

    def __init__(self, server: EmbeddedServer, rights: str) -> None:
        self._superuser = server.url("postgres", "superuser")
        for database in ("app_0", "app_1"):
            self.run(f"DROP DATABASE IF EXISTS {database}")
        for database in ("pricing", "dagster"):
            self.run(f"DROP DATABASE IF EXISTS {database}")
        for role in ("pricing_worker", *GROUPS, "app"):
            if self.run(f"SELECT FROM pg_roles WHERE rolname = '{role}'"):
                for database in ("template1", "postgres"):
                    self.run(f"DROP OWNED BY {role}", database)
                self.run(f"DROP ROLE {role}")
        self.run(f"CREATE ROLE app LOGIN PASSWORD 'secret' {rights}")
        for database in ("app_0", "app_1"):
            # Of template1 our start has taken rights from PUBLIC.
            self.run(f"CREATE DATABASE {database} OWNER app TEMPLATE template0")

    def run(self, statement: str, database: str = "postgres") -> int:
        """As the administrator; how many rows it concerned."""
        with psycopg.connect(self._superuser, autocommit=True, dbname=database) as admin:
            return admin.execute(statement.encode()).rowcount

    def url(self, number: int = 0, role: str = "app") -> str:
        url = make_url(self._superuser).set(database=f"app_{number}", username=role, password="secret")
        return url.render_as_string(hide_password=False)

    def faults(self, role: str = "app") -> list[RoleFault]:
        engine = make_engine(self.url(role=role))
        try:
            with engine.connect() as connection:
                return role_faults(connection)
        finally:
            engine.dispose()


def test_b2_two_upgrades_at_once_make_the_roles_once(home: EmbeddedServer) -> None:
    """Roles belong to the server, and no lock of one database keeps the upgrade of another away."""
    foreign = Foreign(home, "CREATEROLE")
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(foreign.url(1)) as other,
        psycopg.connect(home.url("postgres", "superuser"), autocommit=True) as admin,
    ):
        for role in ("pricing_worker", *GROUPS):
            other.execute(f"CREATE ROLE {role}".encode())  # begun, and not yet seen by anyone
        upgraded = threads.submit(upgrade, foreign.url(0))
        while not admin.execute(
            "SELECT FROM pg_stat_activity WHERE datname = 'app_0' AND wait_event_type = 'Lock'"
        ).fetchall():
            assert not upgraded.done(), upgraded.result()
        other.commit()
        upgraded.result(PATIENCE)
    upgrade(foreign.url(1))
    for number in (0, 1):
        with psycopg.connect(foreign.url(number)) as session:
            seen = session.execute(
                "SELECT has_table_privilege('pricing_worker', 'pricing.demand', 'INSERT'),"
                " has_table_privilege('pricing_reader', 'pricing.demand', 'SELECT'),"
                " has_function_privilege('pricing_client', 'pricing.price(text)', 'EXECUTE')"
            ).fetchone()
        assert seen == (True, True, True), number


def test_b2_a_role_that_may_not_make_roles_works_alone_until_an_administrator_parts_them(
    home: EmbeddedServer,
) -> None:
    foreign = Foreign(home, "")
    upgrade(foreign.url())
    assert sample.load(foreign.url())
    with psycopg.connect(foreign.url(), autocommit=True) as session:
        beat = "SELECT pricing.heartbeat('ann', '{equity_quote}', '{AAPL}') -> 'changed'"
        assert session.execute(beat).fetchone() == (1,)
    faults = foreign.faults()
    assert [fault.fault for fault in faults] == [
        "the role pricing_client is missing",
        "the role pricing_reader is missing",
        "the role pricing_worker is missing",
        "PRICING_DATABASE_URL names app, which may do everything that the owner app may",
    ]
    for fault in faults:
        foreign.run(fault.remedy.split(";")[0].replace("choose one", "secret"))
    upgrade(foreign.url())
    assert foreign.faults("pricing_worker") == []
    with psycopg.connect(foreign.url(role="pricing_worker"), autocommit=True) as worker:
        beat = "SELECT pricing.heartbeat('bob', '{equity_quote}', '{AAPL}') -> 'changed'"
        assert worker.execute(beat).fetchone() == (1,)
        with pytest.raises(errors.InsufficientPrivilege):
            worker.execute("UPDATE pricing.data_type_registry SET is_active = false")


def test_b2_what_an_administrator_upgrades_stays_the_owners(home: EmbeddedServer) -> None:
    """And an owner that is a superuser is said: its functions would run with all rights."""
    foreign = Foreign(home, "")
    upgrade(foreign.url())
    admin = make_url(home.url("app_0", "superuser")).render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as session:
        session.execute("DROP FUNCTION pricing.price(text)")
    upgrade(admin)
    with psycopg.connect(admin, autocommit=True) as session:
        owners = session.execute(
            "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace"
        ).fetchall()
        assert owners == [("app",)]
        session.execute("ALTER SCHEMA pricing OWNER TO postgres")
    assert "postgres, which owns the schema pricing, is a superuser" in [fault.fault for fault in foreign.faults()]
