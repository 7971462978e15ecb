"""A10: a read answers at once with what is stored, and queues what is missing or stale; many do no harm."""

from __future__ import annotations

import threading

import psycopg
import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.prices import price_reader
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

AAPL, IBM = (QUOTE, "AAPL"), (QUOTE, "IBM")
MINUTE, DAY = 60, 86_400


def waiting(core: Core) -> dict[tuple[str, str], int]:
    return {(task.data_type, task.symbol): task.priority for task in core.tasks() if task.status == "pending"}


def test_a10_a_read_queues_what_is_missing_as_one_viewer_would(core: Core) -> None:
    reading = core.read("AAPL")
    assert (reading.prices, reading.requested) == ([], 2)
    assert waiting(core) == {AAPL: 1, (DAILY, "AAPL"): 1}
    assert core.read("AAPL").requested == 0


def test_a10_a_read_answers_what_is_stored_and_queues_what_is_stale(core: Core, clock: Clock) -> None:
    core.read("AAPL")
    core.refresh(price="146.55")
    assert core.read("AAPL").requested == 0
    clock.advance(2 * MINUTE)
    reading = core.read("AAPL")
    assert {(one.data_type, str(one.price), one.fresh) for one in reading.prices} == {
        (QUOTE, "146.55", False),
        (DAILY, "146.55", True),
    }
    assert reading.requested == 1
    assert waiting(core) == {AAPL: 1}


def test_a10_a_read_neither_writes_nor_locks_while_the_price_is_on_its_way(core: Core, clock: Clock) -> None:
    """A transaction gets an id with its first write or row lock; these get none."""
    core.read("AAPL")

    def writes() -> bool:
        with core.engine.begin() as connection:
            for data_type in (QUOTE, DAILY):
                price_reader.read(connection, "AAPL", data_type)
            found: bool = connection.exec_driver_sql("SELECT pg_current_xact_id_if_assigned() IS NOT NULL").scalar_one()
        return found

    assert not any(writes() for _ in range(20)), "queued"
    (call,) = core.claim()[:1]
    assert not writes(), "in work"
    core.finish(call)
    assert not writes(), "fresh"
    clock.advance(2 * MINUTE)
    assert writes(), "stale"
    assert not writes()


@pytest.mark.own_sessions
def test_a10_a_crowd_of_readers_waits_for_nobody(core: Core, database_url: str) -> None:
    """While somebody holds the demand, the task and the view, reads of it go on."""
    core.read("AAPL")
    faults: list[BaseException] = []

    def read(number: int) -> None:
        try:
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute("SET lock_timeout = '1ms'")
                for _ in range(5):
                    connection.execute("SELECT pricing.request_prices(%s, %s)", [[QUOTE, DAILY], ["AAPL", "AAPL"]])
        except BaseException as fault:
            faults.append(fault)

    with psycopg.connect(database_url) as holder:
        for table in ("demand", "api_call_queue_live", "pair_views"):
            holder.execute(f"SELECT FROM pricing.{table} FOR UPDATE")
        readers = [threading.Thread(target=read, args=(number,)) for number in range(8)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(PATIENCE)
    assert faults == []
    assert len(core.tasks()) == 2


def test_a10_readers_at_once_queue_one_task(core: Core, database_url: str) -> None:
    barrier, counts, faults = threading.Barrier(5), [], []

    def read(number: int) -> None:
        try:
            with psycopg.connect(database_url, autocommit=True) as connection:
                barrier.wait(PATIENCE)
                row = connection.execute("SELECT pricing.request_prices('{equity_quote}', '{AAPL}')").fetchone()
                counts.append(row[0] if row else None)
        except BaseException as fault:
            faults.append(fault)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(5)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(PATIENCE)
    assert faults == []
    assert sorted(counts) == [0] * 4 + [1]
    assert waiting(core) == {AAPL: 1}


def test_a10_what_a_read_has_queued_waits_for_its_turn_however_long_that_takes(core: Core, clock: Clock) -> None:
    core.read("AAPL")
    clock.advance(DAY)
    core.clean()
    assert set(waiting(core)) == {AAPL, (DAILY, "AAPL")}
    core.refresh()
    clock.advance(6 * MINUTE)
    core.enqueue_due()
    core.clean()
    assert waiting(core) == {}, "it was served once: nobody watches"
    assert core.rows("SELECT FROM pricing.demand") == []


def test_a8_a_symbol_that_failed_is_not_asked_for_by_every_read(core: Core, clock: Clock) -> None:
    core.rows("SELECT pricing.request_prices('{equity_quote}', '{AAPL}')")
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    for _ in range(5):
        clock.advance(10 * MINUTE)
        core.clean()
        core.rows("SELECT pricing.request_prices('{equity_quote}', '{AAPL}')")
    assert [task.status for task in core.tasks()] == ["failed"]
    clock.advance(11 * MINUTE)
    core.rows("SELECT pricing.request_prices('{equity_quote}', '{AAPL}')")
    assert [task.status for task in core.tasks()] == ["failed", "pending"]


def test_a10_what_cannot_be_judged_is_read_and_asked_for_once_per_ttl(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (FX, "EUR/USD"))
    core.refresh()
    core.rows(
        "CREATE FUNCTION pricing.broken(stamp timestamptz, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''no such calendar''; END'"
    )
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'broken' WHERE data_type = 'fx_rate'")
    reading = core.read("EUR/USD")
    assert ([one.fresh for one in reading.prices], reading.requested) == ([False], 0)
    core.unsubscribe("ann", (FX, "EUR/USD"))
    clock.advance(16 * MINUTE)
    core.clean()
    assert core.read("EUR/USD").requested == 1
    core.refresh()
    assert core.read("EUR/USD").requested == 0


def test_a10_a_table_of_ones_own_is_what_a_read_judges_by(core: Core) -> None:
    core.rows("CREATE TABLE pricing.mine (ticker text PRIMARY KEY, loaded_at timestamptz, cache_ttl_minutes integer)")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class, table_name,"
        " symbol_column, timestamp_column) VALUES ('coin', 'quote', 5, 'coin', 'mine', 'ticker', 'loaded_at')"
    )
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('coin', 'BTC'), ('coin', 'ETH')")
    core.rows("INSERT INTO pricing.mine VALUES ('BTC', pricing.clock(), NULL)")
    assert (core.read("BTC").requested, core.read("ETH").requested) == (0, 1)


def test_a10_a_read_of_a_read_only_session_answers_all_the_same(core: Core, database_url: str) -> None:
    core.read("AAPL")
    core.refresh(price="146.55")
    core.rows("DELETE FROM pricing.pair_views")
    with core.engine.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        reading = price_reader.read(connection, "AAPL")
        assert {str(one.price) for one in reading.prices} == {"146.55"}
        assert reading.requested == 0
        assert price_reader.latest(connection, "AAPL"), "the transaction goes on"


def test_a10_the_command_asks_for_what_it_does_not_find(cli: CommandLine, core: Core, clock: Clock) -> None:
    said = cli("price", "show", "AAPL")
    assert said.stderr == (
        "hint: AAPL has no price yet. Nobody watches or holds it, so nothing is fetched. This fetches it once: "
        f"pricing-pipeline price show AAPL --type {DAILY}\n"
    )
    assert waiting(core) == {}
    named = ("price", "show", f"{QUOTE}:AAPL", f"{DAILY}:aapl")
    assert cli(*named).stderr.count("AAPL has no price yet. A newer price is queued") == 2
    assert cli(*named).stderr.count("AAPL has no price yet. It is on its way") == 2
    assert set(waiting(core)) == {AAPL, (DAILY, "AAPL")}
    core.refresh()
    assert cli("price", "show", "AAPL").stderr == ""
    clock.advance(DAY)
    assert cli("price", "show", "AAPL").stderr == (
        "hint: AAPL is not fresh. This says why: pricing-pipeline price why AAPL\n"
    )
    assert waiting(core) == {}
    core.heartbeat("ann", AAPL)
    core.refresh()
    clock.advance(2 * MINUTE)
    assert "A newer price is queued" in cli("price", "show", "AAPL").stderr
    assert set(waiting(core)) == {AAPL}, "of what is watched"


@pytest.mark.parametrize("symbol", ["NOPE", "'; DROP TABLE x", "A" * 1_000_000])
def test_a10_a_read_makes_nothing_known(core: Core, symbol: str) -> None:
    before = core.one("SELECT count(*) FROM pricing.instruments")
    assert core.read(symbol) == price_reader.Reading([], 0)
    assert core.rows("SELECT FROM pricing.pair_views") == []
    assert core.one("SELECT count(*) FROM pricing.instruments") == before
