"""The peers' own environment, which `make bench-install` makes; without it there are no peers to compare with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from benchmarks import crew

_ROOT = Path(__file__).parent.parent
_SCRIPTS = Path(__file__).parent / "peers_scripts"
PYTHON = Path(os.environ.get("BENCHMARK_PEERS_PYTHON", _ROOT / ".venv-bench" / "bin" / "python"))


def are_installed() -> bool:
    """Tell whether there are peers to compare with."""
    return PYTHON.exists()


def command(script: str, *arguments: object) -> list[str]:
    """Return the command that runs a peer's script in the peers' environment."""
    return [str(PYTHON), str(_SCRIPTS / f"{script}.py"), *map(str, arguments)]


def run(script: str, *arguments: object, database_url: str) -> None:
    """Run a peer's script to its end: installing and filling, which is not measured."""
    subprocess.run(command(script, *arguments), env=os.environ | {crew.DATABASE_URL: database_url}, check=True)
