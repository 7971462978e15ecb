"""Alerts as Dagster shows them, with its daemon and its runs: checks fail while an alert is open."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import freeze_time
from dagster._daemon.sensor import execute_sensor_iteration

from pricing_pipeline.operations import alerts
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, an_instance
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.orchestration.test_alerts_shown import SENSOR, facts, judged, raise_alert

pytestmark = pytest.mark.usefixtures("still")

OVER_AFTER = 300


def end_alerts(core: Core) -> None:
    core.rows("UPDATE pricing.alerts SET resolved_at = pricing.clock()")


def open_breaker(core: Core) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock(),"
        " breaker_until = pricing.clock() + interval '1 minute', breaker_reason = '![x](http://evil/x)'"
        " WHERE provider = 'twelvedata'"
    )


def close_breaker(core: Core) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'closed', breaker_since = NULL, breaker_until = NULL,"
        " breaker_reason = NULL"
    )


def test_b21_an_alert_about_a_provider_fails_the_check_of_its_types_until_it_is_over(
    stage: Stage, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_PAGE_URL", "https://prices.example.com")
    core.call("SELECT pricing.run_duties()")
    quiet = stage.tick(SENSOR)
    assert (judged(quiet), quiet.skip_message) == ({}, "nothing has changed")
    open_breaker(core)
    alerts.look(core.engine)
    burning = stage.tick(SENSOR, quiet.cursor)
    assert judged(burning) == {DAILY: False, QUOTE: False, FX: False}, "and not the type of another provider"
    told = facts(burning, QUOTE)
    alert_id = core.one("SELECT alert_id FROM pricing.alerts WHERE rule = 'breaker_open'")
    assert told["severity"] is dg.AssetCheckSeverity.WARN
    assert told["alert"] == "breaker_open (P1) of twelvedata"
    assert told["look_after_it"] == f"pricing-pipeline alert acknowledge {alert_id}"
    assert told["what_to_do"].startswith("**breaker_open** (docs/runbook.md#breaker_open)")
    assert told["operations_page"] == f"https://prices.example.com/#alert-{alert_id}"
    assert told["since"] == core.clock().timestamp()
    (row,) = told["open_alerts"]
    assert row["what"].endswith("![x](http://evil/x)")
    assert "![x]" not in told["description"], "the UI would load the picture"
    assert judged(stage.tick(SENSOR, burning.cursor)) == {}, "it is said once"

    with core.engine.begin() as connection:
        alerts.acknowledge(connection, [alert_id], "ann")
    acknowledged = stage.tick(SENSOR, burning.cursor)
    assert facts(acknowledged, QUOTE)["open_alerts"][0]["who looks after it"] == "ann"

    close_breaker(core)
    alerts.look(core.engine)
    assert judged(stage.tick(SENSOR, acknowledged.cursor)) == {}, "it may come and go"
    clock.advance(OVER_AFTER)
    core.call("SELECT pricing.run_duties()")
    alerts.look(core.engine)
    over = stage.tick(SENSOR, acknowledged.cursor)
    assert judged(over) == {DAILY: True, QUOTE: True, FX: True}, "types that were never fetched pass, too"
    assert judged(stage.tick(SENSOR, over.cursor)) == {}


def test_b21_dagsters_daemon_writes_one_result_for_each_change(environment: None, core: Core, tmp_path: Path) -> None:
    """The whole way: the daemon ticks the sensor and stores what it says, and nothing more."""
    logger = logging.getLogger("daemon")
    key = dg.AssetCheckKey(dg.AssetKey(["latest_price", QUOTE]), "alerts")
    began = time.time()
    with an_instance(tmp_path) as instance, a_daemon(instance, SENSOR) as daemon:

        def results() -> list[bool]:
            found = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
            return [bool(record.status.value == "SUCCEEDED") for record in reversed(found)]

        def pass_ticks(number: int) -> None:
            nonlocal began
            for _ in range(number):
                began += 31
                with freeze_time(began):
                    list(execute_sensor_iteration(daemon, logger, None, None))

        pass_ticks(1)
        assert results() == []
        raise_alert(core, "breaker_open", TWELVEDATA)
        pass_ticks(2)
        assert results() == [False]
        end_alerts(core)
        pass_ticks(2)
        assert results() == [False, True]


def test_b21_the_checks_of_all_have_it_too_and_heal_what_a_lost_cursor_leaves(stage: Stage, core: Core) -> None:
    def evaluated() -> dict[str, bool]:
        run = stage.definitions.resolve_job_def("check_prices").execute_in_process(instance=stage.instance)
        return {
            check.asset_key.path[1]: check.passed
            for check in run.get_asset_check_evaluations()
            if check.check_name == "alerts"
        }

    assert evaluated() == {}, "of a type that was never fetched nothing is said while nothing is wrong"
    raise_alert(core, "pair_forgotten", QUOTE)
    assert evaluated() == {QUOTE: False}
    end_alerts(core)
    assert judged(stage.tick(SENSOR, "no cursor")) == {}
    assert evaluated() == {QUOTE: True}
