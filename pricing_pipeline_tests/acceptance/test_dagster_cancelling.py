"""Runs of people that are cancelled while they work: nothing of them is fetched later."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, NAV, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, an_instance
from pricing_pipeline_tests.orchestration.test_cancelling import Status
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox


def interrupted(stage: Stage, core: Core, sandbox: RunningSandbox, *, is_cancelled: bool) -> dg.DagsterRun:
    """A backfill whose process gets the signal that ends it during its first call, cancelled before or not."""
    sandbox.behave("delay", seconds=4)
    run_id = str(uuid4())

    def interrupt() -> None:
        until = time.monotonic() + PATIENCE
        while not core.one("SELECT count(*) FROM pricing.collector_call_log") and time.monotonic() < until:
            time.sleep(0.05)
        run = stage.instance.get_run_by_id(run_id)
        assert run is not None
        if is_cancelled:
            stage.instance.report_run_canceling(run)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    stage.backfill(DAILY, NAV, first="2010-03-01", last="2010-04-01", raise_on_error=False, run_id=run_id)
    thread.join()
    run = stage.instance.get_run_by_id(run_id)
    assert run is not None
    return run


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_g6_a_run_that_is_cancelled_leaves_nothing_to_be_fetched_later(
    environment: None,
    core: Core,
    sandbox: RunningSandbox,
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_cancelled: bool,
) -> None:
    monkeypatch.setenv("PRICING_SANDBOX_URL", sandbox.url)
    with an_instance(open_folder) as instance:
        stage = Stage(instance)
        run = interrupted(stage, core, sandbox, is_cancelled=is_cancelled)
        assert run.status is (Status.CANCELED if is_cancelled else Status.FAILURE)
    live: Any = core.one("SELECT count(*) FROM pricing.api_call_queue_live")
    assert live == 0 if is_cancelled else live > 0
    assert core.one("SELECT bool_and(cancelled_at IS NOT NULL) FROM pricing.backfills") is is_cancelled
