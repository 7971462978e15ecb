"""`python -m pricing_pipeline.defs.code_server OPTION...`: `dagster code-server start`, which forks what it starts.

Dagster starts a new Python to load the definitions, and one for each run, and each imports for seconds. On Linux these
processes are forked instead, with everything imported, by the fork server of `multiprocessing`. This process forks that
server itself, before it has threads.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import forkserver, util
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pricing_pipeline.defs import internals
from pricing_pipeline.processes.fork_server import show
from pricing_pipeline.processes.os_processes import end_with_parent

_forked_by: int | None = None
"""The process id of the fork server, in the processes that it has forked."""


class ForkedProcess(ForkServerProcess):
    """A process that ends with the fork server, because only that learns how the process ends.

    It also has the part of `subprocess.Popen` that Dagster needs.
    """

    wait = ForkServerProcess.join
    returncode = ForkServerProcess.exitcode

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""
        return self.exitcode

    def run(self) -> None:
        """Do its work."""
        end_with_parent(_forked_by or os.getppid(), signal.SIGTERM)
        super().run()


class ForkingContext(ForkServerContext):
    """Makes such processes, and the objects that they share with their parent."""

    Process = ForkedProcess


def main() -> None:
    """Serve until a signal."""
    if sys.platform == "linux":
        start_fork_server()
        # Dagster has no setting for either of the two that are replaced here and in _serve, and exports neither.
        internals.server.open_ipc_subprocess = fork_server_of_definitions  # type: ignore[attr-defined,assignment]
    internals.cli(["code-server", "start", *sys.argv[1:]], auto_envvar_prefix=internals.ENV_PREFIX)


def start_fork_server() -> None:
    """Start the fork server of `multiprocessing`, and its resource tracker, without a new Python."""
    execute, util.spawnv_passfds = util.spawnv_passfds, _fork  # type: ignore[assignment]
    try:
        forkserver._forkserver.ensure_running()
    finally:
        util.spawnv_passfds = execute


def _fork(path: bytes, arguments: Sequence[Any], passed: Sequence[int]) -> int:
    """Fork a process that does what `python -c CODE` would do, with these descriptors alone."""
    global _forked_by
    pid = os.fork()
    if pid == 0:
        try:
            _forked_by = os.getpid()
            for descriptor in {int(path.name) for path in Path("/proc/self/fd").iterdir()} - {0, 1, 2, *passed}:
                with suppress(OSError):
                    os.close(descriptor)
            exec(arguments[-1])  # noqa: S102 - what `multiprocessing` has for `python -c`
        finally:
            os._exit(0)
    return pid


def fork_server_of_definitions(
    command: Sequence[str], cwd: str | None = None, env: Mapping[str, str] | None = None
) -> ForkedProcess:
    """Fork a process that does what `dagster api grpc` does."""
    process = ForkedProcess(target=_serve, args=(command, env, key_of_fork_server()))
    process.start()
    return process


def key_of_fork_server() -> bytes | None:
    """The key that Python 3.14 and newer must show to their fork server."""
    return getattr(forkserver._forkserver, "_forkserver_authkey", None)


def join_fork_server(key: bytes | None) -> None:
    """Let a forked process use the fork server. It would start another, because it is not the parent of this one."""
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
    forkserver._forkserver._forkserver_authkey = key  # type: ignore[attr-defined]


def _serve(command: Sequence[str], environment: Mapping[str, str], key: bytes | None) -> None:
    show(" ".join(command))
    os.environ.clear()
    os.environ.update(environment)
    join_fork_server(key)
    forking = SimpleNamespace(get_context=lambda method: ForkingContext())
    internals.server.multiprocessing = forking  # type: ignore[attr-defined,assignment]
    internals.cli(list(command[command.index("api") :]), auto_envvar_prefix=internals.ENV_PREFIX)


if __name__ == "__main__":
    main()
