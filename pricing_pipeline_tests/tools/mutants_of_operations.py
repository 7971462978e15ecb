"""Mutants of side effects and alerts: what must happen once, and who is told when."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_FUNCTIONS = "pricing_pipeline/db/functions/operations"
_OPERATIONS_SQL = f"{_FUNCTIONS}/operations.sql"
_ALERTS_SQL = f"{_FUNCTIONS}/alerts.sql"
_MESSAGES_SQL = f"{_FUNCTIONS}/messages.sql"
_CHANNELS = "pricing_pipeline/operations/channels"
_MODEL = "pricing_pipeline_tests/integration/test_operations_model.py"
_ALERTS_MODEL = "pricing_pipeline_tests/integration/test_alerts_model.py"
_OPERATIONS = "pricing_pipeline_tests/integration/test_operations.py"
_ALERTS = "pricing_pipeline_tests/integration/test_alerts.py"
_MESSAGES = "pricing_pipeline_tests/integration/test_messages.py"
_FAIR = "pricing_pipeline_tests/integration/test_fair_shares.py"
_PRICES = "pricing_pipeline_tests/integration/test_price_alerts.py"
_WEBHOOK = "pricing_pipeline_tests/integration/test_channels_webhook.py"
_MAIL = "pricing_pipeline_tests/integration/test_channels_mail.py"

MUTANTS = (
    Mutant(
        "whoever has lost a claim may complete its operation",
        _OPERATIONS_SQL,
        "complete_operations",
        " AND o.claim_token = token",
        "",
        (_MODEL,),
    ),
    Mutant(
        "whoever has lost a claim may fail its operation",
        _OPERATIONS_SQL,
        "fail_operation",
        " AND o.claim_token = token",
        "",
        (_MODEL,),
    ),
    Mutant(
        "an attempt counts when it ends",
        _OPERATIONS_SQL,
        "claim_operations",
        "attempt = o.attempt + 1, ",
        "",
        (_MODEL,),
    ),
    Mutant(
        "pauses do not grow",
        _OPERATIONS_SQL,
        "fail_operation",
        "t.first_pause * 2 ^ (mine.attempt - 1)",
        "t.first_pause",
        (_MODEL,),
    ),
    Mutant(
        "the pause that a receiver asks for is ignored",
        _OPERATIONS_SQL,
        "fail_operation",
        "greatest(pause, retry_after)",
        "pause",
        (_MODEL, _OPERATIONS),
    ),
    Mutant(
        "a lost operation is tried for ever",
        _OPERATIONS_SQL,
        "recover_operations",
        "FILTER (WHERE o.attempt < o.max_attempts) AS again",
        "AS again",
        (_MODEL,),
    ),
    Mutant(
        "an operation that a person has locked holds all others up",
        _OPERATIONS_SQL,
        "claim_operations",
        "LIMIT s.share FOR UPDATE SKIP LOCKED",
        "LIMIT s.share FOR UPDATE",
        (f"{_OPERATIONS}::test_e7_an_operation_that_a_person_has_locked_is_passed_over_by_claims",),
    ),
    Mutant(
        "urgent messages wait for their turn",
        _OPERATIONS_SQL,
        "claim_operations",
        "ORDER BY c.priority, c.due_at, c.id",
        "ORDER BY c.due_at, c.id",
        (f"{_MESSAGES}::test_e8_what_is_urgent_is_claimed_before_what_waits_longer",),
    ),
    Mutant(
        "a retry by hand is another operation for the receiver",
        _OPERATIONS_SQL,
        "retry_operations",
        "SELECT g.id, g.operation_type, g.payload, g.idempotency_key,",
        "SELECT g.id, g.operation_type, g.payload, gen_random_uuid(),",
        (_MODEL, _OPERATIONS),
    ),
    Mutant(
        "fields of a payload may be missing",
        _OPERATIONS_SQL,
        "payload_fault",
        "right(f.value, 1) <> '?' AND ",
        "false AND ",
        (f"{_OPERATIONS}::test_e2_bad_input_is_refused_in_the_callers_transaction",),
    ),
    Mutant(
        "quiet hours do not pass midnight",
        _MESSAGES_SQL,
        "quiet_end",
        "ELSE l.at::time >= who.quiet_from OR l.at::time < who.quiet_until END",
        "ELSE l.at::time >= who.quiet_from END",
        (f"{_MESSAGES}::test_e8_quiet_hours_end_when_the_clock_on_the_wall_says",),
    ),
    Mutant(
        "alarms wait for the morning",
        _OPERATIONS_SQL,
        "why_waiting",
        "WHEN with_priority = 0 OR to_recipient = '' THEN NULL",
        "WHEN to_recipient = '' THEN NULL",
        (f"{_MESSAGES}::test_e8_in_quiet_hours_only_what_is_urgent_is_sent",),
    ),
    Mutant(
        "a retry disturbs quiet hours",
        _OPERATIONS_SQL,
        "why_waiting",
        "(pricing.quiet_end(r, now_) IS NOT NULL\n                            OR ",
        "(false AND ",
        (f"{_MESSAGES}::test_e8_whatever_makes_a_message_wait_it_does_not_arrive_in_quiet_hours",),
    ),
    Mutant(
        "a recipient that hangs gets every place",
        _OPERATIONS_SQL,
        "claim_operations",
        "ELSE greatest(least(8, most / 2), 1) - u.busy END",
        "ELSE most END",
        (_FAIR,),
    ),
    Mutant(
        "a breaker never opens",
        _OPERATIONS_SQL,
        "note_failing",
        "opens_breaker AND x.failures >= 2",
        "false AND x.failures >= 2",
        (f"{_FAIR}::test_e7_three_failures_open_the_breaker_of_a_recipient_and_one_success_closes_it",),
    ),
    Mutant(
        "a price that was being stored when its alert was added is forgotten",
        f"{_FUNCTIONS}/price_alerts.sql",
        "take_price_events",
        "<= pg_snapshot_xmin(pg_current_snapshot())\n        WHERE",
        "IS NOT NULL\n        WHERE",
        (
            f"{_PRICES}::test_b27_a_price_that_was_being_stored_when_its_alert_was_made_is_told_however_long_that_takes",
        ),
    ),
    Mutant(
        "an alert is over as soon as it is not seen",
        _ALERTS_SQL,
        "note_alerts",
        "(a.raised_at IS NULL OR a.last_seen_at <= now_ - interval '5 minutes')",
        "true",
        (_ALERTS_MODEL,),
    ),
    Mutant(
        "an alert of a rule that fails is over",
        _ALERTS_SQL,
        "note_alerts",
        " AND a.rule <> ALL (failed)",
        "",
        (f"{_ALERTS}::test_b21_what_a_failing_rule_found_before_is_not_over",),
    ),
    Mutant(
        "an alert that somebody looks after is repeated",
        _ALERTS_SQL,
        "alerts_to_tell",
        "OR (a.acknowledged_at IS NULL",
        "OR (true",
        (_ALERTS_MODEL,),
    ),
    Mutant(
        "a silence is ignored",
        _ALERTS_SQL,
        "alerts_to_tell",
        "WHERE s.rule = a.rule AND coalesce(s.subject = a.subject, true) AND s.until > now_)",
        "WHERE false)",
        (_ALERTS_MODEL,),
    ),
    Mutant(
        "what nobody is told of counts as told",
        _ALERTS_SQL,
        "alerts_to_tell",
        "WHERE r.is_active AND t.is_active)",
        "WHERE true)",
        (f"{_ALERTS}::test_b21_what_nobody_is_to_be_told_of_waits_for_somebody",),
    ),
    Mutant(
        "a signature says nothing of the time",
        f"{_CHANNELS}/webhook.py",
        "sign",
        'b"%d." % timestamp + body',
        "body",
        (_WEBHOOK,),
    ),
    Mutant(
        "webhooks reach private networks",
        f"{_CHANNELS}/posting.py",
        "",
        "BoundedTransport(resolve=resolve, ssl_context=context, allow_private=allow_private)",
        "BoundedTransport(resolve=resolve, ssl_context=context, allow_private=True)",
        (f"{_WEBHOOK}::test_e8_private_addresses_are_refused_written_or_resolved",),
    ),
)
