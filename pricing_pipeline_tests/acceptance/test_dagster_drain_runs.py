"""A drain run by Dagster, and the whole story that its events tell."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from pricing_pipeline_tests.fixtures.core import FX, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.orchestration.test_drain_runs import observed
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

OTHERS = [f"S{number}" for number in range(8)]


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
