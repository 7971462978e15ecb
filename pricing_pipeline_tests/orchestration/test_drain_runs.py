"""Runs of the refresh job: what they store, and what they tell Dagster of it."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

import pytest

from pricing_pipeline_tests.fixtures.core import DAILY, FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.tools.audit import audit

OTHERS = [f"S{number}" for number in range(8)]


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


def test_g5_b17_a_drain_stores_prices_and_tells_their_story(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    quotes = [(QUOTE, symbol) for symbol in ("AAPL", "NOPE", *OTHERS)]
    core.heartbeat("ann", (FX, "EUR/USD"), *quotes)
    (request,) = stage.tick("refresh_watched").run_requests or ()
    month = datetime.now(UTC).strftime("%Y-%m-01")
    began = time.monotonic()
    run = stage.drain(tags=request.tags, to_its_end=True)
    # Somebody watches on, so it works to its end (5 s here) and leaves the rest to its successor.
    assert run.success
    assert time.monotonic() - began > 4.5
    assert core.one("SELECT finished_at IS NOT NULL FROM pricing.drains WHERE run_id = :run", run=run.run_id)
    waited = "SELECT extract(epoch FROM started_at - requested_at) FROM pricing.drains WHERE run_id = :run"
    assert 0 < core.one(waited, run=run.run_id) < time.monotonic() - began, "how long the run took to start"

    # From the price to its call, and from the call to its run.
    assert core.rows(
        "SELECT l.data_type, count(*), min(c.run_id) AS run FROM pricing.latest_prices l"
        " JOIN pricing.collector_call_log c USING (call_id) GROUP BY 1 ORDER BY 1"
    ) == [(QUOTE, 9, run.run_id), (FX, 1, run.run_id)]
    assert len(sandbox.calls(TWELVEDATA)) == 2

    for data_type, symbols, failed in ((QUOTE, 9, 1), (FX, 1, 0)):
        (seen,) = map(said, stage.observations("latest_price", data_type))
        ((partition, history),) = observed(stage, data_type)
        assert partition == month
        for kind in ("latest_price", "price_history"):
            assert stage.materializations(kind, data_type) == [], "report_prices tells what has changed"
        left = core.allowance()
        work = {
            "rows_added": symbols,
            "rows_revised": 0,
            "symbols": symbols,
            "failed": failed,
            "quarantined": 0,
            "bars_without_some_parts": 0,
            "calls": 1,
            "bytes": core.one(
                "SELECT sum(wire_bytes) FROM pricing.collector_call_log WHERE data_type = :name",
                name=data_type,
            ),
            "quota_left_bytes_twelvedata": left.quota_left_bytes,
            "units_left_twelvedata": left.units_left,
        }
        assert history == {
            **work,
            "rows": symbols,
            "dagster/partition_row_count": symbols,
        }
        oldest = core.one("SELECT min(fetched_at) FROM pricing.latest_prices WHERE data_type = :name", name=data_type)
        assert seen["oldest_price"] == oldest.timestamp()
        assert {name: seen[name] for name in work} == work
        assert (seen["watched"], seen["late"]) == (symbols + failed, 0)
    audit(core)


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
