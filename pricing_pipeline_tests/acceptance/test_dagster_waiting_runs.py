"""Runs that people start, while the provider they need is not called: they say so, and do not wait for hours."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import dagster as dg
import pytest
from sqlalchemy import Connection

from pricing_pipeline.defs import steps
from pricing_pipeline.demand import backfills
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox


def why(run: dg.ExecuteInProcessResult) -> str:
    """What a person reads first about a run that failed."""
    assert not run.success
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    return str(failure.step_failure_data.user_failure_data.description)


def test_g6_a_run_that_fetches_now_says_how_far_it_is_however_long_it_waits(
    stage: Stage, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a provider that is throttled for hours, too: it would be ended as one that hangs."""
    monkeypatch.setattr(steps, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(steps, "_REPEATED_SECONDS", 0.1)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    sandbox.behave("delay", seconds=1)
    month = datetime.now(UTC).strftime("%Y-%m-01")
    run = stage.backfill(QUOTE, first=month, last=month)
    said = [entry.user_message for entry in stage.instance.all_logs(run.run_id)]
    assert said.count(f"{QUOTE}: 0 of 1 tasks done, 0 failed") >= 2


def throttle(core: Core) -> str:
    """Have twelvedata refuse calls for an hour; returns how a sentence about that begins."""
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name, blocked_until, blocked_reason)"
        " VALUES ('twelvedata', 'default', pricing.clock() + interval '1 hour', 'too fast')"
    )
    return "twelvedata has refused calls for speed (too fast) and is left alone until "


def test_g6_a_run_that_fetches_now_does_not_wait_for_a_provider_that_is_stopped(
    stage: Stage, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them would keep all others that people start waiting. Other types are fetched; the pair stays queued."""
    monkeypatch.setattr(steps, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(steps, "_PATIENCE_SECONDS", 1.0)
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))
    stopped = throttle(core)
    month = datetime.now(UTC).strftime("%Y-%m-01")
    run = stage.backfill(QUOTE, NAV, first=month, last=month, raise_on_error=False)
    assert why(run).startswith(f"1 of 1 watched or held pairs of equity_quote wait: {stopped}")
    assert why(run).endswith("They stay queued, and drains fetch them when that ends.")
    said = [entry.user_message for entry in stage.instance.all_logs(run.run_id)]
    waits = [words for words in said if words.startswith(f"{QUOTE}: 0 of 1 tasks done, 0 failed; it waits: ")]
    assert len(waits) == 1, "the same is said once a minute"
    assert sandbox.calls("twelvedata") == []
    assert core.latest("118632", NAV) is not None
    assert "pending" in core.statuses().values()


def test_g6_a_backfill_waits_for_a_provider_that_is_stopped_and_says_so(
    stage: Stage, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(steps, "_PATIENCE_SECONDS", 0.0)
    stopped = throttle(core)
    waits = backfills.waits_for

    def ending(connection: Connection, backfill_id: UUID) -> list[str]:
        """What it waits for, which ends when it has been asked."""
        found = waits(connection, backfill_id)
        core.rows("UPDATE pricing.provider_keys SET blocked_until = NULL, blocked_reason = NULL")
        return found

    monkeypatch.setattr(backfills, "waits_for", ending)
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", config={"symbols": ["AAPL"]})
    said = [entry.user_message for entry in stage.instance.all_logs(run.run_id)]
    assert [words for words in said if words.startswith(f"{DAILY}: 0 of 1 tasks done, 0 failed; it waits: {stopped}")]
