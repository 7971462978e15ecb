"""Folders that tests give to servers and supervisors as their home."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_ROOM = 2_000_000_000
_YOUNG = 600  # seconds in which a folder may belong to a run that is just starting


def make_open_folder(prefix: str, within: Path | None = None) -> Path:
    """Make a temporary folder that every user may enter.

    pytest's own `tmp_path` is closed to others, and a server started by root runs as another user.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    folder.chmod(0o711)
    return folder


def quickest_place() -> Path | None:
    """Return a folder in memory with room for the test databases, or None for the usual place.

    Some file systems get slow where many files come and go: cloning a database took 200 ms on an ext4
    without a journal after a hundred clones, and 15 ms in memory.
    """
    with contextlib.suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
            return _MEMORY
    return None


def remove_left_over_folders(prefix: str, within: Path | None) -> None:
    """Remove what killed test runs left behind, since it takes memory: homes of no running server."""
    for folder in (within or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # being removed by another run, or somebody else's
            if time.time() - folder.stat().st_mtime < _YOUNG:
                continue
            with (folder / "postgres.lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder with a short path that every user may enter; files in it may not be executable."""
    folder = make_open_folder("pricing-test-", within=quickest_place())
    yield folder
    shutil.rmtree(folder)
