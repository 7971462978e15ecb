"""E9: clients can be generated from `/openapi.json`: nothing in it stops generators, and answers keep to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pricing_pipeline.api.problems import Problem
from pricing_pipeline_tests.support.api_server import RunningApi

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
