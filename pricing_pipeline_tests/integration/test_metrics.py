"""`/metrics`: a scrape is read by prometheus-client's own parser, and compared with plain queries."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from pricing_pipeline.api import metrics as api_metrics
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import alerts, figures, operation_queue
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import fail_task, open_breaker, use_quota, warn
from pricing_pipeline_tests.support.api_server import Caller, RunningApi, join_gathering_threads, running_api
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.working import go_on, start

pytestmark = pytest.mark.usefixtures("still")

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(api: RunningApi, caller: Caller | None = None) -> Samples:
    """All samples of a scrape, by name and labels; each comes once."""
    caller = caller or api.caller(Scope.READ)
    answer = api.client.get("/metrics", headers={"Authorization": f"Bearer {caller.token}"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


@pytest.fixture
def busy(core: Core, clock: Clock) -> Core:
    """A pipeline about which every figure has something to say."""
    start(core)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"), (FX, "EUR/USD"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    go_on(core)
    core.rows("UPDATE pricing.drains SET requested_at = started_at - interval '7 seconds'")
    core.hold("ann", (QUOTE, "IBM"))
    core.enqueue(QUOTE, "TSLA", priority=-1)
    core.refresh()
    clock.advance(120)
    core.call("SELECT pricing.count_task_times()")
    core.enqueue(QUOTE, "LATER")
    clock.advance(30)
    fail_task(core, clock)
    use_quota(0.5)(core, clock)
    warn(core, clock)
    open_breaker(core, clock)
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "chat", {"recipient": "bob", "title": "t", "body": "b"})
    alerts.look(core.engine)
    return core


WANTED_BY = "CASE WHEN priority > 0 THEN 'viewers' WHEN priority = 0 THEN 'holdings' ELSE 'schedules' END"

PLAIN: dict[str, tuple[tuple[str, ...], str]] = {
    "pricing_subscriptions": (
        ("data_type",),
        "SELECT r.data_type, count(a.user_id) FROM pricing.data_type_registry r"
        " LEFT JOIN pricing.active_subscriptions a USING (data_type) WHERE r.is_active GROUP BY 1",
    ),
    "pricing_tasks": (
        ("provider", "status"),
        "SELECT coalesce(provider, 'none'), CASE WHEN status IN ('failed', 'cancelled') THEN 'dead' ELSE status END,"
        " count(*) FROM pricing.api_call_queue WHERE status <> 'completed' AND resolved_at IS NULL GROUP BY 1, 2",
    ),
    "pricing_task_seconds_count": (
        ("data_type", "wanted_by"),
        f"SELECT data_type, {WANTED_BY}, count(*) FROM pricing.api_call_queue WHERE status = 'completed' GROUP BY 1, 2",
    ),
    "pricing_task_seconds_sum": (
        ("data_type", "wanted_by"),
        f"SELECT data_type, {WANTED_BY},"
        " sum(extract(epoch FROM finished_at - enqueued_at)) FROM pricing.api_call_queue WHERE status = 'completed'"
        " GROUP BY 1, 2",
    ),
    "pricing_ticks_total": (
        ("part",),
        "SELECT part, times FROM pricing.signs_of_life WHERE part NOT IN ('start', 'look_for_alerts', 'send_messages')",
    ),
    "pricing_run_start_seconds": ((), "SELECT 7"),
    "pricing_drains": ((), "SELECT 0"),
    "pricing_provider_quota_bytes": (
        ("provider",),
        "SELECT provider, quota_bytes FROM pricing.data_collectors WHERE is_active",
    ),
    "pricing_provider_quota_used_bytes": (
        ("provider",),
        "SELECT provider, pricing.bytes_used(provider, pricing.clock()) FROM pricing.data_collectors WHERE is_active",
    ),
    "pricing_provider_breaker": (
        ("provider", "state"),
        "SELECT provider, state, (breaker = state)::integer FROM pricing.provider_state"
        " JOIN pricing.data_collectors USING (provider) CROSS JOIN unnest('{closed,open,half_open}'::text[]) AS state"
        " WHERE is_active",
    ),
    "pricing_provider_calls": (
        ("provider", "outcome"),
        "SELECT provider, outcome, count(*) FROM pricing.collector_call_log WHERE finished_at IS NOT NULL"
        " GROUP BY 1, 2",
    ),
    "pricing_estimate_bytes": (
        ("provider", "data_type", "per"),
        "SELECT provider, data_type, per, bytes FROM pricing.size_estimates",
    ),
    "pricing_estimate_measurements_total": (
        ("provider", "data_type", "per"),
        "SELECT provider, data_type, per, measurements FROM pricing.size_estimates",
    ),
    "pricing_estimate_overruns_total": (
        ("provider", "data_type", "per"),
        "SELECT provider, data_type, per, overruns FROM pricing.size_estimates",
    ),
    "pricing_warnings": (
        ("source",),
        "SELECT source, count(*) FROM pricing.warnings GROUP BY 1",
    ),
    "pricing_operations": (
        ("operation_type", "status"),
        "SELECT operation_type, status, count(*) FROM pricing.async_operations GROUP BY 1, 2",
    ),
    "pricing_alerts": (
        ("rule", "severity"),
        "SELECT rule, severity, count(*) FROM pricing.alerts WHERE raised_at IS NOT NULL AND resolved_at IS NULL"
        " GROUP BY 1, 2",
    ),
    "pricing_late": (("part",), "SELECT part, is_late::integer FROM pricing.health()"),
}
"""What a figure must be, said by a query that looks at the tables in another way."""


def test_b22_figures_are_those_of_the_tables(busy: Core, api: RunningApi) -> None:
    samples = scrape(api)
    for name, (labels, sql) in PLAIN.items():
        expected = {frozenset(zip(labels, map(str, row[:-1]), strict=True)): float(row[-1]) for row in busy.rows(sql)}
        found = {key[1]: number for key, number in samples.items() if key[0] == name}
        assert found == pytest.approx(expected), name
        assert expected, name


def test_b22_how_pairs_are_served_is_what_status_says(busy: Core, api: RunningApi) -> None:
    samples = scrape(api)
    for data_type, watched in ((QUOTE, 2), (FX, 1)):
        states = ("fresh", "due", "late", "refused", "paused")
        counts = [value(samples, "pricing_watched_pairs", data_type=data_type, state=state) for state in states]
        assert sum(count or 0 for count in counts) == watched


def test_b22_ages_are_those_of_the_oldest(core: Core, api: RunningApi, clock: Clock) -> None:
    start(core)
    core.enqueue(QUOTE, "FIRST")
    go_on(core, but=["queue"])
    clock.advance(25)
    core.enqueue(QUOTE, "SECOND")
    clock.advance(5)
    samples = scrape(api)
    oldest = value(samples, "pricing_oldest_task_seconds", provider=TWELVEDATA, status="pending")
    assert oldest == pytest.approx(30, abs=0.1)
    assert value(samples, "pricing_tasks", provider=TWELVEDATA, status="pending") == 2
    for part in ("refresh_watched", "report_prices", "enqueue_due"):
        assert value(samples, "pricing_tick_age_seconds", part=part) == pytest.approx(30, abs=0.1)


def test_b22_the_histogram_only_grows_and_counts_each_task_once(core: Core, clock: Clock, api: RunningApi) -> None:
    bounds = core.one("SELECT pricing.task_time_bounds()")
    before = [0] * len(bounds)
    for waited in (0, 4, 61, 100_000):
        core.enqueue(QUOTE, f"S{waited}")
        clock.advance(waited)
        core.refresh()
        clock.advance(61)
        assert core.call("SELECT pricing.count_task_times()") == 1
        assert core.call("SELECT pricing.count_task_times()") == 0
        buckets = core.one("SELECT buckets FROM pricing.task_times")
        grown = [new - old for new, old in zip(buckets, before, strict=True)]
        assert grown == [int(waited <= bound) for bound in bounds]
        before = buckets
    samples = scrape(api)
    labels = {"data_type": QUOTE, "wanted_by": "viewers"}
    shown = [value(samples, "pricing_task_seconds_bucket", le=str(float(b)), **labels) for b in bounds]
    assert shown == before
    assert all(low <= high for low, high in pairwise(shown))  # type: ignore[operator]
    assert value(samples, "pricing_task_seconds_bucket", le="+Inf", **labels) == 4


def test_b22_each_task_is_counted_once_whenever_the_duty_runs(core: Core, clock: Clock) -> None:
    """Over more than a week, at whose turn finished tasks go to another leaf."""
    done = 0
    for number in range(15):
        core.enqueue(QUOTE, f"S{number:03}")
        core.refresh()
        done += 1
        clock.advance((13, 59, 60, 61, 250_000)[number % 5])
        if number % 3:
            core.call("SELECT pricing.count_task_times()")
    clock.advance(61)
    core.call("SELECT pricing.count_task_times()")
    assert core.one("SELECT times FROM pricing.task_times") == done
    assert core.one("SELECT count(DISTINCT ring) FROM pricing.api_call_queue WHERE status = 'completed'") > 1


def test_b22_no_label_is_a_symbol_or_a_user_and_all_are_bounded(busy: Core, api: RunningApi) -> None:
    """However many watch whatever, and whatever paths are asked for."""
    caller = api.caller(Scope.READ, Scope.WATCH)
    before = {key for key in scrape(api, caller) if not key[0].startswith("pricing_api_")}
    symbols = [f"Q{number}" for number in range(40)]
    for user in range(3):
        busy.heartbeat(f"user-{user}", *((QUOTE, symbol) for symbol in symbols))
    for number in range(5):
        api.client.get(f"/v1/no-such-{number}")
        api.client.request(f"ODD{number}", "/v1/prices")
        api.client.request(f"ODD{number}", "/livez")
        caller.ask(f"ODD{number}", "prices")
        caller.ask("GET", f"prices?symbols=Q{number}")
    busy.rows(
        "INSERT INTO pricing.warnings (at, source, subject, message)"
        " SELECT pricing.clock(), 'source ' || n, 'x', 'odd' FROM generate_series(1, 100) n"
    )
    with running_api(busy.engine, busy.owner) as other:
        after = scrape(other, caller)
    names = {"pricing_warnings"}
    added = {key for key in after if not key[0].startswith("pricing_api_")} - before
    assert len([key for key in after if key[0] in names]) <= 31
    assert {key[0] for key in added} <= names | {
        "pricing_watched_pairs",
        "pricing_tasks",
        "pricing_oldest_task_seconds",
    }
    told = str(set(after))
    for secret in ("AAPL", "Q1", "ann", "user-"):
        assert f"'{secret}" not in told
    times = [dict(key[1]) for key in scrape(api, caller) if key[0] == "pricing_api_request_seconds_count"]
    assert {labels["route"] for labels in times} <= {"none", "/v1/prices", "/metrics", "/livez"}
    assert {labels["method"] for labels in times} <= {"GET", "any"}


def test_b22_requests_are_timed_by_route_and_kind_of_status(api: RunningApi) -> None:
    reader = api.caller(Scope.READ)
    for _ in range(3):
        reader.get("prices", symbols="AAPL")
    reader.ask("GET", "prices")
    api.client.get("/v1/prices?symbols=AAPL")
    api.client.get("/healthz")
    api.client.get("/nothing")
    samples = scrape(api, reader)
    name = "pricing_api_request_seconds_count"
    assert value(samples, name, method="GET", route="/v1/prices", status="2xx") == 3
    assert value(samples, name, method="GET", route="/v1/prices", status="4xx") == 1
    assert value(samples, name, method="any", route="none", status="4xx") == 2
    started = value(samples, "pricing_api_start_time_seconds")
    assert started is not None
    assert time.time() - 600 < started <= time.time()


def test_b22_two_processes_and_a_restart_tell_the_same_of_the_pipeline(busy: Core, api: RunningApi) -> None:
    def of_pipeline(samples: Samples) -> Samples:
        own = ("pricing_api_", "pricing_metrics_seconds", "pricing_metrics_age_seconds", "pricing_lock_")
        return {key: number for key, number in samples.items() if not key[0].startswith(own)}

    caller = api.caller(Scope.READ)
    first = scrape(api, caller)
    with running_api(busy.engine, busy.owner) as other:
        assert of_pipeline(scrape(other, caller)) == of_pipeline(first)


def test_b22_a_figure_that_fails_stops_no_other(busy: Core, api: RunningApi) -> None:
    busy.rows("DROP FUNCTION pricing.recent_warnings(interval) CASCADE")
    samples = scrape(api)
    assert value(samples, "pricing_metrics_missing", source="warnings") == 1
    assert value(samples, "pricing_metrics_missing", source="tasks") == 0
    assert not [key for key in samples if key[0] == "pricing_warnings"]
    assert value(samples, "pricing_provider_breaker", provider=TWELVEDATA, state="open") == 1


def reading(number: int, *failed: str) -> figures.Figures:
    """A reading in which so many drains are at work."""
    rows = {"runs": [{"start_seconds": None, "drains": number}], "alerts": []}
    found = {name: of for name, of in rows.items() if name not in failed}
    return figures.Figures(found, failed, time.monotonic(), 0.0)


def test_b22_figures_that_cannot_be_read_stay_as_they_were_for_five_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    readings: Iterator[tuple[Any, ...]] = iter([(1,), (2, "alerts"), *[(3, "runs", "alerts")] * 3])

    async def look() -> None:
        nonlocal now
        known = api_metrics.KnownFigures(lambda: reading(*next(readings)))
        found = await known.get()
        assert (found.ages, list(found.failed)) == ({"runs": 0, "alerts": 0}, [])
        now = 106.0
        found = await known.get()
        assert found.rows["runs"][0]["drains"] == 2
        assert (found.ages, list(found.failed)) == ({"runs": 0, "alerts": 6}, ["alerts"])
        now = 400.0
        found = await known.get()
        assert found.ages == {"runs": 294, "alerts": 300}
        now = 406.0
        assert (await known.get()).ages == {"runs": 300}, "what is older is told no more"
        now = 412.0
        with pytest.raises(TimeoutError):
            await known.get()

    asyncio.run(look())


def test_b22_a_slow_database_blanks_no_graph(api: RunningApi, core: Core) -> None:
    caller, go_on = api.caller(Scope.READ), threading.Event()
    slow = threading.Event()

    def read() -> figures.Figures:
        if slow.is_set():
            assert go_on.wait(PATIENCE)
        return figures.measure(core.engine)

    api.app.state.figures = api_metrics.KnownFigures(read, patience=0.1, seconds=0)
    header = {"Authorization": f"Bearer {caller.token}"}
    slow.set()
    assert api.client.get("/metrics", headers=header).status_code == 503, "nothing is known yet"
    go_on.set()
    wait_until(lambda: api.client.get("/metrics", headers=header).status_code != 503)
    join_gathering_threads()
    go_on.clear()
    first, second = scrape(api, caller), scrape(api, caller)
    assert value(first, "pricing_drains") == value(second, "pricing_drains") == 0
    ages = [value(samples, "pricing_metrics_age_seconds", source="runs") for samples in (first, second)]
    go_on.set()
    join_gathering_threads()
    assert 0 < (ages[0] or 0) < (ages[1] or 0)


def test_b22_whoever_asks_often_has_the_text_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else is answered while it is written."""
    monkeypatch.setattr(api_metrics, "_SPELLED_SECONDS", 60.0)
    known = api_metrics.KnownFigures(lambda: reading(1), seconds=60)
    written: list[api_metrics.Known] = []

    def spell(measured: api_metrics.Known) -> bytes:
        written.append(measured)
        return b"text"

    async def look() -> None:
        assert [await known.spelled(spell) for _ in range(3)] == [b"text"] * 3

    asyncio.run(look())
    assert len(written) == 1


def test_b22_a_database_that_is_gone_fails_the_scrape() -> None:
    readings = iter([reading(1)])

    def read() -> figures.Figures:
        for found in readings:
            return found
        raise DatabaseError("nobody answers")

    async def look() -> None:
        known = api_metrics.KnownFigures(read, seconds=0)
        await known.get()
        with pytest.raises(DatabaseError):
            await known.get()

    asyncio.run(look())


def test_b22_ages_of_locks_show_who_holds_others_up(core: Core) -> None:
    with core.engine.begin() as holder, core.engine.connect() as waiter:
        holder.execute(text("SELECT pg_advisory_xact_lock(1)"))
        holder.execute(text("SELECT FROM pricing.turns FOR UPDATE"))
        waiter.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE:.0f}s'"))
        pid = waiter.execute(text("SELECT pg_backend_pid()")).scalar_one()
        thread = threading.Thread(target=lambda: waiter.execute(text("SELECT pg_advisory_xact_lock(1)")))
        thread.start()
        waits = f"SELECT count(*) FROM pg_locks WHERE pid = {pid} AND waitstart IS NOT NULL"
        wait_until(lambda: core.one(waits))
        found = {row["kind"]: row for row in figures.measure(core.engine).rows["locks"]}
        holder.rollback()
        thread.join()
    assert found["waiting"]["sessions"] == 1
    assert found["advisory"]["sessions"] == 1
    assert found["rows"]["sessions"] == 1
    assert found["transaction"]["sessions"] == 2
    assert all(0 < found[kind]["oldest_seconds"] < 60 for kind in found)


def test_b22_every_name_is_plain_and_said_once() -> None:
    names = [metric.name for source in figures.SOURCES for metric in source.metrics]
    assert len(names) == len(set(names))
    assert all(name.startswith("pricing_") for name in names)
    for source in figures.SOURCES:
        for metric in source.metrics:
            assert metric.name.endswith("_total") == (metric.kind == figures.COUNTER), metric
    assert api_metrics.MISSING
