"""`make audit` tells known vulnerabilities of what is locked, and fails nothing where nobody can be asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pricing_pipeline_tests.tools.advisories import audit, locked

ADVISORY = {
    "id": "GHSA-2222-2222-2222",
    "summary": "It gives everything away",
    "modified": "2026-01-01T00:00:00Z",
    "affected": [
        {
            "package": {"name": "alembic", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9.9"}]}],
        }
    ],
}


@dataclass
class Service:
    """A service of advisories: what it knows, how it answers, and what it was asked about."""

    url: str
    known: set[str] = field(default_factory=set)
    status: int = 200
    is_silent: bool = False
    asked: dict[str, str] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, queries: list[dict[str, Any]]) -> dict[str, Any]:
        self.asked |= {query["package"]["name"]: query["version"] for query in queries}
        found = {"vulns": [{"id": ADVISORY["id"], "modified": ADVISORY["modified"]}]}
        return {"results": [found if query["package"]["name"] in self.known else {} for query in queries]}


@contextmanager
def a_service() -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if service.is_silent:
                service.closing.wait()
            self.say(service.answer(body["queries"]))

        def do_GET(self) -> None:
            self.say(ADVISORY)

        def say(self, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            self.send_response(service.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Whoever waited for the silent one has left."""

    with Server(("127.0.0.1", 0), Handler) as server:
        service = Service(f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield service
        finally:
            service.closing.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    with a_service() as running:
        yield running


def test_every_locked_package_is_asked_about_and_nothing_known_is_good(
    service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    assert audit(locked(), ["--service-url", service.url]) == 0
    assert service.asked == locked()
    assert service.asked.keys() >= {"alembic", "dagster", "ruff", "squawk-cli"}, "those of both lock files"
    assert capfd.readouterr().out == f"0 known in {len(locked())} locked packages\n"


def test_what_is_known_is_told_with_its_remedy(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    service.known = {"alembic"}
    assert audit(locked(), ["--service-url", service.url]) == 1
    said = capfd.readouterr().out
    for word in (f"alembic {locked()['alembic']}", "GHSA-2222-2222-2222", "It gives everything away", "9.9"):
        assert word in said


@pytest.mark.parametrize("fault", ["refuses", "is away", "is silent"])
def test_who_cannot_be_asked_fails_nothing_and_is_told(
    service: Service, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    service.known = {"alembic"}
    service.status = 503 if fault == "refuses" else 200
    service.is_silent = fault == "is silent"
    url = "http://127.0.0.1:9/" if fault == "is away" else service.url
    assert audit(locked(), ["--service-url", url], patience=3 if fault == "is silent" else 60) == 0
    out, error = capfd.readouterr()
    assert out == ""
    assert error.startswith("SKIPPED: make audit. The service of advisories could not be asked: ")
    assert error.count("\n") == 1


def test_an_order_that_uv_does_not_know_is_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    """Else a newer uv that is asked in the old way would be taken for a service that is away."""
    assert audit(locked(), ["--no-such-option"]) == 2
    assert "no-such-option" in capfd.readouterr().err
