"""E9: answers of every kind keep to what `/openapi.json` says of them."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, store_days
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.described import judged_by
from pricing_pipeline_tests.support.inventory import (
    MONDAY,
    TOUR,
    add_partner,
    days,
    offer,
    slot,
    store,
)

pytestmark = pytest.mark.usefixtures("still")


def test_e9_answers_keep_to_their_description(api: RunningApi, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
    core.refresh()
    store_days(core, "AAPL", (date(2020, 3, 2), "411.23"))
    add_partner(core, TOUR)
    store(core, days(slot(MONDAY, 9, offer("ADULT", 2550))))
    caller = api.caller(Scope.ADMIN, user="ann")
    document = api.client.get("/openapi.json").json()
    spans = {"from": str(MONDAY), "to": str(MONDAY)}
    for path, params in (
        ("prices", {"symbols": "AAPL,NOSUCH"}),
        ("why", {"symbols": "AAPL,IBM"}),
        ("types", {}),
        (f"types/{QUOTE}", {}),
        ("providers", {}),
        ("providers/twelvedata", {}),
        ("instruments", {}),
        ("instruments/AAPL", {}),
        (f"history/{DAILY}", {"symbols": "AAPL", "from": "2020-01-01", "to": "2020-12-31"}),
        (f"gaps/{DAILY}/AAPL", {"from": "2020-03-01", "to": "2020-03-05"}),
        (f"products/{TOUR}/availability", spans),
        ("subscriptions", {}),
        ("tasks", {"status": "all"}),
        ("quarantine", {}),
        ("history/nosuch/AAPL", {}),
    ):
        answer = caller.ask("GET", path, params=params)
        faults = judged_by(document, "get", f"/v1/{path}", answer.status_code, answer.json())
        assert faults == [], path
    slots = caller.get(f"products/{TOUR}/availability", **spans)["days"][0]["slots"]
    assert datetime.fromisoformat(slots[0]["local_start"]).tzinfo is None
