"""What a client or a reader can make the database keep (B7): nothing of unknown symbols, no more than its caps."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import a_login, a_session
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sessions import wait_for_locks

pytestmark = pytest.mark.usefixtures("still")

TABLES = (
    "pair_requests",
    "pair_views",
    "read_charges",
    "demand",
    "instruments",
    "user_allowances",
    "warnings",
)


def counted(core: Core) -> dict[str, Any]:
    return {table: core.one(f"SELECT count(*) FROM pricing.{table}") for table in TABLES}


READS = ("pricing.price('X' || n)", "pricing.document('earned', 'X' || n)", "pricing.price(repeat('x', n))")


@pytest.mark.parametrize("role", ["pricing_client", "pricing_reader"])
def test_b7_what_nobody_knows_leaves_nothing_when_it_is_read(
    core: Core, server: TestServer, database_url: str, role: str
) -> None:
    """It was 22,000 views of symbols that do not exist."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    before = counted(core)
    with a_session(server, database_url, role) as (_, session):
        for read in READS:
            session.execute(f"SELECT {read} FROM generate_series(1, 50) AS n")
    core.enqueue_due()
    assert counted(core) == before


def test_b7_what_is_known_leaves_one_view_of_each_and_reads_within_the_caps(
    core: Core, server: TestServer, database_url: str
) -> None:
    core.cap(10, 10)
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol)"
        " SELECT 'equity', 'R' || n FROM generate_series(1, 100) AS n"
    )
    kinds = "SELECT kind, count(*) FROM pricing.pair_requests GROUP BY 1 ORDER BY 1"
    with a_session(server, database_url, "pricing_client") as (_, session):
        for _ in range(3):
            session.execute("SELECT pricing.document('earned', 'R' || n) FROM generate_series(1, 100) AS n")
            assert [tuple(row) for row in core.rows(kinds)] == [("read", 10), ("seen", 100)]
        core.enqueue_due()
        session.execute("SELECT pricing.document('earned', 'R' || n) FROM generate_series(1, 100) AS n")
    assert core.rows(kinds) == []
    assert core.one("SELECT count(*) FROM pricing.pair_views") == 100
    assert core.one("SELECT sum(pairs) FROM pricing.read_charges") == 10


@pytest.mark.parametrize(("act", "table"), [("heartbeat", "active_subscriptions"), ("hold", "holdings")])
def test_b7_sessions_of_one_client_that_begin_at_once_keep_its_cap_on_pairs(
    core: Core, server: TestServer, database_url: str, act: str, table: str
) -> None:
    """Counted before one session waited for the other, nine of six pairs each made 54 of 10."""
    wait_for_locks(core)
    core.cap(10, 10_000)
    outcomes: list[int] = []
    barrier = threading.Barrier(4)

    def begin(number: int, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as session:
            barrier.wait(PATIENCE)
            row = session.execute(
                f"SELECT pricing.{act}(%s, %s)", [[QUOTE] * 6, [f"S{number}{n}" for n in range(6)]]
            ).fetchone()
            assert row is not None
            outcomes.append(row[0]["changed"])

    with a_login(server, database_url, "pricing_client") as (_, url):
        threads = [threading.Thread(target=begin, args=(number, url)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    assert sorted(outcomes) == [0, 0, 4, 6]
    assert core.one(f"SELECT count(*) FROM pricing.{table}") == 10
