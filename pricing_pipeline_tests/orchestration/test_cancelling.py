"""Cancelling a backfill's run cancels its backfill, whatever has become of the run's process."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.tools.audit import audit

Status = dg.DagsterRunStatus


def plan(core: Core, run_id: str | None, data_type: str = DAILY) -> None:
    core.call("SELECT pricing.plan_backfill(:t, '2010-03-01', '2010-03-31', NULL, :run)", t=data_type, run=run_id)


@pytest.mark.parametrize(
    ("status", "is_cancelled"),
    [
        (Status.CANCELING, True),  # its process hangs, or was killed meanwhile
        (Status.CANCELED, True),  # by force, or before it began
        (Status.STARTED, False),
        (Status.FAILURE, False),  # a stop cut it off; its tasks are taken up again
        (None, False),  # the command line works without Dagster
    ],
)
def test_g6_the_sensor_cancels_the_backfills_of_cancelled_runs(
    stage: Stage, core: Core, status: Status | None, is_cancelled: bool
) -> None:
    run_id = create_run_for_test(stage.instance, status=status).run_id if status else None
    plan(core, run_id)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    stage.tick("refresh_watched")
    backfilled = {task.status for task in core.tasks() if task.data_type == DAILY}
    assert backfilled == {"cancelled" if is_cancelled else "pending"}
    assert core.one("SELECT bool_or(cancelled_at IS NOT NULL) FROM pricing.backfills") is is_cancelled
    assert [task.status for task in core.tasks() if task.data_type == QUOTE] == ["pending"]
    audit(core)
