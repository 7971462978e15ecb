"""Processes that are forked from one that has imported what they share: the same as if each had started alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from pricing_pipeline.processes.fork_server import Forked, ForkServer
from pricing_pipeline.processes.os_processes import open_log
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.supervising import has_ended

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks only on Linux")

PROGRAM = """
import json, os, signal, sys, time
if __name__ == "__main__":
    print(json.dumps({
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "imported": "colorsys" in sys.modules,
        "session": os.getsid(0) == os.getpid(),
        "interruptible": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "time_zone": time.tzname[0],
        "main": sys.modules["__main__"].__name__,
    }), flush=True)
    {"sleep": lambda: time.sleep(600), "exit": lambda: sys.exit(7), "end": lambda: None}[sys.argv[1]]()
"""


class Stage:
    """A server, and where its processes work and write."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM)
        (folder / "leaves.py").write_text("raise SystemExit(5)")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
        modules = list(dict.fromkeys(["colorsys", "no_such_module", "leaves", *more, "program"]))
        self.server = ForkServer(modules, environment, folder, folder / "server.log")
        self.server.launch()

    def fork(self, *arguments: str, **environment: str) -> Forked:
        log = open_log(self.folder / "program.log")
        request = {
            "arguments": ["program", *arguments],
            "environment": environment,
            "folder": str(self.folder),
            "death_signal": signal.SIGTERM,
        }
        forked = self.server.fork(request, log)
        os.close(log)
        assert forked is not None
        return forked

    def said(self) -> str:
        return (self.folder / "program.log").read_text()

    def process(self, forked: Forked) -> psutil.Process:
        wait_until(lambda: forked.poll() is None and forked.pid is not None and self.said() != "")
        return psutil.Process(forked.pid)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.server.stop()


def test_a_forked_process_is_what_python_m_would_be(stage: Stage) -> None:
    forked = stage.fork("end", "two words", TZ="Asia/Kolkata", SECRET="s3cret")
    wait_until(lambda: forked.poll() is not None)
    assert forked.poll() == 0
    assert json.loads(stage.said()) == {
        "arguments": ["end", "two words"],
        "environment": {"TZ": "Asia/Kolkata", "SECRET": "s3cret"},
        "folder": str(stage.folder),
        "imported": True,
        "session": True,
        "interruptible": True,
        "time_zone": "IST",
        "main": "__main__",
    }


def test_the_system_shows_the_command_and_no_secret(stage: Stage) -> None:
    process = stage.process(stage.fork("sleep", SECRET="s3cret"))
    assert [part for part in process.cmdline() if part] == [f"{sys.executable} -m program sleep"[: _room(stage)]]
    assert "SECRET" not in process.environ()


def _room(stage: Stage) -> int:
    """Characters of a command that fit where the server has its own."""
    assert stage.server._server is not None
    return len(" ".join(psutil.Process(stage.server._server.pid).cmdline()))


@pytest.mark.parametrize(("arguments", "number", "status"), [(["exit"], None, 7), (["sleep"], "SIGKILL", -9)])
def test_how_a_process_ended_is_known(stage: Stage, arguments: Sequence[str], number: str | None, status: int) -> None:
    forked = stage.fork(*arguments)
    if number is not None:
        stage.process(forked)
        forked.send_signal(signal.Signals[number])
    forked.wait(30)
    assert forked.poll() == status


def test_processes_end_with_their_server_and_the_next_starts_alone(stage: Stage) -> None:
    forked = stage.fork("sleep")
    process = stage.process(forked)
    assert (stage.server.poll(), stage.server.pid is None) == (None, False)
    assert stage.server._server is not None
    stage.server._server.kill()
    forked.wait(30)
    assert has_ended(process)
    assert forked.poll() == -signal.SIGTERM
    assert stage.server.fork({}, 0) is None
    assert (stage.server.poll(), stage.server.pid) == (-signal.SIGKILL, None)


def test_a_server_that_was_started_again_forks_again(stage: Stage) -> None:
    before = stage.fork("sleep")
    stage.process(before)
    stage.server.stop()
    stage.server.launch()
    forked = stage.fork("exit")
    forked.wait(30)
    assert (before.poll(), forked.poll()) == (-signal.SIGTERM, 7)


def test_a_process_that_does_not_run_yet_ends_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(600)")
    stage = Stage(tmp_path)
    stage.server.stop()
    stage.server._modules = ["slow", "program"]
    stage.server.launch()
    forked = stage.fork("sleep")
    with pytest.raises(subprocess.TimeoutExpired):
        forked.wait(0.1)
    forked.send_signal(signal.SIGTERM)
    assert forked.poll() == -signal.SIGTERM


NO_FORK = """
import os
fork = os.fork
def refuse():
    os.fork = fork
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = refuse
"""


def test_a_process_that_cannot_be_forked_ends_alone(tmp_path: Path) -> None:
    (tmp_path / "no_fork.py").write_text(NO_FORK)
    stage = Stage(tmp_path, "no_fork")
    refused = stage.fork("sleep")
    refused.wait(30)
    assert (refused.poll(), refused.pid) == (1, None)
    assert stage.said() == "This process cannot be forked: Resource temporarily unavailable\n"
    forked = stage.fork("exit")
    forked.wait(30)
    assert forked.poll() == 7
    stage.server.stop()


def test_a_process_that_has_just_ended_can_be_signalled(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server waits for it, so its id may be free before we are told."""
    forked = stage.fork("end")
    forked.wait(30)
    monkeypatch.setattr(Forked, "poll", lambda self: None)
    forked.send_signal(signal.SIGTERM)


def test_what_a_killed_server_said_is_heard_although_a_request_was_left(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time; time.sleep(600)")
    stage = Stage(tmp_path, "program", "slow")
    server = stage.server._server
    assert server is not None
    server.send_signal(signal.SIGSTOP)
    forked = stage.fork("sleep")
    slow = {"arguments": ["slow"], "environment": {}, "folder": "", "death_signal": signal.SIGTERM}
    for _ in range(2):  # it reads one, and then imports for minutes
        stage.server.fork(slow, 0)
    server.send_signal(signal.SIGCONT)
    wait_until(lambda: stage.said() != "")
    assert forked.pid is None
    server.kill()
    server.wait()
    forked.wait(30)
    assert forked.pid is not None


@pytest.mark.parametrize("has_started", [False, True])
def test_a_server_that_hangs_is_ended_with_what_it_does_not_tell_of(stage: Stage, has_started: bool) -> None:
    server = stage.server._server
    assert server is not None
    if has_started:
        forked = stage.fork("sleep")
        process = stage.process(forked)
        server.send_signal(signal.SIGSTOP)
        process.kill()
        wait_until(lambda: has_ended(process))
    else:
        server.send_signal(signal.SIGSTOP)
        forked = stage.fork("sleep")
    assert forked.poll() is None
    forked.end_group(signal.SIGTERM)
    assert forked.poll() == -signal.SIGTERM
