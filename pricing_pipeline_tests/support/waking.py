"""How long queued work waits until a drain claims it."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import work_until

ALWAYS_WAKE = (
    "CREATE OR REPLACE FUNCTION pricing.wake_workers() RETURNS void LANGUAGE sql SET search_path = '' AS"
    " $$ SELECT pg_notify('pricing_work', '') $$"
)


@pytest.fixture
def always_waking(core: Core) -> None:
    """Wake-ups are sent even while another session of the server notifies.

    Tests that run beside this one notify, too, and a wake-up is left out while one of them commits (see
    test_embedded_notify.py, which has a server of its own).
    """
    core.rows(ALWAYS_WAKE)


def delay(refresher: Refresher, core: Core, symbol: str) -> timedelta:
    """Time from the commit of an enqueue to the claim, as an idle drain's database sees it."""
    passes = 0

    def is_done() -> bool:
        nonlocal passes
        passes += 1
        return core.statuses().get(symbol) == "completed"

    def enqueue() -> None:
        wait_until(lambda: passes >= 2)  # once more than it was woken for beginning to listen
        time.sleep(0.2)  # it has looked, found nothing, and waits
        core.heartbeat("ann", (QUOTE, symbol))

    thread = threading.Thread(target=enqueue)
    thread.start()
    work_until(refresher, is_done)
    thread.join()
    task = core.rows("SELECT enqueued_at, claimed_at FROM pricing.api_call_queue")[0]
    waited: timedelta = task.claimed_at - task.enqueued_at
    return waited
