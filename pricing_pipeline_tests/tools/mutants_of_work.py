"""Mutants of what fetches: the queue, claims, limits, outages, drains, backfills and what is kept of them."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_FUNCTIONS = "pricing_pipeline/db/functions"
_TESTS = "pricing_pipeline_tests"
_FENCE = f"{_TESTS}/faults/test_fence.py"
_QUEUE = f"{_TESTS}/integration/test_queue.py"
_CLAIMS = f"{_TESTS}/integration/test_claims.py"
_CLOCK_STEPS = f"{_TESTS}/integration/test_clock_steps"
_DEMAND = f"{_TESTS}/integration/test_demand.py"
_QUEUE_FAILURES = f"{_TESTS}/integration/test_queue_failures.py"
_LIMITS = f"{_TESTS}/integration/test_limits.py"
_BARS_STORED = f"{_TESTS}/integration/test_bars_stored.py"
_BREAKER = f"{_TESTS}/integration/test_breaker.py"
_CLAIMS_MODEL = f"{_TESTS}/integration/test_claims_model.py"
_CLAIMS_MOVE = f"{_TESTS}/integration/test_claims_move.py"
_CONTRACTS = f"{_TESTS}/integration/test_contracts.py"
_FETCHING = f"{_TESTS}/integration/test_contracts_of_fetching.py"
_OUTAGES = f"{_TESTS}/faults/test_outages.py"
_TROUBLE = f"{_TESTS}/faults/test_trouble_ends.py"
_FRESHNESS_MODEL = f"{_TESTS}/integration/test_freshness_model.py"
_FRESHNESS = f"{_TESTS}/orchestration/test_freshness.py"


MUTANTS = (
    Mutant(
        "the claim token is not asked for",
        f"{_FUNCTIONS}/queue/queue.sql",
        "lock_tasks",
        "q.status = 'processing' AND q.claim_token = token",
        "q.status = 'processing'",
        (_FENCE,),
    ),
    Mutant(
        "whose claim it is is not asked before anything is stored",
        f"{_FUNCTIONS}/queue/queue.sql",
        "lock_call_tasks",
        "q.status = 'processing' AND q.claim_token = token AND q.call_id = asked",
        "q.status = 'processing'",
        (_FENCE,),
    ),
    Mutant(
        "a call finishes the tasks of its neighbour",
        f"{_FUNCTIONS}/queue/queue.sql",
        "finish_tasks",
        "AND (of_call IS NULL OR q.call_id = of_call)",
        "",
        (_FENCE,),
    ),
    Mutant(
        "whoever lost a claim may finish its tasks",
        f"{_FUNCTIONS}/queue/queue.sql",
        "finish_tasks",
        "(q.status = 'processing' AND q.claim_token = token)",
        "q.status = 'processing'",
        (_FENCE,),
    ),
    Mutant(
        "bytes in flight are not reserved",
        f"{_FUNCTIONS}/queue/quota.sql",
        "bytes_used",
        "SELECT sum(c.reserved_bytes)",
        "SELECT 0 * sum(c.reserved_bytes)",
        (_LIMITS,),
    ),
    Mutant(
        "the key of live work is not unique",
        "migrations/versions/0043_baseline.sql",
        "",
        "UNIQUE (data_type, symbol, window_start, window_end)",
        "UNIQUE (data_type, symbol, window_start, window_end, id)",
        (f"{_CONTRACTS}::test_contract_11_what_two_sessions_queue_at_once_is_one_task",),
    ),
    Mutant(
        "a batch of tasks is written in no order",
        f"{_FUNCTIONS}/queue/queue.sql",
        "insert_tasks",
        "AND r.live_id IS NULL\n                RETURNING provider",
        "AND r.live_id IS NULL ORDER BY random()\n                RETURNING provider",
        (_QUEUE,),
    ),
    Mutant(
        "marks of checks outlive a clock that is set back",
        f"{_FUNCTIONS}/refresh/clock_steps.sql",
        "move_demand",
        "DELETE FROM pricing.check_marks;",
        "PERFORM 1;",
        (f"{_CLOCK_STEPS}_demand.py::test_b8_a_clock_that_is_set_back_hides_nothing_from_checks",),
    ),
    Mutant(
        "calls of the time that comes once more count once more",
        f"{_FUNCTIONS}/refresh/clock_steps.sql",
        "move_calls",
        "ELSE '-infinity' END",
        "ELSE c.started_at END",
        (f"{_CLOCK_STEPS}_calls.py::test_a6_calls_of_the_time_that_comes_once_more_do_not_count_once_more",),
    ),
    Mutant(
        "a step forward prunes at once",
        f"{_FUNCTIONS}/refresh/drains.sql",
        "run_duties",
        " AND coalesce(d.not_before <= now_, true)",
        "",
        (f"{_CLOCK_STEPS}_tasks.py::test_b9_a_step_forward_throws_nothing_away_for_an_hour",),
    ),
    Mutant(
        "a check that meets a live task never looks for it",
        f"{_FUNCTIONS}/queue/queue.sql",
        "insert_tasks",
        "NOT (are_new AND try = 1)",
        "NOT are_new",
        (_DEMAND,),
    ),
    Mutant(
        "an enqueue that changes nothing locks all the same",
        f"{_FUNCTIONS}/queue/queue.sql",
        "raise_priorities",
        " AND x.priority < u.priority ORDER BY x.id FOR UPDATE OF x) higher\n    WHERE",
        " ORDER BY x.id FOR UPDATE OF x) higher\n    WHERE q.priority < higher.priority AND",
        (_QUEUE,),
    ),
    Mutant(
        "an enqueue may lower a priority",
        f"{_FUNCTIONS}/queue/queue.sql",
        "raise_priorities",
        " AND x.priority < u.priority ORDER BY x.id FOR UPDATE OF x) higher",
        " ORDER BY x.id FOR UPDATE OF x) higher",
        (f"{_CONTRACTS}::test_contract_11_what_two_sessions_queue_at_once_is_one_task",),
    ),
    Mutant(
        "limits are looked at without the lock",
        f"{_FUNCTIONS}/queue/claim.sql",
        "claim_calls",
        "WHERE s.provider = wanted_provider FOR UPDATE;",
        "WHERE s.provider = wanted_provider;",
        (_FENCE,),
    ),
    Mutant(
        "a claim is given out before it is on the disk",
        "pricing_pipeline/queue/task_queue.py",
        "claim",
        "if rows and is_alone:",
        "if not rows and is_alone:",
        (f"{_CLAIMS}::test_a6_a_claim_of_its_own_is_given_out_when_it_is_on_the_disk_and_not_before",),
    ),
    Mutant(
        "recovery waits for locks",
        f"{_FUNCTIONS}/queue/queue.sql",
        "recover_tasks",
        "ORDER BY q.id FOR UPDATE SKIP LOCKED",
        "ORDER BY q.id FOR UPDATE",
        (f"{_CONTRACTS}::test_contract_02_recovery_passes_over_what_is_being_finished",),
    ),
    Mutant(
        "recovery does not look at leases",
        f"{_FUNCTIONS}/queue/queue.sql",
        "recover_tasks",
        "q.lease_until < now_ ORDER BY",
        "true ORDER BY",
        (_QUEUE_FAILURES,),
    ),
    Mutant(
        "a claim counts no attempt",
        f"{_FUNCTIONS}/queue/claim.sql",
        "claim_calls",
        "attempt = q.attempt + 1, ",
        "",
        (_QUEUE_FAILURES,),
    ),
    Mutant(
        "a half-open breaker lets any number through",
        f"{_FUNCTIONS}/queue/claim.sql",
        "allowance_of",
        "allowed.is_probe := state.breaker <> 'closed';",
        "allowed.is_probe := false;",
        (_BREAKER,),
    ),
    Mutant(
        "a deadlock is the task's fault",
        "pricing_pipeline/db/errors.py",
        "",
        "errors.SerializationFailure | errors.DeadlockDetected",
        "errors.SerializationFailure",
        (f"{_FETCHING}::test_contract_17_a_deadlock_gives_the_task_back_at_no_cost",),
    ),
    Mutant(
        "no units are saved for a task that needs many",
        f"{_FUNCTIONS}/queue/claim.sql",
        "pick_for_claim",
        "IF allowed.is_scarce THEN",
        "IF false THEN",
        (f"{_CLAIMS_MOVE}::test_a2_units_are_saved_for_a_task_that_needs_more_than_come_free_at_a_time",),
    ),
    Mutant(
        "a finish waits for demand that is locked",
        f"{_FUNCTIONS}/queue/queue.sql",
        "finish_tasks",
        "ORDER BY x.symbol FOR NO KEY UPDATE SKIP LOCKED) free",
        "ORDER BY x.symbol FOR NO KEY UPDATE) free",
        (f"{_FENCE}::test_b19_a_finish_passes_over_demand_that_is_locked",),
    ),
    Mutant(
        "duties take no lock",
        f"{_FUNCTIONS}/refresh/drains.sql",
        "run_duties",
        "NOT pricing.take_turn('run_duties')",
        "false",
        (f"{_CONTRACTS}::test_contract_03_periodic_work_never_runs_beside_itself",),
    ),
    Mutant(
        "the quota has no margin",
        f"{_FUNCTIONS}/queue/quota.sql",
        "quota_for",
        "ELSE 95 END",
        "ELSE 100 END",
        (
            f"{_CONTRACTS}::test_contract_06_the_quota_is_checked_ahead_with_a_margin_by_consumer_and_producer",
        ),
    ),
    Mutant(
        "a producer waits for nobody who fills the same room",
        f"{_FUNCTIONS}/queue/quota.sql",
        "take_room",
        "NOT pricing.take_turn('queue_room ' || wanted_provider)",
        "false",
        (f"{_TESTS}/integration/test_producers.py::test_b10_many_sessions_together_queue_no_more_than_fits",),
    ),
    Mutant(
        "the ring keeps what an idle server left in it",
        f"{_FUNCTIONS}/refresh/prune.sql",
        "prune",
        "PERFORM pricing.prune_leaf(((week - back) % 8)::text, now_);",
        "NULL;",
        (
            f"{_TESTS}/integration/test_finished_tasks.py::test_b9_after_pruning_finished_tasks_are_at_most_fifteen_days_old",
        ),
    ),
    Mutant(
        "calls are forgotten while their prices stand",
        f"{_FUNCTIONS}/refresh/prune.sql",
        "prune_calls",
        "FROM old o WHERE o.outcome <> 'failed'",
        "FROM old o WHERE false",
        (f"{_TESTS}/integration/test_lineage.py::test_f3_every_price_names_exactly_one_call_that_is_known",),
    ),
    Mutant(
        "days that two calls copy at once are a fault of the answer",
        "pricing_pipeline/db/engine.py",
        "driver_copy",
        "conflict = psycopg.errors.SerializationFailure(",
        "conflict = psycopg.errors.UniqueViolation(",
        (_BARS_STORED,),
    ),
    Mutant(
        "pruning waits for readers",
        f"{_FUNCTIONS}/refresh/prune.sql",
        "prune",
        "lock_timeout = '100ms'",
        "lock_timeout = 0",
        (f"{_CONTRACTS}::test_contract_16_pruning_gives_way_to_whoever_reads",),
    ),
    Mutant(
        "a claim waits for rows that others hold",
        f"{_FUNCTIONS}/queue/claim.sql",
        "pick_tasks",
        "FOR UPDATE OF q SKIP LOCKED",
        "FOR UPDATE OF q",
        (f"{_FENCE}::test_a3_a_claim_passes_over_a_task_that_is_locked",),
    ),
    *(
        Mutant(name, f"{_FUNCTIONS}/queue/claim.sql", within, old, new, (_CLAIMS_MODEL, _CLAIMS_MOVE))
        for name, within, old, new in (
            (
                "what a provider cannot fetch hides what it can",
                "pick_tasks",
                "          AND q.data_type IN (SELECT k.data_type FROM callable k)\n",
                "",
            ),
            (
                "what costs more than is left hides what costs less",
                "pick_tasks",
                " AND c.units_per_call + c.units_per_symbol <= allowed.units_left",
                "",
            ),
            (
                "what the quota does not allow hides what it allows",
                "pick_tasks",
                "WHEN -2 THEN backfill_bytes WHEN -1 THEN scheduled_bytes ELSE other_bytes END",
                "WHEN -9 THEN 0 ELSE q.est_bytes END",
            ),
            (
                "a backfill takes the one call of a viewer",
                "pick_for_claim",
                " AND NOT (allowed.is_single AND coalesce(tasks[1].priority, 0) > 0)",
                "",
            ),
            (
                "a probe is of several tasks",
                "pick_for_claim",
                "IF allowed.is_probe THEN",
                "IF false THEN",
            ),
            ("no backfill is ever lifted", "pick_for_claim", "claims % 10 = 9", "false"),
        )
    ),
    Mutant(
        "a call asks for more units than are left",
        f"{_FUNCTIONS}/queue/claim.sql",
        "fitting_tasks",
        "tasks[:most]",
        "tasks",
        (f"{_LIMITS}::test_a6_a_call_of_dear_symbols_asks_for_as_many_as_the_units_pay_for",),
    ),
    *(
        Mutant(
            name,
            f"{_FUNCTIONS}/queue/claim.sql",
            within,
            old,
            new,
            (f"{_TESTS}/integration/test_lists.py::{test}",),
        )
        for name, within, old, new, test in (
            (
                "a list of all is asked for the sake of a few",
                "cut_calls",
                "WHEN waiting % size < least_size THEN",
                "WHEN false THEN",
                "test_f1_few_do_not_share_a_call_and_no_more_than_it_may_have",
            ),
            (
                "what a list lacks is looked for in it again",
                "pick_tasks",
                "WHEN q.window_end = 'infinity' AND",
                "WHEN false AND",
                "test_f1_who_failed_is_alone_and_the_others_share_their_call",
            ),
            (
                "a claim looks for a list's work among backfills",
                "pick_for_list",
                "IF allowed.before_urgency > 2 THEN",
                "IF false THEN",
                "test_f1_a_claim_over_a_deep_backfill_locks_few_tasks",
            ),
        )
    ),
    Mutant(
        "claims of two providers look at once",
        f"{_FUNCTIONS}/queue/claim.sql",
        "await_claims",
        "FOR UPDATE SKIP LOCKED",
        "",
        (
            f"{_TESTS}/faults/test_contention.py::test_b17_two_providers_are_never_asked_for_one_symbol_at_once",
        ),
    ),
    Mutant(
        "a task's history grows with each snooze",
        f"{_FUNCTIONS}/queue/queue.sql",
        "append_errors",
        "jsonb_array_length(errors) >= 12",
        "false",
        (
            f"{_QUEUE_FAILURES}::test_b11_a_history_keeps_the_first_and_the_last_entries_and_counts_the_others",
        ),
    ),
    Mutant(
        "a read replica is not refused",
        f"{_FUNCTIONS}/refresh/drains.sql",
        "require_primary",
        "IF pg_is_in_recovery() THEN",
        "IF false THEN",
        (f"{_TESTS}/integration/test_read_replica.py",),
    ),
    Mutant(
        "the breaker waits for a hundred faults",
        f"{_FUNCTIONS}/queue/breakers.sql",
        "judge_call",
        "faults >= 10 THEN",
        "faults >= 100 THEN",
        (f"{_CONTRACTS}::test_contract_15_the_breaker_opens_on_retries_before_anything_has_died",),
    ),
    Mutant(
        "a limit that a provider has shown is forgotten by the next claim",
        f"{_FUNCTIONS}/queue/limits.sql",
        "units_in_force",
        "RETURN least(pricing.units_written(wanted, key), pricing.shown_units(wanted, key, now_));",
        "RETURN pricing.units_written(wanted, key);",
        (f"{_TESTS}/integration/test_shown_limits_model.py",),
    ),
    Mutant(
        "a limit that was shown once is kept to for ever",
        f"{_FUNCTIONS}/queue/limits.sql",
        "shown_units",
        "AND s.shown_at > now_ - interval '1 day'",
        "AND s.shown_at > '-infinity'",
        (f"{_TESTS}/integration/test_shown_limits_model.py",),
    ),
    Mutant(
        "any number of calls is made at once",
        "pricing_pipeline/refresh/refresher.py",
        "",
        "MAX_IN_FLIGHT = 10\n",
        "MAX_IN_FLIGHT = 40\n",
        (f"{_FETCHING}::test_contract_19_one_process_and_one_pool_make_all_calls",),
    ),
    Mutant(
        "a pair whose task died of trouble is excused",
        f"{_FUNCTIONS}/queue/queue.sql",
        "back_off",
        "CASE WHEN NOT pricing.is_symbol_fault(kind) THEN least(d.owed_since, d.became_due_at, d.due_at) END",
        "NULL",
        (_FRESHNESS_MODEL, f"{_FRESHNESS}::test_g2_a_pair_whose_task_died_of_trouble_stays_late"),
    ),
    Mutant(
        "a provider that does not answer is not asked ahead of the pauses",
        f"{_FUNCTIONS}/queue/outages.sql",
        "tend_outages",
        "PERFORM pricing.probe_outage(one);",
        "",
        (_OUTAGES,),
    ),
    Mutant(
        "what waits for a provider does not come back with it",
        f"{_FUNCTIONS}/queue/outages.sql",
        "tend_outages",
        "returned := returned + pricing.return_waiting(one);",
        "",
        (_OUTAGES, _FRESHNESS_MODEL),
    ),
    Mutant(
        "what failed while others were answered comes back with each answer",
        f"{_FUNCTIONS}/queue/outages.sql",
        "return_waiting",
        "w.failing_since >= over.since AND ",
        "",
        (_OUTAGES,),
    ),
    Mutant(
        "a refusal of a symbol alone is never its own fault",
        f"{_FUNCTIONS}/queue/outages.sql",
        "others_were_answered",
        "coalesce(bool_and(o.since > pricing.failing_since(q.errors)), false)",
        "false",
        (_TROUBLE,),
    ),
    Mutant(
        "each data type of a wrong symbol makes its own trial",
        f"{_FUNCTIONS}/queue/queue.sql",
        "fail_tasks",
        "PERFORM pricing.spare_calls(locked, entry, message);",
        "",
        (_QUEUE_FAILURES,),
    ),
    Mutant(
        "a symbol that one provider could not be asked for is at fault",
        f"{_FUNCTIONS}/queue/queue.sql",
        "fail_tasks",
        "PERFORM pricing.bury_by_trouble(locked, entry, message);",
        "",
        (_TROUBLE,),
    ),
    Mutant(
        "probes ask for the same data type again and again",
        f"{_FUNCTIONS}/queue/outages.sql",
        "pick_probe",
        "o.last_fault_at NULLS FIRST, ",
        "",
        (_TROUBLE,),
    ),
    Mutant(
        "a symbol that fails again and again counts against its provider",
        f"{_FUNCTIONS}/queue/breakers.sql",
        "calls_that_count",
        " WHERE NOT j.is_own",
        "",
        (_TROUBLE,),
    ),
    Mutant(
        "a cancelled backfill takes along what another waits for",
        f"{_FUNCTIONS}/demand/backfill.sql",
        "cancel_backfill",
        "WHERE x.backfill_id = wanted ORDER BY x.id FOR UPDATE OF x) heir",
        "WHERE false ORDER BY x.id FOR UPDATE OF x) heir",
        (
            f"{_TESTS}/integration/test_backfill.py::test_g6_what_another_backfill_waits_for_stays_when_one_is_cancelled",
        ),
    ),
    Mutant(
        "the current month asks for nobody's prices",
        f"{_FUNCTIONS}/queue/by_hand.sql",
        "fetch_now",
        "(seen.viewers > 0 OR EXISTS",
        "(seen.viewers < 0 OR EXISTS",
        (
            f"{_TESTS}/orchestration/test_backfill_runs.py::test_g3_g6_the_current_month_means_what_is_watched_or_held_now",
        ),
    ),
)
