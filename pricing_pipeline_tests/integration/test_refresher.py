"""The use case end to end: queue, claims, real calls to a real sandbox, prices stored and tasks settled.

Workers that die are in faults/test_worker_killed.py; Dagster is in orchestration/.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import date, timedelta

import pytest

from pricing_pipeline.demand.backfills import Progress
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import DAILY, FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.refreshing import Reports, calls, holding, is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

THREE_YEARS = Window(date(2010, 3, 1), date(2013, 2, 28))


# Watched pairs


def test_f1_what_is_watched_is_stored_by_one_call_a_type(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(50)))
    core.heartbeat("bob", (QUOTE, "S0001"), (FX, "EUR/USD"), (FX, "USD/JPY"), (NAV, "118632"), (NAV, "119551"))
    work_until(refresher, is_idle(core))

    assert sorted(calls(sandbox, TWELVEDATA)) == [("/quote", 2, 200), ("/quote", 50, 200)]
    assert sorted(calls(sandbox, MFAPI)) == [("/mf/118632/latest", 1, 200), ("/mf/119551/latest", 1, 200)]
    assert set(core.statuses().values()) == {"completed"}
    assert Counter(row.data_type for row in core.rows("SELECT data_type FROM pricing.latest_prices")) == {
        QUOTE: 50,
        FX: 2,
        NAV: 2,
    }
    latest = core.latest("EUR/USD", FX)
    assert latest is not None
    assert latest.fresh
    assert (latest.currency, latest.provider) == ("USD", TWELVEDATA)
    assert timedelta() <= latest.fetched_at - latest.observed_at < timedelta(seconds=PATIENCE)
    assert {row.run_id for row in core.rows("SELECT run_id FROM pricing.collector_call_log")} == {"run 7"}
    audit(core, acknowledged=54)

    done: dict[str, Tally] = {}
    for tally in reports:  # on a slow machine there may be several of a type
        done.setdefault(tally.data_type, Tally(tally.data_type)).add(tally)
    assert {name: (tally.calls, len(tally.symbols), tally.added) for name, tally in done.items()} == {
        QUOTE: (1, 50, 50),
        FX: (1, 2, 2),
        NAV: (2, 2, 2),
    }
    assert reports.total("wire_bytes") == core.one("SELECT sum(bytes) FROM pricing.api_data_usage")
    bodies = sum(call["bytes"] for call in sandbox.calls())
    assert bodies < reports.total("wire_bytes") < bodies + 4 * 1000, "bodies and headers"


def test_b6_a_drain_keeps_what_is_watched_fresh_while_it_works(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, lambda: len(sandbox.calls()) == 1)
    clock.advance(61)
    work_until(refresher, lambda: len(sandbox.calls()) == 2)
    work_until(refresher, is_idle(core))
    assert len(core.tasks("AAPL")) == 2
    latest = core.latest("AAPL")
    assert latest is not None
    assert latest.fresh


def test_b7_a_warm_drain_serves_a_new_viewer(core: Core, refresher: Refresher) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))

    def report(_: object) -> None:
        core.heartbeat("bob", (QUOTE, "IBM"))

    refresher._on_report = report
    work_until(refresher, lambda: core.latest("IBM") is not None)


def test_b17_a_drain_ends_when_nobody_watches_and_nothing_is_queued(
    core: Core, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, is_idle(core))
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    monkeypatch.setattr("pricing_pipeline.refresh.refresher._IDLE_SECONDS", 0.5)
    assert refresher.drain(3600)
    assert core.one("SELECT count(*) FROM pricing.drains WHERE finished_at IS NULL") == 0


# Leases and stopping


def test_b11_a_worker_that_stops_gives_its_tasks_back_at_once(
    core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is about to end still ends; what hangs is pending again, at no cost, and its late answer is refused."""

    def until_the_first(calls: Collection[Future[Tally]], timeout: float) -> None:
        assert 1 <= timeout <= 10
        wait(calls, PATIENCE, FIRST_COMPLETED)  # more is not to come, whatever the machine is at

    monkeypatch.setattr("pricing_pipeline.refresh.refresher.wait", until_the_first)
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))
    stopped, answered = threading.Event(), threading.Event()

    def interrupt() -> bool:
        if len(sandbox.calls()) == 2:
            stopped.set()
            raise KeyboardInterrupt
        return False

    class Client(holding(TWELVEDATA, answered), holding(MFAPI, stopped)):  # type: ignore[misc]
        pass

    with refreshing(core.engine, sandbox.url, client=Client) as refresher:
        with pytest.raises(KeyboardInterrupt):
            work_until(refresher, interrupt)
        assert core.task("118632").status == "completed"
        task = core.task("AAPL")
        assert (task.status, task.attempt, task.claim_token) == ("pending", 0, None)
        assert [error["kind"] for error in task.errors] == ["worker_stopped"]
        answered.set()
    assert core.latest("AAPL") is None
    assert (core.task("AAPL").status, core.task("AAPL").attempt) == ("pending", 0)
    assert {row.outcome for row in core.rows("SELECT outcome FROM pricing.collector_call_log")} == {"ok"}
    audit(core)


# Backfills


def test_g6_a_backfill_costs_symbols_times_pages(core: Core, sandbox: RunningSandbox, refresher: Refresher) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 220 WHERE fetcher = 'daily_bars'")
    planned = refresher.plan_backfill(DAILY, THREE_YEARS, ["AAPL", "META"])
    assert planned.tasks == 2 * 5
    assert refresher.backfill(planned).failed == 0
    assert (len(sandbox.calls()), sum(call["units"] for call in sandbox.calls())) == (5, 10), "both in each call"
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE symbol = 'META'") < 250, "listed in 2012"


def test_g6_a_backfill_reports_what_failed_and_fetches_the_rest(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (DAILY, "NOPE1"))
    work_until(refresher, is_idle(core))
    planned = refresher.plan_backfill(DAILY, Window(date(2010, 1, 1), date(2010, 3, 31)), ["AAPL", "NOPE1"])
    assert refresher.backfill(planned) == Progress(2, 0, 1)
    assert len(core.history("AAPL", DAILY, date(2010, 1, 1), date(2010, 3, 31))) == 61
    assert core.one("SELECT array_agg(symbol) FROM pricing.history_coverage") == ["AAPL"]


# The limits, as the provider sees them
