"""`up` puts the guard in front of the Dagster UI, and every command goes on working with a login."""

from __future__ import annotations

import contextlib

import httpx
import psutil

from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.patience import PATIENCE

TOKEN = "0123456789abcdef-a-token"
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


def test_with_a_token_strangers_get_nothing_and_commands_go_on() -> None:
    with new_stack(UI_TOKEN=TOKEN, UI_ADDRESS="0.0.0.0") as stack:
        stack.start()
        stack.wait_until_up()
        url = stack.state()["urls"]["dagster"]
        assert url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{url}/server_info", trust_env=False, timeout=PATIENCE).status_code == 401
        told = stack.json("backfill", "start", "--type", "equity_daily", "--from", "2013-03-01", "--to", "2013-03-28")
        assert told["run_id"] is not None  # so Dagster ran it
        assert TOKEN not in stack.logs()
        for process in stack.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended since it was listed
                assert TOKEN not in " ".join(process.cmdline())
