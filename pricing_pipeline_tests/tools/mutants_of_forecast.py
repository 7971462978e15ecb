"""Mutants of how long a quota lasts: its forecast, and TTLs that are stretched before its end."""

from __future__ import annotations

from pricing_pipeline_tests.tools.mutant import Mutant

_FORECAST_SQL = "pricing_pipeline/db/functions/queue/forecast.sql"
_STALENESS_SQL = "pricing_pipeline/db/functions/demand/staleness.sql"
_FORECAST = "pricing_pipeline_tests/integration/test_forecast.py"
_MODEL = "pricing_pipeline_tests/integration/test_forecast_model.py"

MUTANTS = (
    Mutant(
        "what comes back is not forecast",
        _FORECAST_SQL,
        "reached_at",
        "used - l.bytes + per_hour * l.hours >= step",
        "used + per_hour * l.hours >= step",
        (f"{_FORECAST}::test_f2_what_comes_back_before_is_counted", _MODEL),
    ),
    Mutant(
        "a backfill of one day is forecast for every day",
        _FORECAST_SQL,
        "measured_rate",
        "least(day_bytes / 24.0, week_bytes / hours)",
        "greatest(day_bytes / 24.0, week_bytes / hours)",
        (f"{_FORECAST}::test_f2_a_backfill_of_one_day_is_no_habit",),
    ),
    Mutant(
        "more is forecast than limits allow",
        _FORECAST_SQL,
        "quota_forecasts",
        "n.watched_bytes * least(1, coalesce(pricing.units_a_minute(n.provider, now_) / nullif(n.units, 0), 1))",
        "n.watched_bytes",
        (f"{_FORECAST}::test_f2_no_more_is_forecast_than_the_limits_allow",),
    ),
    Mutant(
        "only the last day of the window is sustained",
        _FORECAST_SQL,
        "sustained_rate",
        "generate_series(1, 30) AS d",
        "generate_series(30, 30) AS d",
        (_MODEL,),
    ),
    Mutant(
        "viewers wait before schedules do",
        _FORECAST_SQL,
        "stretch_factors",
        "room := sustained - background / background_factor;",
        "room := sustained - background;",
        (f"{_MODEL}::test_f2_the_background_gives_way_first_and_neither_ever_past_the_limit",),
    ),
    Mutant(
        "a stretch has no end",
        _FORECAST_SQL,
        "stretch_factors",
        "WHEN room * most <= watched THEN most ELSE watched / room END",
        "WHEN room <= 0 THEN 1000 ELSE watched / room END",
        (f"{_MODEL}::test_f2_the_background_gives_way_first_and_neither_ever_past_the_limit",),
    ),
    Mutant(
        "a stretch comes all at once",
        _FORECAST_SQL,
        "next_factor",
        "wanted := least(wanted, before * 2 ^ (elapsed / 3600));",
        "",
        (f"{_FORECAST}::test_f2_the_stretch_grows_twofold_in_an_hour_until_the_quota_lasts",),
    ),
    Mutant(
        "what is stretched waits on when the stretch is over",
        _FORECAST_SQL,
        "stretch_ttls",
        "RETURN pricing.judge_stretched(relaxed);",
        "RETURN 0;",
        (f"{_FORECAST}::test_f2_the_stretch_ends_within_five_minutes_of_its_cause",),
    ),
    Mutant(
        "a forgotten stretch lasts for ever",
        _FORECAST_SQL,
        "stretches_in_force",
        "s.noted_at BETWEEN now_ - interval '15 minutes' AND now_ + interval '15 minutes'",
        "true",
        (f"{_FORECAST}::test_f2_a_stretch_that_nobody_keeps_up_stretches_nothing",),
    ),
    Mutant(
        "a pair waits that another provider could serve",
        _FORECAST_SQL,
        "stretch_of",
        "coalesce(min(a.watched) FILTER (WHERE a.is_well), min(a.watched), 1)",
        "coalesce(max(a.watched), 1)",
        (f"{_FORECAST}::test_f2_a_pair_that_another_provider_could_serve_is_not_stretched",),
    ),
    Mutant(
        "a stretched price looks fresh",
        "pricing_pipeline/db/functions/demand/freshness.sql",
        "watched_pairs",
        "CASE WHEN coalesce(p.fetched_at < p.stretched_from, true) THEN p.stretched_from END",
        "NULL",
        (f"{_FORECAST}::test_f2_what_follows_a_market_counts_as_owed_too",),
    ),
    Mutant(
        "what trouble keeps away is stretched besides",
        _STALENESS_SQL,
        "move_due",
        "AND d.owed_since IS NOT NULL)) AS is_queued",
        "AND false)) AS is_queued",
        (f"{_FORECAST}::test_f2_what_is_owed_after_trouble_is_not_delayed",),
    ),
    Mutant(
        "a stretched pair is owed only since it was queued",
        _STALENESS_SQL,
        "move_due",
        "least(greatest(d.due_at, j.next_at), d.stretched_from, now_)",
        "least(d.due_at, now_)",
        (f"{_FORECAST}::test_f2_a_watched_pair_is_queued_later_and_counts_as_owed_all_the_while",),
    ),
    Mutant(
        "a schedule goes on as if nothing were scarce",
        "pricing_pipeline/db/functions/demand/schedules.sql",
        "asked_by_schedule",
        "CASE WHEN kind.is_stretched THEN",
        "CASE WHEN false THEN",
        (f"{_FORECAST}::test_f2_a_schedule_leaves_out_what_was_fetched_lately",),
    ),
)
