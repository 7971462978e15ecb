"""Folders that tests give to servers and supervisors as their home."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def make_open_folder(prefix: str) -> Path:
    """Make a temporary folder that every user may enter.

    pytest's own `tmp_path` is closed to others, and a server started by root runs as another user.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder with a short path that every user may enter."""
    folder = make_open_folder("pricing-test-")
    yield folder
    shutil.rmtree(folder)
