"""Faults of the database: sessions that are cut off, a server that dies or stands still, locks, clocks, a full disk."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import psutil
import psycopg
from psycopg import sql

from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline_tests.fault_run.kinds import Scene, kind
from pricing_pipeline_tests.fault_run.load import WATCHED
from pricing_pipeline_tests.fault_run.stage import stopped
from pricing_pipeline_tests.fixtures.database import Clock

HOUR, DAY = 3600, 86_400
_TABLES = (
    "api_call_queue_live",
    "api_call_queue_dead",
    "demand",
    "active_subscriptions",
    "provider_state",
    "provider_keys",
    "collector_call_log",
    "api_data_usage",
    "latest_prices",
    "price_history",
    "instruments",
    "data_type_registry",
    "drains",
    "duties",
    "check_marks",
    "async_operations_live",
    "stream_head",
    "streamed_pairs",
)
"""Tables that are read and written all the time."""


@kind("session_cut", "one session of the pipeline is cut off (pg_terminate_backend)", weight=8)
def _cut(scene: Scene) -> None:
    backends = scene.stage.backends()
    if backends:
        with scene.stage.admin() as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [scene.dice.choice(backends)])


@kind("all_sessions_cut", "all sessions are cut off at once")
def _all_cut(scene: Scene) -> None:
    with scene.stage.admin() as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [scene.stage.backends()])


@kind(
    "backend_killed",
    "a process of the server is killed (SIGKILL), so all others end and it recovers",
    weight=2,
)
def _backend_killed(scene: Scene) -> None:
    backends = scene.stage.backends()
    if backends:
        os.kill(scene.dice.choice(backends), signal.SIGKILL)


@kind("backend_frozen", "a process of the server stands still, with whatever it has locked", weight=6)
def _backend_frozen(scene: Scene) -> None:
    backends = scene.stage.backends()
    if backends:
        with stopped(scene.dice.choice(backends)):
            time.sleep(scene.dice.uniform(0.4, 2.2))


@kind("server_frozen", "the whole server stands still", weight=3)
def _server_frozen(scene: Scene) -> None:
    processes = [process.pid for process in scene.stage.server_processes()]
    with stopped(scene.stage.server.pid or 0, *processes):
        time.sleep(scene.dice.uniform(0.4, 1.6))


@kind("server_stopped_at_once", "the server is stopped (immediate) and started again", weight=2)
def _immediate(scene: Scene) -> None:
    scene.stage.server.stop("immediate")
    time.sleep(scene.dice.uniform(0, 1))


@kind("server_stopped_in_order", "the server is stopped (fast) and started again", weight=2)
def _fast(scene: Scene) -> None:
    scene.stage.server.stop("fast")
    time.sleep(scene.dice.uniform(0, 1))


@kind("server_killed", "the server's first process is killed (SIGKILL)", weight=2)
def _server_killed(scene: Scene) -> None:
    pid = scene.stage.server.pid
    if pid:
        children = scene.stage.server_processes()
        os.kill(pid, signal.SIGKILL)
        psutil.wait_procs(children, timeout=10)


@kind(
    "disk_full",
    "the disk of the server is full, and free again a moment later",
    weight=1,
    needs=lambda stage: stage.can_fill_disk,
)
def _disk_full(scene: Scene) -> None:
    ballast = scene.stage.folder / "server" / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        piece = bytes(1 << 20)
        while True:
            file.write(piece)
    try:
        time.sleep(scene.dice.uniform(0.6, 1.8))
    finally:
        ballast.unlink()


@kind("disk_slow", "each commit takes up to 100 ms longer")
def _disk_slow(scene: Scene) -> None:
    with scene.stage.admin() as admin:
        admin.execute("ALTER SYSTEM SET commit_siblings = 0")
        admin.execute("ALTER SYSTEM SET commit_delay = 100000")
        admin.execute("SELECT pg_reload_conf()")
        time.sleep(scene.dice.uniform(0.6, 1.8))
        admin.execute("ALTER SYSTEM RESET commit_delay")
        admin.execute("ALTER SYSTEM RESET commit_siblings")
        admin.execute("SELECT pg_reload_conf()")


@kind("writer_frozen", "the processes that write to the disk stand still")
def _writer_frozen(scene: Scene) -> None:
    with scene.stage.admin() as admin:
        rows = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type IN ('walwriter', 'checkpointer', 'background writer')"
        ).fetchall()
    with stopped(*(pid for (pid,) in rows)):
        time.sleep(scene.dice.uniform(0.4, 1.6))


# --- locks and open transactions ------------------------------------------------------------------


def _hold(scene: Scene, url: str, statement: sql.Composed, seconds: float) -> None:
    """What a session may lock at once it keeps for so long."""
    scene.happened = False
    with contextlib.suppress(psycopg.Error), psycopg.connect(url, connect_timeout=5) as holder:
        holder.execute("SET lock_timeout = '1s'")
        holder.execute(statement)
        scene.happened = True
        time.sleep(seconds)
        holder.rollback()


@kind("rows_locked_by_worker", "a session of a worker keeps all rows of a table locked", weight=8)
def _rows_of_worker(scene: Scene) -> None:
    table = sql.Identifier("pricing", scene.dice.choice(_TABLES))
    mode = scene.dice.choice(["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"])
    statement = sql.SQL("SELECT FROM {} FOR " + mode).format(table)
    _hold(scene, scene.stage.worker_url, statement, scene.dice.uniform(0.6, 2.2))


@kind("rows_locked_by_owner", "a session of the owner keeps all rows of a table locked", weight=8)
def _rows_of_owner(scene: Scene) -> None:
    table = sql.Identifier("pricing", scene.dice.choice(_TABLES))
    statement = sql.SQL("SELECT FROM {} FOR UPDATE").format(table)
    _hold(scene, scene.stage.owner_url, statement, scene.dice.uniform(0.6, 2.2))


@kind("table_locked", "the owner keeps a whole table locked, in a mode of its choice", weight=8)
def _table(scene: Scene) -> None:
    table = sql.Identifier("pricing", scene.dice.choice(_TABLES))
    mode = scene.dice.choice(["ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE ROW EXCLUSIVE", "SHARE"])
    statement = sql.SQL("LOCK TABLE {} IN " + mode + " MODE").format(table)
    _hold(scene, scene.stage.owner_url, statement, scene.dice.uniform(0.6, 1.8))


@kind("client_idle_in_transaction", "a client's transaction stays open after its heartbeat", weight=6)
def _idle(scene: Scene) -> None:
    types = [data_type for data_type, _ in WATCHED]
    symbols = [symbol for _, symbol in WATCHED]
    with contextlib.suppress(psycopg.Error), psycopg.connect(scene.stage.worker_url) as client:
        client.execute("SELECT pricing.heartbeat(%s, %s)", [types, symbols])
        time.sleep(scene.dice.uniform(0.6, 2.2))
        client.rollback()


@kind("snapshot_held", "a REPEATABLE READ transaction stays open", weight=3)
def _snapshot(scene: Scene) -> None:
    with contextlib.suppress(psycopg.Error), psycopg.connect(scene.stage.worker_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM pricing.api_call_queue_live")
        time.sleep(scene.dice.uniform(0.6, 2.5))


@kind("migrated_under_load", "an upgrade runs under load, beside a reader that takes long", weight=1)
def _migrated(scene: Scene) -> None:
    with psycopg.connect(scene.stage.worker_url) as reader:
        reader.execute("SELECT count(*) FROM pricing.price_history")
        thread = threading.Thread(target=upgrade, args=(scene.stage.owner_url,))
        thread.start()
        time.sleep(scene.dice.uniform(0.6, 1.5))
        with contextlib.suppress(psycopg.Error):
            reader.rollback()
        thread.join(120)
    if thread.is_alive():
        scene.notes.append("the upgrade has not ended after two minutes")


# --- clocks ---------------------------------------------------------------------------------------


def _step(name: str, words: str, *choices: int) -> None:
    @kind(name, words, weight=2)
    def act(scene: Scene) -> None:
        seconds = scene.dice.choice(choices)
        with Clock(scene.stage.owner_url) as clock:
            scene.stage.clock_steps.append(time.monotonic())
            clock.advance(seconds)
            try:
                time.sleep(scene.dice.uniform(0.4, 1.4))
            finally:
                clock.advance(-seconds)
                scene.stage.clock_steps.append(time.monotonic())


_step("clock_ahead", "the database's clock is an hour or three days ahead, and right again", HOUR, 3 * DAY)
_step("clock_back", "the database's clock is an hour or three days back, and right again", -HOUR, -3 * DAY)
