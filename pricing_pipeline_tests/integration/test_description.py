"""E9: clients can be generated from `/openapi.json`: nothing in it stops generators, and answers keep to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

import pytest

from pricing_pipeline.api.problems import Problem
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

MOST_BYTES = 250_000


def parts(content: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a document."""
    if isinstance(content, dict):
        yield content
        for inner in content.values():
            yield from parts(inner)
    elif isinstance(content, list):
        for inner in content:
            yield from parts(inner)


def test_e9_generators_find_each_name_once_and_every_refusal(api: RunningApi) -> None:
    answer = api.client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    assert len(answer.content) < MOST_BYTES
    document = answer.json()
    schemas, responses = document["components"]["schemas"], document["components"]["responses"]
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]

    for names in (
        [part["title"] for part in parts(document) if isinstance(part.get("title"), str)],
        [operation["operationId"] for operation in operations],
    ):
        assert {name: count for name, count in Counter(names).items() if count > 1} == {}
        assert len(names) > 50
    assert all(operation["operationId"].isidentifier() for operation in operations)
    assert {part["format"] for part in parts(document) if isinstance(part.get("format"), str)} == {
        *("date", "date-time", "uuid", "binary"),
    }
    for part in parts(document):
        if "$ref" in part:
            _, _, kind, name = part["$ref"].split("/")
            assert name in document["components"][kind], part

    assert schemas["Problem"]["properties"].keys() == Problem.model_fields.keys()
    problems = [name for name, response in responses.items() if "400" not in name]
    for name in problems:
        (content,) = responses[name]["content"].values()
        assert content == {"schema": {"$ref": "#/components/schemas/Problem"}}
    ours = [
        operation
        for path, methods in document["paths"].items()
        if path.startswith("/v1/")
        for operation in methods.values()
    ]
    for operation in ours:
        for status in ("401", "403", "404", "422", "429", "503"):
            assert operation["responses"][status] == {"$ref": f"#/components/responses/Refusal{status}"}


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
