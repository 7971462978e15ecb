"""Behind PgBouncer in transaction mode each transaction may meet another session of the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from pricing_pipeline.db.advisory_lock import advisory_lock
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import LockUnavailable
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.api_server import running_api
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.pgbouncer import HOW_TO_GET_IT, PROGRAM, bouncing, through
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.sessions import at_once
from pricing_pipeline_tests.support.waking import always_waking, delay
from pricing_pipeline_tests.tools.audit import audit

__all__ = ["always_waking"]

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=HOW_TO_GET_IT)

SYMBOLS = [f"S{number:03d}" for number in range(120)]


@pytest.fixture
def bouncer(server: TestServer, database_url: str, open_folder: Path) -> Iterator[str]:
    """The worker's URL of this test's database, by way of a PgBouncer with three sessions."""
    with bouncing(server.admin_url, open_folder) as sockets:
        yield through(database_url, sockets)


@pytest.fixture
def bounced(bouncer: str, core: Core) -> Iterator[Core]:
    """The core by way of PgBouncer; what it arranges and looks at goes there directly."""
    engine = make_engine(bouncer, pool_size=8)
    yield Core(engine, core.owner)
    engine.dispose()


def locks(core: Core) -> int:
    """Advisory locks that any session of this database holds."""
    count: int = core.one(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE locktype = 'advisory' AND datname = current_database()"
    )
    return count


def test_a3_workers_and_viewers_share_three_sessions(bounced: Core) -> None:
    bounced.lift_limits(batch_size=10)
    # Anyone who has three sessions for fourteen threads waits for a lock until the one that has it is lent one again.
    bounced.be_patient("begin_pairs", "claim_calls")

    def watch(number: int) -> None:
        for turn in range(10):
            mine = SYMBOLS[number * 15 : number * 15 + 15]
            bounced.heartbeat(f"user {number} {turn % 2}", *((QUOTE, symbol) for symbol in mine))

    def work(number: int) -> None:
        for _ in range(6):
            for call in bounced.claim(max_calls=3, worker=f"w{number}"):
                bounced.finish(call)
            bounced.enqueue_due()
            bounced.call("SELECT pricing.run_duties() IS NOT NULL")

    assert at_once(8, watch) == []
    assert at_once(6, work) == []
    while bounced.refresh():
        pass
    assert set(bounced.statuses().values()) == {"completed"}
    assert len(bounced.tasks()) == len(SYMBOLS)
    audit(bounced)
    assert locks(bounced) == 0


def test_c2_a_lock_is_one_sessions_and_leaks_nowhere(bounced: Core) -> None:
    entered, refused = [], []

    def contend(number: int) -> None:
        for _ in range(20):
            try:
                with advisory_lock(bounced.engine, "a duty"):
                    assert locks(bounced) == 1
                    entered.append(number)
                    assert len(entered) - len(left) == 1
                    left.append(number)
            except LockUnavailable:
                refused.append(number)

    left: list[int] = []
    assert at_once(3, contend) == []
    assert entered
    assert len(entered) + len(refused) == 60
    assert locks(bounced) == 0
    with pytest.raises(RuntimeError), advisory_lock(bounced.engine, "a duty"):
        raise RuntimeError("it failed")
    assert locks(bounced) == 0


def test_a_statement_repeated_often_is_prepared_in_no_session(bounced: Core) -> None:
    """After five times psycopg would prepare it, in a session that the next transaction does not meet."""

    def ask(number: int) -> None:
        with bounced.engine.connect() as connection:
            for turn in range(40):
                value = connection.execute(text("SELECT CAST(:n AS integer) + 1"), {"n": turn}).scalar_one()
                assert value == turn + 1
                connection.commit()

    assert at_once(8, ask) == []
    assert bounced.call("SELECT count(*) FROM pg_prepared_statements") == 0


@pytest.mark.usefixtures("always_waking")
def test_b28_a_drain_behind_pgbouncer_is_woken_by_a_direct_session(
    bounced: Core, database_url: str, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pricing_pipeline.refresh.refresher._POLL_SECONDS", PATIENCE)
    direct = make_engine(database_url, pool_size=1)
    with refreshing(bounced.engine, sandbox.url, listening=direct) as refresher:
        assert delay(refresher, bounced, "AAPL") < timedelta(seconds=PATIENCE / 2)
    direct.dispose()


@pytest.mark.usefixtures("always_waking")
def test_b28_without_one_nothing_listens_and_a_drain_looks_by_itself(
    bounced: Core, sandbox: RunningSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """A session of PgBouncer's that listens would be lent to others, and wake nobody."""
    caplog.set_level(logging.INFO, "pricing_pipeline.db.wakeup")
    with refreshing(bounced.engine, sandbox.url) as refresher:
        delay(refresher, bounced, "AAPL")
        # By the thread that works alone, without any wake-up: twice the pause, and the rest is a busy machine's.
        assert delay(refresher, bounced, "IBM") < timedelta(seconds=PATIENCE / 2)
    assert "Set PRICING_LISTEN_URL" in caplog.text
    listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%LISTEN pricing_work%'"
    assert bounced.one(listening + " AND datname = current_database() AND pid <> pg_backend_pid()") == 0


def test_a10_the_api_and_a_drain_share_three_sessions(bounced: Core, sandbox: RunningSandbox) -> None:
    """Reads by sessions of the event loop, heartbeats and histories, before and after a drain has stored prices."""
    bounced.lift_limits(batch_size=10)
    bounced.be_patient("begin_pairs")
    symbols = SYMBOLS[:40]

    def answered(number: int) -> None:
        caller = callers[number]
        for _ in range(8):
            mine = symbols[number * 5 : number * 5 + 5]
            caller.post("heartbeat", {"pairs": [{"data_type": QUOTE, "symbol": symbol} for symbol in mine]})
            caller.get("prices", symbols=",".join(mine), data_type=QUOTE)
            caller.get(f"history/{QUOTE}/{mine[0]}")

    with running_api(bounced.engine, bounced.owner) as api:
        callers = [api.caller(Scope.READ, Scope.WATCH, user=f"user {number}") for number in range(8)]
        assert at_once(8, answered) == []
        with refreshing(bounced.engine, sandbox.url) as refresher:
            work_until(refresher, lambda: set(bounced.statuses().values()) == {"completed"})
        assert at_once(8, answered) == []
        read = api.caller(Scope.READ).get("prices", symbols=",".join(symbols), data_type=QUOTE)
    assert [price["symbol"] for price in read["prices"]] == symbols
    audit(bounced)
