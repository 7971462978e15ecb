"""`subscription list`, `holding list`, `instrument show|add`, `backfill show`, `db url|psql`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core


def test_who_watches_what_is_listed(cli: CommandLine, core: Core) -> None:
    assert "no such subscriptions" in cli("subscription", "list").stdout
    core.heartbeat("ann", (QUOTE, "AAPL"), (DAILY, "IBM"))
    core.heartbeat("bob", (QUOTE, "AAPL"))

    def pairs(*words: str) -> list[tuple[str, str, str]]:
        told = cli("subscription", "list", *words, "--json").json["subscriptions"]
        return [(one["user_id"], one["data_type"], one["symbol"]) for one in told]

    assert pairs() == [("ann", DAILY, "IBM"), ("ann", QUOTE, "AAPL"), ("bob", QUOTE, "AAPL")]
    assert pairs("aapl") == [("ann", QUOTE, "AAPL"), ("bob", QUOTE, "AAPL")]
    assert pairs("--user", "ann", "--type", DAILY) == [("ann", DAILY, "IBM")]
    assert pairs("--limit", "1") == [("ann", DAILY, "IBM")]
    assert "There are more" in cli("subscription", "list", "--limit", "1").stderr
    assert "no data type is called 'nope'" in cli("subscription", "list", "--type", "nope").error


def test_who_holds_what_is_listed_closed_holdings_on_request(cli: CommandLine, core: Core) -> None:
    assert "no such holdings" in cli("holding", "list").stdout
    core.hold("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.end_holding("ann", (QUOTE, "IBM"))

    def symbols(*words: str) -> list[str]:
        return [one["symbol"] for one in cli("holding", "list", *words, "--json").json["holdings"]]

    assert symbols() == ["AAPL"]
    assert symbols("--closed") == ["AAPL", "IBM"]
    assert symbols("--user", "bob") == []
    assert "IBM" not in cli("holding", "list").stdout
    assert re.search(r"AAPL +none yet +2026", cli("holding", "list").stdout) is not None
    core.finish(core.claim_one(), price="123.45")
    assert re.search(r"AAPL +123.45 +USD +\d+ s +2026", cli("holding", "list").stdout) is not None
    assert "closed" in cli("holding", "list", "--closed").stdout


def test_a_user_is_the_login_where_none_is_named(cli: CommandLine, core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "carol")
    assert cli("holding", "open", "AAPL", "--type", QUOTE, "--json").json["user"] == "carol"
    assert core.one("SELECT user_id FROM pricing.holdings") == "carol"


def test_an_instrument_is_shown_with_what_its_types_have(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    said = cli("instrument", "show", "aapl").stdout
    assert "AAPL (equity)" in said
    assert "1 viewer, 0 holders" in said
    assert f"{DAILY} (none)" in said
    assert re.search(rf"{QUOTE} \(\d+ s old\)", said)
    (told,) = cli("instrument", "show", "AAPL", "--json").json["instruments"]
    assert (told["asset_class"], told["viewers"]) == ("equity", 1)
    assert "no instrument is called NOPE." in cli("instrument", "show", "NOPE").error


def test_instruments_are_added_by_symbol(cli: CommandLine, core: Core) -> None:
    said = cli("instrument", "add", "tsla", "AAPL", "--asset-class", "equity", "--json").json["instruments"]
    assert [(one["symbol"], one["new"]) for one in said] == [("TSLA", True), ("AAPL", False)]
    assert core.one("SELECT verified_at FROM pricing.instruments WHERE symbol = 'TSLA'") is None
    assert "NVDA is known now" in cli("instrument", "add", "NVDA", "--asset-class", "equity", "--name", "Nvidia").stdout
    assert core.one("SELECT name FROM pricing.instruments WHERE symbol = 'NVDA'") == "Nvidia"
    again = cli("instrument", "add", "NVDA US", "tsla", "--asset-class", "equity").stdout
    assert again == "NVDA, TSLA were known already, and stay as before.\n"
    assert core.statuses() == {}, "nothing is fetched by that alone"


def test_instruments_are_added_from_a_table_all_or_none(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("symbol,asset_class,name,currency,listed_on\nTSLA,,Tesla,USD,2010-06-29\nGBP/CHF,fx,,,\n")
    added = cli("instrument", "add", "--csv", str(table), "--asset-class", "equity", "--json").json["instruments"]
    assert {(one["asset_class"], one["symbol"]) for one in added} == {("equity", "TSLA"), ("fx", "GBP/CHF")}
    row = core.rows("SELECT name, currency, listed_on FROM pricing.instruments WHERE symbol = 'TSLA'")[0]
    assert (row.name, row.currency, str(row.listed_on)) == ("Tesla", "USD", "2010-06-29")
    table.write_text("symbol,asset_class\nNVDA,equity\nEURUSD,equity\n")
    assert "Did you mean EUR/USD of the data type fx_rate?" in cli("instrument", "add", "--csv", str(table)).error
    assert core.rows("SELECT FROM pricing.instruments WHERE symbol = 'NVDA'") == []
    assert cli("instrument", "add", "--csv", "-", stdin="symbol,asset_class\nNVDA,equity\n").exit_code == 0
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol = 'NVDA'") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_table_is_read_in_its_encoding_or_refused_in_words(
    cli: CommandLine, core: Core, tmp_path: Path, encoding: str
) -> None:
    table = tmp_path / "new.csv"
    table.write_bytes("symbol,asset_class,name\nTSLA,equity,Müller\n".encode(encoding))
    said = cli("instrument", "add", "--csv", str(table))
    names = [row.name for row in core.rows("SELECT name FROM pricing.instruments WHERE symbol = 'TSLA'")]
    if encoding == "latin-1":
        assert (said.exit_code, names) == (2, [])
        assert f"line 2 of {table} is not UTF-8. Save the file as CSV in UTF-8" in said.error
    else:
        assert (said.exit_code, names) == (0, ["Müller"])


def test_a_table_that_makes_no_sense_is_refused_in_words(cli: CommandLine, core: Core) -> None:
    for table, code, sentence in (
        ("ticker\nA\n", 2, "the column 'ticker', which is unknown"),
        ("asset_class\nequity\n", 2, "no column 'symbol'"),
        ("symbol\nTSLA\n", 2, "line 2 of - has no asset_class"),
        ("symbol,asset_class\n,equity\n", 2, "line 2 of - has no symbol"),
        ("symbol,asset_class\nTSLA,equity,more\n", 2, "line 2 of - has more values than there are columns"),
        ("symbol,asset_class,listed_on\nTSLA,equity,soon\n", 2, "line 2: listed_on 'soon' is not a day"),
        ("symbol,asset_class,scale\nTSLA,equity,-1\n", 2, "scale '-1' is not a number of decimals"),
        ("symbol,asset_class,scale\nTSLA,equity,13\n", 1, "a price has 0 to 12 decimals"),
        ("symbol,asset_class\n", 2, "- names no instrument"),
        (
            "symbol,asset_class\nTSLA,stone\n",
            1,
            "no data type is for instruments of class 'stone'; there are: equity",
        ),
        ("symbol,asset_class,calendar\nTSLA,equity,MOON\n", 1, "there is no trading calendar of this name"),
        (
            "symbol,asset_class,currency\nTSLA,equity,dollars\n",
            1,
            "a currency has three to five capital letters",
        ),
    ):
        said = cli("instrument", "add", "--csv", "-", stdin=table)
        assert said.exit_code == code
        assert sentence in said.error
        assert core.rows("SELECT FROM pricing.instruments WHERE symbol = 'TSLA'") == []


def test_a_backfill_is_shown_with_what_it_waits_for(cli: CommandLine, core: Core) -> None:
    backfill = core.one(
        "SELECT CAST(backfill_id AS text) FROM"
        " pricing.plan_backfill(:type, '2013-01-01', '2013-02-28', ARRAY['AAPL', 'IBM'], NULL)",
        type=DAILY,
    )
    told = cli("backfill", "show", backfill, "--json").json
    assert (told["state"], told["open"], told["calls"]) == ("running", told["tasks"], 0)
    assert "2013-01-01 to 2013-02-28" in cli("backfill", "show", backfill).stdout
    assert "there is no backfill" in cli("backfill", "show", "00000000-0000-0000-0000-000000000000").error


def test_the_address_has_no_password(cli: CommandLine, database_url: str) -> None:
    secret = make_url(database_url).password
    for role in ("owner", "worker"):
        told = make_url(cli("db", "url", "--role", role, "--json").json["url"])
        assert (told.database, told.password) == (make_url(database_url).database, None)
        assert str(secret) not in cli("db", "url", "--role", role).stdout
    assert "not known here" in cli("db", "url", "--role", "administrator").error


def test_libpq_reads_the_address_of_a_home_whose_folder_has_a_space(cli: CommandLine) -> None:
    told = cli("db", "url", "--role", "worker", database_url="postgresql://ann@/pricing?host=/tmp/new%20comer").stdout
    assert conninfo_to_dict(told.strip()) == {"user": "ann", "dbname": "pricing", "host": "/tmp/new comer"}
