"""One PostgreSQL for the whole pytest run, and a fresh, migrated database for each test.

The server is embedded and lives in a temporary folder of its own, so tests can run beside `make run`.
PRICING_TEST_POSTGRES_BIN names a folder with the programs of another PostgreSQL (15 or newer) to run instead.

Tests work as the worker wherever the product does; as the owner they only arrange, look, and change the registry.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

import pricing_pipeline
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fix_home import make_open_folder, quickest_place, remove_left_over_folders
from pricing_pipeline_tests.given_postgres import GivenPostgres, given_binaries

_PACKAGE = Path(pricing_pipeline.__file__).parent
_SERVER: pytest.StashKey[tuple[EmbeddedServer | GivenPostgres, Path]] = pytest.StashKey()


@dataclass(frozen=True)
class TestServer:
    """A server on which tests make databases."""

    __test__ = False

    admin_url: str
    """URL of the superuser."""
    owner_url: str
    """URL of the role that owns the databases; no superuser."""
    worker_url: str
    """URL of the role that the pipeline's processes have."""

    def url(self, database: str) -> str:
        """Return the worker's URL of a database."""
        return _with_database(self.worker_url, database)

    def url_of_owner(self, database: str) -> str:
        """Return the owner's URL of a database."""
        return _with_database(self.owner_url, database)

    def admin(self) -> psycopg.Connection[Any]:
        """Connect as the role that may create databases."""
        return psycopg.connect(_with_database(self.admin_url, "postgres"), autocommit=True)

    def create(self, database: str, template: str) -> None:
        """Make a database for the owner, as a copy of `template`."""
        owner = make_url(self.owner_url).username or ""
        with self.admin() as admin:
            admin.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    *map(sql.Identifier, (database, template, owner))
                )
            )

    def drop(self, database: str) -> None:
        """Remove a database, whoever is still connected to it."""
        with self.admin() as admin:
            # A backend takes a moment to end after its client. DROP DATABASE looks every 100 ms; be quicker.
            for _ in range(50):
                if not admin.execute(
                    "SELECT FROM pg_stat_activity WHERE datname = %s", [database]
                ).fetchall():
                    break
                time.sleep(0.002)
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))


def _with_database(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)


def _running_server(config: pytest.Config) -> TestServer:
    """Start the server of this run if none runs yet. It dies with this process, and at pytest_unconfigure."""
    if _SERVER not in config.stash:
        place = quickest_place()
        remove_left_over_folders("pricing-tests-", place)
        home = make_open_folder("pricing-tests-", within=place)
        programs = given_binaries()
        made = GivenPostgres(programs, home) if programs else EmbeddedServer(home, for_tests=True)
        made.start()
        config.stash[_SERVER] = (made, home)
    running, _ = config.stash[_SERVER]
    if isinstance(running, EmbeddedServer):
        return TestServer(*(running.url("postgres", role) for role in ("superuser", "owner", "worker")))
    return TestServer(
        *(running.url("postgres", role) for role in ("postgres", "pricing_owner", "pricing_worker"))
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let the workers of pytest-xdist use one server, started by their controller."""
    shared = _running_server(node.config)
    node.workerinput["test_server"] = (shared.admin_url, shared.owner_url, shared.worker_url)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that this run started."""
    if _SERVER in config.stash:
        running, home = config.stash[_SERVER]
        if isinstance(running, EmbeddedServer):
            running.stop("immediate")
        else:
            running.stop()
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> TestServer:
    """The PostgreSQL server of this run."""
    worker_input = getattr(request.config, "workerinput", None)
    return TestServer(*worker_input["test_server"]) if worker_input else _running_server(request.config)


@pytest.fixture(scope="session")
def template(server: TestServer) -> str:
    """Name of a migrated database to clone; made once for each state of the SQL files."""
    files = [*_PACKAGE.glob("db/**/*.sql"), *_PACKAGE.parent.glob("migrations/**/*.*")]
    files = sorted(file for file in files if file.suffix in {".sql", ".py"})
    digest = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    name, unfinished = f"pricing_template_{digest}", f"pricing_unfinished_{digest}"
    with server.admin() as admin:
        admin.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])  # until the connection ends
        if not admin.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchall():
            server.drop(unfinished)
            server.create(unfinished, "template1")
            upgrade(server.url_of_owner(unfinished))
            # Without connections of its own it can be cloned at any time.
            admin.execute(f"ALTER DATABASE {unfinished} ALLOW_CONNECTIONS false")
            admin.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}")
    return name


@pytest.fixture
def database_url(server: TestServer, template: str) -> Iterator[str]:
    """The worker's URL of a fresh, migrated database that only this test has."""
    name = f"pricing_test_{uuid4().hex[:16]}"
    # Both strategies of CREATE DATABASE are equally quick; the default one needs no checkpoint.
    server.create(name, template)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def owner_url(server: TestServer, database_url: str) -> str:
    """The owner's URL of this test's database."""
    return server.url_of_owner(make_url(database_url).database or "")


@pytest.fixture
def connection(owner_url: str) -> Iterator[psycopg.Connection[Any]]:
    """An autocommit connection to this test's database, as the owner."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        yield connection


class Clock:
    """Moves time in one test database, by replacing our clock function there and nothing else.

    Takes the owner's URL: nobody else may.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._offset = timedelta()
        self._stopped_at: datetime | None = None

    def advance(self, seconds: float) -> None:
        """Move on by so many seconds (back if negative); time goes on from there."""
        self._move(timedelta(seconds=seconds))

    def set(self, moment: datetime) -> None:
        """Make it `moment` (with time zone); time goes on from there."""
        self._move(moment - self.now())

    def stop(self) -> None:
        """From now on time passes only when it is moved: what takes long on a slow machine decides nothing."""
        self._stopped_at = self.now()
        self._replace()

    def _move(self, by: timedelta) -> None:
        if self._stopped_at is None:
            self._offset += by
        else:
            self._stopped_at += by
        self._replace()

    def now(self) -> datetime:
        """Return the time the database sees."""
        with psycopg.connect(self._url) as connection:
            row = connection.execute("SELECT pricing.clock()").fetchone()
        assert row is not None
        return row[0]  # type: ignore[no-any-return]

    def _replace(self) -> None:
        if self._stopped_at is None:
            time = f"pg_catalog.clock_timestamp() + {self._offset.total_seconds()} * interval ''1 second''"
        else:
            time = f"timestamptz ''{self._stopped_at.isoformat()}''"
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "CREATE OR REPLACE FUNCTION pricing.clock() RETURNS timestamptz"
                " LANGUAGE sql VOLATILE PARALLEL SAFE SET search_path = ''"
                f" AS 'SELECT {time}'"
            )


@pytest.fixture
def clock(owner_url: str) -> Clock:
    """The clock of this test's database."""
    return Clock(owner_url)


@pytest.fixture
def still(clock: Clock) -> None:
    """The clock stands, unless the test moves it."""
    clock.stop()
