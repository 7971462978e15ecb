"""Files and folders that only we may change: check their owners, read and write them."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_ROOT = 0
"""The superuser, who can do everything anyway."""


class NotPrivate(Exception):
    """A file that others may change or read; the text is the rest of a sentence about it."""


def who_else_may_change(path: Path, opened: int | None = None) -> str | None:
    """Who else can change `path`, as the rest of a sentence about it; None = nobody, or it does not exist.

    `opened` is its descriptor, so that the checked file is the one that is read. Raises OSError if that fails.
    """
    try:
        return _who_else(os.fstat(opened) if opened is not None else path.stat(), path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def close_to_group(place: Path | int) -> None:
    """Remove the group's right to write a file or folder of ours, or a descriptor of one, unless all may write it.

    Many systems create files so, with a group of the user alone. So it is corrected here, not reported.
    """
    status = os.stat(place)
    open_to = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if open_to == stat.S_IWGRP and status.st_uid == os.geteuid():
        os.chmod(place, stat.S_IMODE(status.st_mode & ~stat.S_IWGRP))


def read_private(path: Path, *, group_may_read: bool = False) -> str:
    """The text of a file that belongs to us or root, and that nobody else may open.

    It reads the checked file. Raises NotPrivate, OSError, and UnicodeDecodeError if it is not text.
    """
    with path.open(encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if stat.S_IMODE(status.st_mode) & (0o027 if group_may_read else 0o077):
            raise NotPrivate(f"is open to others. Close it: chmod 600 {path}")
        if (fault := _who_else(status, path)) is not None:
            raise NotPrivate(fault)
        return file.read()


def replace_own(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Write a file in one step, so that nobody sees half of it, readable by its owner alone.

    `durable`: it is on the disk afterwards. One process writes it at a time: what a killed one left is removed.
    """
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(unfinished, path)
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write the names of its files to the disk, so that a power failure does not undo a renaming."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _who_else(status: os.stat_result, path: Path) -> str | None:
    if status.st_uid not in (os.geteuid(), _ROOT):
        return f"belongs to {_name(status.st_uid)}, and this runs as {_name(os.geteuid())}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"may be written by others: run `chmod go-w '{path}'`, if you trust what is in it"
    return None


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
