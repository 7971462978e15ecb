"""The processes under a supervisor: describe one, run it, and start it again after it died or stopped answering.

The supervisor decides which processes there are, and when all of them stop.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pricing_pipeline.errors import PricingError, SupervisorError
from pricing_pipeline.processes import guardian
from pricing_pipeline.processes.fork_server import Forked, ForkServer
from pricing_pipeline.processes.home import temporary_folder
from pricing_pipeline.processes.os_processes import child_setup, last_lines, open_log

LOG = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a process that died is started again: the first time, doubling up to the longest."""
STEADY_AFTER = 60.0
"""A process that lived this many seconds starts over with the first pause."""
ASKED_EVERY = 10.0
"""Seconds between two questions whether a process still answers."""
ASKED_AT_FIRST = 1.0
"""The same before its first answer. LONGEST_SILENCE applies only after that answer."""
LONGEST_SILENCE = 60.0
"""Seconds without an answer that end a process. On a busy machine a healthy one misses a few questions."""
SLOWEST_START = 180.0
"""The same for one that has not answered yet."""


@dataclass(frozen=True)
class Child:
    """A command to run and to keep running."""

    name: str
    argv: Sequence[str | Path]
    env: Mapping[str, str]
    """The whole environment of the command, except for TMPDIR, which is the home's."""
    folder: Path | None = None
    """Its working folder; ours when None."""
    ready: Callable[[], bool] | None = None
    """Tells whether it can be used; None: as soon as it runs."""
    answers: Callable[[], bool] | None = None
    """Tells, within seconds, whether it still does its work; None: as long as it runs."""
    restart: bool = True
    """Start it again whenever it ends."""
    log_path: Path | None = None
    """Gets standard output and error; `logs/<name>.log` in the home when None."""
    death_signal: signal.Signals = signal.SIGTERM
    """The signal that it gets when the supervisor is killed. Its descendants get none: the guardian ends them."""


class Service(Protocol):
    """Something that runs a process of its own, such as the embedded database server."""

    @property
    def pid(self) -> int | None: ...
    @property
    def log_path(self) -> Path: ...
    def launch(self) -> None: ...
    def poll(self) -> int | None: ...
    def is_ready(self) -> bool: ...
    def stop(self) -> None: ...


class Command:
    """Runs a Child."""

    def __init__(self, child: Child, home: Path, fork_server: ForkServer | None = None) -> None:
        self._child = child
        self._home = home
        self._fork_server = fork_server
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self._log_start = 0
        self.log_path = child.log_path or home / "logs" / f"{child.name}.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def launch(self) -> None:
        log = open_log(self.log_path)
        self._log_start = os.fstat(log).st_size
        environment = {
            **self._child.env,
            guardian.MARK: str(self._home),
            "TMPDIR": str(temporary_folder(self._home)),
        }
        try:
            self._process = self._fork(environment, log) or self._start(environment, log)
        except OSError as error:
            raise SupervisorError(
                f"{self._child.name} cannot be started: {self._child.argv[0]}: {error.strerror}. "
                "Install the project again with `make install`."
            ) from None
        finally:
            os.close(log)

    def _fork(self, environment: dict[str, str], log: int) -> Forked | None:
        python, *arguments = map(str, self._child.argv)
        if self._fork_server is None or [python, *arguments[:1]] != [sys.executable, "-m"]:
            return None
        request = {
            "arguments": arguments[1:],
            "environment": environment,
            "folder": str(self._child.folder or Path.cwd()),
            "death_signal": self._child.death_signal,
        }
        return self._fork_server.fork(request, log)

    def _start(self, environment: dict[str, str], log: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._child.argv,
            env=environment,
            cwd=self._child.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=child_setup(self._child.death_signal),
        )

    def poll(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def is_ready(self) -> bool:
        if (status := self.poll()) is not None:
            raise SupervisorError(
                f"{self._child.name} ended ({describe_exit(status)}) before it was ready. Its log {self.log_path} "
                f"ends with:\n{last_lines(self.log_path, self._log_start)}"
            )
        return self._child.ready is None or self._child.ready()

    def send(self, number: signal.Signals) -> None:
        """Signal the command; its whole session too where descendants cannot be found otherwise."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        if number is signal.SIGKILL and self._process.pid is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def stop(self) -> None:
        self.send(signal.SIGTERM)

    def wait(self, seconds: float = 15) -> None:
        """Wait for its end. A process that survives SIGKILL for this long hangs in the kernel."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def end_group(self, number: signal.Signals) -> None:
        """Signal the command and what it has started in its group; how it ends is noted as any death."""
        if isinstance(self._process, Forked):
            self._process.end_group(number)
        elif self.pid is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)


@dataclass
class Pulse:
    """Whether a process still answers. A process that lives without answering is ended, and then restarted."""

    answers: Callable[[], bool]
    end: Callable[[signal.Signals], None]
    asked_at: float = field(default_factory=time.monotonic)
    silent_since: datetime | None = None
    """Since when it gives no answer; None while it does, or has not begun to."""
    _has_answered: bool = False
    _answered_at: float = field(default_factory=time.monotonic)

    @property
    def due_at(self) -> float:
        """When to ask next, on the monotonic clock."""
        return self.asked_at + (ASKED_EVERY if self._has_answered else ASKED_AT_FIRST)

    def begin(self, now: float) -> None:
        """Note that the process was started again."""
        self.asked_at = self._answered_at = now
        self.silent_since, self._has_answered = None, False

    def check(self, now: float) -> bool:
        """Ask the process when due, and end it if it was silent for too long; returns whether anything changed."""
        if now < self.due_at:
            return False
        self.asked_at = now
        if self.answers():
            was_silent = self.silent_since is not None
            self.silent_since, self._has_answered, self._answered_at = None, True, now
            return was_silent
        silence = now - self._answered_at
        longest = LONGEST_SILENCE if self._has_answered else SLOWEST_START
        if silence >= longest:
            # SIGTERM lets runs in its group return their tasks. A frozen process does not react to it.
            self.end(signal.SIGTERM if silence < longest + ASKED_EVERY else signal.SIGKILL)
        is_new = self.silent_since is None and (self._has_answered or silence >= longest)
        if is_new:
            self.silent_since = datetime.now(UTC)
        return is_new


@dataclass
class Watched:
    """A service, its restarts, and when to start it again."""

    name: str
    service: Service
    restart: bool
    pulse: Pulse | None = None
    launched_at: float = field(default_factory=time.monotonic)
    restarts: int = 0
    pause: float = FIRST_PAUSE
    """Seconds to wait after its next death."""
    restart_at: float | None = None
    """When to start it again, on the monotonic clock; None while it runs."""
    is_over: bool = False
    """It has ended and will not be started again."""

    def look_after(self, now: float) -> bool:
        """Note its death, or start it again when that is due; tell whether anything changed."""
        if self.is_over:
            return False
        if self.restart_at is not None:
            return now >= self.restart_at and self._launch_again(now)
        if self.service.poll() is not None:
            return self._note_death(now)
        return self.pulse is not None and self._check(self.pulse, now)

    @property
    def due_at(self) -> float | None:
        """When `look_after` must be called next, on the monotonic clock; None: when the process dies."""
        if self.restart_at is None and not self.is_over and self.pulse is not None:
            return self.pulse.due_at
        return self.restart_at

    def _check(self, pulse: Pulse, now: float) -> bool:
        changed = pulse.check(now)
        if changed and pulse.silent_since is None:
            LOG.warning("%s answers again", self.name)
        elif changed:
            LOG.warning("%s runs and does not answer", self.name)
        return changed

    def _note_death(self, now: float) -> bool:
        status = describe_exit(self.service.poll())
        if not self.restart:
            self.is_over = True
            LOG.info("%s has ended (%s)", self.name, status)
            return True
        if now - self.launched_at >= STEADY_AFTER:
            self.pause = FIRST_PAUSE
        LOG.warning("%s ended (%s); it starts again in %g s", self.name, status, self.pause)
        self._wait(now)
        return True

    def _launch_again(self, now: float) -> bool:
        self.restarts += 1
        self.launched_at = now
        try:
            self.service.launch()
        except (PricingError, OSError) as error:
            LOG.warning("%s does not start again: %s Next try in %g s", self.name, error, self.pause)
            self._wait(now)
        else:
            self.restart_at = None
            if self.pulse is not None:
                self.pulse.begin(now)
        return True

    def _wait(self, now: float) -> None:
        self.restart_at = now + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


def describe_exit(status: int | None) -> str:
    """An exit status in words."""
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
