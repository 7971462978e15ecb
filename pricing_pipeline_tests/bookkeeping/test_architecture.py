"""The import contracts of pyproject.toml and the rules for providers hold, and break when they are broken."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pricing_pipeline_tests.tools import provider_rules

ROOT = Path(__file__).parents[2]
PLACES = "Imports point downwards, and every module has its place"
DAGSTER = "Only defs, definitions and dagster know Dagster"
PROVIDERS = "Providers build requests and read answers; they know no database"
JUDGING = "Judging is pure: it knows no database and no network"
NETWORK = "Providers reach the network through their client only"
SANDBOX = "The sandbox shares nothing with the pipeline but its errors"


FORBIDDEN = [
    ("domain/bars.py", "import pricing_pipeline.db", PLACES),
    ("providers/__init__.py", "import pricing_pipeline.sandbox", PLACES),
    ("processes/supervisor.py", "import pricing_pipeline.db", PLACES),
    ("settings.py", "import dagster", DAGSTER),
    ("processes/supervisor.py", "from dagster_graphql import DagsterGraphQLClient", DAGSTER),
    ("providers/__init__.py", "import psycopg", PROVIDERS),
    ("judging/levels.py", "import sqlalchemy", JUDGING),
    ("providers/mfapi.py", "import httpx", NETWORK),
    ("providers/values.py", "from urllib.request import urlopen", NETWORK),
    ("sandbox/__init__.py", "import pricing_pipeline.domain", SANDBOX),
]


def said_of(folder: Path) -> str:
    """What import-linter says of the package in this folder."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Contracts:" in run.stdout, run.stdout + run.stderr
    return run.stdout


def a_copy(folder: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", folder)
    package = folder / "pricing_pipeline"
    shutil.copytree(ROOT / package.name, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def test_forbidden_imports_break_their_contracts(tmp_path: Path) -> None:
    package = a_copy(tmp_path)
    for module, line, _ in FORBIDDEN:
        with (package / module).open("a") as file:
            file.write(f"\n{line}\n")
    said = said_of(tmp_path)
    assert set(re.findall(r"^(.+) BROKEN\b", said, re.MULTILINE)) == {contract for *_, contract in FORBIDDEN}
    for module, line, contract in FORBIDDEN:
        importer = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        imported = line.split()[1].removesuffix(".request")
        assert f"pricing_pipeline.{importer} -> {imported} (" in said.rpartition(f"\n{contract}\n---")[2], line


def test_a_module_without_a_place_breaks_the_layers(tmp_path: Path) -> None:
    (a_copy(tmp_path) / "unplaced.py").touch()
    assert f"{PLACES} BROKEN" in said_of(tmp_path)


def test_b18_no_provider_goes_around_the_transport_or_the_schema() -> None:
    assert provider_rules.faults() == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import requests", "imports requests"),
        ("from pricing_pipeline.providers.transport import BoundedTransport", "belong to the client"),
        ("from pricing_pipeline import queue", "imports pricing_pipeline"),
        ("import json", "imports json"),
        ("def page(response: Response) -> bytes: return response.body", ".body reads bytes"),
        ("def page() -> str: return open('answer.json').read()", "open reaches"),
        ("from typing import Any", "Any turns off"),
        ("from pydantic import BaseModel", "BaseModel makes a model that need not be strict"),
        ("class _Loose(Schema): model_config = {'strict': False}", "model_config loosens"),
        ("def row(text: str) -> object: return _Row.model_construct(nav=text)", "never saw"),
        (
            "def value(row: dict[str, str]) -> Observation: return Observation(row['symbol'])",
            "no response model is at hand",
        ),
        ("from pricing_pipeline.domain.observations import Observation as Value", "another name"),
    ],
)
def test_b18_a_provider_that_goes_around_them_is_named(tmp_path: Path, line: str, told: str) -> None:
    """Only the shared modules beside it are exempt, not what is called like them."""
    honest = (ROOT / "pricing_pipeline/providers/mfapi.py").read_text()
    (tmp_path / "base.py").write_text("import json\n")
    (tmp_path / "mfapi.py").write_text(honest)
    assert provider_rules.faults(tmp_path) == []
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/base.py").write_text(f"{honest}\n\n{line}\n")
    (fault,) = provider_rules.faults(tmp_path)
    assert fault.startswith("base.py:")
    assert told in fault


def test_b18_make_check_runs_the_rules_for_providers() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "check"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "-m pricing_pipeline_tests.tools.provider_rules" in planned
    assert "lint-imports" in planned
