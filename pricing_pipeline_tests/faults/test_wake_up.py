"""Drains whose session for wake-ups is lost, or that have none."""

from __future__ import annotations

import threading

import pytest

from pricing_pipeline.db.wakeup import WakeUp
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.waking import delay

pytestmark = pytest.mark.own_sessions

OF_LISTENERS = (
    " FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN pricing_work%'"
    " AND pid <> pg_backend_pid()"
)
LISTENERS = "SELECT count(*)" + OF_LISTENERS


def test_b28_without_wake_ups_a_drain_looks_by_itself(
    core: Core, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind PgBouncer in transaction mode, which takes a LISTEN and passes nothing on."""
    monkeypatch.setattr(WakeUp, "_hear", lambda *_: True)
    assert delay(refresher, core, "AAPL")


def test_b28_the_listener_outlives_its_session_and_ends_when_it_is_told_to(core: Core) -> None:
    woken = threading.Event()
    wake_up = WakeUp(core.engine, woken.set)
    try:
        for _ in range(3):
            assert woken.wait(PATIENCE), "it wakes once when it begins to listen"
            woken.clear()
            core.rows("SELECT pg_notify('pricing_work', '')")
            assert woken.wait(PATIENCE)
            woken.clear()
            wait_until(lambda: core.call(LISTENERS) == 1)  # the one before it may still be ending
            core.call("SELECT count(pg_terminate_backend(pid))" + OF_LISTENERS)
        assert woken.wait(PATIENCE)
    finally:
        wake_up.close()
    assert not wake_up._thread.is_alive()
    wait_until(lambda: core.call(LISTENERS) == 0)
