"""What happens to waiting work when its last viewer leaves, and to viewers when a data type is retired."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pricing_pipeline.demand import schedules, viewers
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE

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
