"""Runs of the refresh job: what they store, and what they tell Dagster of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox


def by_month(stage: Stage, data_type: str) -> dict[str | None, dict[str, Any]]:
    """Metadata of a history's materializations by partition, of which each has one."""
    events = stage.materializations("price_history", data_type)
    found = {event.partition: said(event) for event in events}
    assert len(found) == len(events)
    return found


def observed(stage: Stage, data_type: str) -> list[tuple[str | None, dict[str, Any]]]:
    """Partitions of a history that were observed, with metadata."""
    events = stage.observations("price_history", data_type)
    return [(event.partition, said(event)) for event in events]


def test_g5_b17_events_name_the_month_of_the_price_and_backfills_leave_the_latest_alone(
    stage: Stage, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sunday = datetime(2024, 12, 1, 12, 0, tzinfo=UTC)
    clock.set(sunday)
    core.enqueue(NAV, "118632", priority=-1)
    core.enqueue(DAILY, "IBM", priority=-2, days=(date(2010, 1, 15), date(2010, 3, 5)))
    with running_sandbox(clock=lambda: sunday) as sandbox:
        monkeypatch.setenv("PRICING_SANDBOX_URL", sandbox.url)
        assert stage.drain(tags={"pricing/drain": "true"}).success
        assert [call["provider"] for call in sandbox.calls()] == [MFAPI, TWELVEDATA]
    # Launched for December and for one type; the last NAV is of Friday, and the queue had more.
    assert {month for month, _ in observed(stage, NAV)} == {"2024-11-01"}
    assert by_month(stage, NAV) == {}, "its days are not all there"
    assert len(stage.observations("latest_price", NAV)) == 1
    assert by_month(stage, DAILY) == {}
    months = dict(observed(stage, DAILY))
    assert {month: event["rows"] for month, event in months.items()} == dict(
        core.rows(
            "SELECT to_char(date_trunc('month', observed_at, 'UTC'), 'YYYY-MM-DD'), count(*)"
            " FROM pricing.price_history WHERE data_type = :name GROUP BY 1",
            name=DAILY,
        )
    )
    assert sorted(str(month) for month in months) == ["2010-01-01", "2010-02-01", "2010-03-01"]
    assert all(event["dagster/partition_row_count"] == event["rows"] for event in months.values())
    # Old months say nothing about the latest price.
    assert stage.observations("latest_price", DAILY) == []
    assert stage.materializations("latest_price", DAILY) == []
    assert core.latest("IBM", DAILY) is None


def test_g3_b17_a_second_drain_ends_at_once_and_leaves_the_queue_alone(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """What protects two Dagster instances on one database, whose sensors share no cursor."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.one("SELECT pricing.begin_drain('another instance', 'its run', 120)")
    run = stage.drain(tags={"pricing/drain": "true"})
    assert run.success
    log = [entry.user_message for entry in stage.instance.all_logs(run.run_id)]
    assert "no further drain is needed; those at work take this run's tasks, too" in log
    assert sandbox.calls() == []
    assert core.statuses() == {"AAPL": "pending"}
    assert core.one("SELECT count(*) FROM pricing.drains") == 1
