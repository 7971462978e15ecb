"""The refresher while providers throttle and send broken answers, and while the database fails to store."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit


def test_b16_a_throttled_provider_delays_no_other_and_is_left_alone(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """400 throttled tasks lie before 40 free ones, which are done in seconds."""
    core.rows("UPDATE pricing.provider_limits SET units = 100000")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 10, batch_from = 1 WHERE fetcher = 'quote'")
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 5")
    sandbox.behave("throttle", provider=TWELVEDATA, retry_after="120")
    core.enqueue(QUOTE, *symbols(400), priority=50)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(40)))
    free = "SELECT count(*) FROM pricing.api_call_queue_completed WHERE data_type = 'mf_nav'"
    work_until(refresher, lambda: core.one(free) == 40)
    assert 1 <= len(sandbox.calls(TWELVEDATA)) <= 5, "only those that were on their way before the first refusal"
    waiting = [task for task in core.tasks() if task.data_type == QUOTE]
    assert Counter(task.status for task in waiting)["pending"] >= 350, "the rest was not even touched"
    assert [(task.status, task.errors) for task in waiting if task.attempt] == [], "and no attempt was lost"
    snoozed = [task.run_after for task in waiting if task.status == "scheduled"]
    refused = core.one("SELECT min(finished_at) FROM pricing.collector_call_log WHERE provider = 'twelvedata'")
    assert min(snoozed) >= refused + timedelta(seconds=119)
    assert 0 < (core.allowance().blocked_seconds or 0) <= 120


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "status", "status": 503, "body": "<html>busy</html>"}, "provider_down"),
        ({"kind": "truncate"}, "schema_drift"),
    ],
    ids=["503", "truncated"],
)
def test_b18_a_broken_answer_stores_nothing_and_is_asked_again(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher, fault: dict[str, Any], kind: str
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    sandbox.behave(**fault)
    work_until(refresher, is_idle(core))
    assert core.rows("SELECT FROM pricing.latest_prices") == []
    assert core.rows("SELECT FROM pricing.price_history") == []
    assert [(task.status, task.attempt, task.errors[0]["kind"]) for task in core.tasks()] == [
        ("scheduled", 1, kind)
    ] * 2
    (logged,) = core.rows("SELECT outcome, http_status, wire_bytes, error FROM pricing.collector_call_log")
    assert (logged.outcome, logged.http_status) == ("failed", fault.get("status", 200))
    assert logged.wire_bytes > 0
    assert "twelvedata" in logged.error
    sandbox.behave_well()
    clock.advance(7)
    work_until(refresher, lambda: set(core.statuses().values()) == {"completed"})
    audit(core)


@pytest.mark.parametrize(
    "mishap",
    [
        "RAISE EXCEPTION ''chosen'' USING ERRCODE = ''40P01''",
        "PERFORM pg_terminate_backend(pg_backend_pid())",
    ],
    ids=["deadlock", "session lost"],
)
def test_b19_a_mishap_while_storing_costs_no_attempt_and_no_call(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, mishap: str
) -> None:
    """The answer is in hand and the claim still owned, so it is stored at the next try."""
    core.rows("CREATE SEQUENCE pricing.mishaps")
    core.rows(
        "CREATE FUNCTION pricing.mishap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN"
        f" IF nextval(''pricing.mishaps'') <= 2 THEN {mishap}; END IF; RETURN NEW; END'"
    )
    core.rows(
        "CREATE TRIGGER mishap BEFORE INSERT ON pricing.latest_prices FOR EACH ROW EXECUTE FUNCTION pricing.mishap()"
    )
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, lambda: core.task("AAPL").status == "completed")
    assert (core.task("AAPL").attempt, core.task("AAPL").errors) == (1, [])
    assert core.latest("AAPL") is not None
    assert len(sandbox.calls()) == 1
    audit(core)
