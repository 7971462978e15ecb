"""Sessions at once: two in an order that a test decides, or many that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Engine, event, text

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.patience import PATIENCE


def wait_for_locks(core: Core, *others: Engine) -> None:
    """Let anyone who waits for a lock wait on, also in our functions, which give up after 0.1 to 2 s.

    For tests in which one session waits until the other is done: on a busy machine that may take longer. Nor does the
    server end the session that is waited for.
    """
    core.be_patient()
    for engine in (core.engine, core.owner, *others):
        event.listen(engine, "checkout", _wait_on)


def _wait_on(dbapi: Any, *_: object) -> None:
    for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
        dbapi.execute(f"SET {name} = '{PATIENCE:.0f}s'")
    dbapi.commit()


def waiting_for_locks(core: Core) -> int:
    """How many sessions of this test's database wait for a lock."""
    count: int = core.one(
        "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return count


def meanwhile(engine: Engine, work: Callable[[Connection], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Start `work` in a session of its own; returns once it waits for a lock or is done."""
    faults: list[BaseException] = []
    pid: list[int] = []
    began = threading.Event()

    def run() -> None:
        try:
            with engine.begin() as connection:
                pid.append(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
                began.set()
                work(connection)
        except BaseException as fault:
            faults.append(fault)
            began.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert began.wait(PATIENCE)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
        waits = text("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid")
        while thread.is_alive() and pid and not watcher.execute(waits, {"pid": pid[0]}).scalar():
            thread.join(0.005)
    return thread, faults


def joined(thread: threading.Thread, faults: list[BaseException]) -> None:
    """Wait for what `meanwhile` started; fails with its error, or when it still waits."""
    thread.join(PATIENCE)
    assert not thread.is_alive(), "the other session still waits"
    if faults:
        raise faults[0]


def at_once(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Run `work` in threads that begin together; returns what they raised."""
    barrier, faults = threading.Barrier(count), []

    def run(number: int) -> None:
        try:
            barrier.wait(PATIENCE)
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10 * PATIENCE)
        assert not thread.is_alive()
    return faults
