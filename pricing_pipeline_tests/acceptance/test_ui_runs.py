"""Terminate and Materialize all, as the UI asks the whole stack for them. After the files that need gaps to fill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pricing_pipeline_tests.fixtures.stack import GROUP, Stack

pytestmark = GROUP

NAV, PROFILE = "mf_nav", "company_profile"
ENDED = ("SUCCESS", "FAILURE", "CANCELED")

NODES = "{ assetNodes { assetKey { path } isMaterializable partitionKeys } }"
LAUNCH = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}
"""
STATUS = """
query Status($id: String!) {
  partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } }
}
"""
TERMINATE = """
mutation Terminate($run: String!) {
  terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE) { __typename }
}
"""


@pytest.fixture
def slow_provider(stack: Stack) -> Iterator[None]:
    """mfapi is asked once, and then not for ten minutes."""
    delay = "UPDATE pricing.data_collectors SET request_delay_ms = :delay WHERE provider = 'mfapi'"
    stack.core.rows(delay, delay=600_000)
    yield
    stack.core.rows(delay, delay=0)


@pytest.fixture
def profiles(stack: Stack) -> Iterator[None]:
    """A document type that somebody watches."""
    stack.json("type", "add", PROFILE, "--fetcher=profile", "--ttl=1440")
    stack.watch(PROFILE, "AAPL")
    yield
    stack.leave(PROFILE, "AAPL")
    stack.core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = :t", t=PROFILE)


@pytest.mark.usefixtures("slow_provider")
def test_g6_terminating_a_run_cancels_its_backfill(stack: Stack) -> None:
    months = ["2015-01-01", "2015-02-01"]
    backfill = launch(stack, {"assetSelection": [{"path": ["price_history", NAV]}], "partitionNames": months})
    asked = "SELECT count(*) FROM pricing.backfills WHERE run_id = :run"

    def under_way() -> str | None:
        runs = [run for run in stack.runs(tags=[backfill]) if run["status"] == "STARTED"]
        return str(runs[0]["id"]) if runs and stack.core.one(asked, run=runs[0]["id"]) else None

    run = stack.wait_until("the backfill's run", under_way)
    assert stack.graphql(TERMINATE, run=run)["terminateRun"]["__typename"] == "TerminateRunSuccess"
    stack.wait_until("its end", lambda: stack.runs(runIds=[run])[0]["status"] == "CANCELED")
    cancelled = "SELECT cancelled_at IS NOT NULL FROM pricing.backfills WHERE run_id = :run"
    stack.wait_until("its backfill's end", lambda: stack.core.one(cancelled, run=run))
    left = "SELECT count(*) FROM pricing.api_call_queue_live WHERE data_type = :t AND window_start >= '2015-01-01'"
    assert stack.core.one(left, t=NAV) == 0


@pytest.mark.usefixtures("profiles")
def test_g1_g6_materialize_all_goes_well_with_the_sample_and_documents(stack: Stack) -> None:
    """Months of all types, and what has none: Dagster starts a run of each kind."""

    def offered() -> list[dict[str, Any]] | None:
        nodes = [node for node in stack.graphql(NODES)["assetNodes"] if node["isMaterializable"]]
        return nodes if ["document", PROFILE] in [node["assetKey"]["path"] for node in nodes] else None

    nodes = stack.wait_until("the asset of documents", offered)
    firsts = {node["partitionKeys"][0] for node in nodes if node["partitionKeys"]}
    assert len(firsts) == 3, "two types have histories, and of the others the first price is of this month"
    assert [n["assetKey"]["path"] for n in nodes if not n["partitionKeys"]] == [
        ["commodity", "commodity_price"],
        ["commodity_lists"],
        ["document", PROFILE],
        *(["inventory", name] for name in ("product_details", "slots_month", "slots_today", "slots_week")),
    ]
    params = {
        "partitionsByAssets": [
            {"assetKey": {"path": node["assetKey"]["path"]}, "partitions": newest(node["partitionKeys"])}
            for node in nodes
        ]
    }
    backfill = launch(stack, params)

    def judged() -> str | None:
        status = stack.graphql(STATUS, id=backfill["value"])["partitionBackfillOrError"]["status"]
        return str(status) if status.startswith("COMPLETED") else None

    assert stack.wait_until("Dagster's word on the backfill", judged) == "COMPLETED_SUCCESS", stack.logs()
    runs = stack.runs(tags=[backfill])
    assert {run["status"] for run in runs} == {"SUCCESS"}, stack.logs()
    assert len(runs) == 5, "three kinds of months, what has none, and the lists of commodities"
    assert stack.core.one("SELECT count(*) FROM pricing.documents WHERE data_type = :t", t=PROFILE) == 1


def newest(months: list[str]) -> dict[str, Any] | None:
    """The last year of an asset's months."""
    return {"range": {"start": months[-12:][0], "end": months[-1]}} if months else None


def launch(stack: Stack, params: dict[str, Any]) -> dict[str, str]:
    """Launch a backfill as the UI does; returns the tag of its runs."""
    launched = stack.graphql(LAUNCH, params=params)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    return {"key": "dagster/backfill", "value": launched["backfillId"]}
