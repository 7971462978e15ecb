"""What runs every second reads little, however much there is: no sequential scan of a table that grows.

EXPLAIN does not see into functions, so the rows that were really read are counted by the server, per table
and index, for the transaction that ran the statement eight times: by then plans are generic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import Connection

from pricing_pipeline.db.query_loader import named
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import TestServer

TURNS = 8
FILL = """
INSERT INTO pricing.instruments (asset_class, symbol)
SELECT 'equity', 'S' || n FROM generate_series(1, 2500) AS n;

-- 5,000 pairs, none due; 7,500 viewers
INSERT INTO pricing.demand (data_type, symbol, due_at)
SELECT t, 'S' || n, pricing.clock() + interval '1 hour'
FROM generate_series(1, 2500) AS n, unnest(ARRAY['equity_quote', 'equity_daily']) AS t;
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT 'user ' || n % 500 + u, 'equity_quote', 'S' || n FROM generate_series(1, 2500) AS n, generate_series(0, 2) AS u;
INSERT INTO pricing.latest_prices
    (data_type, symbol, amount, scale, observed_at, fetched_at, provider, call_id, source_text)
SELECT 'equity_quote', 'S' || n, n, 2, pricing.clock(), pricing.clock(), 'twelvedata', n, '1'
FROM generate_series(1, 2500) AS n;

-- 10,000 tasks of one provider lie before 500 of the other; some are in work, some wait for their time
INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority, cadence_minutes)
SELECT 'equity_quote', 'S' || n, 'twelvedata', n % 7, 1 FROM generate_series(1, 10000) AS n;
INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority, cadence_minutes)
SELECT 'mf_nav', (100000 + n)::text, 'mfapi', -1, 1440 FROM generate_series(1, 500) AS n;
INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, status, claim_token, lease_until, call_id)
SELECT 'equity_daily', 'P' || n, 'twelvedata', 'processing', gen_random_uuid(), pricing.clock() + interval '1 minute', n
FROM generate_series(1, 50) AS n;
INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, status, run_after)
SELECT 'equity_daily', 'W' || n, 'twelvedata', 'scheduled', pricing.clock() + interval '1 minute'
FROM generate_series(1, 2000) AS n;

-- 8,000 calls of the last hours, of which 20 lie within the last minute and five are open
INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units, reserved_bytes,
    worker, started_at, finished_at, outcome)
SELECT 'twelvedata', 'equity_quote', '{}', '-infinity', 'infinity', 1, 600, 'w',
       pricing.clock() - n * interval '3 seconds', pricing.clock(), 'ok' FROM generate_series(1, 8000) AS n;
INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units, reserved_bytes,
    worker, started_at)
SELECT 'twelvedata', 'equity_quote', '{}', '-infinity', 'infinity', 1, 600, 'w', pricing.clock()
FROM generate_series(1, 5) AS n;

-- 2,500 watched pairs whose market is closed; 2,000 funds that a schedule walks over
CREATE FUNCTION pricing.market_is_closed(stamp timestamptz, ttl_minutes integer) RETURNS boolean
    LANGUAGE sql AS 'SELECT stamp IS NULL';
UPDATE pricing.data_type_registry SET staleness_function = 'market_is_closed' WHERE data_type = 'fx_rate';
INSERT INTO pricing.demand (data_type, symbol, due_at)
SELECT 'fx_rate', 'X' || n, pricing.clock() + interval '1 hour' FROM generate_series(1, 2500) AS n;
INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)
SELECT 'user ' || n % 500, 'fx_rate', 'X' || n FROM generate_series(1, 2500) AS n;
INSERT INTO pricing.latest_prices
    (data_type, symbol, amount, scale, observed_at, fetched_at, provider, call_id, source_text)
SELECT 'fx_rate', 'X' || n, n, 2, pricing.clock(), pricing.clock() - interval '1 day', 'twelvedata', n, '1'
FROM generate_series(1, 2500) AS n;
INSERT INTO pricing.instruments (asset_class, symbol, verified_at)
SELECT 'fund', 'F' || n, pricing.clock() FROM generate_series(1, 2000) AS n;

INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at)
SELECT t, 'S' || s, timestamptz '2010-01-01 00:00Z' + d * interval '1 day', 1, 2, 'twelvedata', 1, pricing.clock()
FROM generate_series(1, 10) AS s, generate_series(0, 299) AS d, unnest(ARRAY['equity_daily', 'mf_nav']) AS t;
-- Claims are repeated here, and none of their calls ends.
ALTER TABLE pricing.data_collectors DROP CONSTRAINT in_flight_is_sane;
UPDATE pricing.data_collectors SET max_in_flight = 100;
ANALYZE;
"""
GROWING = {
    "active_subscriptions",
    "api_call_queue_live",
    "collector_call_log",
    "demand",
    "instruments",
    "latest_prices",
    "price_history_equity_daily",
    "price_history_mf_nav",
}


@dataclass(frozen=True)
class Reads:
    """What one run of a statement read, on average: rows by table or index; and tables scanned from end to end."""

    rows: dict[str, float]
    scanned: set[str]

    @property
    def total(self) -> float:
        return sum(self.rows.values())


@pytest.fixture(scope="module")
def filled(server: TestServer, template: str) -> Iterator[Connection[Any]]:
    """One large database for all tests here: each works in a transaction that is rolled back."""
    name = f"pricing_test_{uuid4().hex[:16]}"
    server.create(name, template)
    try:
        with psycopg.connect(server.url_of_owner(name), autocommit=True) as owner:
            owner.execute(FILL)
            owner.execute("VACUUM pricing.collector_call_log")
            # For the tests that fill them in their own transaction: no worker may.
            owner.execute("GRANT ALL ON pricing.collector_call_log, pricing.limit_counts TO pricing_worker")
        with psycopg.connect(server.url(name), autocommit=True) as connection:
            yield connection
    finally:
        server.drop(name)


@pytest.fixture
def reads(filled: Connection[Any]) -> Iterator[Callable[..., Reads]]:
    def counters() -> dict[tuple[str, str], tuple[int, int]]:
        found = filled.execute(
            "SELECT relname, relkind, pg_stat_get_xact_numscans(oid), pg_stat_get_xact_tuples_returned(oid)"
            " FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'i')"
        )
        return {(name, kind): (scans, rows) for name, kind, scans, rows in found}

    def measure(statement: str, *parameters: object) -> Reads:
        before = counters()  # earlier transactions of this session may still be in them
        for _ in range(TURNS):
            filled.execute(statement, parameters)
        after = counters()
        rows = {name: (after[name, kind][1] - count) / TURNS for (name, kind), (_, count) in before.items()}
        scanned = {name for (name, kind), (scans, _) in before.items() if kind == "r" and after[name, kind][0] > scans}
        return Reads({name: count for name, count in rows.items() if count}, scanned & GROWING)

    with filled.transaction(force_rollback=True):
        yield measure


CLAIM = "SELECT * FROM (SELECT unnest(ids) AS id FROM pricing.claim_calls(%s, 'w', %s)) claimed"


def test_a3_a_claim_reads_what_it_takes_and_not_the_queue(reads: Callable[..., Reads]) -> None:
    seen = reads(CLAIM, "twelvedata", 1)
    assert seen.scanned == set()
    assert seen.rows["live_claim"] >= 100, "a batch of a hundred"
    assert seen.total < 1500, seen.rows


def test_b11_a_claim_writes_into_no_index_of_the_queue(filled: Connection[Any]) -> None:
    """No index names what a claim changes, so its updates are heap-only wherever a page has room."""
    tasks = "SELECT id, to_jsonb(q) FROM pricing.api_call_queue_live q WHERE priority = 6"
    with filled.transaction(force_rollback=True):
        before = dict(filled.execute(tasks).fetchall())
        filled.execute(CLAIM, ["twelvedata", 1])
        after = dict(filled.execute(tasks).fetchall())
    changed = {name for task in before for name, value in before[task].items() if after[task][name] != value}
    assert {"status", "claim_token", "lease_until"} <= changed
    indexed = filled.execute(
        # Columns of keys, and those that expressions and WHERE clauses depend on.
        "SELECT a.attname FROM pg_attribute a WHERE a.attrelid = 'pricing.api_call_queue_live'::regclass AND EXISTS ("
        " SELECT FROM pg_index i LEFT JOIN pg_depend d ON (d.objid, d.refobjid) = (i.indexrelid, i.indrelid)"
        " WHERE i.indrelid = a.attrelid AND (a.attnum = ANY (i.indkey) OR a.attnum = d.refobjsubid))"
    ).fetchall()
    assert changed & {name for (name,) in indexed} == set()
    assert ("run_after",) in indexed


def test_b8_a_claim_of_one_provider_does_not_wade_through_anothers(reads: Callable[..., Reads]) -> None:
    seen = reads(CLAIM, "mfapi", 3)
    assert seen.scanned == set()
    assert seen.total < 600, "its own 500, which share a call"


def test_a6_the_rate_limit_reads_its_window_only(reads: Callable[..., Reads]) -> None:
    seen = reads("SELECT pricing.units_available('twelvedata', pricing.clock())")
    assert seen.scanned == set()
    assert seen.rows["collector_call_log_rate"] < 60, "21 s of calls and the open ones"


def test_a6_thousands_of_calls_in_a_window_are_not_counted_by_every_claim(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    filled.execute(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at, finished_at, outcome)"
        " SELECT 'twelvedata', 'equity_quote', '{}', '-infinity', 'infinity', 1, 600, 'w',"
        " pricing.clock() - n * interval '5 milliseconds', pricing.clock(), 'ok' FROM generate_series(1, 5000) AS n"
    )
    limits = "SELECT pricing.units_available('twelvedata', pricing.clock())"
    before = reads(limits)
    assert before.rows["collector_call_log_rate"] > 5_000
    filled.execute("SELECT pricing.count_units('twelvedata', pricing.clock())")
    seen = reads(limits)
    assert seen.scanned == set()
    assert seen.rows.get("collector_call_log_rate", 0) < 20, "what has come and gone since"


@pytest.mark.parametrize("user", ["'user 1'", "clock_timestamp()::text"], ids=["again", "first"])
def test_b5_b7_a_heartbeat_reads_its_own_pairs(reads: Callable[..., Reads], user: str) -> None:
    pairs = (["equity_quote"] * 3, ["S1", "S2", "S3"])
    seen = reads(f"SELECT pricing.heartbeat({user}, %s, %s)", *pairs)
    assert seen.scanned == set()
    assert "active_subscriptions_pair" in seen.rows or user == "'user 1'", "viewers are counted by their index"
    assert seen.total < 200, seen.rows


def test_f4_what_stops_a_provider_is_asked_once_for_a_read(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    filled.execute("UPDATE pricing.latest_prices SET fetched_at = '2000-01-01' WHERE symbol LIKE 'S1_'")
    read = (
        "SELECT pricing.prices_to_read(s, array_fill('equity_quote'::text, ARRAY[cardinality(s)]))"
        " FROM (SELECT %s::text[] AS s) wanted"
    )
    two, ten = (reads(read, [f"S1{number}" for number in range(count)]) for count in (2, 10))
    state = "provider_state_pkey"
    assert two.rows[state] == ten.rows[state] <= 2, "for what stops it, and for its bytes"
    assert state not in reads(read, ["S2", "S3"]).rows, "of fresh prices nobody asks why"


def test_b22_how_pairs_are_served_is_known_without_looking_each_up(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    filled.execute(
        "INSERT INTO pricing.pair_requests (kind, user_id, data_type, symbol, requested_at)"
        " SELECT 'watched', 'user 1', 'equity_quote', 'NEW' || n, pricing.clock() FROM generate_series(1, 100) n"
    )
    (states,) = filled.execute("SELECT count(*) FROM pricing.watched_pairs()").fetchone() or (0,)
    assert states == 5_100
    seen = reads("SELECT count(*) FROM pricing.watched_pairs()")
    assert seen.rows["active_subscriptions"] == 10_000, "each is read once"
    assert seen.rows.get("demand_pkey", 0) <= 100, "those of requests"
    assert not {"active_subscriptions_pair", "latest_prices_pkey"} & seen.rows.keys()


STEPS = {
    "promote": ("SELECT pricing.promote_tasks()", 300),
    "recover": ("SELECT pricing.recover_tasks()", 300),
    "expire": ("SELECT pricing.expire_calls()", 300),
    "hold": ("SELECT pricing.lock_tasks('{1,2,3}', gen_random_uuid())", 300),
    "complete": ("SELECT pricing.complete_tasks('{1,2,3}', gen_random_uuid())", 300),
    "finish": ("SELECT pricing.finish_call(1, '{1,2,3}', gen_random_uuid(), 200, 5)", 300),
    "fail": ("SELECT pricing.fail_tasks('{1,2,3}', gen_random_uuid(), 'provider_down', 'x', false)", 300),
    "settle": ("SELECT pricing.settle_call(1, 'ok', 200, 5)", 300),
    "enqueue": ("SELECT pricing.enqueue('equity_quote', '{S1,S2,S3}', '{1,1,1}')", 300),
    "check with nothing due": ("SELECT pricing.enqueue_due()", 60),
    "use of the quota": ("SELECT pricing.bytes_used('twelvedata', pricing.clock())", 50),
    "prune calls": ("SELECT pricing.prune_calls()", 20),
    "providers with work": (named("queue.providers_with_work"), 300),
    "is busy": (named("queue.is_busy"), 300),
}


@pytest.mark.parametrize("step", STEPS)
def test_b11_each_step_of_a_worker_reads_little(reads: Callable[..., Reads], step: str) -> None:
    """A scan that ends at its first row does no harm: EXISTS does that."""
    statement, most = STEPS[step]
    seen = reads(statement)
    assert seen.total < most, seen.rows


@pytest.mark.own_database
def test_b11_finishing_reads_its_own_pairs_by_a_plan_of_when_none_were_wanted(core: Core, database_url: str) -> None:
    read = (
        "SELECT sum(pg_stat_get_xact_tuples_returned(oid))::integer FROM pg_class"
        " WHERE relname IN ('demand', 'demand_pkey', 'demand_due')"
    )

    def finish(connection: Connection[Any], symbols: list[str]) -> int:
        connection.execute("SELECT pricing.enqueue('equity_quote', %s, '{1,1,1}')", [symbols])
        claim = connection.execute(
            "SELECT call_id, ids, claim_token FROM pricing.claim_calls('twelvedata', 'w', 1)"
        ).fetchone()
        assert claim is not None
        with connection.transaction():
            (before,) = connection.execute(read).fetchone() or (0,)
            connection.execute("SELECT pricing.finish_call(%s, %s, %s, 200, 600)", claim)
            (after,) = connection.execute(read).fetchone() or (0,)
        return int(after - before)

    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 0")
    core.rows("ANALYZE pricing.demand")
    with psycopg.connect(database_url, autocommit=True) as connection:
        finish(connection, ["S1", "S2", "S3"])
        connection.execute(
            "INSERT INTO pricing.demand (data_type, symbol, due_at, became_due_at)"
            " SELECT 'equity_quote', 'S' || n, now(), now() FROM generate_series(1, 1000) AS n"
        )
        assert 3 <= finish(connection, ["S4", "S5", "S6"]) < 20


def test_a8_looking_after_an_outage_reads_what_waits_for_its_time_only(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    filled.execute(
        "INSERT INTO pricing.outages (provider, data_type, since, last_fault_at, answered_at)"
        " SELECT 'twelvedata', 'equity_quote', n.at - interval '1 h', n.at - interval '1 min', w.at"
        " FROM (SELECT pricing.clock() AS at) n, (VALUES (CAST(NULL AS timestamptz)), (pricing.clock())) AS w (at)"
    )
    seen = reads("SELECT pricing.tend_outages()")
    assert seen.scanned <= {"outages"}
    assert seen.total - seen.rows["live_scheduled"] < 100, "neither the pending nor what nobody waits for"


def test_g6_reading_history_touches_its_own_partition_only(reads: Callable[..., Reads]) -> None:
    statement = named("prices.history").replace(":data_type", "'equity_daily'").replace(":symbol", "'S7'")
    statement = statement.replace(":first_day", "'2010-03-01'").replace(":last_day", "'2010-03-31'")
    statement = statement.replace(":as_of", "NULL").replace(":moved", "NULL")
    seen = reads(statement)
    assert seen.scanned == set()
    assert {name: count for name, count in seen.rows.items() if name.startswith("price_history")} == {
        "price_history_equity_daily_pkey": 31
    }


def test_g6_a_list_of_backfills_reads_no_tasks_of_other_days(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    """Here 10,000 tasks are queued for an earlier one of other days."""
    filled.execute(
        "WITH earlier AS (INSERT INTO pricing.backfills (data_type, window_start, window_end, requested_at)"
        " VALUES ('equity_quote', '2010-01-01', '2010-12-31', pricing.clock() - interval '1 day') RETURNING *)"
        " UPDATE pricing.api_call_queue_live q SET backfill_id = e.backfill_id FROM earlier e"
        " WHERE q.data_type = e.data_type"
    )
    filled.execute(
        "INSERT INTO pricing.backfills (data_type, window_start, window_end)"
        " SELECT 'equity_quote', '2012-01-01', '2012-12-31' FROM generate_series(1, 8)"
    )
    statement = named("backfill.recent").replace(":backfill_id", "NULL").replace(":at_most", "8")
    seen = reads(statement.replace(":after_at", "NULL").replace(":after_id", "NULL"))
    assert "api_call_queue_live" not in seen.scanned
    assert seen.total < 500, seen.rows


# At scale


def but_dead(seen: Reads) -> float:
    """Rows read but for entries that this transaction has left behind in two indexes: only its end clears them."""
    return seen.total - seen.rows.get("demand_due", 0) - seen.rows.get("instruments_paused", 0)


def test_b11_judging_and_storing_prices_reads_their_rows_only(reads: Callable[..., Reads]) -> None:
    symbols, times = [f"S{n}" for n in range(1, 21)], ["2099-01-01"] * 20
    known = reads(
        "SELECT count(*) FROM pricing.known_values('equity_quote', 'twelvedata', %s::text[], %s::timestamptz[],"
        " %s::timestamptz[], true)",
        *(symbols, times, times),
    )
    assert known.scanned == set()
    assert known.total < 200, known.rows
    stored = reads(
        "SELECT count(*) FROM pricing.merge_prices('equity_daily', 'twelvedata', 1, true, %s::text[],"
        " %s::timestamptz[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::smallint[], %s::text[],"
        " %s::numeric[], %s::text[], %s::text[])",
        *(symbols, times, [1] * 20, *[[None] * 20] * 3, [2] * 20, ["USD"] * 20, [None] * 20, ["0.01"] * 20),
        ["raw"] * 20,
    )
    assert stored.scanned == set()
    assert stored.total < 300, stored.rows


@pytest.mark.parametrize(
    "call",
    [
        "backfilled('equity_daily', NULL)",
        "longest_window('equity_daily', 'S1', 'daily_bars')",
        "sessions_to_ask('equity_daily', 'S1', 'XNYS', '2020-01-01', '2020-02-01', now())",
    ],
)
def test_what_is_asked_for_each_row_is_planned_with_its_statement(filled: Connection[Any], call: str) -> None:
    """A function with settings of its own would be run, and planned, once for each row."""
    plan = "\n".join(line for (line,) in filled.execute(f"EXPLAIN SELECT * FROM pricing.{call}"))
    assert f"Scan on {call.partition('(')[0]}" not in plan


def test_what_is_compared_for_each_bar_is_no_call(filled: Connection[Any]) -> None:
    plan = "\n".join(
        line
        for (line,) in filled.execute(
            "EXPLAIN VERBOSE SELECT FROM pricing.price_history h"
            " WHERE pricing.same_bar(h, h.amount, h.open_amount, h.high_amount, h.low_amount, h.scale,"
            " h.volume, 'USD', h.quality)"
        )
    )
    assert "Filter: " in plan
    assert "same_" not in plan


def test_b6_a_closed_market_costs_nothing_between_two_looks(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    """2,500 pairs here, 80,000 in the benchmark: each look moves all of them on."""
    filled.execute("UPDATE pricing.demand SET due_at = pricing.clock() WHERE data_type = 'fx_rate'")
    assert filled.execute("SELECT pricing.enqueue_due()").fetchone() == (0,)
    assert filled.execute(
        "SELECT count(*) FROM pricing.demand WHERE data_type = 'fx_rate' AND due_at <= pricing.clock()"
    ).fetchone() == (0,)
    seen = reads("SELECT pricing.enqueue_due()")
    assert seen.scanned == set()
    assert but_dead(seen) < 200, seen.rows


def test_b6_a_backlog_is_passed_by_once(reads: Callable[..., Reads], filled: Connection[Any]) -> None:
    filled.execute("DELETE FROM pricing.api_call_queue_live")
    filled.execute(
        "UPDATE pricing.demand SET due_at = pricing.clock() - interval '1 hour' WHERE data_type = 'equity_quote'"
    )
    filled.execute("UPDATE pricing.latest_prices SET fetched_at = pricing.clock() - interval '1 day'")
    assert filled.execute("SELECT pricing.enqueue_due(20000)").fetchone() == (2_500,)
    assert reads("SELECT pricing.enqueue_due()").total < 200


def test_a7_held_pairs_cost_nothing_until_they_are_due(reads: Callable[..., Reads], filled: Connection[Any]) -> None:
    filled.execute(
        "INSERT INTO pricing.holdings (user_id, data_type, symbol)"
        " SELECT 'holder ' || n % 20, 'equity_daily', 'S' || n FROM generate_series(1, 2500) AS n"
    )
    filled.execute("ANALYZE pricing.holdings")
    reads("SELECT pricing.enqueue_due()")  # passes once by what other tests have left behind
    seen = reads("SELECT pricing.enqueue_due()")
    assert seen.scanned == set()
    assert but_dead(seen) < 30, seen.rows
    filled.execute(
        "UPDATE pricing.demand SET due_at = pricing.clock() WHERE data_type = 'equity_daily' AND symbol LIKE 'S1_'"
    )
    seen = reads("SELECT pricing.enqueue_due()")
    assert seen.scanned == set()
    assert but_dead(seen) < 200, seen.rows


def test_a7_paused_instruments_are_looked_up_and_not_searched(
    reads: Callable[..., Reads], filled: Connection[Any]
) -> None:
    filled.execute("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol LIKE 'S2%'")
    filled.execute("SELECT pricing.enqueue_due()")
    filled.execute(
        "UPDATE pricing.demand SET due_at = pricing.clock() WHERE data_type = 'equity_quote' AND symbol LIKE 'S2_'"
    )
    seen = reads("SELECT pricing.enqueue_due()")
    assert seen.scanned == set()
    assert but_dead(seen) < 200, seen.rows
    assert reads("SELECT pricing.stop_paused('equity', 'S2')").total < 50


def test_a10_a_read_of_what_is_fresh_or_queued_reads_little(reads: Callable[..., Reads]) -> None:
    seen = reads("SELECT pricing.request_prices('{equity_quote,equity_daily}', '{S7,S7}')")
    assert seen.scanned == set()
    assert but_dead(seen) < 100, seen.rows


def test_b7_leaving_and_holding_read_their_own_pairs(reads: Callable[..., Reads]) -> None:
    pairs = (["equity_quote"] * 3, ["S1", "S2", "S3"])
    for function in ("unsubscribe", "hold", "release"):
        statement = f"SELECT pricing.{function}('user 1', %s, %s)"
        reads(statement, *pairs)  # passes once by what other tests have left behind
        seen = reads(statement, *pairs)
        assert seen.scanned <= {"holdings"}, "a small table is read whole"
        assert seen.total < 300, (function, seen.rows)


def test_b14_a_walk_reads_its_chunk_and_counts_by_index(reads: Callable[..., Reads], filled: Connection[Any]) -> None:
    filled.execute("DELETE FROM pricing.api_call_queue_live WHERE priority >= -1")
    filled.execute(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority, window_start, window_end)"
        " SELECT 'equity_daily', 'S' || n, 'twelvedata', -2, '2010-01-01', '2010-01-31'"
        " FROM generate_series(1, 5000) AS n"
    )
    filled.execute("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01'")
    assert filled.execute("SELECT pricing.enqueue_scheduled('mf_nav')").fetchone() == (500,)
    seen = reads("SELECT pricing.walk_schedules()")
    assert filled.execute("SELECT pricing.queue_depth('mfapi', 2000)").fetchone() == (1000,)
    assert "instruments" not in seen.scanned, "by key, not by a scan"
    assert seen.rows["instruments_pkey"] < 500, "one chunk of 500 in eight turns: then the queue is deep enough"
    assert seen.rows.get("api_call_queue_live", 0) == 0, "backfills are not waded through"
