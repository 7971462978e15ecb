"""The embedded server's cluster on disk: making it, locking it, and reading PostgreSQL's own lock file.

Where it lies and who owns it is in `embedded_home`; the running server is in `embedded`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pricing_pipeline.db.embedded_home import MAJOR, SUPERUSER, ServerUser, give
from pricing_pipeline.errors import EmbeddedServerError
from pricing_pipeline.processes.os_processes import child_setup

# Written into postgresql.conf when the cluster is made; from then on the file is the user's to change.
_TUNING = {
    "shared_buffers": "128MB",
    "wal_buffers": "16MB",  # of fewer, sessions that write much at once wait for each other
    "max_connections": "100",
    "reserved_connections": "20",  # the last places, for owner and worker: people cannot keep the pipeline out
    "max_wal_size": "1GB",
    "temp_file_limit": "20GB",  # of one session: a query that runs away does not fill the disk
    "random_page_cost": "1.1",
    "jit": "off",  # compiling takes longer than our short queries
    "autovacuum_naptime": "15s",  # queue tables turn over within seconds
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "log_checkpoints": "off",
}


def environment() -> dict[str, str]:
    """A server's environment: nothing of ours, except where shared libraries are found."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"} | kept


def lock_cluster(cluster: Path, patience: float, check: Callable[[], None]) -> int:
    """Take the lock that all processes of a server hold, and return its descriptor.

    The caller owns the home, so a process that holds the lock has lost its owner. This waits up to `patience` seconds
    for its end, and calls `check`, which may raise. Raises EmbeddedServerError when that is not enough.
    """
    descriptor = os.open(cluster / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _wait_for_lock(descriptor, cluster, patience, check)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait_for_lock(descriptor: int, cluster: Path, patience: float, check: Callable[[], None]) -> None:
    deadline = time.monotonic() + patience
    asked: int | None = None
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            orphan = server_pid(cluster / "data")
            if orphan is not None and orphan != asked:
                # Its owner is gone. Only on Linux has a death signal already told it to stop.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGINT)
                asked = orphan
            if time.monotonic() > deadline:
                holder = f"server {orphan}" if orphan else "its server is gone"
                raise EmbeddedServerError(
                    f"processes of an earlier PostgreSQL still use {cluster} ({holder}). "
                    "Wait until they have ended, or end them, and start again."
                ) from None
            check()
            time.sleep(0.02)
        else:
            return


def make_cluster(programs: Path, cluster: Path, user: ServerUser | None, password: str, *, sync: bool) -> None:
    """Make the data directory in `cluster`, if it is missing, with `password` for the superuser.

    Raises EmbeddedServerError when initdb fails, or when another version made the one that is there.
    """
    data = cluster / "data"
    if data.exists():
        version = (data / "PG_VERSION").read_text().strip()
        if version != MAJOR:
            raise EmbeddedServerError(
                f"the database in {data} was made by PostgreSQL {version}, and this release brings "
                f"{MAJOR}. Dump it with the earlier release and load the dump into a new "
                "PRICING_HOME."
            )
        return
    # Made under another name and renamed, so that a cluster is whole or missing, whenever we are killed.
    unfinished = cluster / "data.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    password_file = cluster / "initdb-password"
    password_file.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(password + "\n")
        give(password_file, user)
        result = subprocess.run(
            [
                programs / "initdb",
                f"--pgdata={unfinished}",
                f"--username={SUPERUSER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                *(f"--set={name}={value}" for name, value in _TUNING.items()),
                *_how_to_sync(sync=sync),
            ],
            cwd=cluster,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGKILL),
            **(user.popen_options() if user else {}),
        )
    finally:
        password_file.unlink(missing_ok=True)
    if result.returncode != 0:
        raise EmbeddedServerError(f"the database could not be made in {cluster}. initdb said:\n{result.stdout.strip()}")
    unfinished.rename(data)


def _how_to_sync(*, sync: bool) -> list[str]:
    if not sync:
        return ["--no-sync"]
    # One call for the file system took 0.1 to 0.4 s, and one for each of a thousand files 1.5 to 2 s (November 2026).
    return ["--sync-method=syncfs"] if sys.platform == "linux" else []


def lock_file(data: Path) -> list[str]:
    """Read `postmaster.pid`: pid first, state ("ready", "starting", "stopping") on the eighth line."""
    try:
        content = (data / "postmaster.pid").read_text(errors="replace")
    except OSError:
        return []
    return [line.strip() for line in content.splitlines()]


def server_pid(data: Path) -> int | None:
    """Return the pid in `postmaster.pid` if that process really is a server on this data."""
    first = lock_file(data)[:1]
    if not first or not first[0].isdigit():
        return None
    pid = int(first[0])
    with contextlib.suppress(OSError):
        # A server's working directory is its data directory.
        return pid if Path(f"/proc/{pid}/cwd").readlink() == data.resolve() else None
    if Path("/proc/self").exists():
        return None
    listed = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True)
    return pid if str(data) in listed.stdout else None


def drop_left_over_lock_file(data: Path) -> None:
    """Remove a `postmaster.pid` PostgreSQL would stumble over: empty, cut off, or with a reused pid.

    The caller holds the cluster's lock, so no server of ours can have written it.
    """
    if server_pid(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)
