"""Mutants of what is wanted and shown: demand, staleness, schedules, freshness, Dagster, roles and secrets."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_FUNCTIONS = "pricing_pipeline/db/functions"
_TESTS = "pricing_pipeline_tests"
_STALENESS = f"{_TESTS}/integration/test_staleness.py"
_DEMAND = f"{_TESTS}/integration/test_demand.py"
_CONTRACTS = f"{_TESTS}/integration/test_contracts.py"
_SEALING = f"{_TESTS}/unit/test_sealing.py"
_CREDENTIALS = f"{_TESTS}/integration/test_credentials.py"
_TROUBLE = f"{_TESTS}/faults/test_trouble_ends.py"
_FRESHNESS_MODEL = f"{_TESTS}/integration/test_freshness_model.py"
_EMBEDDING = f"{_TESTS}/orchestration/test_embedding.py"
_FRESHNESS = f"{_TESTS}/orchestration/test_freshness.py"


MUTANTS = (
    Mutant(
        "two checks at once begin the same type",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "enqueue_due",
        "IF pricing.take_turn('check ' || kind.data_type) THEN",
        "IF true THEN",
        (_STALENESS,),
    ),
    Mutant(
        "a check that did not get through all says that it did",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "check_type",
        "IF cardinality(pairs) < at_most AND stale",
        "IF stale",
        (f"{_STALENESS}::test_b8_what_one_check_leaves_the_next_one_takes",),
    ),
    Mutant(
        "what a check passed by is never looked for",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "lift_marks",
        "d.due_at < x.queued_until",
        "d.due_at < '-infinity'",
        (f"{_STALENESS}::test_b8_a_pair_that_a_check_passes_by_is_queued_seconds_later",),
    ),
    Mutant(
        "a price of the future is fresh",
        f"{_FUNCTIONS}/registry/registry.sql",
        "is_past_ttl",
        " OR stamp > now_ + interval '1 minute'",
        "",
        (
            f"{_TESTS}/integration/test_clock_steps_demand.py::test_g2_prices_of_the_time_that_comes_once_more_are_not_fresh",
        ),
    ),
    Mutant(
        "a check begins at the beginning each time",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "enqueue_due",
        "coalesce(m.queued_until, '-infinity')",
        "CAST('-infinity' AS timestamptz)",
        (f"{_TESTS}/integration/test_plans.py::test_b6_a_backlog_is_passed_by_once",),
    ),
    Mutant(
        "sessions of one user begin new pairs at once",
        f"{_FUNCTIONS}/demand/demand.sql",
        "begin_pairs",
        "    PERFORM pricing.lock_allowance(user_id);\n",
        "",
        (
            f"{_TESTS}/faults/test_clients_at_once.py::test_fault_32_twenty_sessions_of_one_user_keep_its_caps_and_never_deadlock",
        ),
    ),
    Mutant(
        "a check that is not committed stops all others",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "check_by_halves",
        "ELSIF middle = 0 OR",
        "ELSIF middle >= 0 OR",
        (f"{_TESTS}/faults/test_locked_rows.py::test_fault_27_a_check_that_is_not_committed_stops_no_other",),
    ),
    Mutant(
        "a check stops at a task that somebody has not committed",
        f"{_FUNCTIONS}/queue/queue.sql",
        "enqueue_by_halves",
        "IF middle = 0 OR",
        "IF middle >= 0 OR",
        (
            f"{_TESTS}/faults/test_locked_rows.py::test_fault_27_a_check_passes_over_the_one_task_that_is_not_committed",
        ),
    ),
    Mutant(
        "a check queues beyond the quota",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "check_type",
        "IF room IS NOT NULL THEN",
        "IF false THEN",
        (
            f"{_TESTS}/integration/test_producers.py::test_b10_what_fits_is_queued_by_the_number_of_its_viewers",
        ),
    ),
    Mutant(
        "a read asks for whatever it likes",
        f"{_FUNCTIONS}/demand/demand.sql",
        "room_for_reads",
        "(60 - extract(epoch FROM spent))",
        "1000000",
        (f"{_TESTS}/integration/test_caps.py::test_b7_reads_are_capped",),
    ),
    Mutant(
        "a schedule goes with the viewers",
        f"{_FUNCTIONS}/demand/schedules.sql",
        "enqueue_walked",
        "array_fill(-1,",
        "array_fill(1,",
        (f"{_CONTRACTS}::test_contract_08_scheduled_work_never_goes_ahead_of_people",),
    ),
    Mutant(
        "a broken judge ends its check",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "judged_elsewhere",
        "WHEN OTHERS THEN",
        "WHEN division_by_zero THEN",
        (f"{_CONTRACTS}::test_contract_04_one_broken_data_type_stops_no_other",),
    ),
    Mutant(
        "what a cap refuses is entered all the same",
        f"{_FUNCTIONS}/demand/demand.sql",
        "begin_pairs",
        "        wanted.types := wanted.types[:room.admitted];\n",
        "        room.admitted := cardinality(wanted.types);\n",
        (
            f"{_TESTS}/integration/test_pair_answers.py::test_b5_b8_a_mix_of_good_and_bad_pairs_is_answered_pair_by_pair_the_same_every_way",
        ),
    ),
    Mutant(
        "every heartbeat is taken for the first",
        f"{_FUNCTIONS}/demand/demand.sql",
        "heartbeat",
        "            RETURN '{",
        "            PERFORM pricing.admit_pairs(user_id, kept, 0); RETURN '{",
        (f"{_CONTRACTS}::test_contract_07_looking_again_writes_nothing_but_that_one_looks",),
    ),
    Mutant(
        "a walk begins anew each time",
        f"{_FUNCTIONS}/demand/schedules.sql",
        "walk_schedule",
        "AND i.symbol > walk.walk_after ",
        "",
        (f"{_CONTRACTS}::test_contract_09_a_schedule_walks_by_key_and_misses_nobody",),
    ),
    Mutant(
        "the check looks at all that is watched",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "due_pairs",
        "d.due_at >= queued_until\n                  AND d.due_at <= now_\n",
        "d.due_at + interval '0' >= queued_until AND d.due_at + interval '0' <= now_\n",
        (f"{_CONTRACTS}::test_contract_12_a_staleness_check_reads_what_is_due_and_not_what_is_watched",),
    ),
    Mutant(
        "a reader that was not served counts for nobody",
        f"{_FUNCTIONS}/demand/staleness.sql",
        "due_pairs",
        "(due.read_at IS NOT NULL)::integer",
        "0",
        (f"{_TESTS}/integration/test_waiting_readers.py",),
    ),
    Mutant(
        "a TTL has a default",
        f"{_FUNCTIONS}/registry/registry.sql",
        "is_data_stale",
        "ttl_minutes integer) RETURNS",
        "ttl_minutes integer DEFAULT 5) RETURNS",
        (f"{_CONTRACTS}::test_contract_13_only_the_registry_knows_a_ttl",),
    ),
    Mutant(
        "what clients call has clients' rights",
        f"{_FUNCTIONS}/demand/client.sql",
        "heartbeat",
        "SECURITY DEFINER ",
        "",
        (f"{_CONTRACTS}::test_contract_18_a_client_acts_through_functions_and_for_itself_only",),
    ),
    Mutant(
        "a sealed secret is bound to nothing",
        "pricing_pipeline/keys/sealing.py",
        "_bound",
        'return b"".join(len(part).to_bytes(4, "big") + part for part in parts)',
        'return b"" and bytes(len(parts))',
        (_SEALING, _CREDENTIALS),
    ),
    Mutant(
        "a sealed secret is not bound to its row's version",
        "pricing_pipeline/keys/sealing.py",
        "_bound",
        "purpose, *place)",
        "purpose, *place[:2], *place[3:])",
        (_SEALING,),
    ),
    Mutant(
        "a rotation undoes what was set meanwhile",
        f"{_FUNCTIONS}/keys/credentials.sql",
        "reseal_credential",
        " AND c.row_version = found_version",
        "",
        (_CREDENTIALS,),
    ),
    Mutant(
        "what was judged in the background is believed for a viewer",
        f"{_FUNCTIONS}/demand/freshness.sql",
        "watched_pairs",
        "CASE WHEN p.is_background THEN pricing.is_pair_stale(p.data_type, p.symbol)",
        "CASE WHEN false THEN false",
        (_TROUBLE, _FRESHNESS_MODEL),
    ),
    Mutant(
        "a type is fresh whose prices are mostly outdated",
        "pricing_pipeline/demand/freshness.py",
        "",
        "self.late == 0 and self.fresh + self.source_old > self.outdated",
        "self.late == 0 and self.fresh + self.source_old > 0",
        (_FRESHNESS, f"{_TESTS}/orchestration/test_sensors.py"),
    ),
    Mutant(
        "runs of other code locations count as ours",
        "pricing_pipeline/defs/ours.py",
        "only",
        "return replace(wanted, tags={**wanted.tags, REPOSITORY_LABEL_TAG: label})",
        "return wanted",
        (
            f"{_TESTS}/orchestration/test_shared_instance.py::test_g7_whatever_runs_there_are_only_ours_that_have_ended_go",
        ),
    ),
    Mutant(
        "runs of a neighbour in our code location count as ours",
        "pricing_pipeline/defs/ours.py",
        "",
        "return run.job_name in self.naming.jobs or (bool(chosen) and chosen <= self._assets)",
        "return bool(run)",
        (f"{_EMBEDDING}::test_g8_our_upkeep_leaves_a_neighbour_in_the_same_location_alone",),
    ),
    Mutant(
        "names have no prefix",
        "pricing_pipeline/defs/naming.py",
        "",
        'return "_".join([*self.prefix, name])',
        "return name",
        (f"{_EMBEDDING}::test_g8_every_name_begins_with_the_prefix",),
    ),
    Mutant(
        "a run worker reads the registry anew",
        "pricing_pipeline/defs/handing_on.py",
        "handed_on",
        "text = known or make()",
        "text = make()",
        (f"{_EMBEDDING}::test_g8_a_run_worker_has_the_definitions_of_a_location_that_is_not_ours",),
    ),
    Mutant(
        "a code location beside ours is told the worker's password",
        "pricing_pipeline/stack.py",
        "_known_to_locations",
        'if _login(environment["PRICING_DAGSTER_URL"]) not in withheld:',
        "if True:",
        (f"{_TESTS}/unit/test_code_locations.py",),
    ),
    Mutant(
        "backfills of unknown assets are served",
        "pricing_pipeline/defs/ours.py",
        "_is_backfill_beside",
        "return not target.is_empty and target.asset_keys <= beside.keys",
        "return not target.is_empty",
        (f"{_TESTS}/orchestration/test_beside.py",),
    ),
    Mutant(
        "a run that is at work is launched again",
        "pricing_pipeline/defs/launcher.py",
        "",
        "if self._is_at_work(context):",
        "if False:",
        (f"{_TESTS}/orchestration/test_launches.py",),
    ),
    Mutant(
        "a storage of others counts as made here",
        "pricing_pipeline/defs/ours.py",
        "made_here",
        "return is_made_here(Path(instance.root_directory), connection)",
        "return True",
        (
            f"{_TESTS}/orchestration/test_shared_instance.py::test_g7_after_our_upkeep_nothing_of_a_stranger_has_changed_by_a_byte",
        ),
    ),
    Mutant(
        "a storage with tables is claimed as new",
        "pricing_pipeline/db/dagster_storage.py",
        "claim_if_new",
        "if not is_embedded and inspect(connection).has_table(_FIRST_TABLE):",
        "if is_embedded and not is_embedded:",
        (
            f"{_TESTS}/orchestration/test_shared_instance.py::test_g7_after_our_upkeep_nothing_of_a_stranger_has_changed_by_a_byte",
        ),
    ),
    Mutant(
        "a cancelled run leaves its tasks in the queue",
        "pricing_pipeline/defs/cancelling.py",
        "cancel_with_runs",
        "if run_id in called_off:",
        "if not run_id:",
        (
            f"{_TESTS}/orchestration/test_cancelling.py::test_g6_the_sensor_cancels_the_backfills_of_cancelled_runs",
        ),
    ),
)
