"""The guard in front of Dagster's own GraphQL endpoint: which requests reach it, and how one logs in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any, cast
from unittest import mock
from urllib.parse import quote, urlencode

import pytest
from dagster_webserver.graphql import GraphQLServer
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Scope

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.processes import web_guard
from pricing_pipeline.processes.web_guard import SESSION_SECONDS, Guard, own_hosts, ui_token
from pricing_pipeline.settings import Settings

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


async def asked(
    app: ASGIApp, method: str, path: str, headers: Headers, body: bytes, scheme: str = "http"
) -> Answer:
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


@pytest.fixture
def dagster() -> Dagster:
    return Dagster()


@pytest.fixture
def guard(dagster: Dagster) -> Guard:
    return Guard(dagster.create_asgi_app(), hosts=[HOST])


@pytest.fixture
def now() -> list[float]:
    """The time; a test may change it."""
    return [1_000_000.0]


@pytest.fixture
def locked(dagster: Dagster, now: list[float]) -> Guard:
    """One that asks for a token."""
    return Guard(dagster.create_asgi_app(), hosts=[HOST], token=TOKEN, clock=lambda: now[0])


@pytest.fixture
def quick() -> Iterator[None]:
    """A wrong token is answered at once."""
    with mock.patch.object(web_guard, "_WRONG_SECONDS", 0):
        yield


# ── What reaches Dagster ─────────────────────────────────────────────────────────────────────────


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
        pytest.param(
            "POST", "/graphql", [("content-type", "application/json; charset=utf-8")], ACT, id="charset"
        ),
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
        pytest.param(
            "POST", BY_ADDRESS, [("content-type", "multipart/form-data; boundary=x")], b"", 415, id="parts"
        ),
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
        pytest.param(
            "POST", "/graphql", [JSON, ("origin", "https://evil.example")], ACT, 403, id="foreign Origin"
        ),
        pytest.param("POST", "/graphql", [JSON, ("origin", "null")], ACT, 403, id="null Origin"),
        pytest.param("POST", "/graphql", [JSON, ("origin", "")], ACT, 403, id="empty Origin"),
        pytest.param(
            "POST", "/graphql", [JSON, ("origin", "http://localhost:8000")], ACT, 403, id="other port"
        ),
        pytest.param("POST", "/graphql", [JSON, ("origin", f"https://{HOST}")], ACT, 403, id="other scheme"),
        pytest.param(
            "POST", "/graphql", [JSON, ("origin", f"{OURS}.evil.example")], ACT, 403, id="longer Origin"
        ),
        pytest.param(
            "POST", "/graphql", [JSON, ("origin", OURS), ("origin", "null")], ACT, 403, id="two Origins"
        ),
        pytest.param("POST", "/graphql", [JSON, ("host", "evil.example")], ACT, 421, id="two Hosts"),
        pytest.param("POST", "/report_asset_materialization/a", [], b"", 415, id="empty report"),
        pytest.param(
            "POST", "/report_asset_materialization/a?partition=x", [FORM], b"", 415, id="report by a form"
        ),
        pytest.param("POST", "/login", [FORM], b"token=x", 415, id="a form where no login is"),
        pytest.param("OPTIONS", "/graphql", [("origin", OURS)], b"", 405, id="OPTIONS"),
        pytest.param("POST", "/graphql", [JSON, ("content-length", "4000001")], b"", 413, id="a long body"),
        pytest.param(
            "POST", "/graphql", [JSON, ("transfer-encoding", "chunked")], ACT, 411, id="no end told"
        ),
        pytest.param("PUT", "/graphql", [JSON], ACT, 405, id="PUT"),
    ],
)
def test_what_a_web_page_could_send_is_refused(
    method: str, path: str, headers: Headers, body: bytes, status: int
) -> None:
    async def never(scope: object, receive: object, send: object) -> None:
        raise AssertionError("it came through")

    assert ask(Guard(never, hosts=[HOST]), method, path, *headers, body=body).status == status


@pytest.mark.parametrize(
    "host", ["evil.example:3000", "localhost:3001", "localhost.", "", "localhost:3000@evil"]
)
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


@settings(max_examples=400, deadline=None)
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
    guard = Guard(app, hosts=[HOST], token=TOKEN if is_locked else None)
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


# ── WebSockets ───────────────────────────────────────────────────────────────────────────────────


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
def test_a_websocket_opens_for_our_pages_and_programs(
    guard: Guard, headers: Headers, host: str, said: str
) -> None:
    assert shake_hands(guard, *headers, host=host) == said


def test_a_websocket_needs_the_token_where_there_is_one(locked: Guard) -> None:
    assert shake_hands(locked, ("origin", OURS)) == REFUSED
    assert shake_hands(locked, ("authorization", f"Bearer {TOKEN}")) == ACCEPTED
    assert shake_hands(locked, ("origin", OURS), ("cookie", log_in(locked)[0])) == ACCEPTED


def test_a_websocket_over_tls_belongs_to_pages_over_tls(guard: Guard) -> None:
    assert shake_hands(guard, ("origin", f"https://{HOST}"), scheme="wss") == ACCEPTED
    assert shake_hands(guard, ("origin", OURS), scheme="wss") == REFUSED


# ── The login ────────────────────────────────────────────────────────────────────────────────────


def log_in(app: ASGIApp, scheme: str = "http") -> tuple[str, set[str]]:
    """The cookie of a login, and its attributes."""
    origin = ("origin", f"{scheme}://{HOST}")
    answer = ask(app, "POST", "/login", FORM, origin, body=f"token={TOKEN}".encode(), scheme=scheme)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    return cookie, {attribute.lower() for attribute in attributes}


def test_the_cookie_of_a_login_opens_everything_until_it_ends(
    locked: Guard, dagster: Dagster, now: list[float]
) -> None:
    cookie, attributes = log_in(locked)
    assert attributes == {"samesite=strict", "httponly", "path=/", "max-age=604800"}
    assert cookie.startswith("pricing-session-3000=")
    assert TOKEN not in cookie
    assert ask(locked, "POST", "/graphql", JSON, ("cookie", cookie), body=ACT).status == 200
    assert dagster.acts == 1
    now[0] += SESSION_SECONDS + 1
    assert ask(locked, "POST", "/graphql", JSON, ("cookie", cookie), body=ACT).status == 401
    assert dagster.acts == 1


def test_over_https_the_cookie_stays_there(locked: Guard) -> None:
    assert "secure" in log_in(locked, "https")[1]


def test_a_cookie_that_was_changed_or_made_with_another_token_opens_nothing(
    locked: Guard, dagster: Dagster, now: list[float]
) -> None:
    name, _, value = log_in(locked)[0].partition("=")
    ends_at, _, signature = value.partition(".")
    other = Guard(dagster.create_asgi_app(), hosts=[HOST], token=f"{TOKEN}2", clock=lambda: now[0])
    later = f"{int(ends_at) + 1}.{signature}"
    for forged in (later, f"{ends_at}.", f"0{value}", f"{ends_at}.{'0' * 64}", "", ".", "²." + signature):
        header = ("cookie", f"{name}={forged}")
        assert ask(locked, "POST", "/graphql", JSON, header, body=ACT).status == 401, forged
    assert ask(other, "POST", "/graphql", JSON, ("cookie", f"{name}={value}"), body=ACT).status == 401
    assert dagster.acts == 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "body", [b"token=wrong", b"", b"token=", f"token={TOKEN}x".encode(), b"token=" + b"x" * 9999]
)
def test_a_wrong_token_is_answered_by_the_form_again(locked: Guard, body: bytes) -> None:
    answer = ask(locked, "POST", "/login", FORM, HTML, body=body)
    assert answer.status == 401
    assert "This is not the token." in answer.text
    assert "set-cookie" not in answer.headers


def test_a_foreign_page_logs_nobody_in(locked: Guard) -> None:
    form = f"token={TOKEN}".encode()
    assert ask(locked, "POST", "/login", FORM, ("origin", "http://evil.example"), body=form).status == 403
    assert ask(locked, "POST", "/login", FORM, ("origin", "null"), body=form).status == 403


def test_forms_are_read_by_the_login_alone(locked: Guard) -> None:
    bearer = ("authorization", f"Bearer {TOKEN}")
    for path in ("/graphql", "/login/", "/report_asset_materialization/a"):
        assert ask(locked, "POST", path, FORM, bearer, body=b"").status == 415


@pytest.mark.usefixtures("quick")
def test_without_the_token_a_browser_gets_the_form_and_a_program_a_sentence(
    locked: Guard, dagster: Dagster
) -> None:
    page = ask(locked, "GET", "/runs", HTML)
    assert (page.status, page.headers["cache-control"]) == (401, "no-store")
    assert re.search(
        '<form method="post" action="/login">.*type="password" name="token"', page.text, re.DOTALL
    )
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for headers in (
        [],
        [("authorization", "Bearer wrong")],
        [("authorization", "Bearer")],
        [("authorization", TOKEN)],
    ):
        answer = ask(locked, "POST", "/graphql", JSON, *headers, body=ACT)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "Authorization: Bearer" in answer.text
    assert dagster.acts == 0


def test_wrong_tokens_are_answered_late_and_the_right_one_at_once(locked: Guard) -> None:
    """Also while others guess: they would keep every program out."""
    assert web_guard._WRONG_SECONDS >= 1

    async def guess(token: str) -> int:
        headers = [("host", HOST), ("authorization", f"Bearer {token}")]
        return (await asked(locked, "GET", "/runs", headers, b"")).status

    async def log_in_beside() -> int:
        return (
            await asked(locked, "POST", "/login", [("host", HOST), FORM], f"token={TOKEN}".encode())
        ).status

    async def play() -> None:
        with mock.patch.object(web_guard, "_WRONG_SECONDS", 1000):
            guesses = [asyncio.create_task(guess(f"wrong-{number}")) for number in range(10)]
            await asyncio.sleep(0)
            assert [await guess("wrong-10"), await guess(TOKEN), await log_in_beside()] == [429, 200, 303]
            assert not any(one.done() for one in guesses)
            for one in guesses:
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await one

    asyncio.run(play())
    with mock.patch.object(web_guard, "_WRONG_SECONDS", 0):
        assert asyncio.run(guess("wrong")) == 401, "whoever went away counts no more"


# ── Settings ─────────────────────────────────────────────────────────────────────────────────────


def write_token(home: Path, text: str = f"{TOKEN}\n", mode: int = 0o600) -> Path:
    path = home / "ui-token"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_on_loopback_no_token_is_needed(tmp_path: Path) -> None:
    assert ui_token(Settings(home=tmp_path)) is None
    assert ui_token(Settings(home=tmp_path / "none", ui_address="::1")) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "fd00::1"])
def test_an_address_that_others_reach_needs_one(tmp_path: Path, address: str) -> None:
    open_to_others = Settings(home=tmp_path, ui_address=address)  # type: ignore[arg-type]
    with pytest.raises(
        SettingsError, match=f"{address} opens the Dagster UI .* no login. Set PRICING_UI_TOKEN"
    ):
        ui_token(open_to_others)
    assert (
        ui_token(open_to_others.model_copy(update={"ui_token": Settings(ui_token=TOKEN).ui_token})) == TOKEN
    )  # type: ignore[arg-type]
    write_token(tmp_path)
    assert ui_token(open_to_others) == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_token_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_token(tmp_path, mode=mode)
    with pytest.raises(SettingsError, match=f"is open to others. Close it: chmod 600 {path}"):
        ui_token(Settings(home=tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(write_token(tmp_path), 12345, -1)
    with pytest.raises(SettingsError, match="belongs to user 12345, and this runs as root"):
        ui_token(Settings(home=tmp_path))


@pytest.mark.parametrize("token", ["short", "a token with spaces", "", "mit-Umlauten-ääääää"])
def test_a_token_that_cannot_work_is_refused_and_not_repeated(tmp_path: Path, token: str) -> None:
    write_token(tmp_path, token)
    with pytest.raises(SettingsError, match="16 characters or more") as caught:
        ui_token(Settings(home=tmp_path))
    assert not token or token not in str(caught.value)
    with pytest.raises(SettingsError, match="in PRICING_UI_TOKEN must have 16"):
        ui_token(Settings(home=tmp_path, ui_token=token))  # type: ignore[arg-type]


def test_a_token_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ui-token").write_bytes(b"\xff" * 20)
    (tmp_path / "ui-token").chmod(0o600)
    with pytest.raises(SettingsError, match="cannot be read"):
        ui_token(Settings(home=tmp_path))


def test_the_ui_is_called_by_loopback_its_address_and_the_names_of_the_settings() -> None:
    settings = Settings(ui_address="192.168.1.5", ui_hosts="Prices.example.com, 10.0.0.5:4000,[fd00::1]:80")  # type: ignore[arg-type]
    hosts = own_hosts(settings, 3000)
    for host in ("localhost:3000", "127.0.0.1:3000", "[::1]:3000", "192.168.1.5:3000", "10.0.0.5:4000"):
        assert host in hosts
    assert {"Prices.example.com", "Prices.example.com:3000", "[fd00::1]:80"} < hosts
    assert "[fd00::2]:3000" in own_hosts(Settings(ui_address="fd00::2"), 3000)  # type: ignore[arg-type]
    assert "0.0.0.0:3000" not in own_hosts(Settings(ui_address="0.0.0.0"), 3000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "hosts", ["*", "*.example.com", "http://prices.example.com", "a b", "prices/", "fd00::1"]
)
def test_what_no_browser_sends_as_host_is_refused(hosts: str) -> None:
    with pytest.raises(ValueError, match="as they stand in a URL"):
        Settings(ui_hosts=hosts)  # type: ignore[arg-type]
