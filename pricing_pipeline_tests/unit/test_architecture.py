"""The import contracts of pyproject.toml hold, and break when the direction between packages is broken."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = "Imports point downwards, and every module has its place"
DAGSTER = "Only defs and definitions know Dagster"
PROVIDERS = "Providers build requests and read answers; they know no database"
SUPERVISOR = "The supervisor knows processes, not the database"
SANDBOX = "The sandbox shares nothing with the pipeline but its errors"


def broken_contracts(folder: Path) -> set[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Contracts:" in run.stdout, run.stdout + run.stderr
    return set(re.findall(r"^(.+) BROKEN\b", run.stdout, re.MULTILINE))


def test_the_package_keeps_every_contract() -> None:
    assert broken_contracts(ROOT) == set(), "`make check` shows the imports"


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("domain.py", "import pricing_pipeline.db", PLACES),
        ("providers/__init__.py", "import pricing_pipeline.sandbox", PLACES),
        ("unplaced.py", "", PLACES),
        ("settings.py", "import dagster", DAGSTER),
        ("supervisor.py", "from dagster_graphql import DagsterGraphQLClient", DAGSTER),
        ("providers/__init__.py", "import psycopg", PROVIDERS),
        ("supervisor.py", "import pricing_pipeline.db", SUPERVISOR),
        ("sandbox/__init__.py", "import pricing_pipeline.domain", SANDBOX),
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    tmp_path: Path, module: str, line: str, contract: str
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "pricing_pipeline"
    shutil.copytree(ROOT / package.name, package, ignore=shutil.ignore_patterns("__pycache__"))
    with (package / module).open("a") as file:
        file.write(f"\n{line}\n")
    assert contract in broken_contracts(tmp_path)
