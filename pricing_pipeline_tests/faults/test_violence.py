"""The pipeline under violence: whatever is killed comes back, nothing is lost, and no end leaves anything.

Each test starts the pipeline if it does not run, so that it may be picked alone.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from sqlalchemy import Row, make_url

from pricing_pipeline.processes.home import read_state
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.descendants import below
from pricing_pipeline_tests.support.stock_dagster import dagster_database
from pricing_pipeline_tests.tools.audit import Snapshot, audit

pytestmark = GROUP

MONTHS = ["2012-01-01", "2012-03-01", "2012-05-01", "2012-07-01"]
"""Months apart from each other: each one has a run of its own."""

BACKFILL = """mutation Backfill($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) { ... on LaunchBackfillSuccess { backfillId } }
}"""
RELOAD = 'mutation { reloadRepositoryLocation(repositoryLocationName: "pricing_pipeline") { __typename } }'


@pytest.fixture
def running(stack: Stack) -> Stack:
    """The stack, started anew if an earlier test has ended it."""
    stack.ensure_up()
    return stack


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _behind(proxy: int) -> list[psutil.Process]:
    """The code servers behind a proxy. After a reload there are two for a while, and one of them ends."""
    found: list[psutil.Process] = []
    for child in below(proxy):
        with contextlib.suppress(psutil.NoSuchProcess):  # ended meanwhile, perhaps as a zombie
            if "api grpc" in " ".join(child.cmdline()):
                found.append(child)
    return found


def test_b11_a_worker_killed_in_mid_call_costs_nothing(running: Stack) -> None:
    """B11: its tasks return when its lease ends, and a successor stores each price once."""
    before = running.last_call()
    running.behave("hang", provider="twelvedata", symbols="ORPHAN")
    running.watch("equity_quote", "ORPHAN")

    def hanging() -> Row[Any] | None:
        rows = running.core.rows(
            "SELECT call_id, worker, run_id FROM pricing.collector_call_log"
            " WHERE outcome = 'open' AND 'ORPHAN' = ANY (symbols)"
        )
        return rows[0] if rows and _asked_for(running, before, "ORPHAN") else None

    call = running.wait_until("the call that hangs", hanging)
    kill(int(call.worker.rpartition(":")[2]))
    running.behave_well()
    running.advance(90)  # past the lease of the tasks, the drain's and the sensor's patience

    price = running.wait_for_price("equity_quote", "ORPHAN")
    running.leave("equity_quote", "ORPHAN")
    assert price.run_id != call.run_id
    task = running.core.tasks("ORPHAN")[0]
    assert (task.status, task.attempt, task.call_id) == ("completed", 2, price.call_id)
    assert [error["kind"] for error in task.errors] == ["worker_lost"]
    assert [seen["status"] for seen in _asked_for(running, before, "ORPHAN")][:2] == [None, 200]
    running.wait_until("the lost call's books", lambda: _outcome(running, call.call_id) == "unknown")
    running.wait_until("the killed run's end", lambda: running.runs(runIds=[call.run_id])[0]["status"] == "FAILURE")
    running.wait_until_all_fresh()
    with running.core.owner.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        audit(Snapshot(connection))


def test_a_killed_postgresql_comes_back_and_all_else_with_it(running: Stack) -> None:
    """Its clients wait, none is started again, and the UI answers as before."""
    others = {name: one["pid"] for name, one in running.state()["processes"].items() if name != "postgresql"}
    killed = running.pid_of("postgresql")
    kill(killed)
    running.wait_until("PostgreSQL", lambda: running.pid_of("postgresql") != killed)
    running.wait_until("a heartbeat", lambda: running.watch("equity_quote", "REVIVED") or True)
    assert running.wait_for_price("equity_quote", "REVIVED").outcome == "ok"
    running.leave("equity_quote", "REVIVED")
    running.wait_until_all_fresh()
    assert running.wait_until("runs in the UI", running.runs)
    now = {name: one["pid"] for name, one in running.state()["processes"].items() if name != "postgresql"}
    assert now == others


@pytest.mark.parametrize("name", ["code-server", "dagster-daemon", "dagster-webserver"])
def test_a_killed_process_is_started_again(running: Stack, name: str) -> None:
    """The sensor ticks again, the UI shows our assets, and prices are stored."""
    killed = running.pid_of(name)
    kill(killed)
    running.wait_until(name, lambda: running.pid_of(name) != killed)
    restarted = time.time()
    running.wait_until("the UI", running.location)
    running.wait_for_tick(since=restarted)
    symbol = "AFTER" + name.rpartition("-")[2].upper()
    running.watch("equity_quote", symbol)
    assert running.wait_for_price("equity_quote", symbol).outcome == "ok"
    running.leave("equity_quote", symbol)


def test_e8_a_killed_notifier_is_started_again_and_sends(running: Stack) -> None:
    killed = running.pid_of("notifier")
    kill(killed)
    running.wait_until("the notifier", lambda: running.pid_of("notifier") != killed)
    assert running.cli("notify", "test", "mailbox").stdout == "The message to mailbox was sent.\n"


@pytest.mark.parametrize("how", ["its child is killed", "it is frozen"])
def test_g2_a_code_server_that_lives_and_does_not_answer_is_started_again(running: Stack, how: str) -> None:
    """What listens is a proxy, and nobody may be behind it. The UI's own reload works again, too."""
    proxy = running.pid_of("code-server")
    running.wait_until("an answer", running.location)
    if how == "its child is killed":
        (child,) = _behind(proxy)
        child.kill()
    else:
        os.kill(proxy, signal.SIGSTOP)
    silent = running.wait_until(
        "its silence in the state", lambda: running.state()["processes"]["code-server"]["silent_since"]
    )
    assert f"code-server runs and does not answer since {silent[:10]}" in running.cli("status").stdout
    running.wait_until("another one", lambda: running.pid_of("code-server") != proxy)
    restarted = time.time()
    running.wait_until("the UI", running.location)
    reloaded = running.wait_until("a reload from the UI", lambda: running.graphql(RELOAD))
    assert reloaded["reloadRepositoryLocation"]["__typename"] == "WorkspaceLocationEntry"
    running.wait_for_tick(since=restarted)
    symbol = f"AFTER{restarted:.0f}"
    running.watch("equity_quote", symbol)
    assert running.wait_for_price("equity_quote", symbol).outcome == "ok"
    running.leave("equity_quote", symbol)


_AT_WORK = ["QUEUED", "STARTING", "STARTED", "CANCELING"]


def test_g6_a_backfill_outlives_the_code_server(running: Stack) -> None:
    """Its runs wait in the queue until another code server is there; nothing fails or cancels them."""
    proxy = running.pid_of("code-server")
    params = {"assetSelection": [{"path": ["price_history", "mf_nav"]}], "partitionNames": MONTHS}
    launched = running.graphql(BACKFILL, params=params)["launchPartitionBackfill"]["backfillId"]
    of_it = [{"key": "dagster/backfill", "value": launched}]
    running.wait_until("all its runs", lambda: len(running.runs(tags=of_it)) == len(MONTHS))
    killed = _behind(proxy)
    assert killed
    for child in killed:
        child.kill()
    waiting = [run["id"] for run in running.runs(tags=of_it, statuses=["QUEUED"])]
    assert len(waiting) >= len(MONTHS) - 2
    # Usually under another proxy; under the same one where a reload was under way.
    running.wait_until("another code server", lambda: {*_behind(running.pid_of("code-server"))} - {*killed})

    def ended() -> list[str] | None:
        statuses = [run["status"] for run in running.runs(runIds=waiting)]
        return None if {*statuses} & {*_AT_WORK} else statuses

    assert running.wait_until("the end of the runs that waited", ended) == ["SUCCESS"] * len(waiting)
    running.wait_until("the end of all its runs", lambda: not running.runs(tags=of_it, statuses=_AT_WORK))


def test_kill_9_of_the_supervisor_leaves_nothing_and_loses_nothing(running: Stack) -> None:
    """All processes end; the next start has all data, ends the drain that went, and goes on."""
    going = running.wait_until("a drain", lambda: running.drains(statuses=["STARTED"]) or None)
    running.behave("hang", symbols="UNDERWAY")  # so that something is in flight
    running.watch("equity_quote", "UNDERWAY")
    running.wait_until("a call in flight", lambda: bool(_asked_for(running, 0, "UNDERWAY")))
    prices = _prices(running)
    running.forget_database()
    kill(running.state()["pid"])
    assert running.wait_for_end() == -signal.SIGKILL
    running.wait_until("the end of all processes", lambda: not running.processes())

    running.start()
    running.wait_until_up()
    running.advance(90)  # past the lease of what was in flight
    assert set(prices) <= set(_prices(running))
    assert {run["status"] for run in running.runs(runIds=sorted(going))} == {"CANCELED"}
    assert running.wait_for_price("equity_quote", "UNDERWAY").run_id in running.drains() - going
    running.leave("equity_quote", "UNDERWAY")


def test_kill_9_of_everything_leaves_sockets_and_the_next_start_removes_them(running: Stack) -> None:
    """Nobody is left to tidy up, neither the supervisor nor its guardian."""
    code = psutil.Process(running.pid_of("code-server")).environ()
    temporary, code_socket = Path(code["TMPDIR"]), Path(code["PRICING_CODE_SOCKET"])
    database_socket = Path(make_url(running.worker_url).query["host"]) / ".s.PGSQL.5432"
    (temporary / "left by a run").mkdir()
    running.forget_database()
    everything = [psutil.Process(running.state()["pid"]), *running.processes()]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # so that no one sees another's end
        for process in everything:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
    assert running.wait_for_end() == -signal.SIGKILL
    running.wait_until("the end of all processes", lambda: not running.processes())
    left = {path.stat().st_ino for path in _sockets(temporary, code_socket, database_socket)}
    assert len(left) >= 3

    running.start()
    running.wait_until_up()
    assert not (temporary / "left by a run").exists()
    now = _sockets(temporary, code_socket, database_socket)
    assert len(now) >= 3
    assert left & {path.stat().st_ino for path in now} == set()


def test_ctrl_c_ends_it_and_leaves_nothing(running: Stack) -> None:
    running.forget_database()
    temporary = Path(psutil.Process(running.pid_of("code-server")).environ()["TMPDIR"])
    os.killpg(running.state()["pid"], signal.SIGINT)  # a terminal signals the whole group
    assert running.wait_for_end() == 0
    assert running.processes() == []
    assert read_state(running.home) is None
    assert not temporary.exists()


def test_sigterm_in_the_middle_of_a_start_ends_it_and_leaves_nothing() -> None:
    with new_stack() as stack:
        stack.start()
        stack.wait_until("the start of Dagster", lambda: stack.pid_of("code-server"))
        os.kill(stack.state()["pid"], signal.SIGTERM)
        assert stack.wait_for_end() == 0
        assert stack.processes() == []


def test_sigterm_ends_a_start_whose_migration_waits_for_a_lock(
    server: TestServer, database_url: str, owner_url: str
) -> None:
    """A migration waits for a locked table without a limit. Its session in the server ends, too."""
    with (
        dagster_database(server) as dagster,
        new_stack(DATABASE_URL=database_url, OWNER_URL=owner_url, DAGSTER_URL=dagster) as stack,
        psycopg.connect(owner_url, autocommit=True) as other,
        other.transaction(),
    ):
        other.execute("LOCK TABLE pricing.alembic_version")
        stack.start()
        stack.wait_until("the migration", lambda: _waits_for_a_table(other))
        os.kill(stack.state()["pid"], signal.SIGTERM)
        assert stack.wait_for_end() == 0
        assert stack.processes() == []
        stack.wait_until("the end of its session", lambda: not _waits_for_a_table(other))


def _waits_for_a_table(connection: psycopg.Connection) -> bool:
    waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'pricing.alembic_version'::regclass"
    return connection.execute(waiting).fetchone() is not None


def test_a_plain_user_starts_it_from_a_script_in_the_background_and_sigterm_ends_it() -> None:
    """Such a process is born with SIGINT ignored, and its children inherit that unless somebody minds."""
    with new_stack() as stack:
        options = _plain_user(stack)
        stack.start("sh", "-c", '"$@" &', "sh", **options)
        stack.wait_until_up()
        (supervisor,) = [process for process in stack.processes() if process.pid == stack.state()["pid"]]
        assert supervisor.uids().real == options.get("user", os.geteuid())
        stack.forget_database()
        supervisor.terminate()
        stack.wait_until("the end of all processes", lambda: not stack.processes())


def _sockets(folder: Path, *others: Path) -> list[Path]:
    return [path for path in (*folder.rglob("*"), *others) if path.is_socket()]


def _asked_for(stack: Stack, since: int, symbol: str) -> list[dict[str, Any]]:
    return [call for call in stack.calls(since) if symbol in call["symbols"]]


def _outcome(stack: Stack, call_id: int) -> str:
    outcome: str = stack.core.one("SELECT outcome FROM pricing.collector_call_log WHERE call_id = :id", id=call_id)
    return outcome


def _prices(stack: Stack) -> list[tuple[Any, ...]]:
    rows = stack.core.rows("SELECT data_type, symbol, observed_at, amount, scale FROM pricing.price_history")
    return [tuple(row) for row in rows]


def _plain_user(stack: Stack) -> dict[str, Any]:
    """Options that run a process as another user if we are root and that user can run the project."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    options: dict[str, Any] = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        subprocess.run(
            [sys.executable, "-c", "import pricing_pipeline.cli"],
            env=stack.environment(),
            stderr=subprocess.DEVNULL,
            check=True,
            **options,
        )
    except (OSError, subprocess.CalledProcessError):  # the clone lies in root's own folder, say
        return {}
    os.chown(stack.home.parent, nobody.pw_uid, nobody.pw_gid)
    return options
