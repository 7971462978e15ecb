"""Real notifiers, as `up` starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pricing_pipeline_tests.support.pages import ROOT


@contextmanager
def notifier_process(database_url: str, home: Path, packages: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """A real notifier that sees the packages of a folder."""
    home.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PRICING_DATABASE_URL": database_url,
        "PRICING_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(str(path) for path in (ROOT, packages) if path is not None),
    }
    command = [sys.executable, "-m", "pricing_pipeline.operations.notifier"]
    with subprocess.Popen(command, env=environment, cwd=home, text=True, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()
