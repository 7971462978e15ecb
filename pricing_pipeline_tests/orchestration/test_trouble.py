"""Runs that hang are ended."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
from dagster._core.test_utils import create_run_for_test, freeze_time

from pricing_pipeline.defs.trouble import SILENCE_SECONDS
from pricing_pipeline_tests.fixtures.core import DAILY
from pricing_pipeline_tests.fixtures.dagster import OF_OURS, Stage, move

HISTORIES = frozenset([dg.AssetKey(["price_history", DAILY])])
STARTED = dg.DagsterRunStatus.STARTED


def test_g6_a_backfill_that_says_nothing_for_an_hour_is_ended(stage: Stage) -> None:
    instance = stage.instance

    def begun(ago: float, **chosen: Any) -> str:
        with freeze_time(time.time() - ago):
            run = create_run_for_test(instance, tags=OF_OURS, **(chosen or {"asset_selection": HISTORIES}))
            return move(instance, run, STARTED).run_id

    silent = begun(SILENCE_SECONDS + 5)
    quiet = begun(SILENCE_SECONDS - 60)
    telling = begun(SILENCE_SECONDS + 5)
    drain = begun(SILENCE_SECONDS + 5, job_name="refresh")
    with freeze_time(time.time() - 5):
        instance.report_engine_event("3 of 9 tasks done", job_name="refresh", run_id=telling)
    first = stage.tick("end_silent_runs")
    assert first.skip_message == "ended 0 silent runs; 1 more have five minutes to report"
    second = stage.tick("end_silent_runs", first.cursor)
    assert second.skip_message == "ended 1 silent runs; 0 more have five minutes to report"
    found = {run.run_id: run.status for run in instance.get_runs()}
    assert found == {silent: dg.DagsterRunStatus.FAILURE, quiet: STARTED, telling: STARTED, drain: STARTED}


def test_g6_a_machine_that_has_slept_ends_no_run_that_goes_on(stage: Stage) -> None:
    """All were silent for as long as it slept, and the sensor may wake first."""
    with freeze_time(time.time() - 2 * SILENCE_SECONDS):
        run = move(
            stage.instance,
            create_run_for_test(stage.instance, asset_selection=HISTORIES, tags=OF_OURS),
            STARTED,
        )
    first = stage.tick("end_silent_runs")
    stage.instance.report_engine_event("3 of 9 tasks done", job_name="refresh", run_id=run.run_id)
    second = stage.tick("end_silent_runs", first.cursor)
    assert not second.cursor, "and what it is warned of is forgotten"
    found = stage.instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status is STARTED
