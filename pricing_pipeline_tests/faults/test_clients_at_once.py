"""Many sessions of clients at once keep the caps, never deadlock, and lose no demand."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text

from pricing_pipeline.demand import drains, viewers
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.open_sessions import AAPL, CLIENTS
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sessions import at_once


def test_fault_32_twenty_sessions_of_one_user_keep_its_caps_and_never_deadlock(
    core: Core, server: TestServer, database_url: str
) -> None:
    """In shuffled lists, known pairs and new ones, leaving beside looking: the sum stays within the cap."""
    core.rows("UPDATE pricing.user_caps SET pairs_per_user = 60, new_pairs_per_minute = 100000")
    names = [f"S{number:03}" for number in range(100)]
    most: list[int] = []
    with a_login(server, database_url, "pricing_client") as (user, url):
        count = "SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = :user"

        def work(number: int) -> None:
            random = Random(number)
            with psycopg.connect(url, autocommit=True) as connection:
                for _ in range(12):
                    mine = random.sample(names, 25)
                    word = random.choice(["heartbeat", "heartbeat", "unsubscribe", "hold", "release"])
                    # A busy machine's turn may come too late; a deadlock is neither.
                    with suppress(psycopg.errors.LockNotAvailable):
                        connection.execute(f"SELECT pricing.{word}(%s, %s)", [[QUOTE] * 25, mine])
                    most.append(core.one(count, user=user))

        assert at_once(20, work) == []
    assert 25 <= max(most) <= 60
    core.call("SELECT pricing.serve_requests()")
    assert core.one("SELECT pricing.adopt_pairs()") == 0, "each request was served"


@pytest.mark.parametrize("turn", range(3))
def test_fault_26_clients_who_come_while_others_leave_lose_no_demand(
    core: Core, server: TestServer, database_url: str, turn: int
) -> None:
    """Requests, their serving and the clean-up without grace, all at once: who watches in the end has demand."""
    names, rounds = [f"S{number}" for number in range(4)], 25
    arguments = [[QUOTE] * 4, names]

    def client(number: int) -> None:
        begin, end = [("heartbeat", "unsubscribe"), ("hold", "release")][number % 2]
        with a_login(server, database_url, "pricing_client") as (_, url), psycopg.connect(url) as connection:
            for one in range(rounds):
                connection.execute(f"SELECT pricing.{begin}(%s, %s)", arguments)
                if one % 3 == 0:
                    time.sleep(0.01)  # its transaction stays open for a while
                connection.commit()
                if one < rounds - 1:
                    connection.execute(f"SELECT pricing.{end}(%s, %s)", arguments)
                    connection.commit()
            stay.wait(PATIENCE)

    def clean(_: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not stay.is_set():
                connection.execute(
                    "UPDATE pricing.demand d SET created_at = created_at - interval '1 hour' FROM"
                    " (SELECT data_type, symbol FROM pricing.demand FOR NO KEY UPDATE SKIP LOCKED) x"
                    " WHERE (d.data_type, d.symbol) = (x.data_type, x.symbol)"
                )
                connection.execute("SELECT pricing.clean_subscriptions()")

    def serve(_: int) -> None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not stay.is_set():
                connection.execute("SELECT pricing.serve_requests()")

    def end(_: int) -> None:
        time.sleep(2)
        stay.set()

    stay = threading.Event()
    works = [client, client, client, client, clean, serve, serve, end]
    assert at_once(len(works), lambda number: works[number](number)) == []
    core.call("SELECT pricing.serve_requests()")
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions") == 8
    passed = core.rows("SELECT message FROM pricing.warnings WHERE source = 'add_demand'")
    orphans = core.one("SELECT pricing.adopt_pairs()")
    assert orphans == 0 or passed, "none is left to the duty but those that were passed over for a lock"
    assert core.one("SELECT count(*) FROM pricing.demand") == 4


def test_fault_27_a_first_look_of_a_client_is_served_by_the_next_check(core: Core, sessions: Any) -> None:
    client = sessions("client")
    assert client.execute(CLIENTS["heartbeat"]).fetchone()[0]["changed"] == 3
    assert core.enqueue_due() == 0, "it is not committed"
    client.commit()
    with core.engine.begin() as connection:
        outlook = drains.outlook(connection)
        assert task_queue.is_busy(connection)
    assert (outlook.watched, outlook.queued) == (True, True)
    assert core.enqueue_due() == 3
    assert core.statuses() == {"AAPL": "pending", "NEW": "pending", "EUR/USD": "pending"}


def test_a10_a_hundred_reads_of_a_client_ask_once(core: Core, sessions: Any) -> None:
    core.heartbeat("ann", AAPL, (NAV, "118632"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 day'")
    client = sessions("client")
    client.autocommit = True
    for _ in range(100):
        client.execute("SELECT pricing.price('AAPL')")
    kinds = core.rows("SELECT data_type, kind FROM pricing.pair_requests ORDER BY request_id")
    assert sorted(map(tuple, kinds)) == [
        ("equity_daily", "read"),
        ("equity_daily", "seen"),
        ("equity_quote", "read"),
        ("equity_quote", "seen"),
    ]
    core.enqueue_due()
    assert core.one("SELECT count(*) FROM pricing.pair_requests") == 0
    client.execute("SELECT pricing.price('AAPL')")
    assert core.one("SELECT count(*) FROM pricing.pair_requests") == 0, "it is queued"


def test_b5_who_watches_while_two_are_merged_watches_what_remains(core: Core, engine: Engine, cli: CommandLine) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD.L'), ('equity', 'VOD:XLON')"
    )
    merge = "SELECT count(*) FROM pricing.merge_instruments('equity', 'VOD.L', 'VOD:XLON')"
    with engine.begin() as before:
        viewers.heartbeat(before, "ann", [(QUOTE, "VOD.L")])
        refused = cli("instrument", "merge", "VOD.L", "VOD:XLON")
        assert "Something is locked" in refused.error, "ann's symbol would mean nothing any more"
    with ThreadPoolExecutor() as threads, core.owner.begin() as merging:
        merging.execute(text(merge))
        later = threads.submit(core.heartbeat, "bob", (QUOTE, "VOD.L"))
        locked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'pricing.symbol_aliases'::regclass"
        while not core.one(locked):
            assert not later.done(), "it did not wait"
    assert later.result() == 1
    assert set(core.rows("SELECT symbol FROM pricing.active_subscriptions")) == {("VOD:XLON",)}
