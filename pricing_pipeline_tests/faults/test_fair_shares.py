"""E7: a recipient that hangs."""

from __future__ import annotations

import threading

from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_fair_shares import SLOTS, send
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.receivers import receiving


def test_e7_a_webhook_that_hangs_holds_up_no_other(core: Core, cli: CommandLine) -> None:
    """Nothing that hangs ends within this test: what arrives has not waited for it."""
    core.rows("UPDATE pricing.operation_types SET time_limit_seconds = 240 WHERE operation_type = 'webhook'")
    stop = threading.Event()
    with receiving(lambda post: post.hang()) as hanging, receiving(lambda post: post.answer(204)) as good:
        for name, receiver in (("hangs", hanging), ("works", good)):
            cli("recipient", "add", name, "webhook", "--allow-private", stdin=f"{receiver.url}/\n")
        send(core, "hangs", 200)
        runner = OperationRunner(core.engine, make_handlers(core.engine, Settings(home=cli.home)), worker="here")
        thread = threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05, "last_seconds": 0})
        thread.start()
        wait_until(lambda: len(hanging.posted) == SLOTS)
        for number in range(1, 21):
            send(core, "works")
            wait_until(lambda number=number: len(good.posted) == number)  # type: ignore[misc]
        assert len(hanging.posted) == SLOTS
        stop.set()
        thread.join()
    runner.close()
