"""An upgrade from the oldest version under load, killed at each of its steps: nothing has changed, nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from pricing_pipeline.db import migrate
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import query
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.pages import ROOT

BASELINE, *LATER = sorted((ROOT / "migrations/versions").glob("*.sql"))
NEWEST = [BASELINE, *LATER][-1].name[:4]
FUNCTIONS = len([*(Path(migrate.__file__).parent / "functions").rglob("*.sql")])
STEPS = len(LATER) + FUNCTIONS + 1
"""The migrations after the baseline, the files of functions, and the rights."""
ALL = os.environ.get("PRICING_TEST_EXAMPLES") == "all"
KILLED_BEFORE = [*range(1, STEPS + 1)] if ALL else [1, 2, STEPS // 2, STEPS]

KILLED = """
import os, signal, sys
from pricing_pipeline.db import migrate
run, left = migrate.run_script, int(sys.argv[2])
def run_or_die(connection, script):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    run(connection, script)
migrate.run_script = run_or_die
migrate.upgrade(sys.argv[1])
"""
CATALOG = """
SELECT md5(string_agg(line, '|' ORDER BY line)) FROM (
    SELECT c.relname || '.' || a.attname || ' ' || a.attnotnull || ' '
        || pg_catalog.format_type(a.atttypid, a.atttypmod) AS line
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
    WHERE c.relnamespace = 'pricing'::regnamespace
    UNION ALL
    SELECT oid::regprocedure || md5(prosrc) FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace
    UNION ALL
    SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'pricing'::regnamespace) l
"""
VERSION = "SELECT version_num FROM pricing.alembic_version"


class Load:
    """Sessions that insert instruments one by one, and remember which the database has acknowledged."""

    def __init__(self, url: str, sessions: int = 3) -> None:
        self._url = url
        self._stop = threading.Event()
        self.acknowledged: list[str] = []
        self.faults: list[Exception] = []
        self._threads = [threading.Thread(target=self._insert, args=(n,)) for n in range(sessions)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _insert(self, session: int) -> None:
        number = 0
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._stop.wait(0.005):
                symbol = f"L{session}N{number}"
                number += 1
                try:
                    connection.execute(
                        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', %s)",
                        [symbol],
                    )
                except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                    continue
                except Exception as error:
                    self.faults.append(error)
                    return
                self.acknowledged.append(symbol)


@pytest.fixture
def old_database(server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of the oldest version that can be upgraded."""
    name = f"old_{uuid4().hex[:12]}"
    server.create(name, "template1")
    (tmp_path / "versions").mkdir()
    shutil.copy(BASELINE, tmp_path / "versions")
    engine = make_engine(server.url_of_owner(name), pool_size=1)
    with monkeypatch.context() as patch, engine.begin() as connection:
        connection.execute(query("roles.make"))
        connection.execute(query("migrate.schema"))
        patch.setattr(migrate, "_MIGRATIONS", tmp_path)
        migrate._run_migrations(connection)
    engine.dispose()
    yield server.url_of_owner(name)
    server.drop(name)


def test_c3_an_upgrade_that_is_killed_at_any_step_changes_nothing_and_loses_nothing(
    old_database: str,
) -> None:
    with psycopg.connect(old_database, autocommit=True) as looker, Load(old_database) as load:
        before = looker.execute(CATALOG).fetchall()
        for step in KILLED_BEFORE:
            arguments = [sys.executable, "-c", KILLED, old_database, str(step)]
            killed = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
            assert killed.returncode == -signal.SIGKILL, f"step {step}: {killed.stderr}"
            # The catalog waits for the session of the dead process to end.
            assert looker.execute(CATALOG).fetchall() == before, f"step {step}"
            assert looker.execute(VERSION).fetchone() == (BASELINE.name[:4],)
        migrate.upgrade(old_database)
        acknowledged_before = len(load.acknowledged)
        upgraded = looker.execute(CATALOG).fetchall()
        migrate.upgrade(old_database)
        assert looker.execute(CATALOG).fetchall() == upgraded != before
        assert looker.execute(VERSION).fetchone() == (NEWEST,)
    assert acknowledged_before > 0
    assert load.faults == []
    with psycopg.connect(old_database) as looker:
        stored = {symbol for (symbol,) in looker.execute("SELECT symbol FROM pricing.instruments")}
    assert set(load.acknowledged) <= stored
