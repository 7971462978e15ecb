"""Sensors that fail in the daemon are alerts, also while a row is locked."""

from __future__ import annotations

from pathlib import Path

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.dagster import a_daemon, a_run, an_instance
from pricing_pipeline_tests.orchestration.test_failures_noted import STARTED, SUCCESS, Daemon, daemon, fail, noted

__all__ = ["daemon"]


def test_b21_a_locked_row_holds_the_sensor_up_for_a_second_only(daemon: Daemon, core: Core) -> None:
    fail(daemon.instance, a_run(daemon.instance, STARTED), "odd")
    daemon.tick()
    a_run(daemon.instance, SUCCESS)
    with core.engine.begin() as other:
        other.exec_driver_sql("SELECT FROM pricing.dagster_failures FOR UPDATE")
        daemon.tick()
    daemon.tick()
    assert noted(core) == []


def test_b21_a_sensor_that_fails_is_an_alert_until_it_works_again(
    environment: None, core: Core, tmp_path: Path
) -> None:
    with an_instance(tmp_path) as instance, a_daemon(instance, "note_failures", "report_sources") as workspace:
        daemon = Daemon(instance, workspace)
        core.rows("ALTER TABLE pricing.active_subscriptions RENAME TO gone")
        daemon.tick()
        daemon.tick()
        found = noted(core)
        assert {row[0] for row in found} == {"tick"}
        (reason,) = [row[3] for row in found if row[1] == "report_sources"]
        assert 'relation "pricing.active_subscriptions" does not exist' in reason
        core.rows("ALTER TABLE pricing.gone RENAME TO active_subscriptions")
        daemon.tick()
        daemon.tick()
        assert noted(core) == []
