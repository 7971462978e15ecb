"""The processes under a supervisor: how one is described, run, and started again after it died.

Which processes there are and when all of them stop is the supervisor's business.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pricing_pipeline import guardian
from pricing_pipeline.errors import PricingError, SupervisorError
from pricing_pipeline.processes import child_setup, last_lines, open_log

LOG = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a process that died is started again: the first time, doubling up to the longest."""
STEADY_AFTER = 60.0
"""A process that lived so many seconds starts over with the first pause."""


@dataclass(frozen=True)
class Child:
    """A command to run and to keep running."""

    name: str
    argv: Sequence[str | Path]
    env: Mapping[str, str]
    """The whole environment of the command."""
    ready: Callable[[], bool] | None = None
    """Tells whether it can be used; None: as soon as it runs."""
    restart: bool = True
    """Start it again whenever it ends."""
    log_path: Path | None = None
    """Gets standard output and error; `logs/<name>.log` in the home when None."""
    death_signal: signal.Signals = signal.SIGTERM
    """What it gets when the supervisor is killed. Its descendants get nothing: the guardian ends them."""


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

    def __init__(self, child: Child, home: Path) -> None:
        self._child = child
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self.log_path = child.log_path or home / "logs" / f"{child.name}.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def launch(self) -> None:
        log = open_log(self.log_path)
        self._log_start = os.fstat(log).st_size
        try:
            self._process = subprocess.Popen(
                self._child.argv,
                env={**self._child.env, guardian.MARK: str(self._home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=child_setup(self._child.death_signal),
            )
        except OSError as error:
            raise SupervisorError(
                f"{self._child.name} cannot be started: {self._child.argv[0]}: {error.strerror}. "
                "Install the project anew with `make install`."
            ) from None
        finally:
            os.close(log)

    def poll(self) -> int | None:
        return self._process.poll() if self._process is not None else None

    def is_ready(self) -> bool:
        if (status := self.poll()) is not None:
            raise SupervisorError(
                f"{self._child.name} ended ({said(status)}) before it was ready. Its log {self.log_path} "
                f"ends with:\n{last_lines(self.log_path, self._log_start)}"
            )
        return self._child.ready is None or self._child.ready()

    def send(self, number: signal.Signals) -> None:
        """Signal the command; its whole session too where descendants cannot be found otherwise."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, number)

    def stop(self) -> None:
        self.send(signal.SIGTERM)


@dataclass
class Watched:
    """A service, how it has fared, and when to start it again."""

    name: str
    service: Service
    restart: bool
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
        if self.restart_at is None:
            return self.service.poll() is not None and self._note_death(now)
        return now >= self.restart_at and self._launch_again(now)

    def _note_death(self, now: float) -> bool:
        status = said(self.service.poll())
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
        return True

    def _wait(self, now: float) -> None:
        self.restart_at = now + self.pause
        self.pause = min(self.pause * 2, LONGEST_PAUSE)


def said(status: int | None) -> str:
    """Put an exit status into words."""
    if status is not None and status < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
