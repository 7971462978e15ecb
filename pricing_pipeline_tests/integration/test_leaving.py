"""What happens to waiting work when its last viewer leaves, and to viewers when a data type is retired."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pricing_pipeline import demand
from pricing_pipeline_tests.fix_core import sample_template
from pricing_pipeline_tests.fix_database import Clock

template = sample_template
pytestmark = pytest.mark.usefixtures("still")

PAIR = [("equity_quote", "AAPL")]


def statuses(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    return connection.execute("SELECT symbol, status FROM pricing.api_call_queue ORDER BY id").fetchall()


def test_a7_what_waits_for_a_pair_nobody_watches_any_more_is_not_fetched(
    engine: Engine, connection: psycopg.Connection[Any], clock: Clock
) -> None:
    with engine.begin() as session:
        demand.heartbeat(session, "ann", [*PAIR, ("equity_quote", "MSFT")])
        demand.unsubscribe(session, "ann", PAIR)
    clock.advance(61)
    connection.execute("SELECT pricing.clean_subscriptions()")
    assert statuses(connection) == [("AAPL", "cancelled"), ("MSFT", "pending")]
    claimed = connection.execute(
        "SELECT unnest(symbols) FROM pricing.claim_calls('twelvedata', 'w', 5)"
    ).fetchall()
    assert claimed == [("MSFT",)]


def test_a7_scheduled_work_and_backfills_wait_on_without_viewers(
    engine: Engine, connection: psycopg.Connection[Any], clock: Clock
) -> None:
    with engine.begin() as session:
        demand.enqueue_scheduled(session, "mf_nav")
        demand.heartbeat(session, "ann", [*PAIR, ("mf_nav", "118632")])
    connection.execute("SELECT pricing.plan_backfill('equity_daily', '2010-01-01', '2010-12-31', '{AAPL}')")
    with engine.begin() as session:
        demand.unsubscribe(session, "ann", [*PAIR, ("mf_nav", "118632")])
    clock.advance(61)
    connection.execute("SELECT pricing.clean_subscriptions()")
    left = connection.execute(
        "SELECT data_type, count(*) FROM pricing.api_call_queue_live GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert left == [("equity_daily", 1), ("mf_nav", 4)]


def test_b8_a_retired_type_does_not_end_the_heartbeats_of_the_others(
    engine: Engine, connection: psycopg.Connection[Any]
) -> None:
    connection.execute("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'fx_rate'")
    with engine.begin() as session:
        assert demand.heartbeat(session, "ann", [*PAIR, ("fx_rate", "EUR/USD")]) == 1
    watched = connection.execute("SELECT data_type, symbol FROM pricing.active_subscriptions").fetchall()
    assert watched == PAIR


def test_b8_a_heartbeat_of_nothing_but_unknown_types_says_so(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="unknown data type"):
        connection.execute("SELECT pricing.heartbeat('ann', '{no_such}', '{AAPL}')")
