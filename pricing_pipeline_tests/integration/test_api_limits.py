"""What one caller can take of the HTTP API: no wrong token and no slow or busy caller keeps the others waiting.

What every server of ours bounds is in unit/test_connections.py.
"""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from pricing_pipeline.api import access, health, history, limits
from pricing_pipeline.api.access import Reader, Watcher
from pricing_pipeline.api.app import AT_ONCE, AT_ONCE_OF_ONE, make_app
from pricing_pipeline.api.limits import Bucket
from pricing_pipeline.api.server import make_api_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.processes import connections
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.api_server import Caller, RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks, waiting_for_locks
from pricing_pipeline_tests.support.streams import streaming

pytestmark = pytest.mark.usefixtures("still")


def place(api: RunningApi) -> tuple[str, int]:
    host, _, port = api.url.removeprefix("http://").partition(":")
    return host, int(port)


@contextmanager
def connected(api: RunningApi) -> Iterator[socket.socket]:
    with socket.create_connection(place(api), timeout=PATIENCE) as sock:
        yield sock


def answer_of(sock: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    try:
        while part := sock.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(1, 5)), max_size=60), st.integers(1, 20), st.integers(5, 30))
def test_b7_a_bucket_gives_no_more_than_its_rate_and_its_burst(
    asks: list[tuple[float, float]], rate: int, burst: int
) -> None:
    """Over each span: at most the burst, what came in, and the one unit that may overdraw it."""
    now = 0.0
    bucket = Bucket(rate, burst, lambda: now)
    taken: list[tuple[float, float]] = []
    for pause, units in asks:
        now += pause
        wait = bucket.take(units)
        if wait:
            now += wait + 1e-6
            assert bucket.take(units) == 0, "Retry-After is enough"
        taken.append((now, units))
    for first, (began, _) in enumerate(taken):
        for last in range(first, len(taken)):
            total = sum(units for _, units in taken[first:last])
            assert total <= burst + rate * (taken[last][0] - began) + 5


def test_b7_a_token_sends_so_many_requests_a_second_and_others_go_on(engine: Engine, owner_engine: Engine) -> None:
    with running_api(engine, owner_engine, rate=0.1) as api:
        busy, other = api.caller(Scope.WATCH, user="ann"), api.caller(Scope.WATCH, user="bob")
        statuses = [busy.ask("GET", "subscriptions") for _ in range(30)]
        refused = [answer for answer in statuses if answer.status_code == 429]
        assert 1 <= len(refused) < 30
        assert refused[0].json()["type"] == "urn:pricing-pipeline:too-many-requests"
        assert "PRICING_API_REQUESTS_PER_SECOND" in refused[0].json()["detail"]
        assert int(refused[0].headers["retry-after"]) >= 1
        assert other.get("subscriptions")["subscriptions"] == []


def test_b7_a_long_body_counts_as_many_requests(engine: Engine, owner_engine: Engine) -> None:
    with running_api(engine, owner_engine, rate=1) as api:
        busy = api.caller(Scope.WATCH, user="ann")
        assert busy.ask("POST", "heartbeat", content=b" " * 100_000).status_code == 422
        assert busy.ask("GET", "subscriptions").status_code == 429


@pytest.mark.own_sessions
def test_b7_health_and_new_tokens_find_a_session_however_busy_routes_are(
    engine: Engine, owner_engine: Engine, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions that stay with who reads prices, and as many slow routes and histories as there may be."""
    monkeypatch.setattr(health, "_PATIENCE_SECONDS", PATIENCE)
    own = make_api_engine(engine.url.render_as_string(hide_password=False))
    wait_for_locks(core, own)
    with running_api(own, owner_engine) as api, ExitStack() as busy:
        readers = [api.caller(Scope.READ) for _ in range(AT_ONCE // AT_ONCE_OF_ONE)]
        with core.owner.begin() as lock, ThreadPoolExecutor(AT_ONCE) as pool:
            lock.execute(text("LOCK TABLE pricing.latest_prices IN ACCESS EXCLUSIVE MODE"))
            reading = [
                pool.submit(reader.ask, "GET", "prices?symbols=AAPL")
                for reader in readers
                for _ in range(AT_ONCE_OF_ONE)
            ]
            wait_until(lambda: waiting_for_locks(core) == AT_ONCE)
            lock.rollback()
            for future in reading:
                future.result()
        for _ in range(AT_ONCE + history.AT_ONCE):
            busy.enter_context(own.connect())
        assert api.client.get("/healthz").json()["late"] != ["database"]
        assert api.caller(Scope.READ).ask("GET", "prices?symbols=AAPL").status_code == 200
    own.dispose()


def test_b7_while_the_database_hangs_nobody_waits_for_the_attempts_of_others(engine: Engine) -> None:
    """All who come while one attempt to read the tokens hangs learn of the next one what it comes to."""
    attempts = 0
    may_end = threading.Event()

    class Hanging(access.Tokens):
        def _read(self) -> Any:
            nonlocal attempts
            attempts += 1
            may_end.wait(PATIENCE)
            raise DatabaseError("the database does not answer")

    async def ask_all() -> list[BaseException | object]:
        tokens = Hanging(engine)
        asking = [asyncio.create_task(tokens.find(f"pp_{'x' * 43}")) for _ in range(50)]
        while not attempts:
            await asyncio.sleep(0.01)
        may_end.set()
        return await asyncio.gather(*asking, return_exceptions=True)

    outcomes = asyncio.run(ask_all())
    assert len(outcomes) == 50
    assert {type(outcome) for outcome in outcomes} == {DatabaseError}
    assert attempts <= 2


def test_b7_requests_under_way_of_one_token_are_bounded(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies that do not come: 32 are waited for, further requests of this token are refused, others answered."""
    monkeypatch.setattr(connections, "BODY_SECONDS", PATIENCE)
    slow, other = api.caller(Scope.WATCH, user="ann"), api.caller(Scope.READ)
    head = _head(api, slow, 10)
    waiting: list[socket.socket] = []

    def is_full() -> bool:
        """A busy machine may answer some of them, for another reason than this limit: others take their place."""
        answered = select.select(waiting, [], [], 0)[0]
        for sock in answered:
            sock.close()
            waiting.remove(sock)
        while len(waiting) < 32:
            waiting.append(socket.create_connection(place(api), timeout=PATIENCE))
            waiting[-1].sendall(head)
        return slow.ask("GET", "subscriptions").status_code == 429

    try:
        wait_until(is_full)
        assert slow.refusal("GET", "subscriptions")["type"] == "urn:pricing-pipeline:too-many-requests"
        assert other.get("tasks")["tasks"] == []
    finally:
        for sock in waiting:
            sock.close()
    wait_until(lambda: slow.ask("GET", "subscriptions").status_code == 200)


def _head(api: RunningApi, caller: Caller, length: int, path: str = "/v1/heartbeat") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: {api.url.removeprefix('http://')}\r\nAuthorization: Bearer {caller.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_b7_a_body_that_does_not_come_ends_its_request(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    with connected(api) as sock:
        sock.sendall(_head(api, api.caller(Scope.WATCH, user="ann"), 100) + b'{"pairs"')
        assert b"408" in sock.recv(65536).split(b"\r\n")[0]


@pytest.mark.parametrize("begin", [b"", b"GET /livez HTTP/1.1\r\nX: "])
def test_b7_a_head_that_does_not_end_is_not_waited_for(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    """However many bytes of it come."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with connected(api) as sock:
        stop = threading.Event()

        def dribble() -> None:
            sock.sendall(begin)
            while begin and not stop.wait(0.05):
                try:
                    sock.sendall(b"x")
                except OSError:
                    return

        thread = threading.Thread(target=dribble)
        thread.start()
        assert answer_of(sock) == b""
        stop.set()
        thread.join()
    assert api.client.get("/livez").text == "ok\n"


@pytest.mark.parametrize("part", ["head", "body", "end"])
def test_b7_a_request_without_end_is_cut_off(api: RunningApi, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Its head is kept before the sender is known, and a body in chunks says nowhere how long it is."""
    monkeypatch.setattr(connections, "LONGEST_BODY", 500_000)
    host = api.url.removeprefix("http://")
    head = f"POST /v1/heartbeats HTTP/1.1\r\nHost: {host}\r\n".encode()
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    begin = {"head": head + b"X: ", "body": chunked, "end": chunked + b"0\r\nX: "}[part]
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n" if part == "body" else b"x" * 65536
    with connected(api) as sock, pytest.raises((BrokenPipeError, ConnectionResetError)):
        sock.sendall(begin + 200 * chunk)
    assert api.client.get("/livez").text == "ok\n"


def test_b7_a_body_that_is_too_long_is_answered_once(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second answer would be taken for that to the next request of the connection."""
    monkeypatch.setattr(connections, "LONGEST_BODY", 500_000)
    head = _head(api, api.caller(Scope.WATCH), 3_000_000)
    with connected(api) as sock:
        sock.sendall(head)
        answer = answer_of(sock)
        assert b"413" in answer.split(b"\r\n")[0]
        assert b"connection: close" in answer
    with connected(api) as sock:
        sock.sendall(head.replace(b"Host: ", b"Host: not-"))
        assert b"421" in sock.recv(65536).split(b"\r\n")[0]
        sock.sendall(b"x" * 500_001)
        assert b"HTTP/1.1" not in answer_of(sock), "but for the rest of the first answer"


def test_b7_a_body_that_nobody_reads_is_not_waited_for(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with connected(api) as sock:
        sock.sendall(_head(api, api.stranger("x"), 1_000_000))
        assert b"401" in sock.recv(65536).split(b"\r\n")[0], "before the body is there"
        wait_until(lambda: _is_refused(sock, b" "))


def _is_refused(sock: socket.socket, data: bytes) -> bool:
    """Whether the connection is closed by now: bytes that are sent are no longer taken."""
    try:
        sock.sendall(data)
    except OSError:
        return True
    return False


def test_b7_a_peer_that_does_not_read_is_not_waited_for(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 0.3)
    lose, lost = connections.BoundedProtocol.connection_lost, threading.Event()
    monkeypatch.setattr(connections.BoundedProtocol, "connection_lost", lambda *given: (lose(*given), lost.set()))
    request = _of_ten_megabytes(api, core, api.caller(Scope.READ))
    with connected(api) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
        sock.sendall(request)
        assert sock.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        assert lost.wait(PATIENCE)
        assert len(answer_of(sock)) < 10_000_000, "it is cut off"


def _of_ten_megabytes(api: RunningApi, core: Core, caller: Caller) -> bytes:
    """A request whose answer is long."""
    core.rows(
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
        " SELECT 'breaker_open', 'S' || n, 'P1', repeat('x', 20000), t, t, t"
        " FROM pricing.clock() t, generate_series(1, 500) n"
    )
    return (
        f"GET /v1/alerts?limit=1000 HTTP/1.1\r\nHost: {api.url.removeprefix('http://')}\r\n"
        f"Authorization: Bearer {caller.token}\r\n\r\n"
    ).encode()


def test_b7_answers_of_one_token_that_nobody_reads_are_bounded(
    api: RunningApi, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is kept in memory or on disk until it is read."""
    monkeypatch.setattr(limits, "_MOST_UNDER_WAY", 3)
    slow, other = api.caller(Scope.READ), api.caller(Scope.READ)
    request = _of_ten_megabytes(api, core, slow)
    with ExitStack() as stack:
        for _ in range(3):
            sock = stack.enter_context(connected(api))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(request)
            assert sock.recv(12) == b"HTTP/1.1 200"
        assert slow.ask("GET", "tasks").status_code == 429
        assert other.get("tasks")["tasks"] == []
    wait_until(lambda: slow.ask("GET", "tasks").status_code == 200)


def test_b27_streams_that_begin_at_once_are_not_refused_as_requests_under_way(
    api: RunningApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart all come back together, and a browser gives up a stream that is refused."""
    monkeypatch.setattr(limits, "_MOST_UNDER_WAY", 0)
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")
    assert caller.ask("GET", "tasks").status_code == 429
    with streaming(caller, pairs="equity_quote:AAPL") as stream:
        stream.until("ready")


SMUGGLED: list[tuple[str, Callable[[str], str]]] = [
    (
        "two tokens, the wrong one first",
        lambda token: f"Authorization: Bearer x\r\nAuthorization: Bearer {token}\r\n",
    ),
    (
        "two tokens, the right one first",
        lambda token: f"Authorization: Bearer {token}\r\nAuthorization: Bearer x\r\n",
    ),
    ("another scheme", lambda token: f"Authorization: Basic {token}\r\n"),
    ("no scheme", lambda token: f"Authorization: {token}\r\n"),
    ("two in one", lambda token: f"Authorization: Bearer {token}, Bearer {token}\r\n"),
    ("another header", lambda token: f"X-Authorization: Bearer {token}\r\n"),
    ("a cookie", lambda token: f"Cookie: authorization={token}\r\n"),
    ("another case", lambda token: f"Authorization: Bearer {token.swapcase()}\r\n"),
    ("a longer one", lambda token: f"Authorization: Bearer {token}A\r\n"),
    ("a shorter one", lambda token: f"Authorization: Bearer {token[:-1]}\r\n"),
]


def test_b7_only_one_plain_token_opens(api: RunningApi) -> None:
    reader = api.caller(Scope.READ)
    for name, header in SMUGGLED:
        assert reader.get("tasks")["tasks"] == []
        host = f"Host: {api.url.removeprefix('http://')}\r\nConnection: close\r\n"
        with connected(api) as sock:
            sock.sendall(f"GET /v1/tasks HTTP/1.1\r\n{host}{header(str(reader.token))}\r\n".encode())
            assert b" 401 " in answer_of(sock).split(b"\r\n")[0], name


def test_b7_what_two_servers_could_read_in_two_ways_is_refused(api: RunningApi) -> None:
    """Once, and the connection is at its end or takes the next request as one: nothing is smuggled behind it."""
    for headers in (
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5_0\r\n",
        f"Content-Length: {'9' * 5000}\r\n",
        "Content-Length : 5\r\n",
        "X: 1\r\n Y: 2\r\nHost: evil.example\r\n",
        "Host: evil.example\r\n",
        "Origin: https://evil.example\r\n",
        f"X: {'x' * 600_000}\r\n",
    ):
        watcher = api.caller(Scope.WATCH, user="ann")
        head = f"Host: {api.url.removeprefix('http://')}\r\nAuthorization: Bearer {watcher.token}\r\n"
        with connected(api) as sock:
            sock.sendall(
                f"POST /v1/heartbeat HTTP/1.1\r\n{head}{headers}\r\n0\r\n\r\n"
                f"GET /v1/subscriptions HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode()
            )
            statuses = [
                int(line.split()[1]) for line in answer_of(sock).split(b"\r\n") if line.startswith(b"HTTP/1.1 ")
            ]
        assert statuses
        assert statuses[0] in (400, 403, 411, 413, 421, 431)
        assert api.client.get("/livez").text == "ok\n"


def test_b7_answers_are_kept_by_no_cache(api: RunningApi) -> None:
    reader = api.caller(Scope.READ)
    for answer in (
        reader.ask("GET", "tasks"),
        api.stranger().ask("GET", "tasks"),
        reader.ask("GET", "nosuch"),
    ):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]
        assert "set-cookie" not in answer.headers


def test_b7_a_fault_of_ours_says_nothing_of_itself(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the secret hunter2")

    reader = api.caller(Scope.READ)
    monkeypatch.setattr("pricing_pipeline.queue.task_queue.tasks", fail)
    problem = reader.refusal("GET", "tasks")
    assert (problem["status"], problem["type"]) == (500, "urn:pricing-pipeline:fault")
    assert "hunter2" not in str(problem)


def test_b7_a_route_that_needs_two_scopes_takes_one_turn(engine: Engine, owner_engine: Engine) -> None:
    """If it took two, as many at once as there are turns would wait for each other for ever."""
    app = make_app(engine, {"test"})
    turns = []

    @app.get("/v1/both")
    async def both(caller: Watcher, _: Reader) -> None:
        turns.append(app.state.shares.of(caller.token.token_id).threads._value)

    with owner_engine.begin() as connection:
        token = api_tokens.add(connection, "both", [Scope.ADMIN], "ann").get_secret_value()

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {"Authorization": f"Bearer {token}"}
            return [await client.get("/v1/both", headers=headers) for _ in range(2)]

    assert [answer.status_code for answer in asyncio.run(ask())] == [200, 200]
    assert turns == [AT_ONCE_OF_ONE - 1] * 2
