"""B5: the client-side manager counts views, beats in the background, and survives what happens to the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.subscriptions import SubscriptionManager
from pricing_pipeline_tests.fix_core import DAILY, QUOTE, sample_template
from pricing_pipeline_tests.fix_database import Clock, TestServer
from pricing_pipeline_tests.patience import PATIENCE, wait_until

template = sample_template

AAPL, IBM, BARS = (QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "AAPL")


@pytest.fixture
def manager(engine: Engine) -> Iterator[SubscriptionManager]:
    with SubscriptionManager(engine, "ann", every=0.1) as manager:
        yield manager


def subscribed(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    rows = connection.execute(
        "SELECT data_type, symbol FROM pricing.active_subscriptions WHERE user_id = 'ann'"
    )
    return set(rows.fetchall())


def last_seen(connection: psycopg.Connection[Any]) -> Any:
    row = connection.execute("SELECT min(last_seen_at) FROM pricing.active_subscriptions").fetchone()
    return row and row[0]


def test_b5_the_first_view_subscribes_and_the_last_to_leave_unsubscribes(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    with manager.watching(AAPL, BARS):
        wait_until(lambda: subscribed(connection) == {AAPL, BARS})
        with manager.watching(AAPL, IBM):
            wait_until(lambda: subscribed(connection) == {AAPL, BARS, IBM})
        wait_until(lambda: subscribed(connection) == {AAPL, BARS})
        assert manager.watched == {AAPL, BARS}
    wait_until(lambda: subscribed(connection) == set())


def test_b5_heartbeats_go_on_in_the_background(
    manager: SubscriptionManager, connection: psycopg.Connection[Any], clock: Clock
) -> None:
    with manager.watching(AAPL, IBM):
        wait_until(lambda: subscribed(connection) == {AAPL, IBM})
        clock.advance(240)
        moved = clock.now()
        wait_until(lambda: last_seen(connection) > moved)
        connection.execute("SELECT pricing.clean_subscriptions()")
        assert subscribed(connection) == {AAPL, IBM}


def test_b5_a_lost_database_is_told_again_what_is_watched(
    engine: Engine, connection: psycopg.Connection[Any], server: TestServer
) -> None:
    with SubscriptionManager(engine, "ann", every=0.1) as manager, manager.watching(AAPL):
        wait_until(lambda: subscribed(connection) == {AAPL})
        name = connection.info.dbname
        with server.admin() as admin:
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> %s",
                [name, connection.info.backend_pid],
            )
            manager.enter([IBM])
            manager.leave([AAPL])
            time.sleep(0.3)
            assert subscribed(connection) == {AAPL}
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        wait_until(lambda: subscribed(connection) == {IBM})
        manager.leave([IBM])


def test_b5_what_is_refused_is_named_and_disturbs_nothing_else(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    wrong, odd = ("equity_qoute", "AAPL"), (QUOTE, "no such; symbol")
    with manager.watching(AAPL, wrong, odd):
        wait_until(lambda: set(manager.refused) == {wrong, odd})
        wait_until(lambda: subscribed(connection) == {AAPL})
        assert "unknown data type" in manager.refused[wrong]
        assert manager.watched == {AAPL}


def test_b5_closing_leaves_everything(database_url: str, connection: psycopg.Connection[Any]) -> None:
    engine = make_engine(database_url)
    manager = SubscriptionManager(engine, "ann")
    manager.enter([AAPL, IBM])
    wait_until(lambda: subscribed(connection) == {AAPL, IBM})
    manager.close(PATIENCE)
    assert subscribed(connection) == set()
    engine.dispose()


def test_b5_leaving_what_was_never_entered_changes_nothing(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    manager.enter([AAPL])
    wait_until(lambda: subscribed(connection) == {AAPL})
    manager.leave([IBM])
    assert manager.watched == {AAPL}
