"""Start child processes that cannot outlive us, and open their log files.

The supervisor and the embedded server use it. They decide what runs, when, and what happens when it dies.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOG_LIMIT = 10_000_000
"""Bytes after which a log file is moved aside; one older generation is kept. So a day keeps twice as much at most."""
_DAY = 86_400

_PR_SET_PDEATHSIG = 1
_RESET_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD)
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def child_setup(death_signal: signal.Signals) -> Callable[[], None]:
    """Make the `preexec_fn` of a child that gets `death_signal` when we die, even by kill -9.

    Signals are reset because a child of a script's `command &` inherits an ignored SIGINT, and Dagster then
    ignores SIGTERM for minutes. The death signal follows the *thread* that starts the child: start children
    from the main thread. It exists on Linux only; elsewhere a child survives our kill -9.
    """
    parent = os.getpid()

    def prepare() -> None:
        for number in _RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        end_with_parent(parent, death_signal)

    return prepare


def end_with_parent(parent: int, death_signal: signal.Signals) -> None:
    """Have this process get a signal when its parent dies (Linux)."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # it died before the death signal was armed
            os._exit(1)


def without_libpq_variables(environment: dict[str, str]) -> dict[str, str]:
    """Copy `environment` without PGHOST, PGOPTIONS, PGSERVICE and the like, which would bend our own URLs."""
    return {name: value for name, value in environment.items() if not name.startswith("PG")}


def open_log(path: Path) -> int:
    """Open a log file for appending, moving a large old one aside first; the caller closes the descriptor."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    rotate_log(path)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def rotate_log(path: Path, limit: int = LOG_LIMIT) -> bool:
    """Move a log of more than `limit` bytes to `<name>.1`; returns whether it did, or emptied the log.

    It is moved once a day (UTC), so that `<name>.1` shows how that day's trouble began. If the log fills up again on
    the same day, it is emptied, and says so. Copies and truncates, because the writer keeps its descriptor: it appends,
    so it goes on at the new end. Lines written between copy and truncation are lost.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    if size <= limit:
        return False
    older = path.with_name(path.name + ".1")
    if _is_of_today(older):
        os.truncate(path, 0)
        with path.open("a") as log:
            log.write(f"{size:,} bytes are left out here: this log is over its budget of {2 * limit:,} bytes a day\n")
        return True
    older.unlink(missing_ok=True)  # if it is a link, do not write to its target
    shutil.copyfile(path, older)
    os.truncate(path, 0)
    return True


def _is_of_today(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_mtime // _DAY == time.time() // _DAY


def last_lines(path: Path, since: int = 0, count: int = 12) -> str:
    """Return the last `count` lines that `path` got after byte `since`, indented for an error message."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(min(since, size), size - 16_384))
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in lines[-count:])


def is_alive(pid: int) -> bool:
    """Whether a process with this id runs; a zombie does not."""
    if Path("/proc/self").exists():
        fields = _stat(pid)
        return fields is not None and fields[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _stat(pid: int) -> list[str] | None:
    """Return state, parent and what follows in /proc/<pid>/stat; the name before them may contain anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
