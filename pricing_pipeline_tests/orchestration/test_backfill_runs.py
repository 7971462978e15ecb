"""Backfills as the UI launches them: one run over a range of months, without the tag of drains."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from pricing_pipeline.defs.backfilling import BackfillConfig
from pricing_pipeline.defs.reports import Observed, is_step
from pricing_pipeline.demand.backfills import Backfill, Progress
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import (
    Stage,
    plain,
    said,
)
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit


def rows_by_month(core: Core, data_type: str = DAILY) -> dict[str, int]:
    return dict(
        core.rows(
            "SELECT to_char(date_trunc('month', observed_at, 'UTC'), 'YYYY-MM-DD'), count(*)"
            " FROM pricing.price_history WHERE data_type = :name GROUP BY 1",
            name=data_type,
        )
    )


def row_counts(stage: Stage, data_type: str = DAILY) -> dict[str | None, int]:
    """The row count that Dagster shows for each month: that of its last event, filled or not."""
    path = ("price_history", data_type)
    return {
        event.partition: said(event)["dagster/partition_row_count"]
        for event in [*stage.observations(*path), *stage.materializations(*path)]
        if "dagster/partition_row_count" in event.metadata
    }


def asked(core: Core, sandbox: RunningSandbox) -> list[tuple[str, str, str]]:
    """Symbol, first and last day of what was asked of the provider, whose own log has as many calls."""
    calls = core.rows(
        "SELECT unnest(c.symbols), c.window_start::text, c.window_end::text"
        " FROM (SELECT * FROM pricing.collector_call_log ORDER BY call_id DESC LIMIT :calls) c",
        calls=len(sandbox.calls()),
    )
    return sorted((symbol, first, last) for symbol, first, last in calls)


def why(run: dg.ExecuteInProcessResult) -> str:
    """What a person reads first about a run that failed."""
    assert not run.success
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    return str(failure.step_failure_data.user_failure_data.description)


def test_g6_progress_is_told_in_tenths_and_not_too_often() -> None:
    def told(done: int, at: float) -> Observed:
        return Observed(Progress(1000, 1000 - done, 0), at)

    assert is_step(None, Progress(1000, 1000, 0), 0.0), "that it has begun"
    assert not is_step(told(0, 0.0), Progress(1000, 901, 0), 60.0)
    assert is_step(told(0, 0.0), Progress(1000, 900, 0), 60.0)
    assert not is_step(told(0, 0.0), Progress(1000, 900, 0), 19.0)
    assert not is_step(told(100, 0.0), Progress(1000, 801, 0), 3600.0)
    assert is_step(told(900, 0.0), Progress(1000, 0, 0), 1.0), "its end, however soon"
    assert not is_step(told(1000, 0.0), Progress(1000, 0, 0), 3600.0)


def test_g6_the_current_month_ends_today(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    today = datetime.now(UTC).date()
    month = today.strftime("%Y-%m-01")
    assert stage.backfill(DAILY, first=month, last=month).success
    assert {end for _, _, end in asked(core, sandbox)} == {str(today)}
    covered = core.one("SELECT max(upper(covered)) FROM pricing.history_coverage")
    assert covered is None if today.day == 1 else covered == today


def test_g6_configured_days_never_reach_beyond_the_partitions_and_must_leave_one() -> None:
    first, last = date(2010, 3, 1), date(2010, 4, 30)
    assert BackfillConfig(from_day="2009-01-01", to_day="2011-12-31").window(first, last) == Window(first, last)
    for config, reason in (
        ({"from_day": "yesterday"}, "from_day is 'yesterday', which is no day. Write it as 2013-02-28."),
        ({"to_day": "2010-02-30"}, "to_day is '2010-02-30', which is no day"),
        ({"from_day": "2010-05-01"}, "leave no day of the partitions, which span 2010-03-01 to 2010-04-30"),
        ({"to_day": "2010-02-28"}, "leave no day of the partitions"),
        ({"from_day": "2010-04-02", "to_day": "2010-04-01"}, "leave no day of the partitions"),
    ):
        with pytest.raises(dg.Failure) as refused:
            BackfillConfig(**config).window(first, last)
        assert reason in str(refused.value.description)


def test_g6_symbols_that_make_no_sense_are_refused_in_a_sentence_before_anything_is_queued(
    stage: Stage, core: Core
) -> None:
    for symbols, reason in (
        (["IBM", " "], "symbols has an empty name. Leave symbols out to ask for all"),
        (
            ["IBM", "ZZZZNOTHING", "AAPL"],
            "no equity instrument is called ZZZZNOTHING. Watching it adds it: "
            "pricing-pipeline subscription watch ZZZZNOTHING --type equity_daily. Nothing was asked for.",
        ),
        (["AAPL,IBM"], "no equity instrument is called AAPL,IBM. As a symbol of equity_daily it is refused: a symbol"),
    ):
        config = {"symbols": symbols}
        run = stage.backfill(DAILY, first="2010-03-01", last="2010-04-01", config=config, raise_on_error=False)
        assert reason in why(run)
        assert core.tasks() == []


def test_g6_a_symbol_that_no_chosen_type_knows_fails_what_is_to_be_fetched_now(stage: Stage, core: Core) -> None:
    month = f"{datetime.now(UTC):%Y-%m}-01"
    config = {"symbols": ["AAPL", "ZZZZ"]}
    run = stage.backfill(QUOTE, FX, first=month, last=month, config=config, raise_on_error=False)
    assert "no equity or fx instrument is called ZZZZ. Watching it adds it" in why(run)
    assert core.tasks() == []


def test_g6_the_launchpad_says_what_can_be_configured(stage: Stage) -> None:
    job = stage.definitions.resolve_implicit_global_asset_job_def()
    fields = job.run_config_schema.config_type.fields["ops"].config_type.fields["refresh_prices"]
    told = {name: field.description for name, field in fields.config_type.fields["config"].config_type.fields.items()}
    assert told.keys() == {"symbols", "from_day", "to_day"}
    assert all(told.values())


def warnings(stage: Stage, run: dg.ExecuteInProcessResult) -> list[str]:
    """What a run's log warns of."""
    logged = stage.instance.all_logs(run.run_id)
    return [entry.user_message for entry in logged if entry.level == logging.WARNING]


def test_g6_months_before_the_history_of_one_type_are_no_fault(stage: Stage) -> None:
    """A run may select another type, too, that has them."""
    run = stage.backfill(NAV, first="2000-01-01", last="2001-01-01")
    assert run.success
    assert warnings(stage, run) == ["there is no history of mf_nav before 2006-04-01, so nothing of it is asked for."]


def test_g6_b8_a_failed_symbol_fails_the_run_and_costs_the_others_nothing(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, verified_at) VALUES ('equity', 'NOPE', pricing.clock())"
    )
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert why(run) == (
        "1 of 6 tasks of equity_daily failed; the rest is stored."
        " `pricing-pipeline task list --status failed` shows why."
    )
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    (row,) = plain(failure.step_failure_data.user_failure_data.metadata[f"failures_{DAILY}"])
    assert (row["symbol"], row["kind"]) == ("NOPE", "unknown_symbol")
    assert row_counts(stage) == rows_by_month(core) == {"2010-03-01": 4 * 23}
    audit(core)


def test_g6_a_run_whose_backfill_was_cancelled_says_so(
    stage: Stage, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody calls it off between its plan and its first call."""
    plans = Refresher.plan_backfill

    def plan_and_cancel(*asked: Any) -> Backfill:
        planned = plans(*asked)
        core.call("SELECT pricing.cancel_backfill(:id)", id=planned.id)
        return planned

    monkeypatch.setattr(Refresher, "plan_backfill", plan_and_cancel)
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert why(run) == (
        "the backfill of equity_daily was cancelled: 5 of 5 tasks are left out."
        " What is stored stays, and another backfill goes on from there."
    )
    assert sandbox.calls() == []


def test_g6_a2_live_work_goes_first_and_is_reported_too(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 1")  # one call after the other
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert stage.backfill(DAILY, first="2010-03-01", last="2010-04-01").success
    assert next(call["path"] for call in sandbox.calls()) == "/quote"
    (seen,) = map(said, stage.observations("latest_price", QUOTE))
    assert (seen["calls"], seen["rows_added"]) == (1, 1)
    assert stage.observations("latest_price", DAILY) == []
    latest = core.latest("AAPL")
    assert latest is not None
    assert datetime.now(UTC) - latest.fetched_at < timedelta(minutes=10)
