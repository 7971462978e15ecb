"""Real workers drain the queue against the sandbox to its end."""

from __future__ import annotations

import csv
import gzip
import io
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.resources import files

import pytest

from pricing_pipeline.demand.backfills import Progress
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import price_reader
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_refresher import THREE_YEARS
from pricing_pipeline_tests.support.refreshing import Reports, calls, holding, is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.three_hosts import most_units
from pricing_pipeline_tests.tools.audit import audit

FIVE = ("AAPL", "META", "GOOG", "IBM", "MSFT")


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


def test_b17_one_drain_at_a_time(core: Core, refresher: Refresher) -> None:
    other = core.one("SELECT pricing.begin_drain('other', 'run 1', 120)")
    assert refresher.drain(1) is False
    core.rows("SELECT pricing.end_drain(:other)", other=other)
    assert refresher.drain(1) is True


def test_b17_no_more_calls_are_in_flight_than_are_allowed(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    """Each of two providers has its own limit."""
    core.lift_limits(batch_size=1)
    core.rows("UPDATE pricing.data_collectors SET max_in_flight = 2")
    sandbox.behave("delay", seconds=0.3)
    core.enqueue(NAV, *(str(118_000 + number) for number in range(6)))
    core.enqueue(QUOTE, *symbols(6))
    work_until(refresher, is_idle(core))
    for provider, limit in ((TWELVEDATA, 2), (MFAPI, 2), (None, 4)):
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
    assert paths == ["/quote"] + ["/time_series"] * 4


def test_b11_a_long_call_keeps_its_claim(
    core: Core, clock: Clock, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock moves past the lease in steps while the call is under way; recovery runs all the while."""
    monkeypatch.setattr("pricing_pipeline.refresh.refresher._EXTEND_TASKS_SECONDS", 0.0)
    monkeypatch.setattr("pricing_pipeline.refresh.refresher._TICK_SECONDS", 0.0)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    turns, answered = 0, threading.Event()

    def is_done() -> bool:
        nonlocal turns
        task = core.task("AAPL")
        if turns == 4:
            answered.set()
        elif task.lease_until and task.lease_until > core.clock() + timedelta(seconds=50):
            clock.advance(40)
            turns += 1
        return task.status == "completed"

    with refreshing(core.engine, sandbox.url, client=holding(TWELVEDATA, answered)) as refresher:
        work_until(refresher, is_done)
    task = core.task("AAPL")
    assert (task.status, task.attempt, task.errors) == ("completed", 1, [])


def recorded() -> dict[str, dict[date, dict[str, str]]]:
    """The source's own text, read without any code of the sandbox."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    found: dict[str, dict[date, dict[str, str]]] = defaultdict(dict)
    for row in csv.DictReader(io.StringIO(gzip.decompress(packed).decode("ascii"), newline="")):
        day = date.fromisoformat(row["Date"])
        if THREE_YEARS.start <= day <= THREE_YEARS.end:
            found[row["Ticker"].replace("FB", "META")][day] = row
    return found


def test_g6_a_backfill_equals_its_source_to_the_last_digit(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, reports: Reports
) -> None:
    """All bars of five symbols: the same days, the same prices and volumes, in one call a symbol."""
    source = recorded()
    seen: list[Progress] = []
    planned = refresher.plan_backfill(DAILY, THREE_YEARS)
    assert refresher.backfill(planned, seen.append) == Progress(5, 0, 0)
    assert seen[0].open == 5
    assert calls(sandbox, TWELVEDATA) == [("/time_series", 1, 200)] * 5

    assert set(source) == set(FIVE)
    for symbol, days in source.items():
        bars = core.history(symbol, DAILY, THREE_YEARS.start, THREE_YEARS.end)
        assert [bar.observed_at.date() for bar in bars] == sorted(days)
        for bar in bars:
            row = days[bar.observed_at.date()]
            stored = (bar.open, bar.high, bar.low, bar.close, bar.volume)
            assert stored == tuple(Decimal(row[name]) for name in ("Open", "High", "Low", "Close", "Volume"))
            assert (bar.currency, bar.observed_at.hour, bar.provider) == ("USD", 0, TWELVEDATA)
    total = sum(map(len, source.values()))
    assert total > 3_000
    assert core.one("SELECT count(*) FROM pricing.price_history") == total == reports.total("added")
    assert core.rows("SELECT FROM pricing.latest_prices") == []
    with core.engine.connect() as connection:
        months = price_reader.months(connection, DAILY, THREE_YEARS.start, THREE_YEARS.end)
    counted: Counter[date] = Counter()
    for tally in reports:
        counted.update(tally.months)
    assert {month: rows for month, (rows, _) in months.items()} == counted
    assert len(months) == 36
    audit(core, acknowledged=5)

    before = core.rows("SELECT ctid, xmin FROM pricing.price_history_equity_daily")
    again = refresher.plan_backfill(DAILY, THREE_YEARS)
    assert again.tasks == 0
    assert refresher.backfill(again) == Progress(0, 0, 0)
    assert len(sandbox.calls()) == 5
    assert core.rows("SELECT ctid, xmin FROM pricing.price_history_equity_daily") == before
    assert core.rows("SELECT FROM pricing.price_revisions") == []


def test_g6_navs_are_backfilled_with_their_five_decimals(core: Core, refresher: Refresher) -> None:
    planned = refresher.plan_backfill(NAV, Window(date(2024, 1, 1), date(2024, 3, 31)))
    assert refresher.backfill(planned) == Progress(4, 0, 0)
    navs = core.history("118632", NAV, date(2024, 1, 1), date(2024, 3, 31))
    assert len(navs) > 55
    assert {bar.currency for bar in navs} == {"INR"}
    assert {bar.close.as_tuple().exponent for bar in navs} == {-5}
    assert all(bar.open is None and bar.volume is None for bar in navs)


def test_a6_the_providers_own_log_never_shows_more_than_the_free_plan(core: Core, clock: Clock) -> None:
    """Three workers at once, minute after minute; the sandbox's clock moves with the database's."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, *symbols(40))
    passed = timedelta()
    with (
        running_sandbox(clock=lambda: datetime.now(UTC) + passed, credits_per_minute=8) as sandbox,
        ExitStack() as stack,
        ThreadPoolExecutor(3) as pool,
    ):
        workers = [
            stack.enter_context(refreshing(core.engine, sandbox.url, worker=f"w{number}")) for number in range(3)
        ]

        def units() -> int:
            return sum(call["units"] for call in sandbox.calls(TWELVEDATA))

        def work(worker: Refresher) -> None:
            """Until the minute's units are spent, and three rounds longer: by then it would have taken more."""
            spent = 0

            def is_done() -> bool:
                nonlocal spent
                spent += units() >= 8 * minute
                return spent > 3

            work_until(worker, is_done)

        for minute in (1, 2):
            list(pool.map(work, workers))
            assert units() == 8 * minute
            passed += timedelta(seconds=61)
            clock.advance(61)
        assert not any(call["refused"] for call in sandbox.calls())
        assert most_units(sandbox.calls(TWELVEDATA), 60, "epoch") == 8
    assert Counter(core.statuses().values()) == {"completed": 16, "pending": 24}
