"""Starts our Python processes by forking a server process that has imported their modules (Linux only).

A forked process need not import them again, and shares their memory. Without a server, `fork` returns None and the
supervisor starts the process as usual: some libraries of macOS do not work in a forked process.

The server knows no secret, because each process would inherit it: a request is in a file that only the new process
reads.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pricing_pipeline.processes.os_processes import child_setup, is_alive, open_log

_LONGEST_MESSAGE = 1024
_ARGUMENTS_BEGIN, _ARGUMENTS_END = 45, 46
"""Fields of /proc/self/stat, counted from the state of the process."""


class ForkServer:
    """The supervisor's side: a service that starts the server, and asks it for processes."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str], folder: Path, log_path: Path) -> None:
        """The server imports the modules ahead, in this order and in this folder."""
        self._modules = modules
        self._environment = environment
        self._folder = folder
        self.log_path = log_path
        self._processes: list[Forked] = []
        self._server: subprocess.Popen[bytes] | None = None
        self._status: int | None = None
        self._channel: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The id of the server that runs."""
        return self._server.pid if self._server is not None else None

    def launch(self) -> None:
        """Start the server, and return while it imports."""
        self._status = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = open_log(self.log_path)
        try:
            self._server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), *self._modules],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                preexec_fn=child_setup(signal.SIGTERM),
            )
        finally:
            os.close(log)
            theirs.close()
        ours.setblocking(False)
        self._channel = ours

    def fork(self, request: Mapping[str, Any], log: int) -> Forked | None:
        """Ask for a process that writes to `log`; None if there is no server.

        The request has the `arguments` after `python -m`, the `environment`, the `folder`, and the `death_signal` that
        the process gets when the server ends.
        """
        self.listen()
        if self._channel is None:
            return None
        asked = {
            "number": len(self._processes),
            "module": request["arguments"][0],
            "death_signal": request["death_signal"],
        }
        with os.fdopen(os.memfd_create("request"), "r+b") as file:
            file.write(json.dumps(request).encode())
            file.seek(0)
            try:
                socket.send_fds(self._channel, [json.dumps(asked).encode()], [log, file.fileno()])
            except OSError:
                return None
        forked = Forked(self)
        self._processes.append(forked)
        return forked

    def listen(self) -> None:
        """Note which processes were started, and which have ended."""
        while self._channel is not None:
            try:
                answer = self._channel.recv(_LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except ConnectionResetError:  # it died with an unread request; read its messages first
                continue
            except OSError:
                answer = b""
            if answer:
                said = json.loads(answer)
                self._processes[said["number"]].note(said)
            else:
                self.stop()

    def poll(self) -> int | None:
        """How the server has ended; None while it runs."""
        self.listen()
        return self._status

    def is_ready(self) -> bool:
        """True: it takes requests from the start."""
        return True

    def stop(self) -> None:
        """Kill the server if it still runs; the processes that it has started get their death signal."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._server is not None:
            self._server.kill()
            self._status = self._server.wait()
            self._server = None
        for process in self._processes:
            process.note_end_of_server()
        self._processes = []


class Forked:
    """A process that the server has started, or will; it has the part of `subprocess.Popen` that we need."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._status: int | None = None
        self._is_orphan = False
        self.pid: int | None = None
        """None until the server has started it."""

    def note(self, said: Mapping[str, int]) -> None:
        """Note a message of the server: that the process was started, or how it ended."""
        self.pid = said.get("pid")
        self._status = said.get("status")

    def note_end_of_server(self) -> None:
        """Note that the server has ended, so that nobody will say how this process ends."""
        self._is_orphan = True

    def poll(self) -> int | None:
        """Its exit status; None while it runs, or will be started."""
        self._server.listen()
        if self._status is None and self._is_orphan and (self.pid is None or not is_alive(self.pid)):
            self._status = -signal.SIGTERM
        return self._status

    def wait(self, seconds: float) -> None:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("a forked process", seconds)
            time.sleep(0.01)

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it if it runs. One that does not run yet ends with the server."""
        if self.poll() is not None:
            return
        if self.pid is None:
            self._server.stop()
        else:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def end_group(self, number: signal.Signals) -> None:
        """Signal its group. If the server has not started it, or not told of its end, it hangs, and is ended."""
        if self.poll() is not None:
            return
        if self.pid is None or not is_alive(self.pid):
            self._server.stop()
        else:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def main() -> None:
    """Import modules, and fork until the supervisor closes the channel; the arguments name the channel and modules."""
    channel, *modules = sys.argv[1:]
    gc.disable()
    with socket.socket(fileno=int(channel)) as requests:
        child = _serve(requests, modules)
    if child is not None:
        _become(*child)


def _serve(channel: socket.socket, modules: list[str]) -> tuple[int, int] | None:
    """Import modules, and fork for each request once its module and those before are imported.

    Another module is imported when it is first asked for.

    Returns None when there are no more requests, and in a forked process its log and request.
    """
    bell, ringer = os.pipe()
    for end in (bell, ringer):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    numbers: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([channel.fileno(), bell], [], [], 0 if modules else None)
        if not ready:
            _import(modules.pop(0))
        if bell in ready:
            os.read(bell, 512)
            _tell_ends(channel, numbers)
        if channel.fileno() not in ready:
            continue
        message, files, _, _ = socket.recv_fds(channel, _LONGEST_MESSAGE, 2)
        if not message:
            return None
        log, file = files
        asked = json.loads(message)
        while asked["module"] in modules:
            _import(modules.pop(0))
        _import(asked["module"])
        prepare = child_setup(signal.Signals(asked["death_signal"]))
        try:
            pid = os.fork()
        except OSError as error:
            pid = -1
            os.write(log, f"This process cannot be forked: {error.strerror}\n".encode())
        if pid == 0:
            signal.set_wakeup_fd(-1)
            os.close(bell)
            os.close(ringer)
            prepare()
            return log, file
        os.close(log)
        os.close(file)
        if pid > 0:
            numbers[pid] = asked["number"]
            channel.send(json.dumps({"number": asked["number"], "pid": pid}).encode())
        else:
            _report(channel, {"number": asked["number"], "status": 1})


def _import(module: str) -> None:
    # The process that needs the module fails by itself, and says so in its own log.
    with suppress(Exception, SystemExit):
        importlib.import_module(module)


def _tell_ends(channel: socket.socket, numbers: dict[int, int]) -> None:
    """Tell the supervisor which processes have ended, and wake it: they are not its children."""
    while numbers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _report(channel, {"number": numbers.pop(pid), "pid": pid, "status": os.waitstatus_to_exitcode(status)})


def _report(channel: socket.socket, ended: Mapping[str, int]) -> None:
    channel.send(json.dumps(ended).encode())
    os.kill(os.getppid(), signal.SIGCHLD)


def _become(log: int, file: int) -> None:
    """Do what `python -m MODULE ARGUMENT...` would do in the requested environment and folder."""
    # A garbage collection that visits the imported objects would write to their pages, and so unshare them.
    gc.freeze()
    gc.enable()
    with os.fdopen(file, "rb") as requested:
        request = json.load(requested)
    os.setsid()
    # As Python does when it starts: Dagster does on SIGTERM what Python does on SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["folder"])
    module, *arguments = request["arguments"]
    sys.argv = [module, *arguments]
    show(f"{sys.executable} -m {' '.join(request['arguments'])}")
    # It was imported by its name, and must run again as __main__.
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def show(command: str) -> None:
    """Have `ps` show a command in place of the server's."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    if begin:
        ctypes.memmove(begin, os.fsencode(command)[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)


if __name__ == "__main__":
    main()
