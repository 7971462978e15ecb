"""Dagster's own processes on a server of PostgreSQL, as somebody runs them who never calls `up`.

The databases are all that they share: there is no home, no socket and no wrapper.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import viewers
from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.processes.ports import LOOPBACK, require_free_port
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent

ASSETS = "{ assetNodes { assetKey { path } } }"
FRESHNESS = """query Fresh($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode { freshnessStatusInfo { freshnessStatus } } }
}"""
TICKS = """{ sensorsOrError(repositorySelector: {
    repositoryLocationName: "pricing_pipeline", repositoryName: "__repository__" }) {
  ... on Sensors { results { name sensorState { ticks(limit: 5) { status } } } } } }"""
RUN_CHECKS = """mutation { launchRun(executionParams: { selector: { jobName: "check_prices",
    repositoryLocationName: "pricing_pipeline", repositoryName: "__repository__" } }) {
  __typename ... on LaunchRunSuccess { run { runId } } } }"""


@dataclass(frozen=True)
class Stock:
    """Running processes of Dagster, and the databases that they share."""

    processes: PlainProcesses
    url: str
    prices: str
    owner: str
    dagster: str

    def ask(self, query: str, **variables: Any) -> Any:
        """The webserver's answer; None while it does not answer."""
        self.processes.require_running()
        try:
            answer = httpx.post(
                f"{self.url}/graphql", json={"query": query, "variables": variables}, timeout=PATIENCE
            )
        except httpx.TransportError:
            return None
        return answer.json()["data"]

    def assets(self) -> set[str]:
        answer = self.ask(ASSETS)
        return {"/".join(node["assetKey"]["path"]) for node in answer["assetNodes"]} if answer else set()


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False)) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture
def databases(server: TestServer, template: str) -> Iterator[tuple[str, str]]:
    """The names of a pricing database with the sample, and of an empty one for Dagster."""
    names = f"pricing_stock_{uuid4().hex[:12]}", f"pricing_stock_dagster_{uuid4().hex[:12]}"
    server.create(names[0], template)
    server.create(names[1], "template1")
    yield names
    for name in names:
        server.drop(name)


@pytest.fixture
def stock(
    databases: tuple[str, str], server: TestServer, sandbox: RunningSandbox, tmp_path: Path
) -> Iterator[Stock]:
    """Code server, daemon and webserver of Dagster; where the home should be, nothing can be written."""
    prices, dagster = databases
    code_port = require_free_port(0, "the code server", "the port")
    web_port = require_free_port(0, "the webserver", "the port", {code_port})
    # The role of the tests' databases owns them; Dagster's tables belong to who makes them.
    dagster_url = make_url(server.url_of_owner(dagster)).set(drivername="postgresql+psycopg2")
    strange = ("PRICING_", "DAGSTER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(strange)} | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PRICING_HOME": "/dev/null/home",
        "PRICING_DATABASE_URL": server.url(prices),
        "PRICING_DAGSTER_URL": dagster_url.render_as_string(hide_password=False),
        "PRICING_SANDBOX_URL": sandbox.url,
        "PRICING_MAX_DRAIN_SECONDS": "30",
        "DAGSTER_HOME": str(tmp_path),
        "CODE_SERVER_HOST": LOOPBACK,
        "CODE_SERVER_PORT": str(code_port),
    }
    instance = [ROOT / "dagster.yaml", ROOT / "deploy/dagster/storage.yaml"]
    (tmp_path / "dagster.yaml").write_text("".join(part.read_text() for part in instance))
    workspace = str(ROOT / "deploy/dagster/workspace.yaml")
    made = [sys.executable, "-m", "pricing_pipeline.defs.storage"]
    for _ in range(2):  # safe to repeat
        done = subprocess.run(
            made, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    with PlainProcesses(tmp_path) as processes:
        location = ["-m", "pricing_pipeline.definitions", "-a", "definitions"]
        for name, command in {
            "code-server": [
                *("dagster", "code-server", "start", *location, "--location-name", "pricing_pipeline"),
                *("-h", LOOPBACK, "-p", str(code_port)),
            ],
            "daemon": ["dagster-daemon", "run", "-w", workspace],
            "webserver": ["dagster-webserver", "-w", workspace, "-h", LOOPBACK, "-p", str(web_port)],
        }.items():
            processes.start(name, [str(BIN / command[0]), *command[1:]], environment, tmp_path)
        yield Stock(
            processes,
            f"http://{LOOPBACK}:{web_port}",
            server.url(prices),
            server.url_of_owner(prices),
            environment["PRICING_DAGSTER_URL"],
        )


def test_g7_stock_processes_of_dagster_do_all_of_the_work(stock: Stock) -> None:
    """A first price, a new data type, freshness, checks, a backfill by hand: with nothing of ours around Dagster."""
    engine = make_engine(stock.prices, pool_size=1)
    with engine.begin() as connection:
        viewers.heartbeat(connection, "ann", [(QUOTE, "AAPL")])
    engine.dispose()
    wait_until(lambda: f"price_history/{QUOTE}" in stock.assets())
    wait_until(lambda: rows(stock.prices, "SELECT FROM pricing.latest_prices"))

    with psycopg.connect(stock.owner) as connection:
        connection.execute(
            "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
            " VALUES ('new_quote', 'quote', 5)"
        )
    wait_until(lambda: "price_history/new_quote" in stock.assets())
    wait_until(lambda: freshness(stock, QUOTE) == "HEALTHY")

    launched = stock.ask(RUN_CHECKS)["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    checks = "SELECT FROM asset_check_executions WHERE execution_status = 'SUCCEEDED'"
    wait_until(lambda: rows(stock.dagster, checks))

    window = Window(date(2012, 3, 1), date(2012, 3, 31))
    with Webserver(stock.url) as webserver:
        where = webserver.find(DAILY)
        assert isinstance(where, Location)
        run = webserver.launch(where, DAILY, window, ["AAPL"])
        stored = "SELECT FROM pricing.price_history WHERE data_type = 'equity_daily'"
        wait_until(lambda: len(rows(stock.prices, stored)) == 22)
        wait_until(lambda: webserver.status(run) == "SUCCESS")

    # A tick that runs while the code server loads a new type may fail; the next one does not.
    wait_until(lambda: set(last_ticks(stock).values()) <= {"SUCCESS", "SKIPPED"})
    assert last_ticks(stock).keys() >= {"refresh_watched", "report_freshness", "follow_registry"}
    # The storage is known as the pipeline's own, so that reports in it are tidied up and drains go first.
    assert rows(stock.dagster, "SELECT FROM kvs WHERE key = 'pricing-pipeline/made'")
    drains = "SELECT FROM run_tags WHERE key = 'dagster/priority' AND value = '10'"
    assert rows(stock.dagster, drains)

    for name in ("webserver", "daemon", "code-server"):
        status, _ = stock.processes.stop(name)
        assert status == 0, stock.processes.log(name)[-3000:]


def last_ticks(stock: Stock) -> dict[str, str]:
    """How the last tick of each sensor ended; those under way are left out."""
    sensors = stock.ask(TICKS)["sensorsOrError"]["results"]
    ended = {
        sensor["name"]: [
            tick["status"] for tick in sensor["sensorState"]["ticks"] if tick["status"] != "STARTED"
        ]
        for sensor in sensors
    }
    return {name: statuses[0] for name, statuses in ended.items() if statuses}


def freshness(stock: Stock, data_type: str) -> str | None:
    answer = stock.ask(FRESHNESS, key={"path": ["latest_price", data_type]})
    info = answer["assetNodeOrError"]["freshnessStatusInfo"]
    return info["freshnessStatus"] if info else None
