"""A real pipeline for benchmarks: `up` with all its processes, in a home of its own that is deleted at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import crew
from benchmarks.server import statement
from pricing_pipeline.db.embedded import EmbeddedServer

_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline that has started: its home, when its command began in Unix seconds, and a session of its owner."""

    home: Path
    began: float
    connection: psycopg.Connection[Any]


@contextmanager
def running(settings: Mapping[str, str], *options: str) -> Iterator[Pipeline]:
    """Start `up` with these settings and options, and end it when the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="pricing-benchmark-"))
    folder.chmod(0o711)
    home = folder / "home"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PRICING_")} | {
        "PRICING_HOME": str(home),
        "PRICING_WEB_PORT": "0",
        "PRICING_API_PORT": "0",
        "PRICING_SANDBOX_PORT": "0",
        "PYTHONDONTWRITEBYTECODE": "",  # as the Makefile has it
        **settings,
    }
    command = [sys.executable, "-m", "pricing_pipeline.cli", "up", *options]
    log = folder / "up.log"
    began = time.time()
    try:
        with (
            log.open("w") as output,
            subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process,
        ):
            try:
                wait_until(lambda: _has_started(log, process), "the pipeline did not start")
                url = EmbeddedServer(home).url("pricing", "owner")
                with psycopg.connect(url, autocommit=True) as connection:
                    yield Pipeline(home, began, connection)
            finally:
                process.terminate()
                process.wait(_PATIENCE_SECONDS)
    finally:
        shutil.rmtree(folder)


def value(connection: psycopg.Connection[Any], name: str, **known: Any) -> Any:
    """The one value that a named statement returns."""
    ((found,),) = connection.execute(statement(name), known).fetchall()
    return found


def wait_until(is_there: Callable[[], bool], otherwise: str) -> None:
    """Raise WorkerError with `otherwise` if it is not there within five minutes."""
    ends = time.monotonic() + _PATIENCE_SECONDS
    while not is_there():
        if time.monotonic() > ends:
            raise crew.WorkerError(f"{otherwise} within {_PATIENCE_SECONDS} s")
        time.sleep(0.1)


def _has_started(log: Path, process: subprocess.Popen[bytes]) -> bool:
    if process.poll() is not None:
        raise crew.WorkerError(f"the pipeline did not start:\n{log.read_text()[-3000:]}")
    return "Operations page and HTTP API" in log.read_text()
