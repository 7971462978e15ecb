"""A real worker says whom it asks, so that what waits for others is told (F4)."""

from __future__ import annotations

from threading import Thread

import pytest

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_waits import PAIR, why
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")


def test_f4_a_real_worker_says_whom_it_asks(core: Core) -> None:
    core.rows("UPDATE pricing.registry_state SET prices_from = 'real providers'")
    core.heartbeat("ann", PAIR)
    core.enqueue_due()
    with Refresher(core.engine, {}, worker="w") as refresher:
        drain = Thread(target=refresher.drain, args=(600,))
        drain.start()
        wait_until(lambda: why(core).state == "no_client")
        core.rows("DELETE FROM pricing.active_subscriptions")
        core.rows("DELETE FROM pricing.api_call_queue_live")
        drain.join()
