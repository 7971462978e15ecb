"""Alerts as Dagster shows them: a failed check of the types that they concern, and no event while nothing changes."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from pricing_pipeline_tests.fixtures.core import FX, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, plain

SENSOR = "report_alerts"

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
