"""Backfills as the UI launches them, run to their end against the sandbox."""

from __future__ import annotations

import csv
import gzip
import io
import logging
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import PartitionBackfill
from dagster._daemon.auto_run_reexecution.auto_run_reexecution import should_retry
from dagster._daemon.backfill import execute_backfill_iteration

from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import (
    RANGE_END,
    RANGE_START,
    Stage,
    a_daemon,
    a_run,
    an_instance,
    move,
    said,
)
from pricing_pipeline_tests.orchestration.test_backfill_runs import asked, row_counts, rows_by_month, warnings, why
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

SYMBOLS = ("AAPL", "META", "GOOG", "IBM", "MSFT")
FIRST, LAST = date(2000, 3, 1), date(2013, 2, 28)


def source() -> dict[str, list[tuple[Any, ...]]]:
    """Day, open, high, low, close and volume of each symbol, read from the package's own text."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    bars: dict[str, list[tuple[Any, ...]]] = {symbol: [] for symbol in SYMBOLS}
    for row in csv.DictReader(io.StringIO(gzip.decompress(packed).decode())):
        if FIRST <= (day := date.fromisoformat(row["Date"])) <= LAST:
            prices = [Decimal(row[name]) for name in ("Open", "High", "Low", "Close", "Volume")]
            bars[row["Ticker"].replace("FB", "META")].append((day, *prices))
    return {symbol: sorted(rows) for symbol, rows in bars.items()}


def stored(core: Core, symbol: str, first: date = FIRST, last: date = LAST) -> list[tuple[Any, ...]]:
    return [
        (bar.observed_at.date(), bar.open, bar.high, bar.low, bar.close, bar.volume)
        for bar in core.history(symbol, DAILY, first, last)
    ]


def filled(stage: Stage, data_type: str = DAILY) -> set[str]:
    """The months that Dagster paints as filled."""
    return stage.instance.get_materialized_partitions(dg.AssetKey(["price_history", data_type]))


def test_g6_years_arrive_to_the_last_digit_and_only_once(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    """Thirteen, or where somebody waits, three."""
    first = FIRST if is_thorough() else date(2010, 3, 1)
    assert stage.backfill(DAILY, first=str(first), last="2013-02-01").success
    expected = source()
    for symbol in SYMBOLS:
        assert stored(core, symbol) == [bar for bar in expected[symbol] if bar[0] >= first]
    assert sum(call["units"] for call in sandbox.calls()) == len(SYMBOLS)

    # How far it is, is observed at its begin and its end, and if it is slow between them.
    seen = stage.observations("price_history", DAILY)
    begun, *_, ended = (said(event) for event in seen if event.partition is None)
    assert (begun["tasks"], begun["tasks_done"], begun["percent_done"]) == (5, 0, 0.0)
    assert (ended["tasks_done"], ended["tasks_failed"], ended["percent_done"]) == (5, 0, 100.0)
    assert ended["backfill"] == str(core.one("SELECT backfill_id FROM pricing.backfills"))

    # Every month has one event, with a count of its rows.
    counts = row_counts(stage)
    months = 12 * (2013 - first.year)
    assert (len(counts), min(map(str, counts)), max(map(str, counts))) == (months, str(first), "2013-02-01")
    assert len(stage.materializations("price_history", DAILY)) == months
    assert counts == rows_by_month(core)
    assert filled(stage) == set(counts)
    # The newest event has the count of the whole asset, which Dagster shows on its page.
    *others, last = stage.materializations("price_history", DAILY)
    assert said(last)["dagster/row_count"] == sum(counts.values())
    assert not [event for event in others if "dagster/row_count" in event.metadata]

    sandbox.reset()
    assert stage.backfill(DAILY, first="2010-03-01", last="2010-06-01").success
    assert stage.backfill(DAILY, first="2012-03-01", last="2013-02-01").success
    assert sandbox.calls() == []
    covered = f"daterange('{first}', '2013-03-01')"
    assert core.one(f"SELECT bool_and(covered @> {covered}) FROM pricing.history_coverage")
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 0
    assert core.one("SELECT count(DISTINCT call_id) FROM pricing.price_history") == len(SYMBOLS)
    assert row_counts(stage) == counts

    # Old months say nothing about the latest price.
    assert stage.materializations("latest_price", DAILY) == []
    assert stage.observations("latest_price", DAILY) == []
    assert core.one("SELECT count(*) FROM pricing.latest_prices") == 0
    audit(core)


def test_g6_the_launchpads_configuration_leaves_some_symbols_and_days(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    core.enqueue(DAILY, "MSFT", priority=-2, days=(date(2010, 3, 1), date(2010, 3, 3)))
    config = {"symbols": ["IBM", "AAPL "], "from_day": "2010-03-15", "to_day": "2010-04-10"}
    run = stage.backfill(DAILY, first="2010-03-01", last="2010-04-01", config=config)
    assert run.success
    assert asked(core, sandbox) == [
        ("AAPL", "2010-03-15", "2010-04-10"),
        ("IBM", "2010-03-15", "2010-04-10"),
        ("MSFT", "2010-03-01", "2010-03-03"),  # queued by somebody else; a backfill drains the common queue
    ]
    expected = source()
    for symbol in ("AAPL", "IBM"):
        assert stored(core, symbol) == [
            bar for bar in expected[symbol] if date(2010, 3, 15) <= bar[0] <= date(2010, 4, 10)
        ]
    # Its months show all rows they hold, not only those of these days or symbols; and they are not filled.
    assert filled(stage) == set()
    march, april = stage.observations("price_history", DAILY)[-2:]
    assert [event.partition for event in (march, april)] == ["2010-03-01", "2010-04-01"]
    assert said(march)["not_filled"].startswith("5 of 5 instruments lack days of this month")
    assert row_counts(stage) == rows_by_month(core) == {"2010-03-01": 2 * 13 + 3, "2010-04-01": 2 * 6}

    # Without it, the same months fetch the rest and nothing again.
    sandbox.reset()
    assert stage.backfill(DAILY, first="2010-03-01", last="2010-04-01").success
    assert filled(stage) == {"2010-03-01", "2010-04-01"}
    assert ("AAPL", "2010-03-01", "2010-03-14") in asked(core, sandbox)
    assert ("MSFT", "2010-03-04", "2010-04-30") in asked(core, sandbox)
    assert not [span for span in asked(core, sandbox) if "2010-03-15" <= span[1] <= "2010-04-10"]
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 0


def test_g6_symbols_are_spelled_as_their_instruments_and_meant_for_the_types_that_have_them(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.heartbeat("ann", (FX, "EUR/USD"))
    core.rows("TRUNCATE pricing.api_call_queue")
    month = f"{datetime.now(UTC):%Y-%m}-01"
    config = {"symbols": ["aapl", "AAPL", "eur/usd"]}
    assert stage.backfill(QUOTE, FX, NAV, first=month, last=month, config=config).success
    # What is watched may be queued by itself, too.
    assert {symbol for call in sandbox.calls() for symbol in call["symbols"]} == {"AAPL", "EUR/USD"}
    sandbox.reset()
    config = {"symbols": ["ibm"]}
    assert stage.backfill(DAILY, NAV, first="2010-03-01", last="2010-03-01", config=config).success
    assert asked(core, sandbox) == [("IBM", "2010-03-01", "2010-03-31")]
    assert core.one("SELECT array_agg(symbols) FROM pricing.backfills") == [["IBM"]]


def test_g6_types_whose_months_begin_differently_are_one_backfill_of_the_ui(
    stage: Stage, core: Core, tmp_path: Path
) -> None:
    """The UI offers all their months then. Each first month gets a run, which holds all types that begin with it."""
    names = (DAILY, FX, NAV)
    core.rows("UPDATE pricing.data_type_registry SET fetcher = 'daily_bars' WHERE data_type = :t", t=FX)
    for name, first in zip(names, ("2026-01-01", "2026-01-15", "2026-04-01"), strict=True):
        core.rows("UPDATE pricing.data_type_registry SET history_from = :day WHERE data_type = :t", t=name, day=first)
    with an_instance(tmp_path) as instance, a_daemon(instance) as daemon:
        graph = daemon.create_request_context().asset_graph
        instance.add_backfill(
            PartitionBackfill.from_asset_partitions(
                backfill_id="all",
                asset_graph=graph,
                partition_names=None,
                asset_selection=[dg.AssetKey(["price_history", name]) for name in names],
                backfill_timestamp=time.time(),
                tags={},
                dynamic_partitions_store=instance,
                all_partitions=True,
                title=None,
                description=None,
                run_config=None,
            )
        )
        assert [*filter(None, execute_backfill_iteration(daemon, logging.getLogger("backfill")))] == []
        asked = {
            (*sorted(key.path[1] for key in run.asset_selection or ()),): (
                run.tags[RANGE_START],
                run.tags[RANGE_END],
            )
            for run in instance.get_runs()
        }
        month = datetime.now(UTC).strftime("%Y-%m-01")
        assert asked == {(DAILY, FX): ("2026-01-01", month), (NAV,): ("2026-04-01", month)}


def test_g6_one_run_fills_types_whose_months_begin_differently(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """Each in its own months: what lies before them is no partition of a type."""
    core.rows("UPDATE pricing.data_type_registry SET history_from = '2010-04-01' WHERE data_type = 'equity_daily'")
    stage.reload()
    assert stage.backfill(DAILY, NAV, first="2010-03-01", last="2010-04-01").success
    told = {name: filled(stage, name) for name in (DAILY, NAV)}
    assert told == {DAILY: {"2010-04-01"}, NAV: {"2010-03-01", "2010-04-01"}}


def test_g6_b8_a_type_without_history_says_so_and_stops_no_other(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    run = stage.backfill(QUOTE, DAILY, FX, first="2010-03-01", last="2010-03-01")
    assert run.success
    assert warnings(stage, run) == [
        f"{name} keeps no history that could be backfilled, so nothing of it is asked for. "
        "A quote is the current price. Days of the past are in a data type of daily bars; if `pricing-pipeline type "
        f"list` has none: pricing-pipeline type add {asset_class}_daily --asset-class {asset_class} "
        "--fetcher daily_bars --ttl 1440 --history-from 2000-01-01"
        for name, asset_class in ((QUOTE, "equity"), (FX, "fx"))
    ]
    assert row_counts(stage) == rows_by_month(core) == {"2010-03-01": 4 * 23}
    assert core.statuses() == dict.fromkeys(SYMBOLS, "completed")


def test_g3_g6_the_current_month_means_what_is_watched_or_held_now(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    """However fresh it is; but not what is paused."""
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"))
    core.hold("bob", (QUOTE, "GOOG"))
    core.pause("MSFT")
    month = datetime.now(UTC).strftime("%Y-%m-01")
    for _ in range(2):
        sandbox.reset()
        run = stage.backfill(QUOTE, first=month, last=month)
        assert run.success
        assert [call["symbols"] for call in sandbox.calls()] == [["AAPL", "GOOG"]]
        assert warnings(stage, run) == []
    assert filled(stage, QUOTE) == {month}
    # Some of them, and none.
    sandbox.reset()
    assert stage.backfill(QUOTE, first=month, last=month, config={"symbols": ["AAPL"]}).success
    assert [call["symbols"] for call in sandbox.calls()] == [["AAPL"]]
    run = stage.backfill(FX, first=month, last=month)
    assert warnings(stage, run) == ["fx_rate: no watched or held pair can be fetched now"]
    audit(core)


def test_g6_a_watched_symbol_that_cannot_be_fetched_fails_the_run_in_words(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NOPE"))
    month = datetime.now(UTC).strftime("%Y-%m-01")
    run = stage.backfill(QUOTE, first=month, last=month, raise_on_error=False)
    assert why(run) == (
        "1 of 2 watched or held pairs of equity_quote could not be fetched:"
        " `pricing-pipeline task list --status failed` shows why."
    )
    assert core.latest("AAPL") is not None
    # It backs off now, and is not a fault of the next run.
    assert stage.backfill(QUOTE, first=month, last=month).success


def test_g6_materialize_all_is_green_with_the_sample(stage: Stage, core: Core, sandbox: RunningSandbox) -> None:
    """All types and all months, as the button offers them; where somebody waits, those of three months."""
    months = stage.spec("price_history", DAILY).partitions_def
    assert isinstance(months, dg.MonthlyPartitionsDefinition)
    first, *between, last = months.get_partition_keys()
    if not is_thorough():
        first = between[-2]
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"), (NAV, "118632"), (DAILY, "IBM"))
    assert stage.backfill(DAILY, QUOTE, FX, NAV, first=first, last=last).success
    assert core.one("SELECT count(*) FROM pricing.latest_prices") == 4
    stored = dict(core.rows("SELECT data_type, count(*) FROM pricing.price_history GROUP BY 1"))
    assert stored[DAILY] > (15_000 if is_thorough() else 200)
    assert stored[NAV] > (1_000 if is_thorough() else 40)


def test_g6_b8_what_nobody_confirmed_fails_one_backfill_and_is_left_out_of_the_next(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    core.heartbeat("ann", (DAILY, "NOPE"))
    core.unsubscribe("ann", (DAILY, "NOPE"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    first = stage.backfill(DAILY, first="2010-03-01", last="2010-03-01", raise_on_error=False)
    assert "1 of 6 tasks of equity_daily failed; the rest is stored." in why(first)
    assert sorted({symbol for symbol, *_ in asked(core, sandbox)}) == sorted((*SYMBOLS, "NOPE"))
    before = len(sandbox.calls())
    assert stage.backfill(DAILY, first="2010-04-01", last="2010-04-01").success
    again = core.rows(
        "SELECT unnest(symbols) AS symbol FROM pricing.collector_call_log WHERE window_start >= '2010-04-01'"
    )
    assert {row.symbol for row in again} == set(SYMBOLS)
    assert len(sandbox.calls()) > before
    assert core.one("SELECT left_out FROM pricing.backfills ORDER BY requested_at DESC LIMIT 1") == {
        "unknown_symbol": 1
    }


def test_g7_what_fails_in_words_is_not_tried_again_where_runs_are(stage: Stage, core: Core, tmp_path: Path) -> None:
    """Dagster asks this of a run's tags as it fails. It would go on asking for a day that there is not."""
    overrides = {"run_retries": {"enabled": True, "max_retries": 2}, "telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        stage.instance = instance
        done = stage.backfill(
            DAILY,
            first="2013-02-01",
            last="2013-02-01",
            config={"from_day": "2013-02-30"},
            raise_on_error=False,
        )
        run = instance.get_run_by_id(done.run_id)
        assert run is not None
        assert run.status is dg.DagsterRunStatus.FAILURE
        assert not should_retry(run, instance)
        # What went wrong otherwise, such as a worker that was killed, is its instance's business.
        killed = a_run(instance, dg.DagsterRunStatus.STARTED)
        instance.report_run_failed(killed)
        assert should_retry(move(instance, killed, dg.DagsterRunStatus.FAILURE), instance)
