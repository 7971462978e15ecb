"""C2: a named lock that nobody waits for and nobody keeps by mistake."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import Engine, event

from pricing_pipeline.db.advisory_lock import advisory_lock
from pricing_pipeline.errors import LockLost, LockUnavailable
from pricing_pipeline_tests.fixtures.database import bare_template

template = bare_template


def is_free(engine: Engine, name: str) -> bool:
    try:
        with advisory_lock(engine, name):
            return True
    except LockUnavailable:
        return False


def test_c2_the_same_session_cannot_take_it_twice_and_others_neither(engine: Engine) -> None:
    with advisory_lock(engine, "sync"):
        with pytest.raises(LockUnavailable, match="sync is at work already"), advisory_lock(engine, "sync"):
            pass
        assert is_free(engine, "another")
    assert is_free(engine, "sync")


def test_c2_an_error_releases_it(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError), advisory_lock(engine, "sync"):
        raise ZeroDivisionError
    assert is_free(engine, "sync")


def cut_off(owner: Engine) -> None:
    """End the session that holds a lock."""
    with owner.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks JOIN pg_database d ON d.oid = database"
            " WHERE locktype = 'advisory' AND datname = current_database()"
        )


def lose_it(engine: Engine) -> None:
    with advisory_lock(engine, "sync") as lock:
        lock.check()
        cut_off(engine)
        with pytest.raises(LockLost, match="the lock sync is lost"):
            lock.check()
        assert is_free(engine, "sync")


def test_c2_whoever_holds_it_learns_that_its_session_is_gone(engine: Engine) -> None:
    """Else it would go on with the same work as the next holder."""
    with pytest.raises(LockLost, match="another process may have begun the same work"):
        lose_it(engine)
    assert is_free(engine, "sync")


def fail_without_it(engine: Engine) -> None:
    with advisory_lock(engine, "sync"):
        cut_off(engine)
        raise ZeroDivisionError


def test_c2_an_error_of_the_work_goes_before_the_loss_of_the_lock(engine: Engine) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_without_it(engine)


def test_c2_its_transaction_may_idle_as_long_as_the_work_takes(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def be_impatient(dbapi: Any, record: object) -> None:
        dbapi.execute("SET idle_in_transaction_session_timeout = '50ms'")
        dbapi.commit()

    with advisory_lock(engine, "sync") as lock:
        time.sleep(0.3)
        lock.check()


def test_c2_holding_it_holds_back_no_vacuum(engine: Engine) -> None:
    with advisory_lock(engine, "sync"), engine.connect() as connection:
        oldest = connection.exec_driver_sql(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND state = 'idle in transaction'"
            " AND datname = current_database()"
        ).scalar_one()
        assert oldest == 0
