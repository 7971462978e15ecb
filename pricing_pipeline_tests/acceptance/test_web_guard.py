"""`up` puts the guard in front of the Dagster UI. Where it asks for a login, test_processes.py tries it."""

from __future__ import annotations

import httpx

from pricing_pipeline_tests.fixtures.stack import GROUP, Stack
from pricing_pipeline_tests.support.patience import PATIENCE

MUTATION = "mutation { setNuxSeen }"
pytestmark = GROUP


def test_the_ui_of_up_asks_for_no_login_and_refuses_what_pages_could_send(stack: Stack) -> None:
    url = stack.state()["urls"]["dagster"]
    with httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE) as http:
        assert http.get("/graphql", params={"query": MUTATION}).status_code == 405
        assert http.post("/graphql", params={"query": MUTATION}).status_code == 415
        assert http.post("/report_asset_materialization/price_history/equity_quote").status_code == 415
        for name, value, status in (("Host", "evil.example", 421), ("Origin", "null", 403)):
            asked = http.post("/graphql", json={"query": MUTATION}, headers={name: value})
            assert asked.status_code == status
        assert http.post("/graphql", json={"query": MUTATION}).status_code == 200
