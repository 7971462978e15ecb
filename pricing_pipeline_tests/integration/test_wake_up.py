"""New work wakes a waiting drain; where no wake-up comes through, it looks by itself (B28)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest

from pricing_pipeline.db.wakeup import WakeUp
from pricing_pipeline.prices import changes
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, Core
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.waking import always_waking, delay

__all__ = ["always_waking"]

pytestmark = pytest.mark.own_sessions


@pytest.fixture
def heard(database_url: str, always_waking: None) -> Iterator[Callable[[], int]]:
    """How many wake-ups came since the last time it was asked."""
    with psycopg.connect(database_url, autocommit=True) as listener:
        came: list[psycopg.Notify] = []
        listener.add_notify_handler(came.append)
        listener.execute("LISTEN pricing_work")

        def count() -> int:
            listener.execute("SELECT 1")  # with its answer comes what was sent before
            number = len(came)
            came.clear()
            return number

        yield count


@pytest.mark.usefixtures("always_waking")
def test_b28_new_work_wakes_a_waiting_drain(core: Core, refresher: Refresher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pricing_pipeline.refresh.refresher._POLL_SECONDS", PATIENCE)
    assert delay(refresher, core, "AAPL") < timedelta(seconds=PATIENCE / 2)


def test_b28_one_wake_up_for_a_batch_and_only_when_a_provider_had_nothing_pending(
    core: Core, heard: Callable[[], int]
) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM", "META")
    assert heard() == 1
    core.enqueue(QUOTE, "MSFT")
    core.enqueue(QUOTE, "AAPL", priority=7)
    assert heard() == 0, "workers of this provider find it without a wake-up"
    core.enqueue(NAV, "118632")
    assert heard() == 1, "the other provider had nothing"
    call = core.claim_one()
    core.enqueue(QUOTE, "GOOG")
    assert heard() == 1
    core.enqueue(QUOTE, *call.symbols)
    assert heard() == 0, "nothing new"


def test_b28_wake_workers_notifies(core: Core, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN pricing_work")

        def is_heard() -> bool:
            core.call("SELECT pricing.wake_workers()")
            return any(listener.notifies(timeout=0.1, stop_after=1))

        wait_until(is_heard)


def test_b28_a_retry_by_hand_wakes_too(core: Core, heard: Callable[[], int]) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.rows("SELECT pricing.cancel_tasks(array_agg(id)) FROM pricing.api_call_queue_live")
    heard()
    core.rows("SELECT pricing.retry_tasks(array_agg(id)) FROM pricing.api_call_queue_dead")
    assert heard() == 1


def test_g8_a_price_that_has_changed_wakes_who_asks_for_it(core: Core) -> None:
    """It sends no notification: each commit that does waits for all others of the server."""
    woken = threading.Event()
    with closing(WakeUp(core.engine, woken.set, changes.is_unnumbered)):
        for price in ("101.50", "102"):
            assert woken.wait(PATIENCE)
            changes.number(core.engine)
            woken.clear()
            core.enqueue(QUOTE, "AAPL")
            core.refresh(price=price)
        assert woken.wait(PATIENCE)
