"""Fault 35: more connections than a process may have files, each with a request that does not end, at every
listener."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pricing_pipeline.processes.ports import LOOPBACK, require_free_port
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
FILES, SILENT = 1024, 1100
PLAIN = """
import dagster as dg

definitions = dg.Definitions()
"""


@dataclass(frozen=True)
class Listener:
    """A server of ours: how it is started, and what it answers to anyone who asks."""

    command: list[str]
    settings: Mapping[str, str]
    path: str


@pytest.fixture
def listener(request: pytest.FixtureRequest, tmp_path: Path) -> Listener:
    if request.param == "api":
        url = request.getfixturevalue("database_url")
        return Listener(["pricing_pipeline.api.server"], {"PRICING_DATABASE_URL": url}, "/livez")
    if request.param == "sandbox":
        return Listener(["pricing_pipeline.cli", "sandbox"], {}, "/_sandbox/health")
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "workspace.yaml").write_text("load_from:\n  - python_file: plain.py\n")
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    return Listener(["pricing_pipeline.defs.webserver", "workspace.yaml"], {}, "/server_info")


@dataclass(frozen=True)
class Running:
    """A listener that runs, with at most FILES open files."""

    process: subprocess.Popen[bytes]
    port: int
    path: str
    log: Path

    def answers(self) -> bool:
        """Whether a newcomer gets an answer."""
        url = f"http://{LOOPBACK}:{self.port}{self.path}"
        try:
            return httpx.get(url, timeout=PATIENCE, trust_env=False, verify=NO_TLS).is_success
        except httpx.TransportError:
            return False

    def files(self) -> int:
        """How many files the process has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def _with_few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


@contextmanager
def running(listener: Listener, folder: Path) -> Iterator[Running]:
    port = require_free_port(0, "the listener", "the port")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PRICING_", "DAGSTER_"))}
    environment |= {f"PRICING_{name}_PORT": str(port) for name in ("WEB", "API", "SANDBOX")}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "PRICING_HOME": str(folder / "home"),
        "DAGSTER_HOME": str(folder),
        **listener.settings,
    }
    log = folder / "listener.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *listener.command],
            env=environment,
            cwd=folder,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_with_few_files,
        )
    running = Running(process, port, listener.path, log)
    try:
        wait_until(lambda: running.answers() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield running
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room in our own process for both ends of a test that opens more files than usual."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 2 * SILENT:
        pytest.skip("a process may not open so many files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], 2 * SILENT), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def silent(port: int, begun: bytes) -> Iterator[None]:
    """Connections that are all made at once. Each has sent the beginning of a request, and sends nothing more."""
    with ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(SILENT)]
        for sock in socks:
            sock.setblocking(False)
            sock.connect_ex((LOOPBACK, port))
        for sock in socks:
            sock.settimeout(PATIENCE)
            with suppress(OSError):  # it has been cut off already
                connected = select.poll()
                connected.register(sock, select.POLLOUT)
                connected.poll(PATIENCE * 1000)
                sock.sendall(begun)
        yield


@pytest.mark.own_sessions
@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize("listener", ["api", "ui", "sandbox"], indirect=True)
def test_fault_35_unfinished_requests_keep_nobody_from_an_answer(listener: Listener, tmp_path: Path) -> None:
    """Newcomers are answered all the while, no file is left over afterwards, and the log says nothing."""
    with running(listener, tmp_path) as server:
        before, written = server.files(), server.log.read_text()
        head = f"POST /graphql HTTP/1.1\r\nHost: {LOOPBACK}:{server.port}\r\n".encode()
        for begun in (head, head + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"):
            with silent(server.port, begun):
                assert [server.answers() for _ in range(10)] == [True] * 10
            wait_until(lambda: server.files() < before + 50)
        assert server.process.poll() is None
        assert server.log.read_text() == written
