"""The guard lets through to Dagster what programs and our pages send, and nothing that a foreign page could send."""

from __future__ import annotations

import asyncio
from functools import cache
from unittest import mock
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp

from pricing_pipeline.processes import web_guard
from pricing_pipeline.processes.web_guard import Guard
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.guarded import (
    ACT,
    FORM,
    HOST,
    HTML,
    JSON,
    MUTATION,
    OURS,
    TOKEN,
    Dagster,
    Headers,
    ask,
    asked,
)


def test_dagster_itself_runs_what_the_guard_is_for(dagster: Dagster) -> None:
    """If this ever fails, Dagster has become stricter."""
    app = dagster.create_asgi_app()
    ask(app, "GET", f"/graphql?{urlencode({'query': MUTATION})}", host="evil.example")
    ask(app, "GET", f"/graphql\n?{urlencode({'query': MUTATION})}")
    ask(app, "POST", f"/graphql?{urlencode({'query': MUTATION})}", ("content-type", "text/plain"))
    ask(app, "POST", "/graphql", ("content-type", "application/graphql"), body=MUTATION.encode())
    ask(app, "POST", "/graphql", JSON, ("origin", "https://evil.example"), body=ACT)
    assert dagster.acts == 5


BY_ADDRESS = f"/graphql?{urlencode({'query': MUTATION})}"


@pytest.mark.parametrize(
    ("method", "path", "headers", "body"),
    [
        pytest.param("POST", "/graphql", [JSON], ACT, id="a program"),
        pytest.param("POST", "/graphql", [JSON, ("origin", OURS)], ACT, id="our own page"),
        pytest.param("POST", "/graphql", [("content-type", "application/json; charset=utf-8")], ACT, id="charset"),
        pytest.param("POST", "/report_asset_materialization/a", [JSON], b"{}", id="a report as JSON"),
    ],
)
def test_what_programs_and_our_pages_send_is_run(
    guard: Guard, dagster: Dagster, method: str, path: str, headers: Headers, body: bytes
) -> None:
    assert ask(guard, method, path, *headers, body=body).status == 200
    assert dagster.acts == 1


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        pytest.param("GET", BY_ADDRESS, [], b"", 405, id="GET"),
        pytest.param("HEAD", BY_ADDRESS, [], b"", 405, id="HEAD"),
        pytest.param("GET", BY_ADDRESS.replace("?", "\n?"), [], b"", 405, id="GET with a line's end"),
        pytest.param("GET", BY_ADDRESS.replace("query", "%71uery"), [], b"", 405, id="GET, name encoded"),
        pytest.param("GET", BY_ADDRESS, [("accept", "*/*"), HTML], b"", 405, id="GET with two Accept"),
        pytest.param("GET", "/graphql", [("content-length", "2"), FORM], b"a=", 415, id="GET with a body"),
        pytest.param("POST", BY_ADDRESS, [], b"", 415, id="empty post"),
        pytest.param("POST", BY_ADDRESS, [FORM], b"", 415, id="form"),
        pytest.param("POST", "/graphql", [FORM], b"query=mutation", 415, id="form with a body"),
        pytest.param("POST", BY_ADDRESS, [("content-type", "text/plain")], b"", 415, id="text"),
        pytest.param("POST", "/graphql", [("content-type", "text/plain")], ACT, 415, id="JSON called text"),
        pytest.param("POST", BY_ADDRESS, [("content-type", "multipart/form-data; boundary=x")], b"", 415, id="parts"),
        pytest.param("POST", "/graphql", [("content-type", "application/graphql")], ACT, 415, id="GraphQL"),
        pytest.param(
            "POST",
            "/graphql",
            [("content-type", "text/plain; application/json")],
            ACT,
            415,
            id="JSON as parameter",
        ),
        pytest.param("POST", "/graphql", [("content-type", "text/plain"), JSON], ACT, 415, id="two types"),
        # Dagster reads no JSON under this name, but the address.
        pytest.param("POST", BY_ADDRESS, [("content-type", "Application/JSON")], ACT, 415, id="capitals"),
        pytest.param("POST", "/graphql", [JSON, ("origin", "https://evil.example")], ACT, 403, id="foreign Origin"),
        pytest.param("POST", "/graphql", [JSON, ("origin", "null")], ACT, 403, id="null Origin"),
        pytest.param("POST", "/graphql", [JSON, ("origin", "")], ACT, 403, id="empty Origin"),
        pytest.param("POST", "/graphql", [JSON, ("origin", "http://localhost:8000")], ACT, 403, id="other port"),
        pytest.param("POST", "/graphql", [JSON, ("origin", f"https://{HOST}")], ACT, 403, id="other scheme"),
        pytest.param("POST", "/graphql", [JSON, ("origin", f"{OURS}.evil.example")], ACT, 403, id="longer Origin"),
        pytest.param("POST", "/graphql", [JSON, ("origin", OURS), ("origin", "null")], ACT, 403, id="two Origins"),
        pytest.param("POST", "/graphql", [JSON, ("host", "evil.example")], ACT, 421, id="two Hosts"),
        pytest.param("POST", "/report_asset_materialization/a", [], b"", 415, id="empty report"),
        pytest.param("POST", "/report_asset_materialization/a?partition=x", [FORM], b"", 415, id="report by a form"),
        pytest.param("POST", "/login", [FORM], b"token=x", 415, id="a form where no login is"),
        pytest.param("OPTIONS", "/graphql", [("origin", OURS)], b"", 405, id="OPTIONS"),
        pytest.param("POST", "/graphql", [JSON, ("content-length", "4000001")], b"", 413, id="a long body"),
        pytest.param("POST", "/graphql", [JSON, ("transfer-encoding", "chunked")], ACT, 411, id="no end told"),
        pytest.param("PUT", "/graphql", [JSON], ACT, 405, id="PUT"),
    ],
)
def test_what_a_web_page_could_send_is_refused(
    method: str, path: str, headers: Headers, body: bytes, status: int
) -> None:
    async def never(scope: object, receive: object, send: object) -> None:
        raise AssertionError("it came through")

    assert (
        ask(Guard(never, hosts=[HOST], is_allowed=lambda *_: True), method, path, *headers, body=body).status == status
    )


@pytest.mark.parametrize("host", ["evil.example:3000", "localhost:3001", "localhost.", "", "localhost:3000@evil"])
def test_another_name_is_refused_for_pages_too(guard: Guard, host: str) -> None:
    """A page whose name points to this machine after it was loaded could read all answers."""
    assert ask(guard, "GET", "/assets", HTML, host=host).status == 421


def test_a_request_without_host_is_refused(guard: Guard) -> None:
    assert asyncio.run(asked(guard, "GET", "/assets", [HTML], b"")).status == 421


def test_pages_are_served_and_not_to_strangers_frames(guard: Guard, dagster: Dagster) -> None:
    for path in ("/assets", "/graphql", BY_ADDRESS):  # the last is GraphiQL, which runs nothing by itself
        answer = ask(guard, "GET", path, HTML)
        assert (answer.status, answer.headers["x-frame-options"]) == (200, "SAMEORIGIN")
    assert dagster.acts == 0


METHODS = ["POST"] * 4 + ["GET", "HEAD", "PUT", "OPTIONS"]
PATHS = ["/graphql"] * 4 + [
    "/graphql\n",
    "/graphql/",
    "//graphql",
    "/login",
    "/report_asset_materialization/a",
]
HOSTS = [[HOST]] * 5 + [["LOCALHOST:3000"], ["evil.example"], [HOST, HOST], ["evil.example", HOST], []]
ORIGINS = [[]] * 3 + [[OURS]] * 3 + [["null"], ["http://evil.example"], [OURS, "null"], [f"https://{HOST}"]]
TYPES = [["application/json"]] * 6 + [
    ["application/json; charset=utf-8"],
    ["text/plain"],
    ["text/plain;application/json"],
    ["application/json", "text/plain"],
    [FORM[1]],
    ["application/graphql"],
    [],
]
ACCEPTS = [["*/*"], ["text/html"], ["*/*", "text/html"], []]
GRANTS = [[f"Bearer {TOKEN}"]] * 4 + [["Bearer wrong"], [f"Basic {TOKEN}"], [f"Bearer wrong {TOKEN}"], []]
BODIES = [ACT] * 4 + [MUTATION.encode(), urlencode({"query": MUTATION}).encode(), b""]


@cache
def _one_dagster() -> tuple[Dagster, ASGIApp]:
    """For all examples: it takes a while to make."""
    dagster = Dagster()
    return dagster, dagster.create_asgi_app()


@settings(max_examples=examples(400), deadline=None)
@given(
    method=st.sampled_from(METHODS),
    path=st.sampled_from(PATHS),
    by_address=st.sampled_from([False, False, True]),
    hosts=st.sampled_from(HOSTS),
    origins=st.sampled_from(ORIGINS),
    types=st.sampled_from(TYPES),
    accepts=st.sampled_from(ACCEPTS),
    grants=st.sampled_from(GRANTS),
    body=st.sampled_from(BODIES),
    is_locked=st.booleans(),
)
def test_whatever_is_asked_only_json_from_our_own_place_with_the_token_acts(
    method: str,
    path: str,
    by_address: bool,
    hosts: list[str],
    origins: list[str],
    types: list[str],
    accepts: list[str],
    grants: list[str],
    body: bytes,
    is_locked: bool,
) -> None:
    dagster, app = _one_dagster()
    acts_before = dagster.acts
    guard = Guard(app, hosts=[HOST], token=TOKEN if is_locked else None, is_allowed=lambda *_: True)
    given_headers = {
        "host": hosts,
        "origin": origins,
        "content-type": types,
        "accept": accepts,
        "authorization": grants,
    }
    headers = [(name, value) for name, values in given_headers.items() for value in values]
    target = f"{path}?query={quote(MUTATION)}" if by_address else path
    with mock.patch.object(web_guard, "_WRONG_SECONDS", 0):
        asyncio.run(asked(guard, method, target, headers, body))
    may_act = (
        method == "POST"
        and hosts in ([HOST], ["LOCALHOST:3000"])
        and (origins == [] or (origins == [OURS]))
        and [kind.split(";")[0] for kind in types] == ["application/json"]
        and (not is_locked or grants == [f"Bearer {TOKEN}"])
    )
    if dagster.acts > acts_before:
        assert may_act
    elif may_act and not by_address and path in ("/graphql", "/graphql\n"):
        assert body != ACT
