"""B5: the client-side manager counts views, beats in the background, and survives what happens to the database."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, create_engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import subscriptions, viewers
from pricing_pipeline.demand.subscriptions import SubscriptionManager
from pricing_pipeline.errors import PricingError
from pricing_pipeline.sample.viewer import keep_watching
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

AAPL, IBM, BARS = (QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "AAPL")


@pytest.fixture
def manager(engine: Engine) -> Iterator[SubscriptionManager]:
    with SubscriptionManager(engine, "ann", every=0.1) as manager:
        yield manager


def subscribed(connection: psycopg.Connection[Any]) -> set[tuple[str, str]]:
    rows = connection.execute("SELECT data_type, symbol FROM pricing.active_subscriptions WHERE user_id = 'ann'")
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
        assert "no data type is called equity_qoute" in manager.refused[wrong]
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


def test_b5_what_is_no_text_is_refused_and_disturbs_nothing_else(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    odd = {(QUOTE, "A\x00B"), (QUOTE, "A\ud800")}
    manager.enter([*odd, AAPL])
    wait_until(lambda: subscribed(connection) == {AAPL})
    # The manager takes the answer up after the commit that the line above has seen.
    wait_until(lambda: set(manager.refused) == odd)
    assert manager.watched == {AAPL}


def test_b5_what_is_no_pair_is_the_callers_error_and_nothing_of_it_is_entered(manager: SubscriptionManager) -> None:
    odd: list[Any] = [(QUOTE, None), (QUOTE, 5), (QUOTE,), (QUOTE, "IBM", "MSFT"), None]
    for pair in odd:
        with pytest.raises(TypeError, match="a data type and a symbol, two strings"):
            manager.enter([AAPL, pair])
    assert manager.watched == set()


def test_b5_heartbeats_outlive_an_application_that_uses_up_its_connections(
    database_url: str, connection: psycopg.Connection[Any]
) -> None:
    engine = create_engine(make_engine(database_url).url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with SubscriptionManager(engine, "ann", every=0.1) as manager:
        with engine.connect():
            manager.enter([AAPL])
            time.sleep(0.3)
            assert subscribed(connection) == set()
        wait_until(lambda: subscribed(connection) == {AAPL})
    engine.dispose()


def test_b5_a_pair_that_was_refused_may_be_entered_later(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    retire = "UPDATE pricing.data_type_registry SET is_active = %s WHERE data_type = 'equity_quote'"
    connection.execute(retire, [False])
    manager.enter([AAPL])
    wait_until(lambda: set(manager.refused) == {AAPL})
    connection.execute(retire, [True])
    manager.enter([AAPL])
    wait_until(lambda: subscribed(connection) == {AAPL})
    wait_until(lambda: manager.refused == {})


def test_b5_the_demos_viewer_watches_a_type_again_that_comes_back(
    manager: SubscriptionManager, connection: psycopg.Connection[Any]
) -> None:
    retire = "UPDATE pricing.data_type_registry SET is_active = %s WHERE data_type = 'equity_quote'"
    stop = threading.Event()
    viewer = threading.Thread(target=keep_watching, args=(manager, stop, 0.05))
    with manager.watching(AAPL, BARS):
        viewer.start()
        wait_until(lambda: subscribed(connection) == {AAPL, BARS})
        connection.execute(retire, [False])
        wait_until(lambda: set(manager.refused) == {AAPL})
        connection.execute(retire, [True])
        wait_until(lambda: subscribed(connection) == {AAPL, BARS})
        stop.set()
        viewer.join()


def test_b7_more_pairs_than_a_call_may_name_are_said_in_several(
    engine: Engine, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert subscriptions.MOST_PAIRS == 10_000, "as many as the database takes"
    monkeypatch.setattr(subscriptions, "MOST_PAIRS", 10)
    said: list[int] = []
    heartbeat = viewers.heartbeat

    def counted(connection: Connection, user_id: str, pairs: Sequence[tuple[str, str]]) -> Any:
        said.append(len(pairs))
        return heartbeat(connection, user_id, pairs)

    monkeypatch.setattr(viewers, "heartbeat", counted)
    with SubscriptionManager(engine, "ann", every=0.1) as manager:
        manager.enter((QUOTE, f"S{number}") for number in range(11))
        wait_until(lambda: len(subscribed(connection)) == 11)
        assert manager.refused == {}
    assert max(said) == 10


def test_b5_a_closed_manager_says_so(engine: Engine) -> None:
    with SubscriptionManager(engine, "ann") as manager:
        pass
    with pytest.raises(PricingError, match="are closed"):
        manager.enter([AAPL])
    manager.leave([AAPL])


def test_b5_a_user_who_cannot_be_is_refused_and_not_tried_for_ever(engine: Engine) -> None:
    for user in ("", "x" * 201):
        with SubscriptionManager(engine, user, every=0.1) as manager:
            manager.enter([AAPL, IBM])
            wait_until(lambda manager=manager: set(manager.refused) == {AAPL, IBM})
    for user in ("a\x00b", "a\ud800"):
        with pytest.raises(PricingError, match="not a user's name"):
            SubscriptionManager(engine, user)


def test_b5_closing_says_again_what_was_not_heard(
    engine: Engine, connection: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []

    def deaf_once(*call: Any) -> int:
        said.append(1)
        if len(said) == 1:
            raise TimeoutError("the database does not answer")
        return unsubscribe(*call)

    unsubscribe = viewers.unsubscribe
    monkeypatch.setattr(viewers, "unsubscribe", deaf_once)
    manager = SubscriptionManager(engine, "ann")
    manager.enter([AAPL, IBM])
    wait_until(lambda: subscribed(connection) == {AAPL, IBM})
    manager.close(PATIENCE)
    assert subscribed(connection) == set()


def test_b7_pairs_that_have_not_lapsed_are_heard_beside_those_that_have(
    engine: Engine, connection: psycopg.Connection[Any], clock: Clock
) -> None:
    """After an outage more may have lapsed than a user may begin in a minute."""
    connection.execute("UPDATE pricing.user_caps SET new_pairs_per_minute = 100")
    known = [(QUOTE, f"S{number:04}") for number in range(80)]
    with SubscriptionManager(engine, "ann", every=0.2) as manager:
        manager.enter(known)
        wait_until(lambda: len(subscribed(connection)) == 80)
        connection.execute("UPDATE pricing.user_caps SET new_pairs_per_minute = 20")
        clock.advance(200)
        connection.execute("DELETE FROM pricing.active_subscriptions WHERE symbol < 'S0050'")
        moved = clock.now()
        wait_until(lambda: last_seen_of(connection, "S0079") > moved)
        wait_until(lambda: len(subscribed(connection)) >= 40)


def last_seen_of(connection: psycopg.Connection[Any], symbol: str) -> Any:
    row = connection.execute(
        "SELECT last_seen_at FROM pricing.active_subscriptions WHERE symbol = %s", [symbol]
    ).fetchone()
    return row and row[0]
