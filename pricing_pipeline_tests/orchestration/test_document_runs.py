"""Document types in Dagster: assets with freshness, runs that fetch them, and no history to backfill (B29, G1, G2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from pricing_pipeline import registry
from pricing_pipeline_tests.fix_core import QUOTE, Core
from pricing_pipeline_tests.fix_dagster import Stage, said
from pricing_pipeline_tests.sandbox_server import RunningSandbox

PROFILE = "company_profile"


def test_b29_a_document_type_is_fetched_reported_and_judged_like_any_other(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    with core.owner.begin() as connection:
        registry.add_data_type(connection, PROFILE, fetcher="profile", ttl_minutes=1440)
    stage.reload()
    latest, kept = stage.spec("latest_price", PROFILE), stage.spec("price_history", PROFILE)
    assert latest.freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=2), warn_window=timedelta(days=1)
    )
    assert "current documents" in latest.description
    assert "nothing to backfill" in kept.description
    for spec, unsaid in ((latest, set[str]()), (kept, {"data_type"})):
        table = spec.metadata["dagster/table_name"]
        found = core.rows(
            "SELECT attname, format_type(atttypid, atttypmod) AS kind FROM pg_attribute"
            " WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped",
            table=table,
        )
        columns = {row.attname: row.kind.replace("timestamp with time zone", "timestamptz") for row in found}
        told = {column.name: column.type for column in spec.metadata["dagster/column_schema"].columns}
        assert told == {name: kind for name, kind in columns.items() if name not in unsaid}

    core.heartbeat("ann", (PROFILE, "AAPL"), (PROFILE, "MSFT"), (QUOTE, "AAPL"))
    (request,) = stage.tick("refresh_watched").run_requests or ()
    assert dg.AssetKey(["price_history", PROFILE]) in (request.asset_selection or ())
    month = datetime.now(UTC).strftime("%Y-%m-01")
    assert stage.drain(PROFILE, QUOTE, partition=month, tags=request.tags).success

    (history,) = stage.materializations("price_history", PROFILE)
    assert history.partition == month
    assert (said(history)["rows"], said(history)["rows_added"]) == (2, 2)
    (seen,) = stage.observations("latest_price", PROFILE)
    assert (said(seen)["watched"], said(seen)["fresh"], said(seen)["late"]) == (2, 2, 0)
    shown = sorted((row["symbol"], row["period"]) for row in said(seen)["latest_documents"])
    assert shown == [("AAPL", ""), ("MSFT", "")]
    (told_fresh,) = [
        event
        for event in stage.tick("report_freshness").asset_events
        if event.asset_key == dg.AssetKey(["latest_price", PROFILE])
    ]
    assert isinstance(told_fresh, dg.AssetMaterialization)
    assert {row["symbol"] for row in said(told_fresh)["latest_documents"]} == {"AAPL", "MSFT"}


def test_b29_documents_have_no_past_months(stage: Stage, core: Core) -> None:
    with core.owner.begin() as connection:
        registry.add_data_type(connection, PROFILE, fetcher="profile", ttl_minutes=1440)
    stage.reload()
    run = stage.backfill(PROFILE, first="2010-03-01", last="2010-03-01")
    assert run.success
    assert any("keeps no history" in entry.user_message for entry in stage.instance.all_logs(run.run_id))
    assert core.rows("SELECT FROM pricing.api_call_queue") == []
