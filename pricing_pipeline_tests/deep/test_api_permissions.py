"""Who may do what over HTTP: every route with every kind of token, and nothing of other users."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from pricing_pipeline.api import health
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.api_routes import ROUTES, Route, request_of
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.described import with_responses
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.working import start

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def _known(core: Core) -> None:
    """Bob watches AAPL and holds MSFT."""
    core.rows(
        "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol, subscribed_at, last_seen_at)"
        " VALUES ('bob', 'equity_quote', 'AAPL', pricing.clock(), pricing.clock())"
    )
    core.rows("INSERT INTO pricing.holdings (user_id, data_type, symbol) VALUES ('bob', 'equity_quote', 'MSFT')")


def documented(api: RunningApi) -> dict[str, dict[str, Any]]:
    """The operations of the OpenAPI document, by method and path."""
    document = api.client.get("/openapi.json").json()
    return {
        f"{method.upper()} {path}": with_responses(document, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def ask(api: RunningApi, name: str, token: str | None, **params: str | list[str]) -> httpx.Response:
    """The answer of a route; of an endless one, what comes first of it."""
    method, path, request = request_of(name)
    request["params"] |= params
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with api.client.stream(method, path, headers=headers, **request) as answer:
        if not (ROUTES[name].is_endless and answer.is_success):
            answer.read()
            return answer
        beginning = next(answer.iter_bytes())
    return httpx.Response(answer.status_code, headers=answer.headers, content=beginning)


@pytest.fixture
def patient_health(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database is not away because the machine is busy."""
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", PATIENCE)


def kinds(route: Route) -> list[frozenset[Scope]]:
    """The scopes that a route needs, and then all others but one of them each."""
    needed = frozenset(scope for scope in (route.needs, route.needs_too) if scope is not None)
    return [needed or frozenset({Scope.READ}), *(frozenset(Scope) - {Scope.ADMIN, scope} for scope in needed)]


def test_b7_every_route_opens_to_the_tokens_of_its_scope_and_to_no_others(
    patient_health: None, api: RunningApi, core: Core
) -> None:
    """Each answer is one of those that the document tells."""
    start(core)  # the sample may be older than a pipeline may stand still
    operations = documented(api)
    assert operations.keys() == ROUTES.keys()
    every_kind = {kind for route in ROUTES.values() for kind in kinds(route)}
    tokens = {scopes: api.caller(*scopes).token for scopes in every_kind}
    found, wanted = {}, {}
    for name, route in ROUTES.items():
        user = {"user": "cleo"} if route.of_user else {}
        enough, *too_little = kinds(route)
        answers: dict[object, httpx.Response] = {"none": ask(api, name, None)}
        wanted[name, "none"] = route.status if route.needs is None else 401
        answers[enough] = ask(api, name, tokens[enough], **user)
        wanted[name, enough] = route.status
        for others in too_little:
            answers[others] = ask(api, name, tokens[others], **user)
            wanted[name, others] = 403
        if route.of_user:
            answers["nobody"] = ask(api, name, tokens[enough])
            wanted[name, "nobody"] = 422
        for who, answer in answers.items():
            found[name, who] = answer.status_code
            contents = operations[name]["responses"][str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] in contents, (name, who)
    assert {key: status for key, status in found.items() if wanted[key] != status} == {}


def test_b7_no_route_ignores_a_parameter(api: RunningApi) -> None:
    """Nor a second value of one; the document says what may be repeated."""
    admin = api.caller(Scope.ADMIN, user="ann").token
    operations = documented(api)
    for name in (name for name in ROUTES if "/v1/" in name):
        taken = [one for one in operations[name].get("parameters", []) if one["in"] == "query"]
        words = f"There is no parameter 'nosuch' at this path. It takes {', '.join(one['name'] for one in taken)}."
        unknown = ask(api, name, admin, nosuch="1")
        assert (unknown.status_code, unknown.json()["detail"]) == (422, words), name
        single = [one["name"] for one in taken if "array" not in json.dumps(one["schema"])]
        several = [one["name"] for one in taken if one["name"] not in single]
        for one in [*several, *single[:1]]:
            told = ask(api, name, admin, **{one: ["1", "2"]}).json().get("detail", "")
            assert (f"{one} is given 2 times, and takes one value" in told) is (one in single), (name, one)


def test_b5_a_token_of_ann_changes_and_sees_nothing_of_bob(patient_health: None, api: RunningApi, core: Core) -> None:
    start(core)
    ann = api.caller(*Scope, user="ann").token
    before = rows_of_bob(core)
    assert len(before) == 2
    for name, route in ROUTES.items():
        own = ask(api, name, ann)
        assert own.status_code == route.status, name
        assert "bob" not in own.text, name
        if route.needs is not None:
            refused = ask(api, name, ann, user="bob")
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:pricing-pipeline:other-user")
    for name, status in (("GET /v1/subscriptions", 422), ("GET /v1/prices", 422), ("GET /metrics", 403)):
        assert ask(api, name, ann, user=["ann", "bob"]).status_code == status
    assert rows_of_bob(core) == before


def rows_of_bob(core: Core) -> list[Any]:
    return [
        tuple(row)
        for table in ("active_subscriptions", "holdings")
        for row in core.rows(f"SELECT * FROM pricing.{table} WHERE user_id = 'bob' ORDER BY 1, 2, 3")
    ]


def test_b5_a_body_names_no_user(api: RunningApi, core: Core) -> None:
    ann = api.caller(*Scope, user="ann")
    before = rows_of_bob(core)
    for name in ROUTES:
        method, path, request = request_of(name)
        if isinstance(request.get("json"), dict):
            body = {**request["json"], "user": "bob", "user_id": "bob"}
            answer = ann.ask(method, path.removeprefix("/v1/"), json=body, params=request["params"])
            assert answer.status_code == 422, name
    assert rows_of_bob(core) == before


PROBED = ("/livez", "/healthz", "/metrics")
"""What monitors ask for by HEAD, too."""
FEEDS = ("/v1/prices", "/v1/history/")
"""What spreadsheets ask for by OPTIONS and HEAD first."""


def test_b23_head_is_answered_as_get_is(api: RunningApi) -> None:
    headers = {"Authorization": f"Bearer {api.caller(Scope.READ).token}"}
    for path in PROBED:
        head, whole = (api.client.request(method, path, headers=headers) for method in ("HEAD", "GET"))
        assert (head.status_code, head.content) == (whole.status_code, b""), path
    assert api.client.head("/metrics").status_code == 401


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
TRIED_WITH_ALL = ("/healthz", "/v1/subscriptions", "/v1/hold")
"""One path of each kind; the others are tried with the methods that a handler or a middleware may take along."""


def test_b7_no_other_method_does_anything(api: RunningApi, core: Core) -> None:
    admin = api.caller(Scope.ADMIN, user="ann").token
    before = rows_of_bob(core)
    for path in {name.partition(" ")[2] for name in ROUTES}:
        taken = {name.partition(" ")[0] for name in ROUTES if name.endswith(f" {path}")}
        if path.startswith(FEEDS):
            taken |= {"HEAD", "OPTIONS"}
        if path in PROBED:
            taken.add("HEAD")
        name = next(name for name in ROUTES if name.endswith(f" {path}"))
        _, place, _ = request_of(name)
        for method in METHODS if path in TRIED_WITH_ALL else ("GET", "POST", "OPTIONS"):
            if method in taken:
                continue
            for token in (None, admin) if path in TRIED_WITH_ALL else (admin,):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                answer = api.client.request(method, place, headers=headers)
                wanted = 405 if token or ROUTES[name].needs is None else 401
                if token and method == "GET" and path.startswith(("/v1/instruments/", "/v1/lists/")):
                    wanted = 404  # an instrument or a list may be called so
                assert answer.status_code == wanted, (method, place)
                assert not {header for header in answer.headers if header.startswith("access-control")}
    assert rows_of_bob(core) == before


def test_b7_no_spelling_of_a_path_gets_round_the_token(api: RunningApi) -> None:
    """Raw, because httpx would tidy the path."""
    host = f"Host: {api.url.removeprefix('http://')}\r\n"
    bearer = f"Authorization: Bearer {api.caller(*Scope, user='ann').token}\r\n"
    for path in (
        *("/v1/subscriptions/", "//v1/subscriptions", "/v1//subscriptions", "/V1/subscriptions", "/v1", "/v1/"),
        *("/v1/./subscriptions", "/livez/../v1/subscriptions", "/v1/subscriptions%00", "/v1%2Fsubscriptions"),
        *("/v1/%73ubscriptions", "/v1/subscriptions?user=bob", "/v1/subscriptions%3Fuser=bob"),
        "/v1/subscriptions;user=bob",
    ):
        status, text = raw(api, f"GET {path} HTTP/1.1\r\n{host}\r\n")
        assert status in (401, 404), text
        assert "AAPL" not in text
        status, text = raw(api, f"GET {path} HTTP/1.1\r\n{host}{bearer}\r\n")
        assert status in (200, 403, 404), text
        assert "bob" not in text or status == 403
        assert QUOTE not in text


def raw(api: RunningApi, request: str) -> tuple[int, str]:
    """Status and text of the answer to a request, byte for byte as it is written here."""
    host, _, port = api.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        sock.sendall(request.encode("latin-1"))
        received = b""
        while b"\r\n\r\n" not in received and (part := sock.recv(65536)):
            received += part
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")),
            0,
        )
        while len(body) < length and (part := sock.recv(65536)):
            body += part
    return int(head.split()[1]), body.decode()
