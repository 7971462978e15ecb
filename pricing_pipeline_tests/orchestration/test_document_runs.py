"""Document types in Dagster: assets with freshness and without months, and runs that fetch them (B29, G1, G2, G3)."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from pricing_pipeline.defs.ours import LABEL, Ours
from pricing_pipeline.defs.pruning import forget_moved
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, said
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

PROFILE = "company_profile"
DOCUMENT = dg.AssetKey(["document", PROFILE])


@pytest.fixture(autouse=True)
def profiles(core: Core, stage: Stage) -> None:
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, PROFILE, fetcher="profile", ttl_minutes=1440)
    stage.reload()


def test_b29_a_document_type_is_fetched_reported_and_judged_like_any_other(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    latest, kept = stage.spec("latest_price", PROFILE), stage.spec("document", PROFILE)
    assert stage.spec("freshness", PROFILE).freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(days=2), warn_window=timedelta(days=1)
    )
    assert "current documents" in latest.description
    assert "nothing to backfill" in kept.description
    assert kept.partitions_def is None
    assert [dep.asset_key for dep in latest.deps] == [DOCUMENT]
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
    assert stage.drain(tags=request.tags).success

    (stored,) = stage.observations("document", PROFILE)
    assert stored.partition is None
    assert (said(stored)["records"], said(stored)["rows_added"]) == (2, 2)
    assert stage.materializations("document", PROFILE) == []
    assert stage.materializations("price_history", PROFILE) == []
    (seen,) = stage.observations("latest_price", PROFILE)
    assert (said(seen)["watched"], said(seen)["fresh"], said(seen)["late"]) == (2, 2, 0)
    stage.tick("report_prices")
    for kind in ("latest_price", "document"):
        (event,) = stage.materializations(kind, PROFILE)
        assert said(event)["changes"] == 2
        shown = sorted((row["symbol"], row["period"]) for row in said(event)["latest_documents"])
        assert shown == [("AAPL", ""), ("MSFT", "")]


def test_g3_materialize_fetches_what_is_watched_of_documents_now(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """However fresh it is, as the current month of a price type does."""
    core.heartbeat("ann", (PROFILE, "AAPL"))
    core.hold("bob", (PROFILE, "MSFT"))
    for _ in range(2):
        sandbox.reset()
        assert stage.backfill(PROFILE).success
        assert sorted(symbol for call in sandbox.calls() for symbol in call["symbols"]) == ["AAPL", "MSFT"]
    assert {event.partition for event in stage.materializations("document", PROFILE)} == {None}


def test_g3_past_months_of_prices_fetch_documents_now_and_no_past_of_them(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """One run holds both: documents take no notice of its months, and add no warning."""
    core.heartbeat("ann", (PROFILE, "AAPL"), (QUOTE, "AAPL"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    run = stage.backfill(DAILY, PROFILE, first="2010-03-01", last="2010-03-01")
    assert run.success
    assert not [entry for entry in stage.instance.all_logs(run.run_id) if "keeps no history" in entry.user_message]
    assert len(stage.materializations("document", PROFILE)) == 1
    assert {event.partition for event in stage.materializations("price_history", DAILY)} == {"2010-03-01"}


def test_g3_documents_alone_are_reason_for_a_drain(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (PROFILE, "AAPL"))
    (request,) = stage.tick("refresh_watched").run_requests or ()
    assert request.asset_selection is None
    assert request.tags["pricing/drain"] == "true"


def test_g6_what_an_earlier_release_told_of_documents_leaves_the_catalog(stage: Stage) -> None:
    """It kept them among the histories, by month."""
    old, price = dg.AssetKey(["price_history", PROFILE]), dg.AssetKey(["price_history", QUOTE])
    theirs = dg.AssetKey(["price_history", "theirs"])
    for key in (old, price, theirs):
        stage.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition="2026-10-01"))
    forget_moved(stage.instance, Ours(LABEL, (QUOTE,), (DOCUMENT,)))
    assert [stage.instance.has_asset_key(key) for key in (old, price, theirs)] == [False, True, True]
