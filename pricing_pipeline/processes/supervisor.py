"""Starts processes, keeps them running, and stops them so that nothing is left.

It does not know the pipeline's processes; `stack` names them. `children` runs and restarts one, `home` has the home's
lock and state, and `guardian` cleans up after kill -9 of the supervisor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from pricing_pipeline.errors import PricingError
from pricing_pipeline.processes import guardian
from pricing_pipeline.processes.children import Child, Command, Pulse, Service, Watched
from pricing_pipeline.processes.fork_server import ForkServer
from pricing_pipeline.processes.home import lock_home, prepare_home, temporary_folder, tidy_home, write_state
from pricing_pipeline.processes.os_processes import rotate_log

LOG = logging.getLogger(__name__)

ONE_PRESS = 0.5
"""Seconds within which several signals are one: `make` and the terminal may both deliver one Ctrl-C."""

_LOOK_AT_LOGS_EVERY = 10.0
_LOOK_EVERY = 2.0


class StopRequested(Exception):
    """A signal asked the supervisor to stop. It ends a `with Supervisor(...)` block without an error."""


class Supervisor:
    """Runs processes for one home. Use it in the main thread, as a context manager.

    Leaving the block stops everything: SIGTERM to all children, the youngest first; after `grace` seconds, or
    at once when a second signal arrives (those within `one_press` seconds are one), SIGKILL to whatever is left
    of them and of what they started; then the services, the youngest first. SIGINT, SIGTERM and SIGHUP ask for it
    (SIGHUP not under nohup).
    """

    def __init__(self, home: Path, *, grace: float = 5.0, one_press: float = ONE_PRESS) -> None:
        self.home = home.absolute()
        self._grace = grace
        self._one_press = one_press
        self._watched: dict[str, Watched] = {}
        self._facts: dict[str, Any] = {}
        self._signals = 0
        self._started_at = datetime.now(UTC)
        self._logs_seen_at = time.monotonic()
        self._lock: int | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._undo = contextlib.ExitStack()
        self._bell = -1
        self._fork_server: ForkServer | None = None
        self._saved_pids: dict[str, int | None] = {}

    # ── Beginning and end ────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            # All files of all processes, also sockets and logs, are closed to others.
            undo.callback(os.umask, os.umask(0o077))
            prepare_home(self.home)
            self._lock = lock_home(self.home, patience=self._grace + 10)
            undo.callback(os.close, self._lock)
            # Something is left only if supervisor and guardian were killed together.
            guardian.kill_marked(str(self.home), grace=0)
            tidy_home(self.home)
            undo.callback(tidy_home, self.home)
            self._listen_for_signals(undo)
            self._start_guardian()
            self._save()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        try:
            self._stop_all()
        finally:
            self._dismiss_guardian()
            (self.home / "state.json").unlink(missing_ok=True)
            self._undo.close()
        return kind is StopRequested

    @property
    def stop_requested(self) -> bool:
        """Whether a signal has asked for the end."""
        return self._signals > 0

    def check(self) -> None:
        """Raise StopRequested if a signal has asked for the end; call it between long steps of a start."""
        if self.stop_requested:
            raise StopRequested

    # ── What runs ────────────────────────────────────────────────────────────────────────────────

    def import_once(self, modules: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Import modules for all Python processes that are started from now on (Linux); others import them alone."""
        if sys.platform == "linux":
            marked = {
                **environment,
                guardian.MARK: str(self.home),
                "TMPDIR": str(temporary_folder(self.home)),
            }
            log_path = self.home / "logs" / "fork-server.log"
            self._fork_server = ForkServer(modules, marked, folder, log_path)
            self._fork_server.launch()
            self.watch("fork-server", self._fork_server)

    def start(self, child: Child) -> None:
        """Start a command and look after it from now on. Raises SupervisorError when it cannot be run."""
        self.check()
        command = Command(child, self.home, self._fork_server)
        command.launch()
        pulse = Pulse(child.answers, command.end_group) if child.answers is not None else None
        self._add(Watched(child.name, command, child.restart, pulse))

    def watch(self, name: str, service: Service) -> None:
        """Look after a service that has been started: launch it again when it dies, stop it last."""
        self._add(Watched(name, service, restart=True))

    def wait_until_ready(self, *names: str) -> None:
        """Wait until the named processes are ready, all of them when none is named; without a limit.

        Raises SupervisorError with its last log lines when one ends first, StopRequested when asked to stop.
        """
        waiting = {name: self._watched[name] for name in names or self._watched}

        def all_ready() -> bool:
            for name, watched in list(waiting.items()):
                if watched.service.is_ready():
                    del waiting[name]
            return not waiting

        self.wait_until(all_ready)

    def wait_until(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Look after the processes until `condition` holds; tell whether it did within `seconds`.

        Raises StopRequested when asked to stop meanwhile.
        """
        deadline = time.monotonic() + seconds if seconds is not None else float("inf")
        while not condition():
            if time.monotonic() >= deadline:
                return False
            self._look_after()
            self._sleep(0.05)
            self.check()
        return True

    def run_until_stopped(self, look: Callable[[], object] = lambda: None) -> None:
        """Look after the processes until a signal asks for the end, and call `look` every two seconds.

        `look` must not wait for anything.
        """
        while not self.stop_requested:
            look()
            self._sleep(min(self._look_after(), _LOOK_EVERY))

    def record(self, **facts: Any) -> None:
        """Add facts (JSON values) to `state.json`, for `status` to read."""
        self._facts |= facts
        self._save()

    def _add(self, watched: Watched) -> None:
        self._watched[watched.name] = watched
        self._save()

    def _look_after(self) -> float:
        """Restart what died or fell silent and is due; return how many seconds nothing needs doing."""
        now = time.monotonic()
        changes = [watched.look_after(now) for watched in self._watched.values()]
        if any(changes) or self._pids() != self._saved_pids:
            self._save()
        if self._guardian is not None and self._guardian.poll() is not None:
            self._start_guardian()
        if now - self._logs_seen_at > _LOOK_AT_LOGS_EVERY:
            self._logs_seen_at = now
            with _kept_running("a log file cannot be moved aside"):
                for watched in self._watched.values():
                    rotate_log(watched.service.log_path)
        due = [at for watched in self._watched.values() if (at := watched.due_at) is not None]
        return max(0.0, min([*due, now + _LOOK_AT_LOGS_EVERY]) - now)

    # ── Stopping ─────────────────────────────────────────────────────────────────────────────────

    def _stop_all(self) -> None:
        watched = list(reversed(self._watched.values()))
        commands = [w.service for w in watched if isinstance(w.service, Command)]
        services = {w.name: w.service for w in watched if not isinstance(w.service, Command)}
        self._end_commands(commands)
        if self._fork_server is not None:
            self._fork_server.stop()
        guardian.kill_marked(str(self.home), grace=0)
        for name, service in services.items():
            try:
                service.stop()
            except (PricingError, OSError) as error:
                LOG.error("%s does not stop: %s", name, error)

    def _end_commands(self, commands: list[Command]) -> None:
        signals = self._signals
        for command in commands:
            command.send(signal.SIGTERM)
        deadline = time.monotonic() + self._grace
        while any(command.poll() is None for command in commands):
            if time.monotonic() >= deadline or self._signals > signals:
                break
            self._sleep(0.1)
        for command in commands:
            command.send(signal.SIGKILL)
        for command in commands:
            command.wait()

    # ── Machinery ────────────────────────────────────────────────────────────────────────────────

    def _listen_for_signals(self, undo: contextlib.ExitStack) -> None:
        bell, ringer = os.pipe()
        for end in (bell, ringer):
            os.set_blocking(end, False)
            undo.callback(os.close, end)
        self._bell = bell
        undo.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(ringer, warn_on_full_buffer=False))
        last = float("-inf")

        def ask_to_stop(number: int, frame: FrameType | None) -> None:
            nonlocal last
            if time.monotonic() - last > self._one_press:
                last = time.monotonic()
                self._signals += 1

        handlers: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
            signal.SIGINT: ask_to_stop,  # also when a script's `command &` made us start with it ignored
            signal.SIGTERM: ask_to_stop,
            signal.SIGCHLD: lambda number, frame: None,  # it rings the bell
        }
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup asks to live on
            handlers[signal.SIGHUP] = ask_to_stop
        for number, handler in handlers.items():
            undo.callback(signal.signal, number, signal.signal(number, handler) or signal.SIG_DFL)

    def _sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the next signal or the death of a child."""
        if select.select([self._bell], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._bell, 512):
                    pass

    def _start_guardian(self) -> None:
        if self._guardian is not None and self._guardian.stdin is not None:
            self._guardian.stdin.close()
        assert self._lock is not None  # noqa: S101 - taken on entering
        with _kept_running("the guardian cannot be started"):
            self._guardian = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, str(self.home), str(self._grace)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(self._lock,),
                start_new_session=True,
            )

    def _dismiss_guardian(self) -> None:
        if self._guardian is None or self._guardian.stdin is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.write(b"!")
            self._guardian.stdin.close()
        self._guardian.wait()

    def _pids(self) -> dict[str, int | None]:
        """The processes by name; one that is about to be forked has no id yet."""
        return {watched.name: watched.service.pid for watched in self._watched.values()}

    def _save(self) -> None:
        self._saved_pids = self._pids()
        state = {
            **self._facts,
            "pid": os.getpid(),
            "started_at": self._started_at.isoformat(),
            "processes": {
                watched.name: {
                    "pid": self._saved_pids[watched.name],
                    "restarts": watched.restarts,
                    "silent_since": _since(watched),
                    "log": str(watched.service.log_path),
                }
                for watched in self._watched.values()
            },
        }
        with _kept_running("state.json cannot be written"):
            write_state(self.home, state)


def _since(watched: Watched) -> str | None:
    """Since when a running process has not answered."""
    silent_since = watched.pulse.silent_since if watched.pulse is not None else None
    return silent_since.isoformat() if silent_since is not None else None


@contextlib.contextmanager
def _kept_running(trouble: str) -> Iterator[None]:
    """Go on after trouble with a file: a full disk must not stop what runs."""
    try:
        yield
    except OSError as error:
        LOG.warning("%s: %s", trouble, error.strerror)
