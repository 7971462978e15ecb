"""`/openapi.json`: the description of this API, spelled and compressed once.

It takes seconds, and nobody needs a token for it. So the first request has it spelled in a thread, and all others are
answered meanwhile. (At the start of the API it would take time from the first prices.)
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from pricing_pipeline.api.problems import RESPONSES, Problem
from pricing_pipeline.api.tags import is_known, not_modified, tag_of

PATH = "/openapi.json"


@dataclass(frozen=True, slots=True)
class _Description:
    plain: bytes
    zipped: bytes
    tag: str


def add_description(app: FastAPI) -> None:
    """Serve the description of the routes that `app` has now."""
    begun: list[asyncio.Future[_Description]] = []

    async def describe(request: Request) -> Response:
        if not begun:
            begun.append(asyncio.ensure_future(asyncio.to_thread(_spelled, app)))
        try:
            # A caller that gives up does not end the wait of the others.
            description = await asyncio.shield(begun[0])
        except Exception:
            begun.clear()  # the next request tries again
            raise
        if is_known(request, description.tag):
            return not_modified(description.tag)
        headers = {"ETag": description.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(description.plain, media_type="application/json", headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(description.zipped, media_type="application/json", headers=headers)

    app.add_route(PATH, describe, include_in_schema=False)


def _spelled(app: FastAPI) -> _Description:
    plain = json.dumps(_document(app), ensure_ascii=False, separators=(",", ":")).encode()
    return _Description(plain, gzip.compress(plain), tag_of(hashlib.sha256(plain).digest()))


def _document(app: FastAPI) -> dict[str, Any]:
    """The description with each problem once, and with titles of its named schemas only: generators of clients take
    each further title for a class, and two of one name for an error.
    """
    document = app.openapi()
    components = document["components"]
    components["schemas"]["Problem"] = Problem.model_json_schema()
    usual = {str(status): response for status, response in RESPONSES.items()}
    components["responses"] = {f"Refusal{status}": response for status, response in usual.items()}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if response == usual.get(status):
                    operation["responses"][status] = {"$ref": f"#/components/responses/Refusal{status}"}
            for parameter in operation.get("parameters", ()):
                parameter["schema"].pop("description", None)  # the parameter has it
            _drop_titles(operation)
    for schema in components["schemas"].values():
        for part in schema.values():
            _drop_titles(part)
    return document


def _drop_titles(part: Any) -> None:
    if isinstance(part, dict):
        if isinstance(part.get("title"), str):
            del part["title"]
        for inner in part.values():
            _drop_titles(inner)
    elif isinstance(part, list):
        for inner in part:
            _drop_titles(inner)
