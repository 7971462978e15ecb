"""What commands write for other programs, in the zone of the reader, and how tables fit."""

from __future__ import annotations

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core


def two_prices(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh(price="0.00000001")


def test_a9_prices_are_written_with_every_digit(cli: CommandLine, core: Core) -> None:
    two_prices(core)
    (price,) = cli("price", "show", "AAPL", "--type", QUOTE, "--json").json["prices"]
    (bar,) = cli("price", "history", "AAPL", "--type", QUOTE, "--json").json["rows"]
    assert price["price"] == bar["close"] == "0.00000001"
    assert "0.00000001" in cli("price", "show", "AAPL").stdout


def test_several_symbols_are_shown_each_with_its_prices(cli: CommandLine, core: Core) -> None:
    two_prices(core)
    told = cli("price", "show", "ibm", "AAPL", "--json").json
    assert [one["symbol"] for one in told["prices"]] == ["AAPL", "IBM"]
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
        assert "is not a time zone. Write it like Europe/Berlin" in said.error


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
        if "no room for" in narrow.stderr:
            wide = cli(*words.split(), "--wide")
            assert "not shown" not in wide.stderr, words
            assert len(wide.stdout) > len(narrow.stdout), words
