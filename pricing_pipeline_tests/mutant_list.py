"""Changes to the pipeline that a test must notice, and which tests should. mutants.py makes them and runs those."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FUNCTIONS = "pricing_pipeline/db/functions"
_TESTS = "pricing_pipeline_tests"
_FENCE = f"{_TESTS}/faults/test_fence.py"
_QUEUE = f"{_TESTS}/integration/test_queue.py"
_DEMAND = f"{_TESTS}/integration/test_demand.py"
_QUEUE_FAILURES = f"{_TESTS}/integration/test_queue_failures.py"
_LIMITS = f"{_TESTS}/integration/test_limits.py"
_PRICES = f"{_TESTS}/integration/test_prices.py"
_BARS_STORED = f"{_TESTS}/integration/test_bars_stored.py"
_BARS = f"{_TESTS}/unit/test_bars.py"
_QUOTES = f"{_TESTS}/integration/test_quotes.py"
_DOCUMENTS = f"{_TESTS}/integration/test_documents.py"
_BREAKER = f"{_TESTS}/integration/test_breaker.py"
_CONTRACTS = f"{_TESTS}/integration/test_contracts.py"
_SEALING = f"{_TESTS}/unit/test_sealing.py"
_CREDENTIALS = f"{_TESTS}/integration/test_credentials.py"
_FETCHING = f"{_TESTS}/integration/test_contracts_of_fetching.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that must not go unnoticed.

    `old` stands exactly once in `within` (a SQL or Python function of the file), or in the file if that is empty.
    """

    name: str
    file: str
    within: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Files, or single tests as `file::test`."""

    def applied(self, text: str) -> str:
        """The file's text with the change. Raises ValueError when it no longer fits the file."""
        begin, end = _extent(text, self.within) if self.within else (0, len(text))
        part = text[begin:end]
        if part.count(self.old) != 1:
            raise ValueError(
                f"mutant {self.name!r}: {self.old!r} stands {part.count(self.old)} times in "
                f"{self.within or self.file}, not once. Say in {_TESTS}/mutant_list.py what it looks like now."
            )
        return text[:begin] + part.replace(self.old, self.new) + text[end:]


MUTANTS = (
    Mutant(
        "the claim token is not asked for",
        f"{_FUNCTIONS}/queue.sql",
        "hold_tasks",
        "q.status = 'processing' AND q.claim_token = token",
        "q.status = 'processing'",
        (_FENCE,),
    ),
    Mutant(
        "whoever lost a claim may finish its tasks",
        f"{_FUNCTIONS}/queue.sql",
        "finish_held",
        "(q.status = 'processing' AND q.claim_token = token)",
        "q.status = 'processing'",
        (_FENCE,),
    ),
    Mutant(
        "prices are stored without the fence",
        "pricing_pipeline/settling.py",
        "_store",
        "of_symbols(answer.observations, ids)",
        "answer.observations",
        (_FENCE,),
    ),
    Mutant(
        "quotes are stored without the fence",
        f"{_FUNCTIONS}/quotes.sql",
        "settle_quotes",
        "IF cardinality(held) < cardinality(ids) THEN",
        "IF false THEN",
        (_QUOTES,),
    ),
    Mutant(
        "quotes in another currency raise no question",
        f"{_FUNCTIONS}/quotes.sql",
        "settle_quotes",
        "AND coalesce(k.currency = k.known_currency, true)",
        "",
        (_QUOTES,),
    ),
    Mutant(
        "documents are stored without the fence",
        "pricing_pipeline/settling.py",
        "_store",
        "documents.store(connection, call, answer, ids.keys())",
        "documents.store(connection, call, answer, call.symbols)",
        (_DOCUMENTS,),
    ),
    Mutant(
        "the old body of a document is not kept",
        f"{_FUNCTIONS}/documents.sql",
        "merge_documents",
        "FROM changed c ORDER BY c.symbol, c.period)",
        "FROM changed c WHERE false)",
        (_DOCUMENTS,),
    ),
    Mutant(
        "documents out of an answer's reach are withdrawn",
        f"{_FUNCTIONS}/documents.sql",
        "merge_documents",
        " AND d.period >= reach.since",
        "",
        (_DOCUMENTS,),
    ),
    Mutant(
        "bytes in flight are not reserved",
        f"{_FUNCTIONS}/limits.sql",
        "bytes_used",
        "SELECT sum(c.reserved_bytes)",
        "SELECT 0 * sum(c.reserved_bytes)",
        (_LIMITS,),
    ),
    Mutant(
        "the key of live work is not unique",
        "migrations/versions/0001_initial.sql",
        "",
        "UNIQUE (data_type, symbol, window_start, window_end)",
        "UNIQUE (data_type, symbol, window_start, window_end, id)",
        (f"{_CONTRACTS}::test_contract_11_what_two_sessions_queue_at_once_is_one_task",),
    ),
    Mutant(
        "a batch of tasks is written in no order",
        f"{_FUNCTIONS}/queue.sql",
        "enqueue_pairs",
        "AND r.live_id IS NULL\n                RETURNING provider",
        "AND r.live_id IS NULL ORDER BY random()\n                RETURNING provider",
        (_QUEUE,),
    ),
    Mutant(
        "a check that meets a live task never looks for it",
        f"{_FUNCTIONS}/queue.sql",
        "enqueue_pairs",
        "AND NOT (are_new AND try = 1)",
        "AND NOT are_new",
        (_DEMAND,),
    ),
    Mutant(
        "a batch of prices is written in no order",
        f"{_FUNCTIONS}/prices.sql",
        "merge_prices",
        "        ORDER BY s.symbol, s.observed_at\n        ON CONFLICT",
        "        ON CONFLICT",
        (_PRICES,),
    ),
    Mutant(
        "an enqueue that changes nothing locks all the same",
        f"{_FUNCTIONS}/queue.sql",
        "raise_priorities",
        " AND x.priority < u.priority ORDER BY x.id FOR UPDATE OF x) keener\n    WHERE",
        " ORDER BY x.id FOR UPDATE OF x) keener\n    WHERE q.priority < keener.priority AND",
        (_QUEUE,),
    ),
    Mutant(
        "an enqueue may lower a priority",
        f"{_FUNCTIONS}/queue.sql",
        "raise_priorities",
        " AND x.priority < u.priority",
        "",
        (f"{_CONTRACTS}::test_contract_11_what_two_sessions_queue_at_once_is_one_task",),
    ),
    Mutant(
        "limits are looked at without the lock",
        f"{_FUNCTIONS}/claim.sql",
        "claim_calls",
        "WHERE s.provider = wanted_provider FOR UPDATE;",
        "WHERE s.provider = wanted_provider;",
        (_FENCE,),
    ),
    Mutant(
        "a claim is given out before it is on the disk",
        "pricing_pipeline/queue.py",
        "claim",
        "if rows and is_alone:",
        "if not rows and is_alone:",
        (f"{_QUEUE}::test_a6_a_claim_of_its_own_is_given_out_when_it_is_on_the_disk_and_not_before",),
    ),
    Mutant(
        "recovery waits for locks",
        f"{_FUNCTIONS}/queue.sql",
        "recover_tasks",
        "ORDER BY q.id FOR UPDATE SKIP LOCKED",
        "ORDER BY q.id FOR UPDATE",
        (f"{_CONTRACTS}::test_contract_02_recovery_passes_over_what_is_being_finished",),
    ),
    Mutant(
        "recovery does not look at leases",
        f"{_FUNCTIONS}/queue.sql",
        "recover_tasks",
        "q.lease_until < now_ ORDER BY",
        "true ORDER BY",
        (_QUEUE_FAILURES,),
    ),
    Mutant(
        "a claim counts no attempt",
        f"{_FUNCTIONS}/claim.sql",
        "claim_calls",
        "attempt = q.attempt + 1, ",
        "",
        (_QUEUE_FAILURES,),
    ),
    Mutant(
        "a half-open breaker lets any number through",
        f"{_FUNCTIONS}/claim.sql",
        "claim_calls",
        "is_probe := state.breaker <> 'closed';",
        "is_probe := false;",
        (_BREAKER,),
    ),
    Mutant(
        "a deadlock is the task's fault",
        "pricing_pipeline/settling.py",
        "",
        '"40001", "40P01", "55P03"',
        '"40001", "55P03"',
        (f"{_FETCHING}::test_contract_17_a_deadlock_gives_the_task_back_at_no_cost",),
    ),
    Mutant(
        "duties take no lock",
        f"{_FUNCTIONS}/drains.sql",
        "run_duties",
        "NOT pg_try_advisory_xact_lock(hashtextextended('pricing.run_duties', 0))",
        "false",
        (f"{_CONTRACTS}::test_contract_03_periodic_work_never_runs_beside_itself",),
    ),
    Mutant(
        "the quota has no margin",
        f"{_FUNCTIONS}/limits.sql",
        "quota_for",
        "ELSE 95 END",
        "ELSE 100 END",
        (
            f"{_CONTRACTS}::test_contract_06_the_quota_is_checked_ahead_with_a_margin_by_consumer_and_producer",
        ),
    ),
    Mutant(
        "usage is the unpacked body",
        "pricing_pipeline/providers/client.py",
        "",
        "body=unpack.finish(), wire_bytes=exchange.received\n",
        "body=(whole := unpack.finish()), wire_bytes=len(whole)\n",
        (f"{_FETCHING}::test_contract_06a_usage_is_counted_on_the_wire",),
    ),
    Mutant(
        "a schedule goes with the viewers",
        f"{_FUNCTIONS}/schedules.sql",
        "walk_schedule",
        "array_agg(-1)",
        "array_agg(1)",
        (f"{_CONTRACTS}::test_contract_08_scheduled_work_never_goes_ahead_of_people",),
    ),
    Mutant(
        "an answer older than ours is believed",
        f"{_FUNCTIONS}/prices.sql",
        "merge_prices",
        "WHERE is_latest AND n.at < (SELECT",
        "WHERE false AND n.at < (SELECT",
        (f"{_FETCHING}::test_contract_14_old_data_under_a_fresh_answer_is_refused",),
    ),
    Mutant(
        "columns of bars are believed whatever is known",
        "pricing_pipeline/plausibility.py",
        "_are_calm",
        "not known.stored or",
        "True or",
        (_BARS,),
    ),
    Mutant(
        "a step between bars by columns is believed however large",
        "pricing_pipeline/plausibility.py",
        "_are_calm",
        "known.are_jumps_trusted or",
        "True or",
        (_BARS,),
    ),
    Mutant(
        "a bar that was corrected counts as the same",
        f"{_FUNCTIONS}/prices.sql",
        "revise_bars",
        "AND pricing.same_amount(h.open_amount, h.scale, v.open_amount, v.scale)",
        "",
        (_BARS_STORED,),
    ),
    Mutant(
        "days that two calls copy at once are a fault of the answer",
        "pricing_pipeline/db/engine.py",
        "driver_copy",
        "raise psycopg.errors.SerializationFailure(",
        "raise psycopg.errors.UniqueViolation(",
        (_BARS_STORED,),
    ),
    Mutant(
        "days that two calls store at once are a fault of the answer",
        f"{_FUNCTIONS}/prices.sql",
        "merge_bars",
        "ERRCODE = 'serialization_failure'",
        "ERRCODE = 'unique_violation'",
        (_BARS_STORED,),
    ),
    Mutant(
        "pruning waits for readers",
        f"{_FUNCTIONS}/prune.sql",
        "prune",
        "lock_timeout = '1s'",
        "lock_timeout = 0",
        (f"{_CONTRACTS}::test_contract_16_pruning_gives_way_to_whoever_reads",),
    ),
    Mutant(
        "a call has no deadline",
        "pricing_pipeline/providers/client.py",
        "",
        "exchange(seconds=self._deadline,",
        "exchange(seconds=12.0,",
        (f"{_FETCHING}::test_contract_21_a_slow_answer_is_a_failure_and_soon",),
    ),
    Mutant(
        "a claim waits for rows that others hold",
        f"{_FUNCTIONS}/claim.sql",
        "claim_calls",
        "LIMIT most_tasks FOR UPDATE SKIP LOCKED",
        "LIMIT most_tasks FOR UPDATE",
        (f"{_FENCE}::test_a3_a_claim_passes_over_a_task_that_is_locked",),
    ),
    Mutant(
        "a broken judge ends its check",
        f"{_FUNCTIONS}/staleness.sql",
        "check_pairs_due",
        "EXCEPTION WHEN OTHERS THEN\n            IF cardinality",
        "EXCEPTION WHEN division_by_zero THEN\n            IF cardinality",
        (f"{_CONTRACTS}::test_contract_04_one_broken_data_type_stops_no_other",),
    ),
    Mutant(
        "a price of nothing is believed",
        "pricing_pipeline/providers/values.py",
        "price_of",
        "if value <= 0:",
        "if value < 0:",
        (f"{_FETCHING}::test_contract_05_only_what_has_shape_sense_and_the_asked_name_is_stored",),
    ),
    Mutant(
        "every heartbeat is taken for the first",
        f"{_FUNCTIONS}/demand.sql",
        "heartbeat",
        "a.subscribed_at = now_ AS is_new",
        "true AS is_new",
        (f"{_CONTRACTS}::test_contract_07_looking_again_writes_nothing_but_that_one_looks",),
    ),
    Mutant(
        "a walk begins anew each time",
        f"{_FUNCTIONS}/schedules.sql",
        "walk_schedule",
        "AND i.symbol > walk.walk_after ",
        "",
        (f"{_CONTRACTS}::test_contract_09_a_schedule_walks_by_key_and_misses_nobody",),
    ),
    Mutant(
        "a read replica is not refused",
        f"{_FUNCTIONS}/drains.sql",
        "require_primary",
        "IF pg_is_in_recovery() THEN",
        "IF false THEN",
        (f"{_CONTRACTS}::test_contract_10_a_read_replica_is_refused",),
    ),
    Mutant(
        "the check looks at all that is watched",
        f"{_FUNCTIONS}/staleness.sql",
        "check_pairs_due",
        "WHERE d.data_type = kinds.data_type AND d.due_at <= $2 AND d.due_at < 'infinity'",
        "WHERE d.data_type = kinds.data_type AND d.due_at + interval '0' <= $2 AND d.due_at < 'infinity'",
        (f"{_CONTRACTS}::test_contract_12_a_staleness_check_reads_what_is_due_and_not_what_is_watched",),
    ),
    Mutant(
        "a TTL has a default",
        f"{_FUNCTIONS}/registry.sql",
        "is_data_stale",
        "ttl_minutes integer) RETURNS",
        "ttl_minutes integer DEFAULT 5) RETURNS",
        (f"{_CONTRACTS}::test_contract_13_only_the_registry_knows_a_ttl",),
    ),
    Mutant(
        "the breaker waits for a hundred faults",
        f"{_FUNCTIONS}/breakers.sql",
        "judge_call",
        "faults >= 10 THEN",
        "faults >= 100 THEN",
        (f"{_CONTRACTS}::test_contract_15_the_breaker_opens_on_retries_before_anything_has_died",),
    ),
    Mutant(
        "what clients call has clients' rights",
        f"{_FUNCTIONS}/client.sql",
        "heartbeat",
        "SECURITY DEFINER ",
        "",
        (f"{_CONTRACTS}::test_contract_18_a_client_acts_through_functions_and_for_itself_only",),
    ),
    Mutant(
        "any number of calls is made at once",
        "pricing_pipeline/refresh.py",
        "",
        "MAX_IN_FLIGHT = 10\n",
        "MAX_IN_FLIGHT = 40\n",
        (f"{_FETCHING}::test_contract_19_one_process_and_one_pool_make_all_calls",),
    ),
    Mutant(
        "the upsert leaves a column out",
        f"{_FUNCTIONS}/prices.sql",
        "merge_prices",
        "s.currency, s.volume, from_provider",
        "s.currency, NULL::numeric, from_provider",
        (f"{_FETCHING}::test_contract_22_every_fetcher_fills_every_column_from_answer_to_table",),
    ),
    Mutant(
        "a sealed secret is bound to nothing",
        "pricing_pipeline/sealing.py",
        "_bound",
        'return b"".join(len(part).to_bytes(4, "big") + part for part in parts)',
        'return b"" and bytes(len(parts))',
        (_SEALING, _CREDENTIALS),
    ),
    Mutant(
        "a sealed secret is not bound to its row's version",
        "pricing_pipeline/sealing.py",
        "_bound",
        "purpose, *place)",
        "purpose, *place[:2], *place[3:])",
        (_SEALING,),
    ),
    Mutant(
        "a rotation undoes what was set meanwhile",
        f"{_FUNCTIONS}/credentials.sql",
        "reseal_credential",
        " AND c.row_version = found_version",
        "",
        (_CREDENTIALS,),
    ),
)


def _extent(text: str, function: str) -> tuple[int, int]:
    """Where a function of a SQL or Python file begins and ends."""
    head = re.search(rf"^(?:CREATE OR REPLACE FUNCTION pricing\.|def ){function}\(", text, re.MULTILINE)
    if head is None:
        raise ValueError(f"there is no function {function}")
    tail = re.compile(r"^(?:CREATE OR REPLACE FUNCTION |def |class )", re.MULTILINE).search(text, head.end())
    return head.start(), tail.start() if tail else len(text)
