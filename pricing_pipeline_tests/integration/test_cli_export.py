"""What commands write for other programs, in the zone of the reader, and how tables fit."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pandas
import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core


def two_prices(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh(price="0.00000001")


def test_a9_prices_are_written_with_every_digit(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    two_prices(core)
    path = tmp_path / "prices.csv"
    said = cli("price", "show", "AAPL", "IBM", "--type", QUOTE, "--csv", str(path))
    assert (said.stdout, said.stderr) == ("", f"hint: {path} has 2 rows.\n")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["symbol"], row["price"], row["currency"]) for row in rows] == [
        ("AAPL", "0.00000001", "USD"),
        ("IBM", "0.00000001", "USD"),
    ]
    assert rows[0]["observed_at"].endswith("Z")
    told = cli("price", "history", "AAPL", "--type", QUOTE, "--csv", "-")
    (bar,) = csv.DictReader(io.StringIO(told.stdout))
    assert (bar["close"], bar["open"], bar["adjustment"]) == ("0.00000001", "", "raw")


def test_a9_a_parquet_file_has_exact_decimals_or_the_extra_is_named(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    two_prices(core)
    path = tmp_path / "prices.parquet"
    said = cli("price", "show", "AAPL", "IBM", "--parquet", str(path))
    if find_spec("pyarrow") is None:
        assert "pip install -e '.[parquet]'" in said.error
        assert not path.exists()
    else:
        frame = pandas.read_parquet(path)
        assert frame["price"].tolist() == [Decimal("0.00000001")] * 2
        assert str(frame["observed_at"].dtype) == "datetime64[us, UTC]"
    assert "Parquet is no text" in cli("price", "show", "AAPL", "--parquet", "-").error


@pytest.mark.parametrize("more", [["--json"], ["--plot"]])
def test_one_command_has_one_result(cli: CommandLine, core: Core, more: list[str]) -> None:
    said = cli("price", "history", "AAPL", "--type", QUOTE, "--csv", "-", *more)
    assert said.exit_code == 2
    assert "two ways to tell one result" in said.error


def test_several_symbols_are_shown_each_with_its_prices(cli: CommandLine, core: Core) -> None:
    two_prices(core)
    told = cli("price", "show", "ibm", "AAPL", "--json").json
    assert told["symbols"] == ["IBM", "AAPL"]
    assert [one["symbol"] for one in told["prices"]] == ["IBM", "AAPL"]
    table = cli("price", "show", "IBM", "AAPL", "META")
    assert [line.split()[0] for line in table.stdout.splitlines()[2:]] == ["IBM", "AAPL"]
    assert "META has no price yet" in table.stderr
    assert "no equity instrument is called EUR/USD" in cli("price", "show", "EUR/USD", "--type", QUOTE).error


def test_a_type_that_is_named_is_all_that_is_asked_for(cli: CommandLine, core: Core) -> None:
    cli("price", "show", "AAPL", "--type", QUOTE)
    assert [(task.data_type, task.symbol) for task in core.tasks()] == [(QUOTE, "AAPL")]


def test_times_are_in_the_zone_of_the_reader(cli: CommandLine, core: Core) -> None:
    two_prices(core)
    utc = cli("price", "show", "AAPL", "--type", QUOTE, "--wide").stdout
    berlin = cli("price", "show", "AAPL", "--type", QUOTE, "--wide", "--zone", "Asia/Kolkata").stdout
    assert "observed (UTC)" in utc
    assert "observed (Asia/Kolkata)" in berlin
    assert utc.splitlines()[2] != berlin.splitlines()[2]
    as_utc = cli("price", "show", "AAPL", "--json", "--zone", "Asia/Kolkata").json["prices"][0]["observed_at"]
    assert as_utc.endswith("Z")
    for zone in ("Berlin", "../etc", ""):
        said = cli("price", "show", "AAPL", "--zone", zone)
        assert said.exit_code == 2
        assert "is no time zone. Write it like Europe/Berlin" in said.error


LISTINGS = [
    *("subscription list", "holding list", "instrument list", "type list", "task list", "provider list"),
    *("route list", "limit list", "key list", "backfill list", "quarantine list", "status"),
    *("price show AAPL IBM", "price history AAPL --type equity_quote", "price gaps AAPL --from 2013-01-02"),
]


def test_tables_fit_80_columns_or_say_what_they_leave_out(cli: CommandLine, core: Core) -> None:
    two_prices(core)
    core.hold("somebody with a long name", (QUOTE, "AAPL"))
    core.enqueue(QUOTE, "META")
    core.rows("SELECT pricing.plan_backfill('equity_daily', '2013-01-01', '2013-02-28', NULL, NULL)")
    for words in LISTINGS:
        narrow = cli(*words.split())
        for rule in (line for line in narrow.stdout.splitlines() if set(line) == {"─"}):
            assert len(rule) <= 80, narrow.stdout
        wide = cli(*words.split(), "--wide")
        assert "not shown" not in wide.stderr, words
        if "not shown for want of room" in narrow.stderr:
            assert len(wide.stdout) > len(narrow.stdout), words
