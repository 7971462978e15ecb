"""A PostgreSQL server that hangs: it neither answers nor ends a connection."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pricing_pipeline.db.embedded import EmbeddedServer


@contextmanager
def frozen(server: EmbeddedServer) -> Iterator[None]:
    """All processes of a server stand still, as on a machine whose disk does."""
    with frozen_at(server.data_dir):
        yield


@contextmanager
def frozen_at(data: Path) -> Iterator[None]:
    """The same for the server that works on this data."""
    pid = int((data / "postmaster.pid").read_text().splitlines()[0])
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    for process in (pid, *children):
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in (*children, pid):
            os.kill(process, signal.SIGCONT)
