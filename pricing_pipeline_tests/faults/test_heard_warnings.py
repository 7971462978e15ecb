"""B22: warnings are counted though their server is away, or their process ends without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.processes.home import prepare_home
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_heard_warnings import counts, warn_and_roll_back
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")


def test_b22_a_process_that_ends_without_a_word_writes_what_it_has_heard(core: Core, database_url: str) -> None:
    program = (
        "import sys; from sqlalchemy import text; from pricing_pipeline.db.engine import make_engine\n"
        "connection = make_engine(sys.argv[1]).connect()\n"
        "connection.execute(text(\"SELECT pricing.warn('a test', 'AAPL', 'odd', '22012')\"))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program, database_url], env=environment, check=True)
    assert counts(core) == [("a test", "AAPL", "22012", 1, "odd")]


def counted(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as session:
        return session.execute("SELECT subject, times FROM pricing.warning_counts ORDER BY 1").fetchall()


def test_b22_warnings_fill_no_log_of_the_server_and_are_written_when_it_is_back(open_folder: Path) -> None:
    """PostgreSQL writes each warning into its log, with its context: one that repeats filled 210 MB a day."""
    prepare_home(open_folder / "home")
    with EmbeddedServer(open_folder / "home", for_tests=True) as server:
        upgrade(server.url("pricing"))
        url = server.url("pricing", "worker")
        before = server.log_path.stat().st_size
        engine = make_engine(url, pool_size=1)
        warn_and_roll_back(engine, times=100)
        engine.dispose()
        assert counted(url) == [("AAPL", 100)]
        assert server.log_path.stat().st_size == before

        with engine.connect() as connection:
            connection.execute(text("SELECT pricing.warn('a test', 'IBM', 'odd', NULL)"))
            server.stop()
            connection.invalidate()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        server.start()
        wait_until(lambda: counted(url) == [("AAPL", 100), ("IBM", 1)])
        engine.dispose()
