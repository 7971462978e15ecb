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
from pricing_pipeline_tests.support.api_routes import ROUTES, request_of
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


def test_b7_every_route_has_its_row(api: RunningApi) -> None:
    assert documented(api).keys() == ROUTES.keys()


def test_b7_every_route_opens_to_the_tokens_of_its_scope_and_to_no_others(
    patient_health: None, api: RunningApi, core: Core
) -> None:
    start(core)  # the sample may be older than a pipeline may stand still
    tokens: dict[str, str | None] = {"none": None, "wrong": f"pp_{'A' * 43}", "garbage": "x"}
    applications = {scope: api.caller(scope).token for scope in Scope}
    anns = {scope: api.caller(scope, user="ann").token for scope in Scope}
    found, wanted = {}, {}
    for name, route in ROUTES.items():
        for kind, token in tokens.items():
            found[name, kind] = ask(api, name, token).status_code
            wanted[name, kind] = route.status if route.needs is None else 401
        for scope in Scope:
            granted = route.status if route.allows(scope) else 403
            found[name, "application", scope] = ask(
                api, name, applications[scope], **({"user": "cleo"} if route.of_user else {})
            ).status_code
            found[name, "ann", scope] = ask(api, name, anns[scope]).status_code
            wanted[name, "application", scope] = wanted[name, "ann", scope] = granted
            if route.of_user and route.allows(scope):
                found[name, "nobody", scope] = ask(api, name, applications[scope]).status_code
                wanted[name, "nobody", scope] = 422
    assert {key: status for key, status in found.items() if wanted[key] != status} == {}


def test_b7_no_route_ignores_a_parameter(api: RunningApi) -> None:
    """Nor a second value of one; the document says what may be repeated."""
    admin = api.caller(Scope.ADMIN, user="ann").token
    operations = documented(api)
    for name in (name for name in ROUTES if "/v1/" in name):
        answer = ask(api, name, admin, nosuch="1")
        taken = [one for one in operations[name].get("parameters", []) if one["in"] == "query"]
        words = f"There is no parameter 'nosuch' at this path. It takes {', '.join(one['name'] for one in taken)}."
        assert (answer.status_code, answer.json()["detail"]) == (422, words), name
        for one in taken:
            told = ask(api, name, admin, **{one["name"]: ["1", "2"]}).json().get("detail", "")
            may_be_repeated = "array" in json.dumps(one["schema"])
            assert ("is given 2 times, and takes one value" in told) is not may_be_repeated, (
                name,
                one["name"],
            )


def test_b7_every_answer_is_documented(api: RunningApi) -> None:
    operations = documented(api)
    admin = api.caller(Scope.ADMIN, user="ann").token
    for name in ROUTES:
        for token in (None, admin):
            answer = ask(api, name, token)
            contents = operations[name]["responses"][str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] in contents, name


def test_b5_a_token_of_ann_changes_and_sees_nothing_of_bob(api: RunningApi, core: Core) -> None:
    ann = api.caller(*Scope, user="ann").token
    before = rows_of_bob(core)
    assert len(before) == 2
    for name, route in ROUTES.items():
        answer = ask(api, name, ann)
        assert "bob" not in answer.text, name
        if route.needs is not None:
            refused = ask(api, name, ann, user="bob")
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:pricing-pipeline:other-user")
            assert ask(api, name, ann, user="ann").status_code == route.status, name
            both = ask(api, name, ann, user=["ann", "bob"])
            assert both.status_code == (422 if "/v1/" in name else 403), name
            assert '"bob"' not in both.text
        assert rows_of_bob(core) == before, name


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


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_b7_no_other_method_does_anything(api: RunningApi, core: Core, method: str) -> None:
    admin = api.caller(Scope.ADMIN, user="ann").token
    before = rows_of_bob(core)
    for path in {name.partition(" ")[2] for name in ROUTES}:
        methods = {name.partition(" ")[0] for name in ROUTES if name.endswith(f" {path}")}
        is_asked_first = method in ("HEAD", "OPTIONS") and path.startswith(FEEDS)
        if method in methods or is_asked_first or (method == "HEAD" and path in PROBED):
            continue
        name = f"{next(iter(methods))} {path}"
        _, place, _ = request_of(name)
        for token in (None, admin):
            answer = api.client.request(method, place, headers={"Authorization": f"Bearer {token}"} if token else {})

            wanted = (405,) if token or ROUTES[name].needs is None else (401,)
            if token and method == "GET" and path.startswith(("/v1/instruments/", "/v1/lists/")):
                wanted = (404,)  # an instrument or a list may be called so
            assert answer.status_code in wanted, (method, place, answer.status_code)
            assert not {h for h in answer.headers if h.startswith("access-control")}
    assert rows_of_bob(core) == before


def test_b7_no_spelling_of_a_path_gets_round_the_token(api: RunningApi) -> None:
    """Raw, because httpx would tidy the path."""
    for path in (
        *(
            "/v1/subscriptions/",
            "//v1/subscriptions",
            "/v1//subscriptions",
            "/V1/subscriptions",
            "/v1",
            "/v1/",
        ),
        *("/v1/./subscriptions", "/livez/../v1/subscriptions", "/v1/subscriptions%00", "/v1%2Fsubscriptions"),
        *("/v1/%73ubscriptions", "/v1/subscriptions?user=bob", "/v1/subscriptions%3Fuser=bob"),
        "/v1/subscriptions;user=bob",
    ):
        status, text = raw(api, f"GET {path} HTTP/1.1\r\nHost: {api.url.removeprefix('http://')}\r\n\r\n")
        assert status in (401, 404), text
        assert "AAPL" not in text
        ann = api.caller(*Scope, user="ann").token
        head = f"Host: {api.url.removeprefix('http://')}\r\nAuthorization: Bearer {ann}\r\n\r\n"
        status, text = raw(api, f"GET {path} HTTP/1.1\r\n{head}")
        assert status in (200, 403, 404), text
        assert "bob" not in json.dumps(text) or status == 403
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
