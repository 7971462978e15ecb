"""The guard opens a WebSocket for our pages and for programs, with the token where one is set, and for nobody else."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from starlette.types import ASGIApp, Message, Scope

from pricing_pipeline.processes.web_guard import Guard
from pricing_pipeline_tests.support.guarded import HOST, OURS, TOKEN, Headers, log_in


def shake_hands(app: ASGIApp, *headers: tuple[str, str], host: str = HOST, scheme: str = "ws") -> str:
    """The type of the answer to an opening."""
    scope: Scope = {
        "type": "websocket",
        "scheme": scheme,
        "path": "/graphql",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in [("host", host), *headers]],
        "server": ("127.0.0.1", 3000),
        "client": ("127.0.0.1", 40000),
        "http_version": "1.1",
        "subprotocols": ["graphql-ws"],
        "extensions": {"websocket.http.response": {}},
    }
    messages: list[Message] = []
    incoming = iter([{"type": "websocket.connect"}])

    async def receive() -> Message:
        return next(incoming, {"type": "websocket.disconnect", "code": 1000})

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(cast("Any", app(scope, receive, send)))
    return cast("str", messages[0]["type"])


ACCEPTED = "websocket.accept"
REFUSED = "websocket.close"


@pytest.mark.parametrize(
    ("headers", "host", "said"),
    [
        ([("origin", OURS)], HOST, ACCEPTED),
        ([], HOST, ACCEPTED),
        ([("origin", "http://evil.example")], HOST, REFUSED),
        ([("origin", "null")], HOST, REFUSED),
        ([("origin", "http://evil.example:3000")], "evil.example:3000", REFUSED),
    ],
)
def test_a_websocket_opens_for_our_pages_and_programs(guard: Guard, headers: Headers, host: str, said: str) -> None:
    assert shake_hands(guard, *headers, host=host) == said


def test_a_websocket_needs_the_token_where_there_is_one(locked: Guard) -> None:
    assert shake_hands(locked, ("origin", OURS)) == REFUSED
    assert shake_hands(locked, ("authorization", f"Bearer {TOKEN}")) == ACCEPTED
    assert shake_hands(locked, ("origin", OURS), ("cookie", log_in(locked)[0])) == ACCEPTED


def test_a_websocket_over_tls_belongs_to_pages_over_tls(guard: Guard) -> None:
    assert shake_hands(guard, ("origin", f"https://{HOST}"), scheme="wss") == ACCEPTED
    assert shake_hands(guard, ("origin", OURS), scheme="wss") == REFUSED
