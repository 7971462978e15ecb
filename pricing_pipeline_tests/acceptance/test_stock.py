"""Dagster's own processes on a server of PostgreSQL, as somebody runs them who never calls `up`.

They share the databases and the socket of the code server: there is no home and no wrapper.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import viewers
from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.domain.windows import Window
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.other_accounts import connections, reached_by_a_stranger, unix_sockets
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.stock_dagster import Stock, dagster_database, rows, stock_dagster

FRESHNESS = """query Fresh($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode { freshnessStatusInfo { freshnessStatus } } }
}"""
TICKS = """{ sensorsOrError(repositorySelector: {
    repositoryLocationName: "pricing_pipeline", repositoryName: "__repository__" }) {
  ... on Sensors { results { name sensorState { ticks(limit: 5) { status } } } } } }"""
RUN_CHECKS = """mutation { launchRun(executionParams: { selector: { jobName: "check_prices",
    repositoryLocationName: "pricing_pipeline", repositoryName: "__repository__" } }) {
  __typename ... on LaunchRunSuccess { run { runId } } } }"""


@pytest.fixture
def stock(server: TestServer, database_url: str, sandbox: RunningSandbox, tmp_path: Path) -> Iterator[Stock]:
    """Running processes of Dagster."""
    with (
        dagster_database(server) as dagster,
        stock_dagster(tmp_path, database_url, dagster, sandbox.url) as stock,
    ):
        yield stock


def test_g7_stock_processes_of_dagster_do_all_of_the_work(stock: Stock, database_url: str, owner_url: str) -> None:
    """A first price, a new data type, freshness, checks, a backfill by hand: with nothing of ours around Dagster."""
    engine = make_engine(database_url, pool_size=1)
    with engine.begin() as connection:
        viewers.heartbeat(connection, "ann", [(QUOTE, "AAPL")])
    engine.dispose()
    wait_until(lambda: f"price_history/{QUOTE}" in stock.assets())
    wait_until(lambda: rows(database_url, "SELECT FROM pricing.latest_prices"))

    with psycopg.connect(owner_url) as connection:
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
        wait_until(lambda: len(rows(database_url, stored)) == 22)
        wait_until(lambda: webserver.status(run) == "SUCCESS")

    # A tick that runs while the code server loads a new type may fail; the next one does not.
    wait_until(lambda: set(last_ticks(stock).values()) <= {"SUCCESS", "SKIPPED"})
    assert last_ticks(stock).keys() >= {"refresh_watched", "report_prices", "follow_registry"}
    # The storage is known as the pipeline's own, so that reports in it are tidied up and drains go first.
    assert rows(stock.dagster, "SELECT FROM kvs WHERE key = 'pricing-pipeline/made'")
    drains = "SELECT FROM run_tags WHERE key = 'dagster/priority' AND value = '10'"
    assert rows(stock.dagster, drains)

    require_nobody_reaches_the_code_server(stock)
    for name in ("webserver", "daemon", "code-server"):
        status, _ = stock.processes.stop(name)
        assert status == 0, stock.processes.log(name)[-3000:]


def require_nobody_reaches_the_code_server(stock: Stock) -> None:
    """Fault 36: anyone who reached it would run code. Nothing but the UI listens on a port."""
    processes = stock.processes.all()
    heard = {place.laddr.port for place in connections(processes, "inet") if place.status == psutil.CONN_LISTEN}
    assert heard == {httpx.URL(stock.url).port}
    paths = unix_sockets(processes)
    assert stock.environment["PRICING_CODE_SOCKET"] in paths
    if os.geteuid() == 0:  # only root can act as another account
        assert reached_by_a_stranger(paths) == set()


def last_ticks(stock: Stock) -> dict[str, str]:
    """How the last tick of each sensor ended; those under way are left out."""
    sensors = stock.ask(TICKS)["sensorsOrError"]["results"]
    ended = {
        sensor["name"]: [tick["status"] for tick in sensor["sensorState"]["ticks"] if tick["status"] != "STARTED"]
        for sensor in sensors
    }
    return {name: statuses[0] for name, statuses in ended.items() if statuses}


def freshness(stock: Stock, data_type: str) -> str | None:
    answer = stock.ask(FRESHNESS, key={"path": ["freshness", data_type]})
    info = answer["assetNodeOrError"]["freshnessStatusInfo"]
    return info["freshnessStatus"] if info else None
