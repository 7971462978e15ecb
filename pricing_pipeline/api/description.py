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

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

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
            # A caller that gives up does not end the wait of others.
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
    plain = json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
    return _Description(plain, gzip.compress(plain), tag_of(hashlib.sha256(plain).digest()))
