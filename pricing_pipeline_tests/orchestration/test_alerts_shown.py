"""Alerts as Dagster shows them: a failed check of the types that they concern, and no event while nothing changes."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.test_utils import freeze_time
from dagster._daemon.sensor import execute_sensor_iteration

from pricing_pipeline.operations import alerts
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_daemon, an_instance, plain
from pricing_pipeline_tests.fixtures.database import Clock

SENSOR = "report_alerts"
OVER_AFTER = 300

pytestmark = pytest.mark.usefixtures("still")


def judged(tick: SensorExecutionData) -> dict[str, bool]:
    """Whether the check alerts passes, of the types of which the tick says it."""
    assert not tick.run_requests
    events = [event for event in tick.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    assert len(events) == len(tick.asset_events)
    assert {event.check_name for event in events} <= {"alerts"}
    return {event.asset_key.path[1]: event.passed for event in events}


def facts(tick: SensorExecutionData, data_type: str) -> dict[str, Any]:
    (event,) = [
        event
        for event in tick.asset_events
        if isinstance(event, dg.AssetCheckEvaluation) and event.asset_key.path[1] == data_type
    ]
    shown = {name: plain(value) for name, value in event.metadata.items()}
    return {**shown, "description": event.description, "severity": event.severity}


def raise_alert(core: Core, rule: str, subject: str, severity: str = "P1", says: str = "it burns") -> int:
    """An alert that was raised, as a look raises it."""
    return int(
        core.one(
            "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
            " VALUES (:rule, :subject, :severity, :says, pricing.clock(), pricing.clock(), pricing.clock())"
            " RETURNING alert_id",
            rule=rule,
            subject=subject,
            severity=severity,
            says=says,
        )
    )


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


def test_b21_the_check_is_of_the_types_that_an_alert_is_about(stage: Stage, core: Core) -> None:
    raise_alert(core, "pair_forgotten", FX)
    raise_alert(core, "provider_fails", f"{TWELVEDATA} {QUOTE}")
    raise_alert(core, "limit_near", NAV, "P2")
    raise_alert(core, "provider_fails", f"nobody {NAV}")
    tick = stage.tick(SENSOR)
    assert judged(tick) == {FX: False, QUOTE: False}
    raise_alert(core, "health", QUOTE, "P0", "nothing goes")
    worse = stage.tick(SENSOR, tick.cursor)
    assert judged(worse) == {QUOTE: False}
    told = facts(worse, QUOTE)
    assert told["severity"] is dg.AssetCheckSeverity.ERROR
    assert told["description"] == "P0: nothing goes 1 more are open."
    assert [row["severity"] for row in told["open_alerts"]] == ["P0", "P1"]
    assert told["what_to_do"] == "docs/runbook.md#health", "a rule of a later release has no section yet"


def test_b21_a_type_that_is_added_while_all_runs_has_the_check(stage: Stage, core: Core) -> None:
    raise_alert(core, "pair_forgotten", "new_quote")
    before = stage.tick(SENSOR)
    assert judged(before) == {}
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('new_quote', 'quote', 5)"
    )
    stage.reload()
    after = stage.tick(SENSOR, before.cursor)
    assert judged(after) == {"new_quote": False}
    key = dg.AssetCheckKey(dg.AssetKey(["latest_price", "new_quote"]), "alerts")
    assert key in stage.definitions.resolve_asset_graph().asset_check_keys
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'new_quote'")
    stage.reload()
    assert judged(stage.tick(SENSOR, after.cursor)) == {}


def test_b21_looks_without_a_change_say_nothing(stage: Stage, core: Core) -> None:
    raise_alert(core, "breaker_open", TWELVEDATA)
    tick = stage.tick(SENSOR)
    assert judged(tick)
    for _ in range(3):
        core.rows("UPDATE pricing.alerts SET last_seen_at = pricing.clock(), says = says || '.'")
        tick = stage.tick(SENSOR, tick.cursor)
        assert tick.asset_events == []


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
