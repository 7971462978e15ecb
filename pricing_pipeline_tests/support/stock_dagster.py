"""Dagster's own processes on a server of PostgreSQL, as somebody runs them who never calls `up`.

They share the databases and the socket of the code server: there is no home and no wrapper.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from sqlalchemy import make_url

from pricing_pipeline.processes.ports import LOOPBACK, require_free_port
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

ASSETS = "{ assetNodes { assetKey { path } } }"


@dataclass(frozen=True)
class Stock:
    """Running processes of Dagster, and Dagster's database."""

    processes: PlainProcesses
    url: str
    dagster: str
    environment: Mapping[str, str]

    def ask(self, query: str, **variables: Any) -> Any:
        """The webserver's answer; None while it does not answer."""
        self.processes.require_running()
        try:
            answer = httpx.post(f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=PATIENCE)
        except httpx.TransportError:
            return None
        return answer.json()["data"]

    def assets(self) -> set[str]:
        answer = self.ask(ASSETS)
        return {"/".join(node["assetKey"]["path"]) for node in answer["assetNodes"]} if answer else set()


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False)) as connection:
        return connection.execute(statement).fetchall()


@contextmanager
def dagster_database(server: TestServer) -> Iterator[str]:
    """The URL of an empty database for Dagster, dropped on leaving."""
    name = f"pricing_stock_dagster_{uuid4().hex[:12]}"
    server.create(name, "template1")
    # The role of the tests' databases owns them; Dagster's tables belong to who makes them.
    url = make_url(server.url_of_owner(name)).set(drivername="postgresql+psycopg2")
    yield url.render_as_string(hide_password=False)
    server.drop(name)


@contextmanager
def stock_dagster(
    folder: Path,
    prices: str,
    dagster: str,
    sandbox_url: str,
    *,
    settings: Mapping[str, str] | None = None,
    instance: str = "",
    packages: Path | None = None,
) -> Iterator[Stock]:
    """Code server, daemon and webserver of Dagster; where the home should be, nothing can be written.

    `instance` is added to dagster.yaml, and `packages` is a folder with further packages.
    """
    web_port = require_free_port(0, "the webserver", "the port")
    code_socket = folder / "sockets/code.sock"
    code_socket.parent.mkdir(mode=0o700)
    strange = ("PRICING_", "DAGSTER_")
    paths = [str(ROOT), *([str(packages)] if packages else []), os.environ.get("PYTHONPATH", "")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(strange)} | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PRICING_HOME": "/dev/null/home",
        "PRICING_DATABASE_URL": prices,
        "PRICING_DAGSTER_URL": dagster,
        "PRICING_SANDBOX_URL": sandbox_url,
        "PRICING_MAX_DRAIN_SECONDS": "30",
        "DAGSTER_HOME": str(folder),
        "PRICING_CODE_SOCKET": str(code_socket),
        **(settings or {}),
    }
    parts = [ROOT / "dagster.yaml", ROOT / "deploy/dagster/storage.yaml"]
    (folder / "dagster.yaml").write_text("".join(part.read_text() for part in parts) + instance)
    workspace = str(ROOT / "deploy/dagster/workspace.yaml")
    for _ in range(2):  # safe to repeat
        done = subprocess.run(
            [sys.executable, "-m", "pricing_pipeline.defs.storage"],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    location = ["-m", "pricing_pipeline.definitions", "-a", "definitions"]
    with PlainProcesses(folder) as processes:
        for name, command in {
            "code-server": [
                *("dagster", "code-server", "start", *location, "--location-name", "pricing_pipeline"),
                *("--socket", str(code_socket)),
            ],
            "daemon": ["dagster-daemon", "run", "-w", workspace],
            "webserver": ["dagster-webserver", "-w", workspace, "-h", LOOPBACK, "-p", str(web_port)],
        }.items():
            processes.start(name, [str(BIN / command[0]), *command[1:]], environment, folder)
        yield Stock(processes, f"http://{LOOPBACK}:{web_port}", dagster, environment)
