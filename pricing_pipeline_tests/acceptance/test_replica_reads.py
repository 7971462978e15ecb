"""The API reads latest prices and histories from a streaming replica while that lags no more than it may (B20)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from pricing_pipeline.api.app import MOST_OF_REPLICA
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.replica import Replica, ReplicaState
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.replica import Servers, answers, following, replicating
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.frozen_server import frozen_at
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

MAX_LAG = 2.0


@pytest.fixture
def servers(open_folder: Path) -> Iterator[Servers]:
    with replicating(open_folder) as servers:
        yield servers


@pytest.fixture
def core(servers: Servers) -> Iterator[Core]:
    engine, owner = make_engine(servers.url(), pool_size=13), make_engine(servers.url("owner"))
    yield Core(engine, owner)
    engine.dispose()
    owner.dispose()


@pytest.fixture
def replica(servers: Servers, core: Core) -> Replica:
    return Replica(core.engine, servers.standby_url(), max_lag=MAX_LAG, pool_size=MOST_OF_REPLICA)


@pytest.fixture
def api(core: Core, replica: Replica) -> Iterator[RunningApi]:
    with running_api(core.engine, core.owner, replica=replica) as api:
        yield api


def test_b20_reads_use_a_replica_that_follows_and_the_primary_whenever_it_does_not(
    servers: Servers, core: Core, replica: Replica, api: RunningApi
) -> None:
    """One story, because its servers take seconds to start: follows, lags, catches up, hangs up, is promoted."""
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")

    def state() -> str:
        answer: str = api.client.get("/healthz").json()["replica"]
        return answer

    def price(symbol: str = "AAPL") -> str | None:
        read = caller.get("prices", symbols=symbol, data_type=QUOTE)
        return read["prices"][0]["price"] if read["prices"] else None

    def history() -> int:
        return len(caller.get(f"history/{QUOTE}/AAPL")["rows"])

    def stored() -> int:
        return len(
            core.rows("SELECT FROM pricing.price_history WHERE symbol = 'AAPL' AND data_type = :type", type=QUOTE)
        )

    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    wait_until(lambda: state() == "used")
    wait_until(lambda: (replica.lag or MAX_LAG) < MAX_LAG / 2)

    # It is really read: a session of the standby asks.
    wait_until(lambda: price() == "146.55")
    with psycopg.connect(servers.standby_url("superuser"), autocommit=True) as admin:
        asked = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE query LIKE '%pricing.read_prices(%' AND pid <> pg_backend_pid()"
        )
        wait_until(lambda: price() and admin.execute(asked).fetchone() == (1,))

    # A10 holds: what is missing is queued on the primary, by the same request.
    assert {task.data_type for task in core.tasks("AAPL")} == {QUOTE}
    assert api.caller(Scope.READ).get("prices", pairs=f"{DAILY}:AAPL")["missing"], "of another type"
    assert DAILY in {task.data_type for task in core.tasks("AAPL") if task.status == "pending"}
    assert replica.is_used, "a read that has to write is not a fault of the replica"

    # What a user has just written is known at once, whatever the replica knows of it.
    servers.on_standby("SELECT pg_wal_replay_pause()")
    core.heartbeat("ann", (QUOTE, "GOOG"))
    (missing,) = caller.get("prices", symbols="GOOG", data_type=QUOTE)["missing"]
    assert missing["why"]["state"] != "unknown_symbol"
    servers.on_standby("SELECT pg_wal_replay_resume()")
    wait_until(lambda: state() == "used" and (replica.lag or MAX_LAG) < MAX_LAG / 2)

    # It lags: what it shows may be as old as the bound and no older.
    servers.on_standby("SELECT pg_wal_replay_pause()")
    core.enqueue(QUOTE, "AAPL", priority=9)
    core.refresh(price="150.00")
    paused = time.monotonic()
    while (seen := price()) != "150.00":
        assert seen == "146.55"
        assert time.monotonic() < paused + PATIENCE
    wait_until(lambda: state() == "lags")  # a read that took long may have asked the primary before
    print(f"the primary was read {time.monotonic() - paused:.1f} s after replay stopped; at most {MAX_LAG} s")
    assert history() == stored()
    scraped = caller.ask("GET", "../metrics").text
    assert "\npricing_replica_used 0.0" in scraped

    servers.on_standby("SELECT pg_wal_replay_resume()")
    wait_until(lambda: state() == "used")
    assert price() == "150.00"
    assert history() == stored()

    # A session of it that is lost costs no request.
    servers.on_standby("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'pricing_worker'")
    assert price() == "150.00"
    assert history() > 0
    wait_until(lambda: state() == "used")

    # A promoted one is a database of its own: nothing is read there, and nothing written.
    servers.on_standby("SELECT pg_promote()")
    core.heartbeat("ann", (QUOTE, "META"))
    assert price("META") is None
    wait_until(lambda: state() == "promoted")
    assert core.statuses()["META"] == "pending"
    there = make_engine(servers.standby_url("owner"), pool_size=1)
    assert "META" not in Core(there, there).statuses()
    there.dispose()
    assert price() == "150.00"


def test_b20_a_replica_that_stands_still_keeps_no_history_waiting(
    open_folder: Path, core: Core, replica: Replica, api: RunningApi
) -> None:
    """It was waited for without end, in all sessions for histories: there was none until it went on."""
    caller = api.caller(Scope.READ, Scope.WATCH, user="ann")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    wait_until(lambda: replica.is_used)
    wait_until(lambda: len(caller.get(f"history/{QUOTE}/AAPL")["rows"]) == 1)
    with ThreadPoolExecutor(4) as readers, frozen_at(open_folder / "copy"):
        asked = [readers.submit(caller.get, f"history/{QUOTE}/AAPL") for _ in range(4)]
        assert [len(answer.result(PATIENCE)["rows"]) for answer in asked] == [1] * 4
        wait_until(lambda: not replica.is_used)
    wait_until(lambda: replica.is_used)
    assert len(caller.get(f"history/{QUOTE}/AAPL")["rows"]) == 1


def state_of(replica: Replica) -> ReplicaState:
    """Its state after it was polled; again while it is away, because on a busy machine it may answer too late."""
    for _ in range(20):
        replica.poll()
        if replica.state is not ReplicaState.AWAY:
            break
    return replica.state


def test_b20_a_replica_of_another_database_is_not_read(server: object, servers: Servers, core: Core) -> None:
    """The mistake of a wrong address; and one that is not there at all."""
    postgres = servers.standby_url().replace("/pricing?", "/dagster?")
    for url, state in ((postgres, "of another database"), (servers.standby_url() + "1", "away")):
        replica = Replica(core.engine, url, max_lag=MAX_LAG)
        assert state_of(replica) == state
        replica.close()


def test_b20_a_copy_that_went_its_own_way_is_no_replica(open_folder: Path, servers: Servers, core: Core) -> None:
    """One of ours that took writes of its own and is in recovery again: its log is ahead, its prices are not ours."""
    data = open_folder / "copy"
    servers.on_standby("SELECT pg_promote()")
    servers.on_standby("UPDATE pricing.instruments SET name = 'not ours'")
    servers.on_standby("SELECT pg_switch_wal()")
    servers.on_standby("UPDATE pricing.instruments SET name = 'not ours either'")
    postmaster = int((data / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGINT)
    wait_until(lambda: not (data / "postmaster.pid").exists())
    home = open_folder / "again"
    home.mkdir()
    home.chmod(0o755)
    with following(servers.primary, home, data) as folder:
        replica = Replica(core.engine, Servers(servers.primary, folder).standby_url(), max_lag=MAX_LAG)
        try:
            wait_until(lambda: answers(replica.engine))
            assert state_of(replica) is ReplicaState.OTHER
        finally:
            replica.close()
