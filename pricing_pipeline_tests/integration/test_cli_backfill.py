"""`backfill start` in this process, against the sandbox. Through Dagster: test_cli_dagster.py."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from pricing_pipeline.demand import backfills
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")

WINTER = ["--from", "2013-01-10", "--to", "2013-02"]


def test_g6_missing_history_is_fetched_once(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    def backfill() -> dict[str, object]:
        said = cli("backfill", "start", "AAPL", "IBM", "--type", DAILY, *WINTER, "--json", sandbox_url=sandbox.url)
        assert said.exit_code == 0
        content: dict[str, object] = said.json
        return content

    first = backfill()
    assert first.pop("backfill_id") is not None
    wire_bytes = first.pop("wire_bytes")
    assert wire_bytes == core.one("SELECT sum(bytes) FROM pricing.api_data_usage")
    assert first == {
        "data_type": DAILY,
        "from": "2013-01-10",
        "to": "2013-02-28",
        "symbols": ["AAPL", "IBM"],
        "tasks": 2,
        "open": 0,
        "failed": 0,
        "cancelled": 0,
        "left_out": {},
        "run_id": None,
        "run_url": None,
        "run_status": None,
        "reason": None,
        "calls": 1,
        "units": 2,
        "rows_stored": 68,
        "states": {"stored": 2},
        "failures": [],
    }
    assert len(sandbox.calls("twelvedata")) == 1
    second = backfill()
    assert {name: second[name] for name in ("tasks", "calls", "rows_stored", "wire_bytes")} == {
        "tasks": 0,
        "calls": 0,
        "rows_stored": 0,
        "wire_bytes": 0,
    }
    assert len(sandbox.calls("twelvedata")) == 1


def test_g6_what_is_stored_is_what_the_source_says(cli: CommandLine, sandbox: RunningSandbox) -> None:
    said = cli("backfill", "start", "IBM", "--type", DAILY, *WINTER, sandbox_url=sandbox.url)
    assert said.exit_code == 0
    assert "equity_daily of IBM, 2013-01-10 to 2013-02-28: 1 of 1 tasks done, 34 values stored" in said.stdout
    rows = cli("price", "history", "IBM", "--type", DAILY, *WINTER, "--json").json["rows"]
    stored = {row["date"]: [Decimal(row[name]) for name in ("open", "high", "low", "close", "volume")] for row in rows}
    assert len(stored) == 34
    for day, *numbers in (
        ("2013-01-10", "192.65", "192.96", "191.28", "192.88", "3608100"),
        ("2013-02-28", "202.18", "203.123", "200.79", "200.83", "4689200"),
    ):
        assert stored[day] == [Decimal(number) for number in numbers]


def test_b8_what_fails_is_named_and_the_rest_is_stored(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'NOPE1')")
    said = cli("backfill", "start", "AAPL", "NOPE1", "--type", DAILY, *WINTER, "--json", sandbox_url=sandbox.url)
    assert said.exit_code == 1
    assert {name: said.json[name] for name in ("tasks", "failed", "rows_stored")} == {
        "tasks": 2,
        "failed": 1,
        "rows_stored": 34,
    }
    (failure,) = said.json["failures"]
    assert failure["symbol"] == "NOPE1"
    assert failure["kind"] == "unknown_symbol"
    assert failure["message"]
    reason, sentence = said.stderr.splitlines()
    assert reason == f"  NOPE1: {failure['message']}"
    assert sentence.startswith("error: 1 of 2 tasks failed; the rest is stored.")


def test_f1_the_cost_of_a_backfill_counts_calls_that_failed_and_no_others(core: Core, clock: Clock) -> None:
    january = (date(2013, 1, 2), date(2013, 1, 31))
    plan = "SELECT backfill_id FROM pricing.plan_backfill(:type, :first, :last, CAST(:symbols AS text[]))"
    backfill_id = core.one(plan, type=DAILY, first=january[0], last=january[1], symbols=["AAPL"])
    first = core.claim_one()
    core.fail(first, FailureKind.PROVIDER_DOWN)
    core.settle(first, 100, "failed")
    core.enqueue(DAILY, "IBM", days=january)
    core.enqueue(QUOTE, "AAPL")
    core.refresh()
    clock.advance(10)
    assert core.promote() == 1
    second = core.claim_one()
    core.store(second, observation("AAPL", "1.00", midnight(january[0])))
    core.complete(second)
    core.settle(second, 2000)
    with core.engine.connect() as connection:
        cost = backfills.cost(connection, backfill_id)
    assert cost == backfills.Cost(calls=2, units=2, wire_bytes=2100, rows_stored=1)


def test_the_last_day_is_today_unless_told(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    today: date = core.one("SELECT (pricing.clock() AT TIME ZONE 'UTC')::date")
    said = cli(
        "backfill",
        "start",
        "AAPL",
        "--type",
        DAILY,
        "--from",
        f"{today:%Y-%m}",
        "--json",
        sandbox_url=sandbox.url,
    )
    assert (said.json["from"], said.json["to"]) == (f"{today:%Y-%m}-01", today.isoformat())


def test_days_without_history_are_cut_off(cli: CommandLine, sandbox: RunningSandbox) -> None:
    said = cli(
        *("backfill", "start", "AAPL", "--type", DAILY, "--from", "1990-01", "--to", "2000-01-31", "--json"),
        sandbox_url=sandbox.url,
    )
    assert (said.json["from"], said.json["to"]) == ("2000-01-01", "2000-01-31")


def test_g6_b5_a_symbol_in_small_letters_is_its_instrument_also_when_nothing_is_missing(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    for _ in range(2):
        said = cli("backfill", "start", "aapl", "--type", DAILY, *WINTER, sandbox_url=sandbox.url)
        assert said.exit_code == 0
        assert f"{DAILY} of AAPL" in said.stdout
    assert "everything from 2013-01-10 to 2013-02-28 is stored already" in said.stdout


def test_what_makes_no_sense_is_refused_before_anything_starts(cli: CommandLine, core: Core) -> None:
    for arguments, code, words in (
        (["--type", "nope", *WINTER], 1, "no active data type 'nope'"),
        (["--type", QUOTE, *WINTER], 1, "type add equity_daily --asset-class equity --fetcher daily_bars"),
        (["--type", "fx_rate", *WINTER], 1, "A quote is the current price"),
        (["--type", DAILY, "--from", "2013-02-02", "--to", "2013-02-01"], 1, "ends before it begins"),
        (
            ["--type", DAILY, "--from", "1990-01", "--to", "1990-12"],
            1,
            "no history of equity_daily before 2000-01-01",
        ),
        (
            ["--type", DAILY, "--from", "2990-01", "--to", "2990-12"],
            1,
            "no history of equity_daily before 2000-01-01",
        ),
        (["--type", DAILY, "--from", "2990-01"], 1, "no history of equity_daily"),
        (["--type", DAILY, *WINTER, "AAPL", "XYZ", "ZYX"], 1, "called XYZ, ZYX"),
        (["--type", DAILY, *WINTER, "EUR/USD"], 1, "no equity instrument is called EUR/USD"),
        (["--type", DAILY, "--from", "spring"], 2, "--from 'spring' is not a day"),
        (["--type", DAILY], 2, "'--from'"),
    ):
        said = cli("backfill", "start", *arguments, "--json")
        assert said.exit_code == code
        assert words in said.error
        assert core.tasks() == []
        assert core.rows("SELECT FROM pricing.backfills") == []


def test_a_sandbox_that_does_not_run_is_said_at_once(cli: CommandLine, core: Core) -> None:
    error = cli("backfill", "start", "--type", DAILY, *WINTER, sandbox_url="http://127.0.0.1:1").error
    assert "the sandbox at http://127.0.0.1:1 does not answer" in error
    assert core.tasks() == []


def test_a_missing_key_is_said_at_once(cli: CommandLine, core: Core) -> None:
    error = cli("backfill", "start", "--type", DAILY, *WINTER, sandbox="false").error
    assert "twelvedata needs an API key, and none is stored or set" in error
    assert "key set twelvedata" in error
    assert core.tasks() == []


def test_a_webserver_that_does_not_answer_is_done_without(cli: CommandLine, sandbox: RunningSandbox) -> None:
    """The sandbox is then the one that the supervisor of this home has started."""
    with cli.running(urls={"dagster": "http://127.0.0.1:1", "sandbox": sandbox.url}):
        said = cli("backfill", "start", "AAPL", "--type", DAILY, *WINTER, "--json")
    assert said.exit_code == 0
    assert said.json["rows_stored"] == 34
    assert said.stderr == (
        "warning: Dagster at http://127.0.0.1:1 does not answer; the backfill runs in this process.\n"
    )
