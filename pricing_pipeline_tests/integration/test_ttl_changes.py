"""A change of how staleness is judged counts at once, whichever way it is made (B1, B3, B4)."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pricing_pipeline_tests.fixtures.core import FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sessions import wait_for_locks

pytestmark = pytest.mark.usefixtures("still")

EUR = (FX, "EUR/USD")
MINUTE = 60


def function(core: Core, name: str, body: str) -> None:
    core.rows(
        f"CREATE FUNCTION pricing.{name}(stamp timestamptz, ttl_minutes integer) RETURNS boolean"
        f" LANGUAGE sql AS $$ {body} $$"
    )


def judge_by(core: Core, name: str, data_type: str = FX) -> None:
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = :name WHERE data_type = :data_type",
        name=name,
        data_type=data_type,
    )


@pytest.fixture
def own(core: Core) -> None:
    """A data type whose table is filled by somebody else, with a watched pair that is fresh for five minutes."""
    core.rows("CREATE TABLE pricing.mine (ticker text PRIMARY KEY, loaded_at timestamptz, cache_ttl_minutes integer)")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class, table_name,"
        " symbol_column, timestamp_column) VALUES ('coin', 'quote', 5, 'coin', 'mine', 'ticker', 'loaded_at')"
    )
    core.rows("INSERT INTO pricing.mine VALUES ('BTC', pricing.clock(), NULL)")
    core.heartbeat("ann", ("coin", "BTC"))
    assert core.tasks() == []


def test_b1_another_staleness_function_judges_at_the_next_check(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", EUR)
    core.refresh()
    assert core.enqueue_due() == 0
    function(core, "always", "SELECT true")
    judge_by(core, "always")
    assert core.enqueue_due() == 1


def test_b4_a_judge_that_says_nothing_says_stale_once_per_ttl(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", EUR)
    core.refresh()
    function(core, "silent", "SELECT NULL::boolean")
    judge_by(core, "silent")
    assert core.enqueue_due() == 1
    core.refresh()
    latest = core.latest("EUR/USD", FX)
    assert latest is not None
    assert latest.fresh is False
    for _ in range(3):
        clock.advance(4 * MINUTE)
        core.heartbeat("ann", EUR)
        assert core.enqueue_due() == 0
    clock.advance(4 * MINUTE)
    assert core.enqueue_due() == 1


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE pricing.mine SET loaded_at = loaded_at - interval '1 hour'",
        "UPDATE pricing.mine SET cache_ttl_minutes = 1",
        "DELETE FROM pricing.mine",
    ],
)
def test_b1_what_others_do_to_a_table_of_ones_own_counts_within_a_minute(core: Core, clock: Clock, change: str) -> None:
    clock.advance(90)
    core.rows("SELECT pricing.reconcile_demand()")
    assert core.enqueue_due() == 0
    core.rows(change)
    core.rows("SELECT pricing.reconcile_demand()")
    assert core.enqueue_due() == 1


@pytest.mark.usefixtures("own")
def test_b1_a_table_of_ones_own_that_nobody_fills_asks_once_per_ttl(core: Core, clock: Clock) -> None:
    core.rows("DELETE FROM pricing.mine")
    core.rows("SELECT pricing.reconcile_demand()")
    assert core.enqueue_due() == 1
    core.refresh()
    for _ in range(4):
        clock.advance(MINUTE)
        core.heartbeat("ann", ("coin", "BTC"))
        core.rows("SELECT pricing.reconcile_demand()")
        assert core.enqueue_due() == 0
    clock.advance(MINUTE + 1)
    assert core.enqueue_due() == 1


def test_b3_a_pairs_own_ttl_that_met_a_worker_is_found_by_the_reconcile(
    core: Core, clock: Clock, database_url: str
) -> None:
    """The trigger does not wait for who holds the demand: that would be a deadlock with who stores the price."""
    core.heartbeat("ann", EUR)
    core.refresh()
    clock.advance(2 * MINUTE)
    with psycopg.connect(database_url) as worker:
        worker.execute("SELECT FROM pricing.demand FOR UPDATE")
        core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 1")
    assert core.enqueue_due() == 0
    core.rows("SELECT pricing.reconcile_demand()")
    assert core.enqueue_due() == 1


def test_b1_a_types_ttl_that_meets_a_worker_waits_for_it(core: Core, clock: Clock, database_url: str) -> None:
    """What it sets by the old TTL is seen when it has committed."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 600")
    wait_for_locks(core)
    call = core.claim_one()
    changed = threading.Event()

    def change() -> None:
        core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 1 WHERE data_type = 'equity_quote'")
        changed.set()

    with psycopg.connect(database_url) as worker:
        worker.execute("SELECT pricing.complete_tasks(%s, %s)", [call.task_ids, call.claim_token])
        thread = threading.Thread(target=change)
        thread.start()
        assert not changed.wait(0.3)
    thread.join(PATIENCE)
    assert core.due_in(QUOTE, "AAPL") <= 0
