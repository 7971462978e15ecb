"""Hostile arguments to every function that a worker may execute: no more calls are made than the limits allow (B10)."""

from __future__ import annotations

import random

import psycopg
import pytest

from pricing_pipeline_tests.fixtures.core import MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_ledgers import (
    CALL_WRITERS,
    FINGERPRINT,
    GIVES_BACK,
    WRITERS,
    Session,
    fallen,
    standing,
    used,
    worker,
)

__all__ = ["used", "worker"]

OPEN = "(SELECT min(c.call_id) FROM pricing.collector_call_log c WHERE c.finished_at IS NULL)"
SETTLED = "(SELECT max(c.call_id) FROM pricing.collector_call_log c WHERE c.finished_at IS NOT NULL)"
CALLS = [OPEN, SETTLED]
PROVIDERS = ["'twelvedata'", "'mfapi'"]
BYTES = ["-1", "-1000000000", "0", "5000", "9223372036854775807"]
KEYS = ["'{default}'", "'{default,made_up}'", "NULL"]
# The values for a function's arguments, by their names or else by their types.
NAMED = {
    **dict.fromkeys(("wanted_provider", "from_provider", "provider"), PROVIDERS),
    **dict.fromkeys(
        ("settled", "unsent", "judged", "finished", "answered", "from_call", "lost", "failed_probe"), CALLS
    ),
    **dict.fromkeys(("bytes", "wire_bytes", "more_bytes"), BYTES),
    **dict.fromkeys(("names", "keys"), KEYS),
    "wanted_key": ["'default'", "'made_up'"],
    "result": ["'ok'", "'failed'", "'unknown'"],
    "max_calls": ["1", "100", "2147483647", "-1", "NULL"],
}
HOSTILE = {
    "text": [
        "'twelvedata'",
        "'mfapi'",
        "'default'",
        "'equity_quote'",
        "'S1'",
        "'ok'",
        "''",
        "NULL",
        "repeat('x', 10000)",
    ],
    "text[]": ["'{twelvedata}'", "'{default,made_up}'", "'{equity_quote}'", "'{S1,S2}'", "'{}'", "NULL"],
    "boolean[]": ["'{true}'", "'{false,NULL}'", "'{}'", "NULL"],
    "integer": ["-2147483648", "-1", "0", "1", "200", "2147483647", "NULL"],
    "smallint": ["-1", "0", "NULL"],
    "bigint": [OPEN, OPEN, SETTLED, "-9223372036854775808", "-1", "0", "9223372036854775807", "NULL"],
    "bigint[]": [f"ARRAY[{OPEN}]", "ARRAY(SELECT q.id FROM pricing.api_call_queue_live q)", "'{}'", "NULL"],
    "integer[]": ["'{-2147483648,0}'", "'{2147483647}'", "NULL"],
    "smallint[]": ["'{-32768,0}'", "'{32767}'", "NULL"],
    "numeric[]": ["'{-1,NaN}'", "'{1e100}'", "'{}'", "NULL"],
    "timestamp with time zone[]": ["'{-infinity,infinity}'", "'{2000-01-01}'", "'{}'", "NULL"],
    "jsonb[]": ["ARRAY['{}']", "'{}'", "NULL"],
    "tstzmultirange": ["'{[-infinity,infinity]}'", "'{}'", "NULL"],
    "time without time zone": ["'00:00'", "'24:00'", "NULL"],
    "bytea": ["'\\x00'", "''", "NULL"],
    "pricing.user_name": ["'ann'", "NULL"],
    "pricing.operation_types": ["json_populate_record(NULL::pricing.operation_types, '{}')", "NULL"],
    "pricing.async_operations": ["json_populate_record(NULL::pricing.async_operations, '{}')", "NULL"],
    "pricing.products": ["json_populate_record(NULL::pricing.products, '{}')", "NULL"],
    "timestamp without time zone": ["'-infinity'", "'2000-01-01'", "NULL"],
    "pricing.call_allowance": ["json_populate_record(NULL::pricing.call_allowance, '{}')", "NULL"],
    "pricing.pair_answer": [
        'json_populate_record(NULL::pricing.pair_answer, \'{"place": 1, "outcome": "refused"}\')',
        "NULL",
    ],
    "pricing.pair_answer[]": ["ARRAY[json_populate_record(NULL::pricing.pair_answer, '{}')]", "'{}'", "NULL"],
    "pricing.provider_stop": ["json_populate_record(NULL::pricing.provider_stop, '{}')", "NULL"],
    "pricing.provider_stop[]": [
        'ARRAY[json_populate_record(NULL::pricing.provider_stop, \'{"provider": "twelvedata"}\')]',
        "'{}'",
        "NULL",
    ],
    "pricing.picked_task[]": ["ARRAY[json_populate_record(NULL::pricing.picked_task, '{}')]", "'{}'", "NULL"],
    "pricing.price_revisions[]": [
        "ARRAY[json_populate_record(NULL::pricing.price_revisions, '{}')]",
        "'{}'",
        "NULL",
    ],
    "tid[]": ["'{\"(0,1)\"}'", "'{}'", "NULL"],
    "timestamp with time zone": [
        "'-infinity'",
        "'infinity'",
        "'2000-01-01'",
        "'2100-01-01'",
        "pricing.clock()",
        "NULL",
    ],
    "interval": ["'-100 years'", "'100 years'", "'infinity'", "'-infinity'", "'0'", "NULL"],
    "date": ["'-infinity'", "'infinity'", "'2000-01-01'", "NULL"],
    "date[]": ["'{-infinity}'", "'{2000-01-01}'", "NULL"],
    "boolean": ["true", "false", "NULL"],
    "jsonb": ["'{}'", "'[]'", "NULL"],
    "numeric": ["-1", "'NaN'", "1e100", "NULL"],
    "double precision": ["-1", "'NaN'", "'infinity'", "NULL"],
    "uuid": [
        "(SELECT q.claim_token FROM pricing.api_call_queue_live q WHERE q.call_id = " + OPEN + " LIMIT 1)",
        "NULL",
    ],
    **{
        f"pricing.{table}": [f"(SELECT t FROM pricing.{table} t ORDER BY 1 LIMIT 1)", "NULL"]
        for table in (
            "provider_state",
            "provider_capabilities",
            "collector_call_log",
            "provider_limits",
            "provider_keys",
            "data_collectors",
            "outages",
            "demand",
            "api_call_queue_dead",
            "api_call_queue_live",
            "corporate_actions",
            "data_type_registry",
            "instruments",
            "latest_prices",
            "price_history",
            "quarantined_values",
            "recipients",
            "ttl_stretches",
        )
    },
    **{
        f"pricing.{table}[]": [f"ARRAY(SELECT t FROM pricing.{table} t LIMIT 2)", "'{}'", "NULL"]
        for table in ("corporate_actions", "latest_prices", "price_history")
    },
}


def attacks(chance: random.Random, arguments: list[tuple[str, str]], times: int) -> list[str]:
    """Argument lists of hostile values, all of the right types."""
    return [
        ", ".join(f"({chance.choice(NAMED.get(name) or HOSTILE[kind])})::{kind}" for name, kind in arguments)
        for _ in range(times if arguments else 1)
    ]


@pytest.mark.usefixtures("still")  # old calls no longer count
def test_b10_no_function_lets_a_worker_make_more_calls(used: Core, worker: Session, clock: Clock) -> None:
    """Every function it may execute, with hostile arguments: no count falls, no key gets room, few write."""
    functions = worker.execute(
        "SELECT p.proname, p.oid::regproc::text, coalesce(p.proargnames[:p.pronargs], '{}'),"
        " ARRAY(SELECT format_type(a, NULL) FROM unnest(p.proargtypes) AS a)"
        " FROM pg_proc p WHERE p.pronamespace = 'pricing'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE')"
        " AND p.prorettype <> 'trigger'::regtype ORDER BY p.oid::regprocedure::text"
    ).fetchall()
    assert len(functions) > 200
    unknown = {
        kind
        for _, _, names, kinds in functions
        for name, kind in zip(names, kinds, strict=True)
        if name not in NAMED and kind not in HOSTILE
    }
    assert unknown == set(), "say what is hostile of this type"
    chance = random.Random(0)
    before, prints = standing(used), used.rows(FINGERPRINT)
    worker.execute("SET statement_timeout = '1s'")  # some would count every day there is
    ran, writers = set(), set()
    for name, function, names, kinds in functions:
        tried = attacks(chance, list(zip(names, kinds, strict=True)), 40 if name in WRITERS else 8)
        for arguments in tried:
            try:
                worker.execute(f"SELECT count(*) FROM {function}({arguments}) AS x")
            except psycopg.Error:
                continue
            ran.add(name)
            if name in WRITERS | CALL_WRITERS:
                after = standing(used)
                assert name == GIVES_BACK or fallen(before, after) == {}, (name, arguments)
                before = after
        after, now = standing(used), used.rows(FINGERPRINT)
        assert fallen(before, after) == {}, (name, tried)
        if now != prints:
            writers.add(name)
        before, prints = after, now
    worker.execute("SET statement_timeout = '5s'")
    assert ran > WRITERS, "each of them ran"
    assert writers <= WRITERS | CALL_WRITERS

    # Nor does anything left behind let more calls through, now or when the minute is over.
    used.rows("UPDATE pricing.provider_keys SET blocked_until = NULL, throttles = 0, is_active = true")
    used.rows("UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL, probe_call = NULL")
    for _ in range(3):
        used.enqueue(QUOTE, *(f"S{number}" for number in range(60)))
        for provider in (TWELVEDATA, MFAPI):
            worker.execute("SELECT pricing.claim_calls(%s, 'w', 100) FROM generate_series(1, 20)", [provider])
        standing(used)
        clock.advance(61)
