"""What our daemon changes in Dagster's own: proved on Dagster's own, since it reaches into what is not public."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from dagster._daemon import controller
from dagster._daemon.backfill import execute_backfill_iteration_loop
from dagster._utils.log import get_dagster_logger

from pricing_pipeline.defs.daemon import look_for_backfills_often
from pricing_pipeline_tests.fix_dagster import an_instance


class Pauses(threading.Event):
    """Notes how long it is waited for, and waits for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


def test_g6_backfills_are_looked_for_every_five_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", 30)  # and put back at the end
    waits = []
    with (
        an_instance(tmp_path) as instance,
        create_test_daemon_workspace_context(EmptyWorkspaceTarget(), instance) as workspace,
    ):
        for quicken in (lambda: None, look_for_backfills_often):
            quicken()
            pauses = Pauses()
            loop = execute_backfill_iteration_loop(workspace, get_dagster_logger(), pauses)
            while not pauses.seconds:
                next(loop)
            loop.close()
            waits += pauses.seconds
    before, after = waits
    assert before > 5 >= after
