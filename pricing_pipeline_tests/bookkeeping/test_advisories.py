"""`make audit` tells known vulnerabilities of what is locked, and fails nothing where nobody can be asked."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pricing_pipeline_tests.tools.advisories import LOCKS, audit, audit_from, locked, main

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
    asked: set[tuple[str, str]] = field(default_factory=set)
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, queries: list[dict[str, Any]]) -> dict[str, Any]:
        self.asked |= {(query["package"]["name"], query["version"]) for query in queries}
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
            """Anyone who waited for the silent one has left."""

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
    names = {name for name, _ in service.asked}
    assert names >= {"alembic", "ruff", "celery", "procrastinate", "yfinance"}, "those of all lock files"
    assert capfd.readouterr().out == f"0 known in {len(locked())} locked packages\n"


def test_what_is_known_is_told_with_its_remedy(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    service.known = {"alembic"}
    assert audit(locked(), ["--service-url", service.url]) == 1
    said = capfd.readouterr().out
    for word in (
        f"alembic {dict(locked())['alembic']}",
        "GHSA-2222-2222-2222",
        "It gives everything away",
        "9.9",
    ):
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


def affecting(name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    """An advisory about a package, by a range of versions."""
    package = {"name": name, "ecosystem": "PyPI"}
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    return ADVISORY | {"affected": [{"package": package, "ranges": ranges, **more}]}


EVERY = {"introduced": "0"}


@pytest.mark.parametrize("form", ["one", "list", "answer", "folder", "zip"])
def test_without_the_internet_a_file_of_advisories_is_read(
    form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    advisories = [affecting("no-such-package", EVERY), affecting("Alembic", EVERY, {"fixed": "9.9"})]
    source = tmp_path / "advisories"
    if form in ("one", "list", "answer"):
        content = {"one": advisories[1], "list": advisories, "answer": {"vulns": advisories}}[form]
        source.write_text(json.dumps(content))
    elif form == "folder":
        (source / "deep").mkdir(parents=True)
        for number, advisory in enumerate(advisories):
            (source / "deep" / f"{number}.json").write_text(json.dumps(advisory))
    else:
        with zipfile.ZipFile(source, "w") as archive:
            for number, advisory in enumerate(advisories):
                archive.writestr(f"{number}.json", json.dumps(advisory))
    assert main(["--from", str(source)]) == 1
    first, last = capfd.readouterr().out.splitlines()
    version = dict(locked())["alembic"]
    assert first == f"alembic {version}: GHSA-2222-2222-2222, fixed in 9.9. It gives everything away"
    assert last.startswith(f"1 known in {len(locked())} locked packages, by ")


@pytest.mark.parametrize("name", LOCKS)
def test_a_file_finds_what_any_lock_file_has(name: str, tmp_path: Path) -> None:
    source = tmp_path / "advisories.json"
    text = (Path(__file__).parents[2] / name).read_text()
    first = next(line for line in text.splitlines() if "==" in line).partition("==")[0]
    source.write_text(json.dumps(affecting(first, EVERY)))
    assert audit_from(locked(), source) == 1


@pytest.mark.parametrize(
    ("advisory", "is_known"),
    [
        (affecting("a", versions=["1.4", "1.5.0"]), True),
        (affecting("a", versions=["1.4", "not a version"]), False),
        (affecting("a", {"introduced": "not a version"}), True),
        (affecting("a", EVERY) | {"withdrawn": "2026-01-01T00:00:00Z"}, False),
        (affecting("A_.b", EVERY), False),
    ],
)
def test_versions_are_listed_too(advisory: dict[str, Any], is_known: bool, tmp_path: Path) -> None:
    source = tmp_path / "advisories.json"
    source.write_text(json.dumps([advisory, affecting("other", EVERY)]))
    assert audit_from({("a", "1.5")}, source) == is_known


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=6, unique=True).map(sorted),
    st.booleans(),
    st.integers(0, 21),
)
def test_ranges_agree_with_a_plain_count(tmp_path_factory: Any, ends: list[int], is_last: bool, at: int) -> None:
    """Ranges [begin, end) or, with `last_affected`, [begin, end]; the last may have no end."""
    events = [
        {("introduced" if number % 2 == 0 else "last_affected" if is_last else "fixed"): str(end)}
        for number, end in enumerate(ends)
    ]
    pairs = [(begin, end) for begin, end in zip(ends[::2], [*ends[1::2], 99], strict=False)]
    expected = any(begin <= at < end or (is_last and at == end) for begin, end in pairs)
    source = tmp_path_factory.mktemp("advisories") / "a.json"
    source.write_text(json.dumps(affecting("a", *reversed(events))))
    assert audit_from({("a", str(Version(str(at))))}, source) == expected


@pytest.mark.parametrize("content", ["", "[]", "{}", "7", '[{"affected": [7]}]', '{"affected": [{}]}'])
def test_a_file_that_could_not_find_anything_is_a_failure(
    content: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "advisories.json"
    source.write_text(content)
    assert audit_from(locked(), source) == 2
    assert str(source) in capfd.readouterr().err
    assert audit_from(locked(), tmp_path / "nothing") == 2
