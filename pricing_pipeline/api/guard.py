"""Checks every request first: host, origin, token, size, rate. Assigns its log id.

A request without a right token is refused before its body is read.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pricing_pipeline.api.access import STREAM_PATH, Gate, taken_from
from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.problems import Refused, answer, is_feed, response_to
from pricing_pipeline.processes.connections import LONGEST_BODY, in_time
from pricing_pipeline.processes.web_guard import foreign_refusal

_LOG = logging.getLogger(__name__)
_SENT_AT_ONCE = 256 * 1024
_GUARDED = ("/v1/", "/metrics/")


class Guard:
    """An ASGI application that passes requests of programs with a token on to `app`, and refuses those that other
    people's web pages make a browser send.

    `hosts` are the values of Host that are ours. Each response has `X-Request-Id`.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], gate: Gate, shares: Shares) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._gate = gate
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have the application do so."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        in_url = taken_from(scope)
        has_begun = False

        async def send_marked(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Referrer-Policy", "no-referrer")
                if "token" in state and state["token"].is_feed:
                    headers["Cache-Control"] = "private, no-store"  # who keeps it keeps its URL
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        request = Request(scope)
        try:
            await self._handle(request, in_url, receive, send_marked)
        except Exception as error:
            if has_begun:
                # The server ends the connection. Raised on, the error would be in the log twice.
                _LOG.error("request %s: an error of the server, after the answer began", request_id, exc_info=error)
                return
            response = await response_to(request, error)
            await response(scope, receive, send_marked)

    async def _handle(self, request: Request, in_url: Sequence[str], receive: Receive, send: Send) -> None:
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(request.scope, receive, send)
            return
        receive = in_time(receive, _too_late)
        if not f"{request.scope['path']}/".startswith(_GUARDED):
            await self._app(request.scope, receive, send)
            return
        token = await self._gate.admit(request, in_url)
        request.state.token = token
        scope = request.scope
        share = self._shares.of(token.token_id)
        if token.is_feed:
            share.take_round(f"{scope['path']}?{scope['query_string']!r}", request.method)
        if is_feed(scope["path"]):
            if request.method == "OPTIONS":
                await Response(status_code=204, headers={"Allow": "GET, HEAD, OPTIONS"})(scope, receive, send)
                return
            if request.method == "HEAD":  # the server leaves the body out
                scope = {**scope, "method": "GET"}
        if not token.is_feed:
            share.take(_length(request))

        async def send_parts(message: Message) -> None:
            for part in _parts(message):
                await send(part)

        # A live stream lasts, and its hub counts it. Any other answer is kept until it is read.
        is_lasting = request.scope["path"] == STREAM_PATH
        with nullcontext() if is_lasting else share.under_way(_length(request)):
            await self._app(scope, receive, send_parts)

    def _refusal(self, request: Request) -> ASGIApp | None:
        refused = foreign_refusal(request, self._hosts, "PRICING_API_HOSTS")
        if refused is not None:
            status, detail = refused
            return answer(request, status, "wrong-host" if status == 421 else "foreign-origin", detail)
        if "transfer-encoding" in request.headers:
            return answer(request, 411, "no-length", "say how long the body is: Content-Length")
        if _length(request) > LONGEST_BODY:
            return answer(
                request,
                413,
                "too-long",
                f"a body has {LONGEST_BODY:,} bytes at most. Send the rest in another request",
                {"Connection": "close"},  # the next request of a pool would meet the end of this one
            )
        return None


def _parts(message: Message) -> Iterator[Message]:
    """The message, a long body in parts: the server waits for its reader before each but the first."""
    body = message.get("body", b"")
    while len(body) > _SENT_AT_ONCE:
        yield {**message, "body": body[:_SENT_AT_ONCE], "more_body": True}
        body = body[_SENT_AT_ONCE:]
    yield message if body is message.get("body", b"") else {**message, "body": body}


def _length(request: Request) -> int:
    """The length of the body; the server takes only numbers of at most 20 digits."""
    return int(request.headers.get("content-length", 0))


def _too_late(detail: str) -> Refused:
    return Refused(408, "slow-body", detail)
