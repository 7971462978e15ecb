"""A first start that is killed while it makes Dagster's tables, and the start after it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.database import TestServer

ROOT = Path(__file__).parents[2]

# Imports Dagster once. Each line of input is a database and the number of the writing statement before which a start on
# it is killed; 0 lets it finish. Each line of output is how it ended, and the numbers of its statements: all of them,
# and those in its first transaction.
STARTS = """
import os, signal, sys
import sqlalchemy
from pricing_pipeline.defs.storage import make_tables

def start(url, fatal):
    begun = kept_from = 0
    def count(connection, cursor, statement, *_):
        nonlocal begun
        begun += not statement.lstrip().startswith(("SELECT", "select", "SHOW", "show"))
        if fatal and begun == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    def note(connection):
        nonlocal kept_from
        kept_from = kept_from or begun
    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", count)
    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", note)
    make_tables(url)
    print("made", begun, kept_from, flush=True)

for line in sys.stdin:
    url, fatal = line.split()
    if (child := os.fork()) == 0:
        try:
            start(url, int(fatal))
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print("killed", fatal, 0, flush=True)
"""


class Starts:
    """Starts on databases, one after the other."""

    def __init__(self, process: subprocess.Popen[str], server: TestServer) -> None:
        self._process = process
        self._server = server
        self._made: list[str] = []

    def database(self) -> str:
        """The URL of a new, empty one."""
        name = f"dagster_test_{uuid4().hex[:12]}"
        self._server.create(name, "template0")
        self._made.append(name)
        url = make_url(self._server.url_of_owner(name)).set(drivername="postgresql+psycopg2")
        return url.render_as_string(hide_password=False)

    def start(self, url: str, fatal: int = 0) -> tuple[str, int, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{url} {fatal}\n")
        self._process.stdin.flush()
        how, statements, uncommitted = self._process.stdout.readline().split()
        return how, int(statements), int(uncommitted)

    def drop(self) -> None:
        for name in self._made:
            self._server.drop(name)
        self._made.clear()


@pytest.fixture
def starts(server: TestServer) -> Iterator[Starts]:
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        starts = Starts(process, server)
        yield starts
        process.kill()
    starts.drop()


SHAPE = """
SELECT 'index', indexname || ': ' || indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT 'column', table_name || '.' || column_name || ' ' || data_type FROM information_schema.columns
          WHERE table_schema = 'public'
UNION ALL SELECT 'mark', name FROM public.secondary_indexes WHERE migration_completed IS NOT NULL
UNION ALL SELECT 'revision', version_num FROM public.alembic_version
ORDER BY 1, 2
"""


def shape(url: str) -> list[tuple[str, str]]:
    """Everything that makes a storage whole."""
    with psycopg.connect(
        make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    ) as connection:
        return connection.execute(SHAPE).fetchall()


def test_c3_a_first_start_that_is_killed_is_taken_up_by_the_next(starts: Starts) -> None:
    """Killed before each statement; of its first transaction, of which nothing can remain, before some."""
    url = starts.database()
    how, statements, uncommitted = starts.start(url)
    assert how == "made"
    assert statements > uncommitted > 50
    whole = shape(url)
    assert starts.start(url)[0] == "made"
    assert shape(url) == whole
    for fatal in [*range(1, uncommitted, 25), *range(uncommitted, statements + 1)]:
        url = starts.database()
        assert starts.start(url, fatal)[:2] == ("killed", fatal)
        assert starts.start(url)[0] == "made"
        assert shape(url) == whole, f"killed before statement {fatal} of {statements}"


def test_c3_tables_are_made_as_dagster_makes_them(starts: Starts) -> None:
    ours, dagsters = starts.database(), starts.database()
    assert starts.start(ours)[0] == "made"
    make = "import sys; from dagster_postgres import DagsterPostgresStorage as make; make(sys.argv[1])"
    subprocess.run([sys.executable, "-c", make, dagsters], check=True)
    assert shape(ours) == shape(dagsters)
