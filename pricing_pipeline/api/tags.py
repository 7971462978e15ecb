"""ETags: a client that already has an answer gets 304 without a body.

A tag is a hash of the answer itself, so it is right whatever the answer depends on; it saves transfer, not work.
Answers with the age of a price differ each time, and have no tag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


def tag_of(digest: bytes) -> str:
    """The tag of an answer. Weak, because the same answer is also sent compressed."""
    return f'W/"{digest.hex()[:32]}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the client has said that it has this answer."""
    client_tags = [entry.strip() for entry in request.headers.get("if-none-match", "").split(",")]
    return tag.removeprefix("W/") in {entry.removeprefix("W/") for entry in client_tags} or client_tags == ["*"]


def not_modified(tag: str, headers: dict[str, str] | None = None) -> Response:
    """The answer to a client that has it."""
    return Response(status_code=304, headers={"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})})


class TaggedRoute(APIRoute):
    """A route whose good answers have an ETag."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with the tag around it."""
        handle = super().get_route_handler()

        async def tagged(request: Request) -> Response:
            response = await handle(request)
            if response.status_code != 200:
                return response
            tag = tag_of(hashlib.sha256(response.body).digest())
            if is_known(request, tag):
                return not_modified(tag)
            response.headers["ETag"] = tag
            response.headers["Cache-Control"] = "private, no-cache"
            return response

        return tagged
