"""Dagster's own tools in the project's folder, as people who know Dagster use them: nothing of ours is set."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest
import yaml

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import viewers
from pricing_pipeline.processes.os_processes import last_lines
from pricing_pipeline.processes.ports import LOOPBACK, require_free_port
from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

ROOT = Path(__file__).parents[2]
DAGSTER = str(Path(sys.executable).parent / "dagster")
FILES = ["pyproject.toml", "dagster.yaml", "workspace.yaml"]

ASSETS = "{ assetNodes { assetKey { path } } }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The project's folder as far as Dagster's tools look at it; they write beside what they read."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


@pytest.fixture
def stranger() -> dict[str, str]:
    """An environment in which nothing says where anything of ours is."""
    ours = ("PRICING_", "DAGSTER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**environment, "PYTHONPATH": os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])}


def test_g7_the_definitions_are_valid_where_nothing_was_started_and_settings_are_a_strangers(
    folder: Path, stranger: dict[str, str]
) -> None:
    (folder / ".env").write_text('export GREETING\nNOTE="two\nlines"\nPRICING_TEAM=ours\n')
    done = subprocess.run(
        [DAGSTER, "definitions", "validate"],
        cwd=folder,
        env={**stranger, "PRICING_SERVICE_URL": "http://example.org"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "All code locations passed validation" in done.stdout
    for name in ("PRICING_TEAM", "PRICING_SERVICE_URL"):
        assert f"there is no setting {name}" in done.stderr + done.stdout


EVERYTHING = {
    "PRICING_EXPORT_URL": "s3://bucket/prices?region=eu-central-1",
    "PRICING_MAX_DRAINS": "5",
    "PRICING_PAGE_URL": "https://prices.example.com/ops",
    "PRICING_SANDBOX": "false",
}


def test_b1_definitions_are_valid_with_everything_set_and_500_types(
    folder: Path, stranger: dict[str, str], server: TestServer, template: str
) -> None:
    """test_dagster_combinations.py loads many more combinations; this is what a user's own check would say."""
    name = f"pricing_valid_{uuid4().hex[:12]}"
    server.create(name, template)
    try:
        with psycopg.connect(server.url_of_owner(name)) as connection:
            connection.execute(
                "INSERT INTO pricing.data_type_registry"
                " (data_type, fetcher, asset_class, default_ttl_minutes, refresh_strategy, refresh_schedule)"
                " SELECT 'more_' || n, 'quote', 'equity', 5, 'scheduled', '30 6 * * *'"
                " FROM generate_series(1, 500) n"
            )
        done = subprocess.run(
            [DAGSTER, "definitions", "validate"],
            cwd=folder,
            env={**stranger, "PRICING_DATABASE_URL": server.url(name), **EVERYTHING},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.drop(name)
    assert done.returncode == 0, done.stderr
    assert "All code locations passed validation" in done.stdout


def test_g7_dg_and_dagster_name_the_same_definitions() -> None:
    """`dg dev` and `dg check defs` read pyproject.toml, `dagster dev` and `definitions validate` workspace.yaml."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]
    (location,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert tool["directory_type"] == "project"
    assert tool["project"]["root_module"] == "pricing_pipeline"
    assert tool["project"]["code_location_target_module"] == location["python_module"]["module_name"]
    assert tool["project"]["code_location_name"] == location["python_module"]["location_name"]


def test_g7_b1_dagster_dev_that_starts_before_the_database_serves_viewers(
    folder: Path, stranger: dict[str, str], server: TestServer, template: str, sandbox: RunningSandbox
) -> None:
    name = f"pricing_late_{uuid4().hex[:12]}"
    port = require_free_port(0, "dagster dev", "the port")
    environment = {
        **stranger,
        "PRICING_DATABASE_URL": server.url(name),
        "PRICING_SANDBOX_URL": sandbox.url,
        "PRICING_MAX_DRAIN_SECONDS": "5",
    }
    engine = make_engine(server.url(name), pool_size=1)
    with developing(folder, environment, port) as process:
        wait_until(lambda: assets(port) is not None or process.poll() is not None)
        assert process.poll() is None
        server.create(name, template)
        try:
            with engine.begin() as connection:
                viewers.heartbeat(connection, "ann", [(QUOTE, "AAPL")])
            wait_until(lambda: f"price_history/{QUOTE}" in (assets(port) or ()))
            wait_until(lambda: is_priced(server.url(name)))
        finally:
            engine.dispose()
    server.drop(name)


@contextmanager
def developing(folder: Path, environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """`dagster dev`, which is told to end as by Ctrl-C, and ended with all that it has started if it does not.

    What it wrote last is shown where the test fails.
    """
    log = folder / "dagster-dev.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [DAGSTER, "dev", "-p", str(port)],
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            yield process
        except AssertionError:
            print(last_lines(log, count=40))
            raise
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.send_signal(signal.SIGINT)
                process.wait(PATIENCE)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def assets(port: int) -> set[str] | None:
    """The assets that the UI shows; None while it does not answer."""
    try:
        answer = httpx.post(f"http://{LOOPBACK}:{port}/graphql", json={"query": ASSETS}, timeout=PATIENCE)
    except httpx.TransportError:
        return None
    return {"/".join(node["assetKey"]["path"]) for node in answer.json()["data"]["assetNodes"]}


def is_priced(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return bool(connection.execute("SELECT FROM pricing.latest_prices").fetchall())
