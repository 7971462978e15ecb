"""What a user sees of a pipeline that runs: unasked refreshes, new data types, backfills.

Files of this folder run in the order of their names, on one stack: what breaks it is in `test_violence`.
"""

from __future__ import annotations

import csv
import gzip
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from typing import Any

import httpx

from pricing_pipeline.demand import viewers
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = GROUP

DAILY = ["price_history", "equity_daily"]
FIRST, LAST = date(2000, 3, 1), date(2013, 2, 28)
SYMBOLS = ("AAPL", "GOOG", "IBM", "META", "MSFT")

NODES = """
{ assetNodes { assetKey { path } isPartitioned
    internalFreshnessPolicy { ... on TimeWindowFreshnessPolicy { warnWindowSeconds failWindowSeconds } } } }
"""
LAUNCH_BACKFILL = """
mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}
"""
ROW_COUNTS = """
query Rows($asset: AssetKeyInput!, $months: [String!]) {
  assetNodeOrError(assetKey: $asset) {
    ... on AssetNode {
      assetMaterializations(partitions: $months) {
        partition metadataEntries { label ... on IntMetadataEntry { intValue } }
      }
    }
  }
}
"""


def test_g3_g5_a_run_that_the_sensor_launched_stores_the_first_price(stack: Stack) -> None:
    """G3, G5: the story leads from a price over its call to the run, and to the sensor that asked for it."""
    call = stack.wait_for_price("equity_quote", "AAPL")
    assert call.outcome == "ok"
    (run,) = stack.runs(runIds=[call.run_id])
    assert run["tags"]["dagster/sensor_name"] == "refresh_watched"

    stack.wait_until_all_fresh()
    told = {price["data_type"]: price for price in stack.json("price", "show", "AAPL")["prices"]}
    assert set(told) == {"equity_daily", "equity_quote"}
    # A quote is due each minute, and this may be the moment; a day's price is fresh for a day.
    assert told["equity_daily"]["fresh"]
    assert told["equity_quote"]["age_seconds"] < 300
    assert {price["currency"] for price in told.values()} == {"USD"}


def test_f1_what_is_due_together_is_asked_in_one_call(stack: Stack) -> None:
    """F1: the provider's own log shows the five watched shares in one call, each time."""
    quotes = [call for call in stack.calls() if call["path"] == "/quote" and "AAPL" in call["symbols"]]
    assert quotes
    assert sorted(quotes[0]["symbols"]) == list(SYMBOLS)
    assert quotes[0]["units"] == len(SYMBOLS)


def test_status_tells_what_was_promised(stack: Stack) -> None:
    stack.wait_until_all_fresh()
    status = stack.json("status")
    assert status["first_price_seconds"] > 0
    assert status["watched"] == 13
    assert {"fresh", "due", "late"} <= set(status)
    assert set(status["queue"]) == {"pending", "processing", "scheduled", "dead"}
    assert {"twelvedata", "mfapi"} <= set(status["quota"])
    assert set(status["urls"]) == {"dagster", "api", "sandbox"}
    assert all(process["restarts"] == 0 for process in status["processes"].values())
    assert status["home"] == str(stack.home)
    assert status["error"] is None


def test_b21_b23_e8_all_is_well_and_a_message_is_kept_in_the_samples_mailbox(stack: Stack) -> None:
    """Nothing is named and no alert raised while all works; `notify test` goes through the process that sends."""
    stack.ensure_up()
    stack.wait_until_all_fresh()
    health = f"{stack.state()['urls']['api']}/healthz"
    stack.wait_until("health", lambda: httpx.get(health, trust_env=False).json() == {"status": "ok", "late": []})
    assert "Does not work" not in stack.log.read_text()
    assert stack.json("alert", "list", "--past")["alerts"] == []
    assert stack.cli("notify", "test", "mailbox").stdout == "The message to mailbox was sent.\n"
    (message,) = stack.json("notify", "log")["messages"]
    assert message["title"] == "Test of the pricing pipeline"


def test_a_second_start_on_the_same_home_is_refused(stack: Stack) -> None:
    """The pipeline that runs there does not notice."""
    before = stack.state()
    assert f"already running in {stack.home} (pid {before['pid']})" in stack.cli("up").error
    assert stack.state() == before


def test_b6_a_hundred_viewers_cause_one_refresh(stack: Stack) -> None:
    """B6: one task whose priority is the number of viewers, and one symbol in the provider's log."""
    before = stack.last_call()
    names = [f"viewer {number}" for number in range(100)]
    with stack.core.engine.begin() as connection:  # one transaction, so that no task is claimed halfway
        for viewer in names:
            viewers.heartbeat(connection, viewer, [("fx_rate", "USD/JPY")])
    stack.wait_for_price("fx_rate", "USD/JPY")
    (task,) = stack.core.tasks("USD/JPY")
    assert (task.status, task.priority, task.attempt) == ("completed", 100, 1)
    assert sum("USD/JPY" in call["symbols"] for call in stack.calls(before)) == 1
    for viewer in names:
        stack.leave("fx_rate", "USD/JPY", user=viewer)


def test_b1_data_types_added_while_it_runs_appear_and_are_refreshed(stack: Stack) -> None:
    """B1: by the command and by plain SQL; assets and freshness policy follow, without a restart."""
    before = stack.state()["processes"]
    stack.json("type", "add", "rate_by_command", "--fetcher=quote", "--ttl=7", "--asset-class=fx")
    stack.core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('quote_by_sql', 'quote', 1)"
    )
    viewer = subprocess.Popen(
        [
            *(sys.executable, "-m", "pricing_pipeline.cli"),
            *("subscription", "watch", "EUR/USD", "--type", "rate_by_command", "--user", "ann"),
        ],
        env=stack.environment(),
        stdout=subprocess.DEVNULL,
    )
    try:
        stack.watch("quote_by_sql", "IBM")
        for data_type, symbol in (("rate_by_command", "EUR/USD"), ("quote_by_sql", "IBM")):
            assert stack.wait_for_price(data_type, symbol).outcome == "ok"

        def appeared() -> dict[str, Any] | None:
            nodes = {"/".join(node["assetKey"]["path"]): node for node in stack.graphql(NODES)["assetNodes"]}
            kinds = ("price_history", "latest_price", "freshness")
            wanted = {f"{kind}/{name}" for kind in kinds for name in added}
            return nodes if wanted <= nodes.keys() else None

        added = {"rate_by_command": (420, 840), "quote_by_sql": (60, 120)}
        nodes = stack.wait_until("the new types' assets", appeared)
    finally:
        viewer.send_signal(signal.SIGINT)
        assert viewer.wait(PATIENCE) == 0
        stack.leave("quote_by_sql", "IBM")
    for name, (warn, fail) in added.items():
        policy = nodes[f"freshness/{name}"]["internalFreshnessPolicy"]
        assert policy == {"warnWindowSeconds": warn, "failWindowSeconds": fail}
        assert nodes[f"price_history/{name}"]["isPartitioned"]
    after = stack.state()["processes"]
    assert {name: one["pid"] for name, one in after.items()} == {name: one["pid"] for name, one in before.items()}


def test_g6_a_backfill_brings_the_sources_own_bars_and_a_second_brings_nothing(stack: Stack) -> None:
    """G6: thirteen years of five shares, launched as the UI does, equal to the source to the last digit."""
    before = stack.last_call()
    run_id = _backfill(stack, FIRST, LAST)
    source = _source()
    assert _bars(stack) == source
    # One page holds 5,000 days, so a call for each share is enough.
    assert sum(call["units"] for call in _history_calls(stack, before, FIRST, LAST)) <= 1.2 * len(SYMBOLS)
    (run,) = stack.runs(runIds=[run_id])
    assert "pricing/drain" not in run["tags"]
    months = Counter(f"{day:%Y-%m-01}" for bars in source.values() for day in bars)
    assert _row_counts(stack, sorted(months)) == months

    stored, before = _stored(stack), stack.last_call()
    _backfill(stack, FIRST, LAST)
    assert _history_calls(stack, before, FIRST, LAST) == []
    assert _stored(stack) == stored
    assert stack.core.one("SELECT count(*) FROM pricing.price_revisions WHERE data_type = 'equity_daily'") == 0
    assert _row_counts(stack, sorted(months)) == months


def test_g6_the_command_backfills_some_symbols_and_days_through_dagster(stack: Stack) -> None:
    before = stack.last_call()
    window = ("--from", "2013-03-01", "--to", "2013-06-27")
    told = stack.json("backfill", "start", "AAPL", "IBM", "--type", "equity_daily", *window)
    assert (told["tasks"], told["open"], told["failed"], told["calls"]) == (2, 0, 0, 1)
    assert told["run_url"].endswith(f"/runs/{told['run_id']}")
    (run,) = stack.runs(runIds=[told["run_id"]])
    tags = run["tags"]
    assert tags["dagster/asset_partition_range_start"] == "2013-03-01"
    assert tags["dagster/asset_partition_range_end"] == "2013-06-01"
    assert "pricing/drain" not in tags
    found = stack.core.rows(
        "SELECT run_id, symbols, window_start::text, window_end::text FROM pricing.backfills"
        " ORDER BY requested_at DESC LIMIT 1"
    )
    assert tuple(found[0]) == (told["run_id"], ["AAPL", "IBM"], *window[1::2])
    calls = _history_calls(stack, before, date(2013, 3, 1), date(2013, 6, 27))
    assert sorted(symbol for call in calls for symbol in call["symbols"]) == ["AAPL", "IBM"]
    rows = stack.json("price", "history", "IBM", "--type", "equity_daily", *window)["rows"]
    assert (rows[0]["date"], rows[-1]["date"]) == ("2013-03-01", "2013-06-27")
    (bar,) = _source(*[date(2013, 3, 1)] * 2)["IBM"].values()
    told_bar = [Decimal(rows[0][name]) for name in ("open", "high", "low", "close")]
    assert (*told_bar, int(rows[0]["volume"])) == bar
    assert told["rows_stored"] == 2 * len(rows)


Bars = dict[str, dict[date, tuple[Decimal, Decimal, Decimal, Decimal, int]]]


def _source(first: date = FIRST, last: date = LAST) -> Bars:
    """Bars of the CSV text that the package `bokeh_sampledata` ships, read without our own code."""
    packed = files("bokeh_sampledata").joinpath("_data/stocks.csv.gz").read_bytes()
    bars: Bars = {symbol: {} for symbol in SYMBOLS}
    for row in csv.DictReader(gzip.decompress(packed).decode().splitlines()):
        day = date.fromisoformat(row["Date"])
        if first <= day <= last:
            opened, high, low, close = (Decimal(row[name]) for name in ("Open", "High", "Low", "Close"))
            bars[row["Ticker"].replace("FB", "META")][day] = (opened, high, low, close, int(row["Volume"]))
    return bars


def _bars(stack: Stack) -> Bars:
    bars: Bars = defaultdict(dict)
    for symbol in SYMBOLS:
        for bar in stack.core.history(symbol, "equity_daily", FIRST, LAST):
            assert bar.open is not None
            assert bar.high is not None
            assert bar.low is not None
            assert bar.volume is not None
            values = (bar.open, bar.high, bar.low, bar.close, int(bar.volume))
            bars[symbol][bar.observed_at.date()] = values
    return dict(bars)


def _history_calls(stack: Stack, since: int, first: date, last: date) -> list[dict[str, Any]]:
    """Calls for bars of days between two: those of the newest bars, which drains make meanwhile, are none of them."""
    spans = [(call, call["days"]) for call in stack.calls(since) if call["path"] == "/time_series" and call["days"]]
    return [call for call, days in spans if str(first) <= days[0] and days[1] <= str(last)]


def _stored(stack: Stack) -> tuple[Any, ...]:
    """Row count of the asked-for days, and the last call, time and transaction that wrote one of them."""
    (row,) = stack.core.rows(
        "SELECT count(*), max(call_id), max(fetched_at), max(xmin::text::bigint) FROM pricing.price_history"
        " WHERE data_type = 'equity_daily' AND observed_at BETWEEN :first AND :last",
        first=FIRST,
        last=LAST + timedelta(days=1),
    )
    return tuple(row)


def _backfill(stack: Stack, first: date, last: date) -> str:
    """Launch a backfill of the months between two days as the UI does; returns its run when it has succeeded."""
    months = [f"{year}-{month:02}-01" for year in range(first.year, last.year + 1) for month in range(1, 13)]
    months = [month for month in months if f"{first:%Y-%m-01}" <= month <= str(last)]
    params = {"assetSelection": [{"path": DAILY}], "partitionNames": months}
    launched = stack.graphql(LAUNCH_BACKFILL, params=params)["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    mine = {"key": "dagster/backfill", "value": launched["backfillId"]}

    def ended() -> list[dict[str, Any]] | None:
        runs = stack.runs(tags=[mine])
        return runs if runs and all(run["status"] in ("SUCCESS", "FAILURE", "CANCELED") for run in runs) else None

    (run,) = stack.wait_until("the backfill's end", ended)  # one run for all months
    assert run["status"] == "SUCCESS", stack.logs()
    run_id: str = run["id"]
    return run_id


def _row_counts(stack: Stack, months: list[str]) -> dict[str, int]:
    """What the newest materialization of each partition says about its rows."""
    asked = stack.graphql(ROW_COUNTS, asset={"path": DAILY}, months=months)
    found: dict[str, int] = {}
    for event in asked["assetNodeOrError"]["assetMaterializations"]:
        for entry in event["metadataEntries"]:
            if entry["label"] == "dagster/partition_row_count":
                found.setdefault(event["partition"], entry["intValue"])
    return found
