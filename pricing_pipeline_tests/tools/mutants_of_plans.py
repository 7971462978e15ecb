"""Mutants of what a provider's plan decides: its limits, how a day's units are spread, and the types that it serves."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_PACING_SQL = "pricing_pipeline/db/functions/queue/pacing.sql"
_PLANS = "pricing_pipeline/registry/plans.py"
_PACING = "pricing_pipeline_tests/integration/test_pacing.py"
_PROVIDER_PLANS = "pricing_pipeline_tests/integration/test_provider_plans.py"

MUTANTS = (
    Mutant(
        "the units of a day are not spread",
        "A6",
        "the day's units are gone before the market opens",
        _PACING_SQL,
        "paced_units",
        "floor(units * pricing.paced_share(hours, since, until, now_))",
        "units",
        (f"{_PACING}::test_a6_a_day_is_spread_over_the_session_of_what_is_watched",),
    ),
    Mutant(
        "no unit is kept for closing prices",
        "A6",
        "the last price of the day is one of before the close",
        _PACING_SQL,
        "paced_share",
        "THEN 0.9 ELSE 0.8 END",
        "THEN 0.9 ELSE 0.9 END",
        (_PACING,),
    ),
    Mutant(
        "units used before the session stop it",
        "A6",
        "after a backfill in the morning nothing is refreshed all day",
        _PACING_SQL,
        "paced_units",
        "THEN used.units + 1",
        "THEN paced",
        (f"{_PACING}::test_a6_what_was_used_before_anybody_watched_does_not_stop_the_day",),
    ),
    Mutant(
        "limits of the plan before stay",
        "A6",
        "the limits of the smaller plan apply to a larger one",
        _PLANS,
        "_apply",
        "provider_rules.remove_limit(connection, provider, limit.name, None)",
        "pass",
        (f"{_PROVIDER_PLANS}::test_a6_plans_are_switched_and_undone",),
    ),
    Mutant(
        "undo changes a type that another plan serves",
        "A6",
        "undoing one provider's plan retires what the other still serves",
        _PLANS,
        "undo",
        "before.types[name] if name in shared else type_",
        "type_",
        (f"{_PROVIDER_PLANS}::test_a6_two_providers_in_use_serve_the_same_types",),
    ),
    Mutant(
        "the last plan alone decides the TTL of a shared type",
        "A6",
        "the slower provider is asked more often than its plan pays for",
        _PLANS,
        "_with_longer_ttls",
        "max(type_.ttl_minutes, old.ttl_minutes)",
        "type_.ttl_minutes",
        (f"{_PROVIDER_PLANS}::test_a6_two_providers_in_use_serve_the_same_types",),
    ),
)
