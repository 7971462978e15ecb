"""Files and folders that we rely on: written for ourselves alone, and in nobody else's hands."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_TRUSTED = 0
"""Root, who can do everything anyway."""


def foreign_hand(path: Path) -> str | None:
    """Who else decides what is in `path`, as the rest of a sentence about it; None = nobody, or it is not there.

    Raises OSError when that cannot be found out.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if status.st_uid not in (os.geteuid(), _TRUSTED):
        return f"belongs to {_name(status.st_uid)}, and this runs as {_name(os.geteuid())}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"may be written by others: run `chmod go-w '{path}'`, if you trust what is in it"
    return None


def replace_own(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file in one step, so that nobody sees half of it, readable by its owner alone.

    `durable`: it is on the disk afterwards. One process writes it at a time: what a killed one left is removed.
    """
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(unfinished, flags, 0o600), "w") as file:
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    os.replace(unfinished, path)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
