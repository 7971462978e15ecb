"""What every request passes first: its Host and Origin, its size, and the id under which the log has it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pricing_pipeline.api.problems import answer
from pricing_pipeline.processes.web_guard import stranger_refusal

LONGEST_BODY = 2_000_000
"""Bytes. A heartbeat of 10,000 pairs has some hundred thousand."""


class Guard:
    """An ASGI application that lets through to `app` what programs send, and refuses what other web pages make a
    browser send.

    `hosts` are the values of Host that are ours. Each response has `X-Request-Id`.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have the application do so."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope)
        handler = self._refusal(request) or self._app
        await handler(scope, receive, send_marked)

    def _refusal(self, request: Request) -> ASGIApp | None:
        refused = stranger_refusal(request, self._hosts, "PRICING_API_HOSTS")
        if refused is not None:
            return answer(request, refused[0], "stranger", refused[1])
        if "transfer-encoding" in request.headers:
            return answer(request, 411, "no-length", "say how long the body is: Content-Length")
        if int(request.headers.get("content-length", 0)) > LONGEST_BODY:
            return answer(
                request,
                413,
                "too-long",
                f"a body has {LONGEST_BODY:,} bytes at most. Send the rest in another request",
            )
        return None
