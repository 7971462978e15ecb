"""Whether a file or folder that we rely on is in nobody else's hands."""

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


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
