"""The home folder of one running pipeline: make, lock and tidy it, and record the running processes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.local_files.own_files import close_to_group, replace_own, who_else_may_change
from pricing_pipeline.processes.os_processes import is_alive

_TEMPORARY = "pricing-tmp"
"""The name of a folder that is emptied at each start. A folder named `tmp` in the home might be the user's own."""
_LONGEST_SOCKET = 100
"""The longest path of a unix socket, in bytes, that every kernel accepts."""
_LONGEST_TEMPORARY = len("/pymp-12345678/listener-12345678")
"""The longest path of a socket below the temporary folder; Dagster's are shorter."""


def prepare_home(home: Path) -> None:
    """Make the home if it does not exist.

    Raises SupervisorError in one sentence if it cannot be written, or if others can change its content: keys and
    programs are read from it.
    """
    try:
        _require_firm_path(home)
        _make(home)
        if (fault := who_else_may_change(home)) is not None:
            raise SupervisorError(f"the home {home} {fault}. Or set PRICING_HOME to a folder of yours.")
        with tempfile.TemporaryFile(dir=home):
            pass
        (home / "logs").mkdir(exist_ok=True)
        (home / "logs").chmod(0o700)
    except OSError as error:
        raise SupervisorError(
            f"the home {home} cannot be written ({error.strerror}); set PRICING_HOME to a folder of yours."
        ) from None


def _require_firm_path(home: Path) -> None:
    """Raise SupervisorError if everybody may replace the home by another folder or a link."""
    for folder in {*home.absolute().parents, *home.resolve().parents}:
        with suppress(FileNotFoundError, NotADirectoryError):
            mode = folder.stat().st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                raise SupervisorError(
                    f"everybody may replace the home {home} with another folder: {folder} may be written by "
                    f"others. Run `chmod o-w '{folder}'`, or set PRICING_HOME to a folder elsewhere."
                )


def _make(home: Path) -> None:
    if not home.is_dir():
        before = os.umask(0o022)
        try:
            home.mkdir(parents=True, exist_ok=True)  # somebody else may be quicker
        finally:
            os.umask(before)
        # A server started by root runs as another user, which must be able to pass.
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)
    close_to_group(home)


def code_socket(home: Path) -> Path:
    """The socket of the code server: in the home, or in a private folder elsewhere if the path is too long."""
    path = home / "code.sock"
    return path if _fits(path) else _short_folder(home) / path.name


def folder_of_sockets(home: Path) -> Path:
    """The folder for the sockets of further code servers, which are named like `code-12345678.sock`."""
    return home if _fits(home / "code-12345678.sock") else _short_folder(home)


def temporary_folder(home: Path) -> Path:
    """The folder for temporary files of the home's processes, made if missing; elsewhere if its path is too long."""
    folder = home / _TEMPORARY
    if not _fits(folder, _LONGEST_TEMPORARY):
        folder = _short_folder(home) / folder.name
    _make_private(folder)
    return folder


def tidy_home(home: Path) -> None:
    """Remove sockets and temporary files. The caller has locked the home, so no process uses them."""
    for path in (home / "code.sock", *home.glob("code-*.sock")):
        path.unlink(missing_ok=True)
    folder = home / _TEMPORARY
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    # Everybody may make something with the name of the other folder: it is only removed if it is ours.
    short = _short_folder_path(home)
    if not _fits(folder, _LONGEST_TEMPORARY) and _is_own_folder(short):
        shutil.rmtree(short, ignore_errors=True)


def _fits(path: Path, room: int = 0) -> bool:
    return len(os.fsencode(path)) + room <= _LONGEST_SOCKET


def _short_folder(home: Path) -> Path:
    folder = _short_folder_path(home)
    _make_private(folder)
    if not _is_own_folder(folder) or who_else_may_change(folder) is not None:
        raise SupervisorError(f"{folder} is somebody else's; set PRICING_HOME to a shorter path.")
    return folder


def _is_own_folder(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise SupervisorError(f"the folder {folder} cannot be made: {error.strerror}.") from None


def _short_folder_path(home: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"pricing-{os.getuid()}-{digest}"


def lock_home(home: Path, patience: float) -> int:
    """Lock the home for this process; returns the descriptor of the lock.

    Waits up to `patience` seconds while the guardian of a killed supervisor cleans up. Raises SupervisorError if a
    supervisor runs there.
    """
    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(descriptor)
            if owner is not None and is_alive(owner):
                os.close(descriptor)
                raise SupervisorError(
                    f"a pipeline is already running in {home} (pid {owner}); stop it or set PRICING_HOME."
                ) from None
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise SupervisorError(
                    f"processes of an earlier run in {home} are still ending; try again in a moment."
                ) from None
            time.sleep(0.05)
        else:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor


def running_pid(home: Path) -> int | None:
    """Return the pid of the supervisor that runs in `home`; None when none does."""
    try:
        descriptor = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(descriptor)
        return owner if owner is not None and is_alive(owner) else None
    else:
        return None
    finally:
        os.close(descriptor)


def write_state(home: Path, state: dict[str, Any]) -> None:
    """Replace `state.json` in one step, so that a reader never sees half of it."""
    replace_own(home / "state.json", json.dumps(state, indent=2))


def read_state(home: Path) -> dict[str, Any] | None:
    """Return what the supervisor that runs in `home` has written about itself; None when none runs.

    Keys: `pid`, `started_at` (ISO 8601, UTC), `processes` (by name: `pid`, None while it is down; `restarts`;
    `silent_since`, None unless it runs and does not answer; `log`), and whatever was recorded, such as `urls`.
    """
    pid = running_pid(home)
    if pid is None:
        return None
    try:
        state: dict[str, Any] = json.loads((home / "state.json").read_text())
    except (OSError, ValueError):
        return None
    return state if state.get("pid") == pid else None


def urls(home: Path) -> Mapping[str, str]:
    """Where what runs in `home` listens, by name: `dagster`, `api`, `sandbox`; empty when nothing runs."""
    recorded: Mapping[str, str] = (read_state(home) or {}).get("urls", {})
    return recorded


def _owner(lock: int) -> int | None:
    content = os.pread(lock, 20, 0).strip()
    return int(content) if content.isdigit() else None
