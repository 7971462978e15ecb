"""One home whose first start is killed at every step, each time a little further on; at last it starts all the same."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fixtures.stack import Stack, new_stack
from pricing_pipeline_tests.support.patience import PATIENCE

Seen = Callable[[Path], bool]


def file(name: str) -> Seen:
    return lambda home: (home / name).exists()


def row(database: str, query: str) -> Seen:
    """Whether a query finds anything. What is not there yet finds nothing."""

    def look(home: Path) -> bool:
        try:
            url = EmbeddedServer(home).url(database, "superuser")
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as connection:
                return connection.execute(query.encode()).fetchone() is not None
        except (psycopg.Error, PricingError):
            return False

    return look


STEPS: dict[str, tuple[Seen, signal.Signals]] = {
    "passwords": (file("postgres.json"), signal.SIGKILL),
    "initdb": (file("postgres/data.unfinished"), signal.SIGKILL),
    "initdb again": (file("postgres/data.unfinished/base"), signal.SIGINT),
    "cluster": (file("postgres/data"), signal.SIGTERM),
    "server": (file("postgres/data/postmaster.pid"), signal.SIGKILL),
    "roles": (row("postgres", "SELECT FROM pg_roles WHERE rolname = 'pricing_owner'"), signal.SIGKILL),
    "databases": (row("postgres", "SELECT FROM pg_database WHERE datname = 'dagster'"), signal.SIGKILL),
    "migrations begun": (
        row("pricing", "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"),
        signal.SIGKILL,
    ),
    "migrations done": (
        row("pricing", "SELECT FROM pg_class WHERE relname = 'data_collectors'"),
        signal.SIGKILL,
    ),
    "sample": (row("pricing", "SELECT FROM pricing.data_collectors"), signal.SIGINT),
    "kind": (file("prices-from"), signal.SIGKILL),
    "dagster begun": (file("dagster/fresh-start"), signal.SIGTERM),
    "dagster's tables begun": (
        row("dagster", "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted"),
        signal.SIGINT,
    ),
    "dagster's tables made": (
        row("dagster", "SELECT FROM pg_class WHERE relname = 'event_logs'"),
        signal.SIGKILL,
    ),
    "dagster's revision": (row("dagster", "SELECT FROM alembic_version"), signal.SIGKILL),
}


def kill_at(stack: Stack, step: str) -> None:
    """Start, and kill the start as soon as a step is seen; one that was taken already is seen at once."""
    seen, number = STEPS[step]
    process = stack.start()
    deadline = time.monotonic() + PATIENCE
    while not seen(stack.home):
        assert process.poll() is None, f"{step}: it ended by itself\n{stack.logs()}"
        assert time.monotonic() < deadline, f"{step} did not come\n{stack.logs()}"
        time.sleep(0.001)
    process.send_signal(number)
    # Ctrl-C may come while Python itself is being loaded, which it says in its own way.
    is_ended = stack.wait_for_end() in (0, -number) or "Failed to import the site module" in stack.logs()
    assert is_ended, f"{step}: it did not end by {number}\n{stack.logs()}"


def test_c3_a_first_start_that_is_killed_at_any_step_leaves_a_home_that_starts() -> None:
    with new_stack() as stack:
        for step in STEPS:
            kill_at(stack, step)
        stack.start()
        stack.wait_until_up()
        assert stack.json("status")["watched"] == 13


def test_c3_a_first_start_stands_still_at_no_slow_step() -> None:
    """A code server that was faster than Dagster's tables failed to load, and nothing was ever fetched."""
    with new_stack() as stack:
        stack.start()
        stack.wait_until("Dagster's database", lambda: STEPS["databases"][0](stack.home) or None)
        url = EmbeddedServer(stack.home).url("dagster", "superuser")
        with psycopg.connect(url) as holder:
            holder.execute("SELECT pg_advisory_xact_lock(hashtextextended('pricing.migrate', 0))")
            waiting = row("dagster", "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            stack.wait_until("the daemon", lambda: waiting(stack.home) or None)
            assert "code-server" not in stack.state()["processes"]
        stack.wait_until_up()
