"""The refresher when providers misbehave and when the database does. When all is well is in test_refresher.py."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pytest
from pydantic import SecretStr

from pricing_pipeline.demand.backfills import Progress
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import PlanRestricted
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import Reports, is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

# Providers that misbehave


def test_b10_a_refused_key_stops_a_provider_and_costs_no_attempt(core: Core, sandbox: RunningSandbox) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))
    with refreshing(core.engine, sandbox.url, key=SecretStr("not-the-right-key")) as refresher:
        work_until(refresher, is_idle(core))
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors[0]["kind"]) == ("scheduled", 0, "key_refused")
    assert "not-the-right-key" not in str(core.rows("SELECT errors FROM pricing.api_call_queue_live"))
    assert core.allowance().blocked_seconds == pytest.approx(60, abs=30)
    assert "PRICING_TWELVEDATA_API_KEY" in (core.allowance().blocked_reason or "")
    assert core.task("118632").status == "completed"


def test_b8_a_refused_batch_does_not_condemn_its_symbols(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """One of them may have spoiled it. Nor is one that is refused alone, while nobody else is answered."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 2 WHERE fetcher = 'quote'")
    core.enqueue(QUOTE, "AAPL", "IBM", "LONELY")
    sandbox.behave("status", status=400, body='{"code":400,"message":"invalid request","status":"error"}')
    work_until(refresher, is_idle(core))
    assert core.statuses() == dict.fromkeys(("AAPL", "IBM", "LONELY"), "scheduled")
    assert {task.errors[0]["kind"] for task in core.tasks()} == {"request_refused"}


def test_b8_a_refusal_of_a_whole_batch_is_narrowed_down_to_the_symbol_it_means(core: Core, clock: Clock) -> None:
    """FMP answers 402 to a batch with one restricted symbol, and does not name it."""
    core.lift_limits(batch_size=100)
    core.enqueue(QUOTE, *symbols(40))
    sizes = []
    for _ in range(3):
        for call in core.claim(max_calls=50):
            sizes.append(len(call.tasks))
            if "S0017" in call.symbols:
                settle_failure(core.engine, call, PlanRestricted("402"))
            else:
                core.complete(call)
                core.settle(call)
        clock.advance(200)
        core.promote()
    assert sizes == [40, 10, 10, 10, 10, *[1] * 10]
    assert core.statuses() == dict.fromkeys(symbols(40), "completed") | {"S0017": "failed"}


@pytest.mark.parametrize(
    "fault",
    [{"kind": "price", "value": "-1.0"}, {"kind": "other_symbol", "answer": "MSFT"}],
    ids=lambda fault: fault["kind"],
)
def test_b18_one_bad_symbol_costs_the_others_of_its_call_nothing(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, fault: dict[str, Any]
) -> None:
    """What cannot be true, or is about something else, is refused; its neighbours are stored."""
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in ("AAPL", "BAD", "IBM")))
    sandbox.behave(**fault, symbols="BAD")
    work_until(refresher, is_idle(core))
    assert core.statuses() == {"AAPL": "completed", "BAD": "scheduled", "IBM": "completed"}
    assert core.task("BAD").errors[0]["kind"] == "implausible"
    assert [row.symbol for row in core.rows("SELECT symbol FROM pricing.price_history ORDER BY 1")] == [
        "AAPL",
        "IBM",
    ]
    assert len(sandbox.calls()) == 1
    audit(core)


# The database misbehaves


def test_b8_one_value_the_database_refuses_costs_its_batch_nothing(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    core.rows("ALTER TABLE pricing.latest_prices ADD CONSTRAINT never CHECK (symbol NOT IN ('S0003', 'S0011'))")
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(14)))
    work_until(refresher, is_idle(core))
    assert Counter(core.statuses().values()) == {"completed": 12, "scheduled": 2}
    for symbol in ("S0003", "S0011"):
        task = core.task(symbol)
        (error,) = task.errors
        assert (task.status, task.attempt, error["kind"], error["attempt"]) == (
            "scheduled",
            1,
            "not_storable",
            1,
        )
        assert symbol in error["message"]
        assert "latest_prices cannot have this value" in error["message"]
        assert core.latest(symbol) is None
    assert len(sandbox.calls()) == 1
    assert (reports.total("calls"), reports.total("failed"), reports.total("added")) == (1, 2, 12)
    assert core.rows("SELECT outcome FROM pricing.collector_call_log") == [("ok",)]
    audit(core)


def test_b8_a_batch_beyond_the_providers_limit_says_at_once_where_it_is_set(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """Other calls go on."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 400 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(300))
    core.enqueue(NAV, "118632")
    work_until(refresher, is_idle(core))
    tasks = [task for task in core.tasks() if task.data_type == QUOTE]
    assert {(task.status, task.attempt, task.errors[0]["kind"]) for task in tasks} == {("failed", 1, "misconfigured")}
    assert tasks[0].errors[0]["message"] == (
        "twelvedata takes at most 120 symbols in such a call for quote, and 300 were to share one."
        " `pricing-pipeline provider change twelvedata --batch-size quote=120` lowers it."
    )
    assert core.task("118632").status == "completed"
    outcomes = core.rows("SELECT provider, outcome, wire_bytes > 0 AS arrived FROM pricing.collector_call_log")
    assert sorted(tuple(row) for row in outcomes) == [(MFAPI, "ok", True), (TWELVEDATA, "failed", False)]
    audit(core)


def test_b8_a_parser_that_fails_is_a_fault_of_ours_with_its_bytes_booked(
    core: Core, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = refresher._clients[TWELVEDATA].provider

    def parse(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(type(provider), "parse", parse)
    core.enqueue(QUOTE, "AAPL")
    work_until(refresher, is_idle(core))
    task = core.task("AAPL")
    assert (task.status, task.errors[0]["kind"]) == ("scheduled", "client_fault")
    assert "ZeroDivisionError" in task.errors[0]["message"]
    (logged,) = core.rows("SELECT outcome, http_status, wire_bytes FROM pricing.collector_call_log")
    assert (logged.outcome, logged.http_status) == ("failed", 200)
    assert logged.wire_bytes > 100


def test_a5_what_cannot_be_asked_as_things_are_set_up_is_dead_at_once(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 100000")
    planned = refresher.plan_backfill(DAILY, Window(date(1985, 1, 1), date(2026, 1, 1)), ["AAPL"])
    assert planned.tasks == 1
    assert refresher.backfill(planned) == Progress(1, 0, 1)
    task = core.task("AAPL")
    assert (task.status, task.failure_kind, task.attempt) == ("failed", "misconfigured", 1)
    assert sandbox.calls() == []
