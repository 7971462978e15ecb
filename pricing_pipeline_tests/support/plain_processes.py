"""Processes of a deployment without `up`, stopped by SIGTERM as a container runtime or systemd does."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from pricing_pipeline_tests.support.patience import PATIENCE, wait_until


class PlainProcesses:
    """A group of processes, each with a log of its own in a folder. Leaving it ends all that is left of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> PlainProcesses:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._running.values():
            _kill_session(process.pid)
            process.wait()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Start one, in a session of its own."""
        with (self._folder / f"{name}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )

    def all(self) -> list[psutil.Process]:
        """Those that run, and what they have started."""
        leaders = [psutil.Process(process.pid) for process in self._running.values()]
        return [*leaders, *(below for leader in leaders for below in leader.children(recursive=True))]

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def require_running(self) -> None:
        """Fail with the log of a process that has ended."""
        for name, process in self._running.items():
            assert process.poll() is None, f"{name} has ended:\n{self.log(name)[-3000:]}"

    def stop(self, name: str) -> tuple[int, float]:
        """Send SIGTERM to one and what it has started; returns how it ended and after how many seconds.

        It fails if anything is left.
        """
        process = self._running[name]
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGTERM)
        status = process.wait(PATIENCE)
        seconds = time.monotonic() - began
        wait_until(lambda: not _session(process.pid))
        del self._running[name]
        return status, seconds

    def kill(self, name: str) -> None:
        """Kill one and all that it has started, as the end of a machine does."""
        process = self._running.pop(name)
        _kill_session(process.pid)
        process.wait()


def _session(leader: int) -> list[int]:
    """The processes of a session, but for zombies that nobody has waited for yet."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def _kill_session(leader: int) -> None:
    for pid in _session(leader):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
