"""Requests to the guard, and behind it Dagster's own code that would act on them."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Any

from dagster_webserver.graphql import GraphQLServer
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Scope

HOST = "localhost:3000"
OURS = f"http://{HOST}"
TOKEN = "0123456789abcdef-a-token"
JSON = ("content-type", "application/json")
HTML = ("accept", "text/html,*/*")
MUTATION = "mutation { act }"
ACT = json.dumps({"query": MUTATION}).encode()
FORM = ("content-type", "application/x-www-form-urlencoded")
Headers = list[tuple[str, str]]


class Dagster(GraphQLServer[Any]):
    """Dagster's code that reads requests over HTTP and WebSockets; what they ask for is counted, not run."""

    def __init__(self) -> None:
        self.acts = 0
        super().__init__()

    def build_graphql_schema(self) -> Any:
        return None

    async def execute_graphql_request(
        self, request: Request, query: str, variables: object, operation_name: object
    ) -> JSONResponse:
        self.acts += query == MUTATION
        return JSONResponse({"data": {}})

    def build_graphql_middleware(self) -> list[Any]:
        return []

    def build_middleware(self) -> list[Middleware]:
        return []

    def build_routes(self) -> list[BaseRoute]:
        async def report(request: Request) -> PlainTextResponse:
            self.acts += 1
            return PlainTextResponse("reported")

        async def page(request: Request) -> PlainTextResponse:
            return PlainTextResponse("the page")

        return [
            Route("/graphql", self.graphql_http_endpoint, methods=["GET", "POST"]),
            WebSocketRoute("/graphql", self.graphql_ws_endpoint),
            Route("/report_asset_materialization/{key:path}", report, methods=["POST"]),
            Route("/{path:path}", page),
        ]

    def _make_request_context(self, conn: HTTPConnection) -> Any:
        return nullcontext()


class Answer:
    """What came back: status, headers, text."""

    def __init__(self, messages: list[Message]) -> None:
        (start,) = (m for m in messages if m["type"].endswith("response.start"))
        self.status: int = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        self.text = b"".join(m.get("body", b"") for m in messages if m["type"].endswith("body")).decode()


async def asked(app: ASGIApp, method: str, path: str, headers: Headers, body: bytes, scheme: str = "http") -> Answer:
    path, _, query = path.partition("?")
    scope: Scope = {
        "type": "http",
        "method": method,
        "scheme": scheme,
        "path": path,
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "server": ("127.0.0.1", 3000),
        "client": ("127.0.0.1", 40000),
        "http_version": "1.1",
    }
    messages: list[Message] = []
    incoming = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(incoming, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    return Answer(messages)


def ask(
    app: ASGIApp,
    method: str = "POST",
    path: str = "/graphql",
    *headers: tuple[str, str],
    host: str = HOST,
    body: bytes = b"",
    scheme: str = "http",
) -> Answer:
    return asyncio.run(asked(app, method, path, [("host", host), *headers], body, scheme))


def log_in(app: ASGIApp, scheme: str = "http") -> tuple[str, set[str]]:
    """The cookie of a login, and its attributes."""
    origin = ("origin", f"{scheme}://{HOST}")
    answer = ask(app, "POST", "/login", FORM, origin, body=f"token={TOKEN}".encode(), scheme=scheme)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    return cookie, {attribute.lower() for attribute in attributes}
