"""The use case end to end: queue, claims, real calls to a real sandbox, prices stored and tasks settled.

Workers that die are in faults/test_worker_killed.py; Dagster is in orchestration/.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Any

import pytest
from pydantic import SecretStr

from pricing_pipeline import prices
from pricing_pipeline.domain import Window
from pricing_pipeline.errors import PlanRestricted
from pricing_pipeline.refresh import Progress, Refresher
from pricing_pipeline.settling import Tally, settle_failure
from pricing_pipeline_tests.audit import audit
from pricing_pipeline_tests.fix_core import DAILY, FX, MFAPI, NAV, QUOTE, TWELVEDATA, Core, sample_template
from pricing_pipeline_tests.fix_database import Clock
from pricing_pipeline_tests.refreshing import Reports, refreshing, work_until
from pricing_pipeline_tests.sandbox_server import RunningSandbox, running_sandbox

template = sample_template

FIVE = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
THIRTEEN_YEARS = Window(date(2000, 3, 1), date(2013, 2, 28))


@pytest.fixture
def sandbox() -> Iterator[RunningSandbox]:
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def refresher(core: Core, sandbox: RunningSandbox, reports: Reports) -> Iterator[Refresher]:
    with refreshing(core.engine, sandbox.url, run_id="run 7", reports=reports) as refresher:
        yield refresher


def symbols(count: int) -> list[str]:
    return [f"S{number:04d}" for number in range(count)]


def is_idle(core: Core) -> Callable[[], bool]:
    """Nothing is pending or in work."""
    return lambda: core.one(
        "SELECT NOT EXISTS (SELECT FROM pricing.api_call_queue_live WHERE status IN ('pending', 'processing'))"
    )


def calls(sandbox: RunningSandbox, provider: str) -> list[tuple[str, int, int | None]]:
    """Path, units and status of each call, as the sandbox saw it."""
    return [(call["path"], call["units"], call["status"]) for call in sandbox.calls(provider)]


# Watched pairs


def test_f1_what_is_watched_is_stored_by_one_call_a_type(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols(50)))
    core.heartbeat(
        "bob", (QUOTE, "S0001"), (FX, "EUR/USD"), (FX, "USD/JPY"), (NAV, "118632"), (NAV, "119551")
    )
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
    assert timedelta() <= latest.fetched_at - latest.observed_at < timedelta(seconds=20)
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


def test_a11_a_route_is_all_it_takes_to_fetch_from_yahoo(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """Twenty quotes to a call; bars come as traded, though Yahoo divides them and keeps them in floats."""
    core.rows(
        "UPDATE pricing.provider_routing SET provider = 'yahoo' WHERE data_type IN ('equity_quote', 'equity_daily')"
    )
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in (*symbols(38), "NOPE1")))
    work_until(refresher, is_idle(core))
    quotes = calls(sandbox, "yahoo")
    assert quotes == [("/v7/finance/spark", 1, 200)] * 2
    assert core.statuses() == {**dict.fromkeys(symbols(38), "completed"), "NOPE1": "failed"}
    latest = core.latest("S0001")
    assert latest is not None
    assert (latest.provider, latest.currency, latest.fresh) == ("yahoo", "USD", True)

    around_its_split = Window(date(2005, 2, 24), date(2005, 3, 1))
    assert refresher.backfill(refresher.plan_backfill(DAILY, around_its_split, ["AAPL"])) == Progress(1, 0, 0)
    bars = core.history("AAPL", DAILY, around_its_split.start, around_its_split.end)
    assert [str(bar.close) for bar in bars] == ["88.93", "88.99", "44.86", "44.50"]


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


def test_b17_a_drain_ends_when_nobody_watches_and_nothing_is_queued(core: Core, refresher: Refresher) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, is_idle(core))
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    assert refresher.drain(3600)
    assert core.one("SELECT count(*) FROM pricing.drains WHERE finished_at IS NULL") == 0


def test_b17_one_drain_at_a_time(core: Core, refresher: Refresher) -> None:
    other = core.one("SELECT pricing.begin_drain('other', 'run 1', 120)")
    assert refresher.drain(1) is False
    core.rows("SELECT pricing.end_drain(:other)", other=other)
    assert refresher.drain(1) is True


@pytest.mark.parametrize(("allowed", "most"), [(2, 4), (8, 10)])
def test_b17_no_more_calls_are_in_flight_than_are_allowed(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, allowed: int, most: int
) -> None:
    """Each of two providers has its own limit, and all together ten."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = :allowed", allowed=allowed)
    sandbox.behave("delay", seconds=0.3)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(12)))
    core.enqueue(QUOTE, *symbols(12))
    work_until(refresher, is_idle(core))
    for provider, limit in ((TWELVEDATA, allowed), (MFAPI, allowed), (None, most)):
        made = sandbox.calls(provider)
        spans = [(call["monotonic"], call["monotonic"] + call["milliseconds"] / 1000) for call in made]
        busiest = max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)
        assert 1 < busiest <= limit


def test_a2_live_work_goes_before_a_backfill_that_was_queued_first(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 100")
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 1")
    planned = refresher.plan_backfill(DAILY, Window(date(2010, 1, 1), date(2010, 12, 31)))
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NEW"))
    assert refresher.backfill(planned) == Progress(20, 0, 0)
    paths = [path for path, *_ in calls(sandbox, TWELVEDATA)]
    assert paths == ["/quote"] + ["/time_series"] * 20


# Providers that misbehave


def test_b16_a_throttled_provider_delays_no_other_and_is_left_alone(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """FAULTS 25: 2,000 throttled tasks lie before 200 free ones, which are done in seconds."""
    core.rows("UPDATE pricing.provider_limits SET units = 100000")
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 5")
    sandbox.behave("throttle", provider=TWELVEDATA, retry_after="120")
    core.enqueue(QUOTE, *symbols(2000), priority=50)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(200)))
    free = "SELECT count(*) FROM pricing.api_call_queue_completed WHERE data_type = 'mf_nav'"
    work_until(refresher, lambda: core.one(free) == 200, seconds=30)
    assert 1 <= len(sandbox.calls(TWELVEDATA)) <= 5, (
        "only those that were on their way before the first refusal"
    )
    waiting = [task for task in core.tasks() if task.data_type == QUOTE]
    assert Counter(task.status for task in waiting)["pending"] >= 1500, "the rest was not even touched"
    assert [(task.status, task.errors) for task in waiting if task.attempt] == [], "and no attempt was lost"
    snoozed = [task.run_after for task in waiting if task.status == "scheduled"]
    assert min(snoozed) > core.clock() + timedelta(seconds=90)
    assert core.allowance().blocked_seconds == pytest.approx(120, abs=20)


def test_c1_after_the_pause_a_throttled_provider_is_asked_again(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    sandbox.behave("throttle", count=1)
    work_until(refresher, lambda: core.task("AAPL").status == "scheduled")
    assert core.allowance().blocked_seconds == pytest.approx(5, abs=3), "it named no time"
    clock.advance(7)
    work_until(refresher, lambda: core.task("AAPL").status == "completed")
    assert core.task("AAPL").attempt == 1
    assert core.one("SELECT throttles FROM pricing.provider_keys WHERE provider = 'twelvedata'") == 0


def test_b10_a_refused_key_stops_a_provider_and_costs_no_attempt(core: Core, sandbox: RunningSandbox) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))
    with refreshing(core.engine, sandbox.url, key=SecretStr("not-the-right-key")) as refresher:
        work_until(refresher, is_idle(core))
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors[0]["kind"]) == ("scheduled", 0, "key_refused")
    assert "not-the-right-key" not in str(core.rows("SELECT errors FROM pricing.api_call_queue_live"))
    assert core.allowance().blocked_seconds == pytest.approx(60, abs=10)
    assert "PRICING_TWELVEDATA_API_KEY" in (core.allowance().blocked_reason or "")
    assert core.task("118632").status == "completed"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "status", "status": 500}, "provider_down"),
        ({"kind": "status", "status": 503, "body": "<html>busy</html>"}, "provider_down"),
        ({"kind": "html"}, "schema_drift"),
        ({"kind": "truncate"}, "schema_drift"),
    ],
    ids=["500", "503", "html", "truncated"],
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


def test_b8_a_refused_batch_does_not_condemn_its_symbols(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """One of them may have spoiled it. A symbol that is refused alone is refused for good."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 2 WHERE fetcher = 'quote'")
    core.enqueue(QUOTE, "AAPL", "IBM", "LONELY")
    sandbox.behave("status", status=400, body='{"code":400,"message":"invalid request","status":"error"}')
    work_until(refresher, is_idle(core))
    assert core.statuses() == {"AAPL": "scheduled", "IBM": "scheduled", "LONELY": "failed"}
    assert {task.errors[0]["kind"] for task in core.tasks()} == {"request_refused"}


def test_b8_a_refusal_of_a_whole_batch_is_narrowed_down_to_the_symbol_it_means(
    core: Core, clock: Clock
) -> None:
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
    [
        {"kind": "price", "value": "NaN"},
        {"kind": "price", "value": "Infinity"},
        {"kind": "price", "value": "-1.0"},
        {"kind": "price", "value": "0"},
        {"kind": "price", "value": "1e308"},
        {"kind": "other_symbol", "answer": "MSFT"},
    ],
    ids=lambda fault: fault.get("value") or fault["kind"],
)
def test_b18_one_bad_symbol_costs_the_others_of_its_call_nothing(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, fault: dict[str, Any]
) -> None:
    """FAULTS 14: what cannot be true, or is about something else, is refused; its neighbours are stored."""
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


def test_a8_an_unknown_symbol_dies_at_once_and_is_held_off(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NOPE1"), (NAV, "999999"))
    work_until(refresher, is_idle(core))
    assert core.statuses() == {"AAPL": "completed", "NOPE1": "failed", "999999": "failed"}
    assert core.task("NOPE1").failure_kind == core.task("999999").failure_kind == "unknown_symbol"
    clock.advance(240)
    work_until(refresher, lambda: len(core.tasks("AAPL")) == 2)
    work_until(refresher, is_idle(core))
    assert len(core.tasks("NOPE1")) == len(core.tasks("999999")) == 1, "nobody asks again within the hour"
    unverified = core.rows("SELECT symbol FROM pricing.instruments WHERE verified_at IS NULL ORDER BY 1")
    assert [row.symbol for row in unverified] == ["999999", "NOPE1"]


def test_f3_an_answer_older_than_ours_is_refused(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, is_idle(core))
    before = core.latest("AAPL")
    sandbox.behave("stale", seconds=3600)
    clock.advance(61)
    work_until(refresher, lambda: len(core.tasks("AAPL")) == 2 and is_idle(core)())
    assert core.tasks("AAPL")[-1].errors[0]["kind"] == "stale_source"
    after = core.latest("AAPL")
    assert before is not None
    assert after is not None
    assert (after.price, after.observed_at, after.fetched_at) == (
        before.price,
        before.observed_at,
        before.fetched_at,
    )
    assert len(core.rows("SELECT FROM pricing.price_history")) == 1


# The database misbehaves


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
    """The answer is in hand and the claim still held, so it is stored at the next try."""
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


def test_b8_one_value_the_database_refuses_costs_its_batch_nothing(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    core.rows(
        "ALTER TABLE pricing.latest_prices ADD CONSTRAINT never CHECK (symbol NOT IN ('S0003', 'S0011'))"
    )
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
        assert 'violates check constraint "never"' in error["message"]
        assert core.latest(symbol) is None
    assert len(sandbox.calls()) == 1
    assert (reports.total("calls"), reports.total("failed"), reports.total("added")) == (1, 2, 12)
    assert core.rows("SELECT outcome FROM pricing.collector_call_log") == [("ok",)]
    audit(core)


def test_b8_what_can_never_be_stored_is_dead_after_four_tries_with_its_reason(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.rows("ALTER TABLE pricing.latest_prices ADD CONSTRAINT never CHECK (data_type <> 'fx_rate')")
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 1440")
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"), (NAV, "118632"))
    for _ in range(4):
        work_until(refresher, is_idle(core))
        clock.advance(145)
        core.heartbeat("ann", (FX, "EUR/USD"))
        core.promote()
    assert core.task("AAPL").status == core.task("118632").status == "completed"
    task = core.task("EUR/USD")
    assert (task.status, task.failure_kind, task.attempt) == ("failed", "not_storable", 4)
    assert [error["attempt"] for error in task.errors] == [1, 2, 3, 4]
    assert core.rows("SELECT FROM pricing.price_history WHERE data_type = 'fx_rate'") == []
    audit(core)


def test_b8_a_batch_beyond_the_providers_limit_fails_with_its_reason_at_once(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """A fault of ours in one call is as visible as one of the provider's; other calls go on."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 400 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(300))
    core.enqueue(NAV, "118632")
    work_until(refresher, is_idle(core))
    tasks = [task for task in core.tasks() if task.data_type == QUOTE]
    assert {(task.status, task.attempt, task.errors[0]["kind"]) for task in tasks} == {
        ("scheduled", 1, "client_fault")
    }
    assert "ValueError" in tasks[0].errors[0]["message"]
    assert core.task("118632").status == "completed"
    outcomes = core.rows(
        "SELECT provider, outcome, wire_bytes > 0 AS arrived FROM pricing.collector_call_log"
    )
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


def test_b19_a_conflict_that_stays_gives_the_tasks_back_at_no_cost(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.rows("CREATE SEQUENCE pricing.mishaps")
    core.rows(
        "CREATE FUNCTION pricing.mishap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF nextval(''pricing.mishaps'')"
        " <= 4 THEN RAISE EXCEPTION ''chosen'' USING ERRCODE = ''40001''; END IF; RETURN NEW; END'"
    )
    core.rows(
        "CREATE TRIGGER mishap BEFORE INSERT ON pricing.latest_prices FOR EACH ROW EXECUTE FUNCTION pricing.mishap()"
    )
    core.heartbeat("ann", (QUOTE, "AAPL"))
    work_until(refresher, lambda: core.task("AAPL").status == "completed", seconds=8)
    task = core.task("AAPL")
    assert task.attempt == 1
    assert [error["kind"] for error in task.errors] == ["database_conflict"]
    assert [
        row.outcome for row in core.rows("SELECT outcome FROM pricing.collector_call_log ORDER BY 1")
    ] == [
        "failed",
        "ok",
    ]
    audit(core)


# Leases and stopping


def test_b11_a_long_call_keeps_its_claim(
    core: Core, clock: Clock, sandbox: RunningSandbox, refresher: Refresher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves past the lease in steps while the call is under way; recovery runs all the while."""
    monkeypatch.setattr("pricing_pipeline.refresh._EXTEND_LEASES_SECONDS", 0.05)
    sandbox.behave("delay", seconds=2.5, count=1)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    turns = 0

    def is_done() -> bool:
        nonlocal turns
        if core.task("AAPL").status == "processing" and turns < 4:
            clock.advance(40)
            turns += 1
        return core.task("AAPL").status != "pending" and not refresher._in_flight

    work_until(refresher, is_done)
    assert turns >= 3
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors) == ("completed", 1, [])


def test_b11_a_worker_that_stops_gives_its_tasks_back_at_once(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """What is about to end still ends; what hangs is pending again, at no cost, and its late answer is refused."""
    sandbox.behave("delay", provider=TWELVEDATA, seconds=4, count=1)
    sandbox.behave("delay", provider=MFAPI, seconds=0.3, count=1)
    core.heartbeat("ann", (QUOTE, "AAPL"), (NAV, "118632"))

    def interrupt() -> bool:
        if len(sandbox.calls()) == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        work_until(refresher, interrupt)
    assert core.task("118632").status == "completed"
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.claim_token) == ("pending", 0, None)
    assert [error["kind"] for error in task.errors] == ["worker_stopped"]
    refresher.close()
    assert core.latest("AAPL") is None
    assert (core.task("AAPL").status, core.task("AAPL").attempt) == ("pending", 0)
    assert {row.outcome for row in core.rows("SELECT outcome FROM pricing.collector_call_log")} == {"ok"}
    audit(core)


# Backfills


def recorded() -> dict[str, dict[date, dict[str, str]]]:
    """The source's own text, read without any code of the sandbox."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    found: dict[str, dict[date, dict[str, str]]] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(gzip.decompress(packed).decode("ascii"), newline="")):
        day = date.fromisoformat(row["Date"])
        if THIRTEEN_YEARS.start <= day <= THIRTEEN_YEARS.end:
            found[row["Ticker"]][day] = row
    return found


def test_g6_a_backfill_equals_its_source_to_the_last_digit(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    """12,000 bars of five symbols: the same days, the same prices and volumes, in one call a symbol."""
    source = recorded()
    seen: list[Progress] = []
    planned = refresher.plan_backfill(DAILY, THIRTEEN_YEARS)
    assert refresher.backfill(planned, seen.append) == Progress(5, 0, 0)
    assert seen[0].open == 5
    assert calls(sandbox, TWELVEDATA) == [("/time_series", 1, 200)] * 5

    assert set(source) == set(FIVE)
    for symbol, days in source.items():
        bars = core.history(symbol, DAILY, THIRTEEN_YEARS.start, THIRTEEN_YEARS.end)
        assert [bar.observed_at.date() for bar in bars] == sorted(days)
        for bar in bars:
            row = days[bar.observed_at.date()]
            stored = (bar.open, bar.high, bar.low, bar.close, bar.volume)
            assert stored == tuple(Decimal(row[name]) for name in ("Open", "High", "Low", "Close", "Volume"))
            assert (bar.currency, bar.observed_at.hour, bar.provider) == ("USD", 0, TWELVEDATA)
    total = sum(map(len, source.values()))
    assert total > 12_000
    assert core.one("SELECT count(*) FROM pricing.price_history") == total == reports.total("added")
    assert core.rows("SELECT FROM pricing.latest_prices") == []
    with core.engine.connect() as connection:
        months = prices.months(connection, DAILY, THIRTEEN_YEARS.start, THIRTEEN_YEARS.end)
    counted: Counter[date] = Counter()
    for tally in reports:
        counted.update(tally.months)
    assert {month: rows for month, (rows, _) in months.items()} == counted
    assert len(months) == 156
    audit(core, acknowledged=5)

    before = core.rows("SELECT ctid, xmin FROM pricing.price_history_equity_daily")
    again = refresher.plan_backfill(DAILY, THIRTEEN_YEARS)
    assert again.tasks == 0
    assert refresher.backfill(again) == Progress(0, 0, 0)
    assert len(sandbox.calls()) == 5
    assert core.rows("SELECT ctid, xmin FROM pricing.price_history_equity_daily") == before
    assert core.rows("SELECT FROM pricing.price_revisions") == []


def test_g6_a_backfill_costs_symbols_times_pages(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET max_window_days = 1000 WHERE fetcher = 'daily_bars'")
    planned = refresher.plan_backfill(DAILY, THIRTEEN_YEARS, ["AAPL", "FB"])
    assert planned.tasks == 2 * 5
    assert refresher.backfill(planned).failed == 0
    assert len(sandbox.calls()) == sum(call["units"] for call in sandbox.calls()) == 10
    source = recorded()
    for symbol in ("AAPL", "FB"):
        bars = core.history(symbol, DAILY, THIRTEEN_YEARS.start, THIRTEEN_YEARS.end)
        assert {bar.observed_at.date(): bar.close for bar in bars} == {
            day: Decimal(row["Close"]) for day, row in source[symbol].items()
        }
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE symbol = 'FB'") < 250, "listed in 2012"


def test_g6_a_backfill_reports_what_failed_and_fetches_the_rest(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (DAILY, "NOPE1"))
    work_until(refresher, is_idle(core))
    planned = refresher.plan_backfill(DAILY, Window(date(2010, 1, 1), date(2010, 3, 31)), ["AAPL", "NOPE1"])
    assert refresher.backfill(planned) == Progress(2, 0, 1)
    assert len(core.history("AAPL", DAILY, date(2010, 1, 1), date(2010, 3, 31))) == 61
    assert core.one("SELECT array_agg(symbol) FROM pricing.history_coverage") == ["AAPL"]


def test_g6_navs_are_backfilled_with_their_five_decimals(core: Core, refresher: Refresher) -> None:
    planned = refresher.plan_backfill(NAV, Window(date(2024, 1, 1), date(2024, 3, 31)))
    assert refresher.backfill(planned) == Progress(4, 0, 0)
    navs = core.history("118632", NAV, date(2024, 1, 1), date(2024, 3, 31))
    assert len(navs) > 55
    assert {bar.currency for bar in navs} == {"INR"}
    assert {bar.close.as_tuple().exponent for bar in navs} == {-5}
    assert all(bar.open is None and bar.volume is None for bar in navs)


# The limits, as the provider sees them


def test_a6_the_providers_own_log_never_shows_more_than_the_free_plan(core: Core, clock: Clock) -> None:
    """Three drains at once, minute after minute; the sandbox's clock moves with the database's."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(40))
    passed = timedelta()
    with (
        running_sandbox(
            clock=lambda: datetime.now(UTC) + passed, credits_per_minute=8, credit_window="sliding"
        ) as sandbox,
        ExitStack() as stack,
        ThreadPoolExecutor(3) as pool,
    ):
        drains = [
            stack.enter_context(refreshing(core.engine, sandbox.url, worker=f"w{number}"))
            for number in range(3)
        ]
        for minute in (1, 2, 3):
            assert list(pool.map(lambda drain: drain.drain(1), drains)) == [True] * 3
            assert sum(call["units"] for call in sandbox.calls(TWELVEDATA)) == 8 * minute
            passed += timedelta(seconds=61)
            clock.advance(61)
        assert not any(call["refused"] for call in sandbox.calls())
    assert Counter(core.statuses().values()) == {"completed": 24, "pending": 16}
