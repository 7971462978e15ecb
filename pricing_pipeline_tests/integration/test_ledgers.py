"""What is counted against limits is safe from a worker that was taken over (B10): it tries statements and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from pricing_pipeline_tests.fixtures.core import MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.pages import ROOT

pytestmark = pytest.mark.usefixtures("still")

LEDGERS = (
    "collector_call_log",
    "past_calls",
    "api_data_usage",
    "limit_counts",
    "shown_limits",
    "shown_batches",
    "watched_calendars",
    "size_estimates",
    "ttl_stretches",
    "provider_state",
    "provider_keys",
    "duties",
)

# Functions with the owner's rights that write or lock ledgers, and those that touch none.
WRITERS = {
    "claim_calls",
    "claim_page",
    "claim_opinions",
    "claim_search",
    "claim_etl_call",
    "lock_call",
    "settle_call",
    "settle_unsent",
    "expire_calls",
    "store_shown_batch",
    "throttle",
    "register_keys",
    "prune",
    "prune_calls",
    "run_duties",
}
OTHER_DEFINERS = {
    "heartbeat",
    "unsubscribe",
    "hold",
    "release",
    "price",
    "history",
    "document",
    "availability",
    "commodity",
    "terminal",
    "best_routes",
    "thin_history",
    "change_basis",
    "withdraw_payments",
    "remove_instruments",
    "budget",
    "needs",
    "why_old",
    "note_token_uses",
    "make_storage",  # a trigger of the registry
    "decide_prices_from",  # once for each database
    "announce_export",
    "lock_export",
    "note_export",
    "move_month",  # which deletes only what the owner's policy lets leave
    "note_queue_change",  # a trigger of the queue
    "fill_own_table",  # which workers have no rights to; it copies what they have stored
}
GIVES_BACK = "settle_unsent"
"""It gives the units of an open call back, as a fault of its provider: test_unsent_calls.py."""
# They have no rights of their own, and write counts through WRITERS.
CALL_WRITERS = {"finish_call", "store_answer", "store_quotes"}

Session = psycopg.Connection[Any]


@pytest.fixture
def worker(database_url: str) -> Iterator[Session]:
    with psycopg.connect(database_url, autocommit=True) as session:
        session.execute("SET statement_timeout = '5s'")
        yield session


@pytest.fixture
def used(core: Core) -> Core:
    """A provider whose units are used up, by settled calls and open ones; another one, whose key is blocked."""
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 0")
    core.lift_in_flight()
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(QUOTE, *(f"S{number}" for number in range(60)))
    core.enqueue("mf_nav", *(str(118632 + number) for number in range(60)))
    core.call("SELECT pricing.throttle(:provider, 'default', interval '1 hour', 'too fast')", provider=MFAPI)
    calls = []
    while claimed := core.claim(max_calls=2):
        calls += claimed
    for call in calls[5:]:
        core.call("SELECT pricing.settle_call(:id, 'ok', 200, 5000)", id=call.id)
    core.rows("SELECT pricing.count_units(:provider, pricing.clock())", provider=TWELVEDATA)
    core.rows(
        "INSERT INTO pricing.provider_keys AS k (provider, key_name, foreign_units, foreign_until)"
        " VALUES (:provider, 'default', 3, pricing.clock() + interval '1 hour')"
        " ON CONFLICT ON CONSTRAINT provider_keys_pkey"
        " DO UPDATE SET foreign_units = excluded.foreign_units, foreign_until = excluded.foreign_until",
        provider=TWELVEDATA,
    )
    return core


# What counts, by provider, key and limit. Whatever is in limit_counts, no key has more room than the log leaves.
COUNTED = """
    SELECT concat_ws(' ', l.provider, k.key_name, l.name) AS what, coalesce(own.units, l.units) AS allowed,
           (SELECT coalesce(sum(c.units), 0) FROM pricing.counted_calls c
            WHERE (c.provider, c.key_name) = (l.provider, k.key_name)
              AND c.counted_at > pricing.limit_start(l, pricing.clock())) AS units,
           (SELECT r.units_left FROM pricing.key_allowances(l.provider, pricing.clock()) r
            WHERE r.key_name = k.key_name) AS room
    FROM pricing.provider_limits l
    CROSS JOIN LATERAL (SELECT 'default' AS key_name
                        UNION SELECT x.key_name FROM pricing.provider_keys x WHERE x.provider = l.provider) k
    LEFT JOIN pricing.provider_key_limits own
        ON (own.provider, own.name, own.key_name) = (l.provider, l.name, k.key_name)
"""
# What only grows: calls, what they cost, bytes that were booked, how long a key is left alone, what others use of it.
GROWING = """
    SELECT 'calls', (SELECT count(*) FROM pricing.calls)
    UNION ALL SELECT 'units ' || c.provider, sum(c.units) FROM pricing.collector_call_log c GROUP BY c.provider
    UNION ALL SELECT 'bytes ' || u.provider, sum(u.bytes) FROM pricing.api_data_usage u GROUP BY u.provider
    UNION ALL SELECT 'last call ' || s.provider, extract(epoch FROM s.last_call_at) FROM pricing.provider_state s
    WHERE s.last_call_at IS NOT NULL
    UNION ALL SELECT concat_ws(' ', 'pause', k.provider, k.key_name), extract(epoch FROM k.blocked_until)
    FROM pricing.provider_keys k WHERE k.blocked_until > pricing.clock()
    UNION ALL SELECT concat_ws(' ', 'used by others', k.provider, k.key_name), k.foreign_units
    FROM pricing.provider_keys k WHERE k.foreign_until > pricing.clock()
"""
FINGERPRINT = " UNION ALL ".join(
    f"SELECT '{name}', md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM pricing.{name} t" for name in LEDGERS
)


def standing(core: Core) -> dict[str, Any]:
    """What must not fall; fails where more was claimed than is allowed, or where a key has more room than it should."""
    found = {}
    for row in core.rows(COUNTED):
        assert row.units <= row.allowed, row
        assert row.room is None or row.room <= row.allowed - row.units, row
        found[row.what] = row.units
    return found | {row[0]: row[1] for row in core.rows(GROWING)}


def fallen(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {what: (was, after.get(what)) for what, was in before.items() if after.get(what, -1) < was}


def test_b10_a_worker_only_reads_ledgers(used: Core, worker: Session) -> None:
    before = used.rows(FINGERPRINT)
    for table in LEDGERS:
        (column,) = worker.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 LIMIT 1",
            [f"pricing.{table}"],
        ).fetchone() or ("",)
        worker.execute(f"SELECT * FROM pricing.{table}")
        for statement in (
            f"INSERT INTO pricing.{table} DEFAULT VALUES",
            f"INSERT INTO pricing.{table} SELECT * FROM pricing.{table} ON CONFLICT DO NOTHING",
            f"UPDATE pricing.{table} SET {column} = {column}",
            f"DELETE FROM pricing.{table}",
            f"TRUNCATE pricing.{table} CASCADE",
            f"MERGE INTO pricing.{table} t USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE",
            f"COPY pricing.{table} FROM STDIN",
            f"SELECT * FROM pricing.{table} FOR UPDATE",
            f"CREATE RULE mine AS ON INSERT TO pricing.{table} DO INSTEAD NOTHING",
            f"CREATE TRIGGER mine BEFORE INSERT ON pricing.{table}"
            " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                worker.execute(statement)
    assert used.rows(FINGERPRINT) == before


def test_b10_a_task_reserves_at_least_a_byte(core: Core, worker: Session) -> None:
    """A worker writes tasks: one that takes less than nothing would give the quota back."""
    core.enqueue(QUOTE, "AAPL")
    for size in (0, -1, -(2**62)):
        with pytest.raises(errors.CheckViolation, match="estimate_is_positive"):
            worker.execute("UPDATE pricing.api_call_queue_live SET est_bytes = %s", [size])


def test_b12_an_answer_takes_bytes_that_an_answer_can_take(core: Core, worker: Session) -> None:
    core.enqueue(QUOTE, "AAPL")
    open_call = core.claim_one().id
    before = core.rows(FINGERPRINT)
    for said in (-1, -(2**62), 2**30 + 1, 2**63 - 1, None):
        with pytest.raises(errors.InvalidParameterValue, match="an answer cannot have"):
            worker.execute("SELECT pricing.settle_call(%s, 'ok', 200, %s)", [open_call, said])
    assert core.rows(FINGERPRINT) == before
    assert worker.execute("SELECT pricing.settle_call(%s, 'ok', 200, 0)", [open_call]).fetchone() == (True,)


GIVEN_A_TIME = [
    "SELECT pricing.count_units('twelvedata', pricing.clock() + interval '1 day')",
    "SELECT pricing.count_units('twelvedata', '2000-01-01')",
    "SELECT pricing.move_calls(pricing.clock(), interval '1 hour')",
    "SELECT pricing.move_times(pricing.clock(), interval '1 hour')",
    "SELECT pricing.note_step(pricing.clock(), '2100-01-01', interval '70 years')",
    "SELECT pricing.note_duty('prune', NULL, NULL, '2000-01-01')",
    "SELECT pricing.note_duty('follow_clock', '2000-01-01', NULL, '2100-01-01')",
    "SELECT pricing.learn_size(c, '2000-01-01') FROM pricing.collector_call_log c WHERE c.wire_bytes > 0",
    "SELECT pricing.open_breaker('twelvedata', 'x')",
    "SELECT pricing.lose_probe('twelvedata', 1)",
    "SELECT pricing.apply_units_left('twelvedata', 'default', 1, '2100-01-01')",
]


def test_b10_what_is_given_a_time_is_not_for_a_worker(used: Core, worker: Session) -> None:
    before = used.rows(FINGERPRINT)
    for statement in GIVEN_A_TIME:
        with pytest.raises(errors.InsufficientPrivilege):
            worker.execute(statement)
    assert used.rows(FINGERPRINT) == before


def test_b10_the_page_names_what_writes_or_locks_ledgers() -> None:
    page = (ROOT / "docs/security.md").read_text()
    (told,) = re.findall(r"These functions write or lock it, with the owner's rights: (.*?)\. They", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", told)) == WRITERS


def test_b10_what_has_the_owners_rights_is_known(worker: Session) -> None:
    found = worker.execute(
        "SELECT p.proname, count(*), bool_or(p.prorettype = 'trigger'::regtype) FROM pg_proc p"
        " WHERE p.pronamespace = 'pricing'::regnamespace AND p.prosecdef GROUP BY 1"
    ).fetchall()
    assert {name: count for name, count, _ in found} == dict.fromkeys(WRITERS | OTHER_DEFINERS, 1)
    assert {name for name, _, fires in found if fires} == {"make_storage", "note_queue_change"}
