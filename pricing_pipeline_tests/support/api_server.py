"""The HTTP API as tests use it: `running_api` over real HTTP, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from fastapi import FastAPI, routing
from sqlalchemy import Engine

from pricing_pipeline.api import cached, description
from pricing_pipeline.api.app import make_app
from pricing_pipeline.api.server import make_server
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE

_made_context = routing._EffectiveRouteContext.from_api_route
_contexts: dict[tuple[int, str], routing._EffectiveRouteContext] = {}


def _kept_context(
    *, original_route: routing.APIRoute, include_context: routing._RouterIncludeContext
) -> routing._EffectiveRouteContext:
    place = id(original_route), include_context.path_for(original_route)
    if place not in _contexts:
        _contexts[place] = _made_context(original_route=original_route, include_context=include_context)
    return _contexts[place]


# FastAPI works out anew for each application what its routes need, which takes longer than most tests; they are those
# of the modules, for ever. The names are internal, hence the exact pin.
routing._EffectiveRouteContext.from_api_route = _kept_context  # type: ignore[method-assign]

_spelled_document = description._document
_documents: list[dict[str, Any]] = []


def _kept_document(app: FastAPI) -> dict[str, Any]:
    if not _documents:
        _documents.append(_spelled_document(app))
    return _documents[0]


# It is the same for each application, too, and takes a second to spell.
description._document = _kept_document


class Caller:
    """A program with a token; paths are below `/v1`."""

    def __init__(self, client: httpx.Client, token: str | None) -> None:
        self._client = client
        self.token = token
        self.url = str(client.base_url)

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        """One request, whatever its answer."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        headers |= request.pop("headers", {})
        return self._client.request(method, f"/v1/{path}", headers=headers, **request)

    def get(self, path: str, **params: Any) -> Any:
        """The JSON of a request that succeeds."""
        return _content(self.ask("GET", path, params=params))

    def post(self, path: str, content: object = None, **params: Any) -> Any:
        """The JSON of a request that succeeds."""
        return _content(self.ask("POST", path, json=content, params=params))

    def refusal(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """The problem of a request that fails."""
        answer = self.ask(method, path, **request)
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        problem: dict[str, Any] = answer.json()
        assert problem["status"] == answer.status_code >= 400
        assert problem["request_id"] == answer.headers["x-request-id"]
        return problem


class RunningApi:
    """The API at `url`. Callers are made as `token add` makes them."""

    def __init__(self, url: str, client: httpx.Client, owner: Engine, app: FastAPI) -> None:
        self.url, self.app = url, app
        self.client = client
        self._owner = owner
        self._callers = 0

    def caller(self, *scopes: Scope, user: str | None = None) -> Caller:
        """A program with a new token; for any user if none is named."""
        self._callers += 1
        with self._owner.begin() as connection:
            token = api_tokens.add(connection, f"caller-{self.url.rpartition(':')[2]}-{self._callers}", scopes, user)
        return Caller(self.client, token.get_secret_value())

    def feed(self, *pairs: tuple[str, str], name: str = "sheet", hours: float | None = None) -> str:
        """A token that reads these pairs and may be in a URL."""
        with self._owner.begin() as connection:
            return api_tokens.add_feed(connection, name, pairs, None, hours).get_secret_value()

    def stranger(self, token: str | None = None) -> Caller:
        """A program without a token, or with one that is none of ours."""
        return Caller(self.client, token)


@contextmanager
def running_api(
    engine: Engine,
    owner: Engine,
    rate: float = 100_000,
    settings: Settings | None = None,
    replica: Replica | None = None,
) -> Iterator[RunningApi]:
    """The API on a free port, stopped on leaving; `rate` is the most requests a second of one token."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        place = f"127.0.0.1:{sock.getsockname()[1]}"
        app = make_app(engine, {place}, rate, settings, replica)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="api", daemon=True)
        thread.start()
        try:
            with httpx.Client(base_url=f"http://{place}", timeout=PATIENCE, verify=NO_TLS) as client:
                yield RunningApi(f"http://{place}", client, owner, app)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            join_gathering_threads()
        assert not thread.is_alive(), "the API did not stop"


def join_gathering_threads() -> None:
    """A look that nobody waits for any more would give its session back to a pool that is closed."""
    for thread in threading.enumerate():
        if thread.name == cached.THREAD:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a look at the database did not end"


def _content(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()
