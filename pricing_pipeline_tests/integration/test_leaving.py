"""What happens to waiting work when its last viewer leaves, and to viewers when a data type is retired."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pricing_pipeline.demand import schedules, viewers
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("still")

PAIR = [("equity_quote", "AAPL")]


def test_a7_scheduled_work_and_backfills_wait_on_without_viewers(
    engine: Engine, connection: psycopg.Connection[Any], clock: Clock
) -> None:
    with engine.begin() as session:
        schedules.enqueue_scheduled(session, "mf_nav")
        viewers.heartbeat(session, "ann", [*PAIR, ("mf_nav", "118632")])
    connection.execute("SELECT pricing.plan_backfill('equity_daily', '2010-01-01', '2010-12-31', '{AAPL}')")
    with engine.begin() as session:
        viewers.unsubscribe(session, "ann", [*PAIR, ("mf_nav", "118632")])
    clock.advance(61)
    connection.execute("SELECT pricing.clean_subscriptions()")
    left = connection.execute(
        "SELECT data_type, count(*) FROM pricing.api_call_queue_live GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert left == [("equity_daily", 1), ("mf_nav", 4)]


def test_b5_a_heartbeat_beside_an_open_leaving_is_not_lost(engine: Engine, connection: psycopg.Connection[Any]) -> None:
    """It found the row locked and took it for known; the leaving then took that away, for a minute."""
    with engine.begin() as session:
        viewers.heartbeat(session, "ann", PAIR)
    with ThreadPoolExecutor(1) as beside:
        with engine.begin() as leaving:
            viewers.unsubscribe(leaving, "ann", PAIR)
            heard = beside.submit(_beat, engine)
            time.sleep(0.3)
        assert heard.result(PATIENCE) == 1
    assert connection.execute("SELECT symbol FROM pricing.active_subscriptions").fetchall() == [("AAPL",)]


def _beat(engine: Engine) -> int:
    with engine.begin() as session:
        return viewers.heartbeat(session, "ann", PAIR).changed


@pytest.mark.own_sessions
def test_b5_what_a_client_that_died_had_asked_for_ends_and_locks_nothing(engine: Engine, server: TestServer) -> None:
    with engine.connect() as client, server.admin() as admin, ThreadPoolExecutor(1) as beside:
        driver: Any = client.connection.dbapi_connection
        pid = driver.info.backend_pid
        asked = beside.submit(driver.execute, f"SELECT pg_sleep({2 * PATIENCE})")
        wait_until(lambda: is_there(admin, pid, asking="pg_sleep"))
        with socket.socket(fileno=os.dup(driver.fileno())) as theirs:
            theirs.shutdown(socket.SHUT_RDWR)
        assert isinstance(asked.exception(PATIENCE), psycopg.OperationalError)
        wait_until(lambda: not is_there(admin, pid))
        client.invalidate()


def is_there(connection: psycopg.Connection[Any], pid: int, asking: str = "") -> bool:
    found = "SELECT FROM pg_stat_activity WHERE pid = %s AND strpos(query, %s) > 0"
    return bool(connection.execute(found, [pid, asking]).fetchall())
