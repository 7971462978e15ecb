"""Nobody without a token causes a line in the log of the API, whatever bytes come, and whether or not the database
answers."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.processes.connections import MOST_WAITING
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

METHODS = st.sampled_from([b"GET", b"HEAD", b"POST", b"PUT", b"OPTIONS", b"TRACE", b"CONNECT", b"BREW", b"\xff"])
PATHS = st.sampled_from(
    [
        *(
            b"/",
            b"/healthz",
            b"/livez",
            b"/openapi.json",
            b"/metrics",
            b"/v1/prices/AAPL",
            b"/v1/stream",
            b"/page.js",
        ),
        *(b"*", b"/%ff", b"/\xff", b"/%00", b"//", b"/../x", b"http://[::1", b"/v1/prices?symbol=%ff&a=\xfe"),
    ]
)
HEADERS = st.sampled_from(
    [
        *(
            b"Content-Length: 5",
            b"Content-Length: +5",
            b"Content-Length: " + b"9" * 20,
            b"Content-Length: " + b"9" * 30,
        ),
        *(
            b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: x",
            b"Expect: 100-continue",
            b"Connection: close",
        ),
        *(b"Upgrade: websocket\r\nConnection: Upgrade", b"Upgrade: h2c\r\nConnection: Upgrade"),
        *(
            b"Authorization: Bearer \xff",
            b"Authorization: Bearer x",
            b"Authorization: Basic eA==",
            b"Origin: null",
        ),
        *(
            b"Accept-Encoding: gzip",
            b"Range: bytes=9-1",
            b"Last-Event-ID: \xff",
            b"Cookie: \xff",
            b"\xff: \xff",
            b"x",
        ),
        b"Authorization: Bearer pp_" + b"a" * 43,
    ]
)
BODIES = st.sampled_from([b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"zz\r\n", b"\x16\x03\x01\x02", b"{" * 5000])
ENDS = st.sampled_from(["read", "close", "reset", "half"])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request, mostly with our name as its Host (`HOST` stands for it)."""
    host = b"Host: " + draw(st.sampled_from([b"HOST"] * 4 + [b"x", b"\xff"]))
    headers = b"\r\n".join([host, *draw(st.lists(HEADERS, max_size=3))])
    version = draw(st.sampled_from([b"HTTP/1.1"] * 4 + [b"HTTP/1.0", b"HTTP/9.9", b"x"]))
    return draw(METHODS) + b" " + draw(PATHS) + b" " + version + b"\r\n" + headers + b"\r\n\r\n" + draw(BODIES)


CONVERSATIONS = st.tuples(st.lists(requests(), min_size=1, max_size=3), st.integers(1, 2 * MOST_WAITING), ENDS)


class Lines(logging.Handler):
    """Keeps what any logger would write."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(self.format(record))


@contextmanager
def logged() -> Iterator[list[str]]:
    lines = Lines()
    logging.getLogger().addHandler(lines)
    try:
        yield lines.kept
    finally:
        logging.getLogger().removeHandler(lines)


def say(api: RunningApi, sent: bytes, end: str) -> None:
    """Send some bytes, and end the connection in one of the ways in which strangers do."""
    place = api.url.removeprefix("http://")
    host, _, port = place.partition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        try:
            sock.sendall(sent.replace(b"HOST", place.encode()))
            if end == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif end in ("half", "read"):
                sock.settimeout(0.2 if end == "read" else PATIENCE)
                if end == "half":
                    sock.shutdown(socket.SHUT_WR)
                while sock.recv(65536):
                    pass
        except OSError:
            pass


def settle(api: RunningApi) -> None:
    """Wait until the server has read what came: it answers in turn."""
    for _ in range(3):
        assert api.client.get("/livez").text == "ok\n"


def check(api: RunningApi, conversation: tuple[list[bytes], int, str]) -> None:
    parts, times, end = conversation
    with logged() as lines:
        say(api, b"".join(parts) * times, end)
        settle(api)
    assert lines == [], f"{len(b''.join(parts)) * times} bytes"


def test_b7_one_request_too_many_at_once_writes_no_log(api: RunningApi) -> None:
    """672 bytes wrote 10 kB: the answers under way failed, twice, when they met the closed connection."""
    for path in ("/", "/healthz", "/livez", "/openapi.json"):
        request = f"GET {path} HTTP/1.1\r\nHost: HOST\r\n\r\n".encode()
        for end in ("read", "close", "reset"):
            check(api, ([request], MOST_WAITING + 2, end))


@pytest.fixture
def api_without_database(owner_engine: Engine) -> Iterator[RunningApi]:
    """The API on a server that is not there."""
    engine = make_engine("postgresql://nobody@127.0.0.1:1/nothing")
    with running_api(engine, owner_engine) as running:
        yield running
    engine.dispose()


def test_b7_without_a_database_all_strangers_together_cause_one_line(
    api_without_database: RunningApi,
) -> None:
    with logged() as lines:
        for _ in range(30):
            answer = api_without_database.stranger("pp_" + "a" * 43).ask("GET", "prices")
            assert answer.status_code in (401, 503)
            api_without_database.client.get("/healthz")
    assert len([line for line in lines if "tokens cannot be read" in line]) <= 1
    assert len(lines) <= 1


@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(conversation=CONVERSATIONS)
def test_b7_no_stranger_writes_a_log_without_a_database(
    api_without_database: RunningApi, conversation: tuple[list[bytes], int, str]
) -> None:
    parts, times, end = conversation
    with logged() as lines:
        say(api_without_database, b"".join(parts) * times, end)
        settle(api_without_database)
    assert [line for line in lines if "tokens cannot be read" not in line] == []
