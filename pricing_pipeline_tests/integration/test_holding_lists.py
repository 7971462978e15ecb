"""F13: what trackers export becomes holdings and lists, all of it or nothing, and the rest is told with candidates."""

from __future__ import annotations

import json
import re
import shlex
from decimal import Decimal
from pathlib import Path

import pytest

from pricing_client import PricingClient
from pricing_pipeline.demand import lists
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

FILES = Path(__file__).parents[1] / "data/holdings"
COIN = "crypto_quote"
SYMBOL = ("--column", "symbol=Ticker")


@pytest.fixture(autouse=True)
def _coins(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        f" VALUES ('{COIN}', 'crypto', 'quote', 1)"
    )


def held(core: Core, user: str = "ann") -> set[str]:
    rows = core.rows("SELECT symbol FROM pricing.holdings WHERE status = 'active' AND user_id = :user", user=user)
    return {row.symbol for row in rows}


def on_lists(core: Core) -> set[tuple[str, str]]:
    return {tuple(row) for row in core.rows("SELECT list, symbol FROM pricing.listed_pairs WHERE user_id = 'ann'")}


@pytest.mark.usefixtures("still")
def test_f13_files_of_trackers_become_holdings_and_an_isin_of_one_is_known_in_the_next(
    api: RunningApi, core: Core
) -> None:
    operator = api.caller(Scope.WATCH, Scope.OPERATE, user="ann")
    assert operator.token is not None
    expected = {
        "freetrade.csv": ({"VOD:XLON", "AAPL", "VUSD:XLON", "VWRL:XLON"}, set(), {"NVIDIA (US67066G1040)"}),
        "trade_republic.csv": ({"BTC/EUR"}, {"AAPL", "VWRL:XLON"}, {"NVIDIA (US67066G1040)"}),
        "parqet.csv": (set(), {"AAPL", "BTC/EUR"}, {"Deutsche Bank (DE0005140008)"}),
        "revolut.csv": ({"TSLA", "KO", "MSFT"}, set(), {"GPS"}),
        "xtb.csv": ({"SAP:XETR"}, {"AAPL", "VOD:XLON"}, {"Microsoft (MSFT)"}),
        "ghostfolio.json": (
            {"JSE:XJSE", "BTC/USD"},
            {"MSFT", "VOD:XLON"},
            {"Core MSCI World (IE00B4L5Y983)", "Apartment"},
        ),
    }
    amounts = list[dict[str | None, Decimal | None]]()
    with PricingClient(api.url, operator.token, user="ann", patience=0) as client:
        for name, (new, known, refused) in expected.items():
            decisions = client.import_holdings((FILES / name).read_bytes(), dry_run=False).decisions
            told = {
                outcome: {one.symbol or one.name for one in decisions if one.outcome == outcome}
                for outcome in ("new", "held", "refused")
            }
            assert told == {"new": new, "held": known, "refused": refused}, name
            amounts.append({one.symbol: one.quantity for one in decisions if one.symbol})
    assert amounts[1] == {"AAPL": Decimal("4.5"), "VWRL:XLON": Decimal("12.25"), "BTC/EUR": Decimal("0.0042")}
    assert held(core) == set.union(*(new for new, _, _ in expected.values()))
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol LIKE 'INTC%'") == 0


def test_f13_an_instrument_gets_the_figi_and_the_isin_that_it_lacks_if_their_check_digits_are_right(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    rows = [
        ("AAPL", "US0378331005", "BBG000B9XRY4"),
        ("MSFT", "", "BBG000BPH459"),
        ("IBM", "US4592001014", "BBG000BLNNH7"),
    ]
    text = "".join(
        f'<OpenPosition symbol="{symbol}" isin="{isin}" figi="{figi}" cusip="037833100" assetCategory="STK"'
        ' position="1" currency="USD" listingExchange="NASDAQ"/>'
        for symbol, isin, figi in rows
    )
    path = tmp_path / "flex.xml"
    path.write_text(f"<FlexQueryResponse>{text}</FlexQueryResponse>")
    assert cli("instrument", "add", "AAPL", "--asset-class", "equity", "--figi", "BBG000B9Y5X2").exit_code == 0
    assert cli("holding", "import", str(path), "--user", "ann", "--yes").exit_code == 0
    found = core.rows(
        "SELECT symbol, isin, figi FROM pricing.instruments WHERE symbol IN ('AAPL', 'IBM', 'MSFT') ORDER BY 1"
    )
    assert [tuple(row) for row in found] == [
        ("AAPL", "US0378331005", "BBG000B9Y5X2"),
        ("IBM", "US4592001014", None),
        ("MSFT", None, "BBG000BPH459"),
    ]


def test_f13_a_file_becomes_a_list_which_a_second_import_completes(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    path.write_text("Ticker\nAAPL\nVOD.L\nGBXYZ!\n")
    command = ("holding", "import", str(path), "--user", "ann", *SYMBOL)
    assert "nothing has changed yet" in cli(*command, "--list", "mine").stderr
    assert (held(core), on_lists(core)) == (set(), set())
    path.write_text("Ticker;Shares\nAAPL;0,5\nVOD.L;1,25\nVOD:LSE;1.000,5\nGBXYZ!;1\n")
    shown = cli(*command, "--column", "quantity=Shares", "--list", "mine", "--json").json["decisions"]
    assert [one["quantity"] for one in shown] == ["0.5", "1001.75", "1"], "two spellings are one holding"
    assert "1001.75  VOD:XLON" in cli(*command, "--column", "quantity=Shares").stdout
    said = cli(*command, "--list", "mine", "--yes")
    assert "ann holds 2 pairs more." in said.stdout
    assert "On the list mine: 2 pairs of this file." in said.stdout
    assert on_lists(core) == {("mine", "AAPL"), ("mine", "VOD:XLON")}
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = 'ann'") == 2
    path.write_text("Ticker\nAAPL\nVOD.L\nKO\n")
    cli(*command, "--list", "other", "--type", DAILY, "--yes")
    cli(*command, "--list", "mine", "--yes")
    assert on_lists(core) >= {("mine", "KO"), ("other", "KO")}
    assert "On the list third: 3 pairs of this file." in cli(*command, "--list", "third", "--yes").stdout
    assert {symbol for name, symbol in on_lists(core) if name == "third"} == held(core)
    assert cli("list", "show", "other", "--user", "ann", "--json").json["lists"][0]["pairs"] == [
        {"data_type": DAILY, "symbol": symbol} for symbol in ("AAPL", "KO", "VOD:XLON")
    ]


@pytest.mark.parametrize("list_name", ["mine", "No name!"])
def test_f13_a_failure_in_the_middle_leaves_nothing(
    cli: CommandLine, core: Core, api: RunningApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, list_name: str
) -> None:
    """The holdings are made when the list turns out to be too long, or to have a bad name."""
    path = tmp_path / "many.csv"
    monkeypatch.setattr(lists, "MOST_PAIRS", 5)
    count = 6 if list_name == "mine" else 3
    path.write_text("Ticker,ISIN\nAAPL,US0378331005\n" + "".join(f"T{number},\n" for number in range(1, count)))
    tables = ("holdings", "listed_pairs", "instruments", "active_subscriptions", "api_call_queue")

    def rows() -> list[int]:
        return [core.one(f"SELECT count(*) FROM pricing.{table}") for table in tables]

    before = rows()
    columns = (*SYMBOL, "--column", "isin=ISIN")
    said = cli("holding", "import", str(path), "--user", "ann", *columns, "--list", list_name, "--yes")
    assert said.exit_code == 1
    assert ("at most 5" if list_name == "mine" else "a list's name") in said.stderr
    caller = api.caller(Scope.WATCH, Scope.OPERATE, user="ann")
    params = {"column": ["symbol=Ticker", "isin=ISIN"], "list": list_name, "dry_run": "false"}
    answer = caller.ask("POST", "holdings/import", content=path.read_bytes(), params=params)
    assert 400 <= answer.status_code < 500
    assert rows() == before
    done = caller.ask(
        "POST",
        "holdings/import",
        content=b"Ticker\nAAPL\n",
        params=params | {"list": "mine", "column": "symbol=Ticker"},
    )
    assert done.json()["new"] == 1
    assert on_lists(core) == {("mine", "AAPL")}


def test_f13_what_has_no_isin_is_listed_with_candidates_and_never_held_by_its_name_alone(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, tmp_path: Path
) -> None:
    own = {"dataSource": "MANUAL", "symbol": "GF_1", "name": "Vodafone", "currency": "GBP"}
    activity = {"type": "BUY", "quantity": 3, "date": "2026-01-05T00:00:00.000Z"} | own
    path = tmp_path / "ghostfolio.json"
    path.write_text(json.dumps({"assetProfiles": [own], "activities": [activity]}))
    told = cli("holding", "import", str(path), "--user", "ann")
    assert "Try `pricing-pipeline instrument find Vodafone`, or --as Vodafone=SYMBOL." in told.stdout
    said = cli("holding", "import", str(path), "--user", "ann", "--find", "--yes", sandbox_url=sandbox.url)
    assert "Vodafone may be " in said.stderr
    assert "VOD:XLON" in said.stderr
    assert held(core) == set()
    again = cli("holding", "import", str(path), "--user", "ann", "--as", "Vodafone=VOD:XLON", "--yes")
    assert again.exit_code == 0
    assert core.rows("SELECT data_type, symbol FROM pricing.holdings") == [(QUOTE, "VOD:XLON")]


def quantities(core: Core) -> dict[str, Decimal | None]:
    return {row.symbol: row.quantity for row in core.rows("SELECT symbol, quantity FROM pricing.holdings")}


def test_f13_an_import_stores_the_quantities_and_a_later_one_replaces_them(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    columns = [f"{field}={name}" for field, name in (("symbol", "Ticker"), ("quantity", "Shares"), ("action", "Way"))]
    options = [word for column in columns for word in ("--column", column)]
    command = ("holding", "import", str(path), "--user", "ann", *options)
    bought = "Ticker,Shares,Way\nAAPL,1.25,buy\nAAPL,0.0000000001,buy\nMSFT,5,buy\nKO,7,buy\n"
    path.write_text(bought)
    assert cli(*command, "--yes").exit_code == 0
    first = {"AAPL": Decimal("1.2500000001"), "MSFT": Decimal(5), "KO": Decimal(7)}
    assert quantities(core) == first
    said = cli(*command)
    assert "0 new pairs for ann, 3 held already, 0 refused" in said.stdout
    assert said.stderr == "", "nothing would change"
    path.write_text(f"{bought}AAPL,1,sell\nMSFT,5,sell\nIBM,2,buy\nIBM,2,sell\n")
    said = cli(*command)
    assert "0 new pairs for ann, 3 held already (2 with another quantity), 0 refused" in said.stdout
    assert "held, 1.2500000001 before" in said.stdout
    assert "held, 5 before" in said.stdout, "all of it was sold, and its price is still fetched"
    assert "IBM: all of it was sold" in said.stdout
    assert "nothing has changed yet. The same command with --yes would change 2 quantities." in said.stderr
    assert quantities(core) == first
    assert "2 quantities set to the total in the file." in cli(*command, "--yes").stdout
    now = {"AAPL": Decimal("0.2500000001"), "MSFT": Decimal(0), "KO": Decimal(7)}
    assert quantities(core) == now
    path.write_text("Ticker\nAAPL\nNVDA\n")
    assert cli("holding", "import", str(path), "--user", "ann", *SYMBOL, "--yes").exit_code == 0
    assert quantities(core) == {**now, "NVDA": None}, "a file without quantities changes none"


@pytest.mark.usefixtures("still")
def test_f13_quantities_are_the_same_by_http_and_the_client(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.WATCH, user="ann")
    assert caller.token is not None
    with PricingClient(api.url, caller.token, user="ann", patience=0) as client:
        assert client.hold((QUOTE, "AAPL"), (QUOTE, "IBM"), quantities=["0.10", None]).changed == 2
        assert [one.quantity for one in client.holdings()] == [Decimal("0.10"), None]
        file = b"Ticker,Shares\nAAPL,3\nIBM,4\nKO,5\n"
        columns = {"symbol": "Ticker", "quantity": "Shares"}
        lines = client.import_holdings(file, columns=columns).decisions
        assert [(one.quantity, one.held_quantity) for one in lines] == [(3, Decimal("0.10")), (4, None), (5, None)]
        assert [one.quantity for one in client.holdings()] == [Decimal("0.10"), None], "a dry run"
        client.import_holdings(file, columns=columns, dry_run=False)
        assert [one.quantity for one in client.holdings()] == [3, 4, 5]
        with pytest.raises(ValueError, match="1 quantities for 2 pairs"):
            client.hold((QUOTE, "AAPL"), (QUOTE, "IBM"), quantities=["1"])
    pair = {"data_type": QUOTE, "symbol": "AAPL"}
    for wrong in ("nan", "1e31", "0." + 31 * "1", "x", "1_0"):
        refusal = caller.refusal("POST", "hold", json={"pairs": [{**pair, "quantity": wrong}]})
        assert "quantity" in refusal["detail"]
    for number in ("12345678901234567890.123456789", "0.10000000000000000001", "9007199254740993", "1e-30"):
        sent = json.dumps({"pairs": [{**pair, "quantity": "?"}]}).replace('"?"', number)  # a JSON number
        answer = caller.ask("POST", "hold", content=sent, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200, answer.text
        assert caller.get("holdings")["holdings"][0]["quantity"] == f"{Decimal(number):f}"
    refusal = caller.refusal("POST", "hold", json={"pairs": [{**pair, "quantity": 1, "price": 2}]})
    assert "a pair has only the keys data_type, symbol, quantity" in refusal["detail"]
    refusal = caller.refusal("POST", "release", json={"pairs": [{**pair, "quantity": 1}]})
    assert "a pair has only the keys data_type, symbol" in refusal["detail"]


def test_f13_a_doubtful_isin_is_never_learnt_before_a_person_has_said_it(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    """The first import makes the symbol known, so the judge doubts it no longer."""
    path = tmp_path / "some.csv"
    path.write_text("Ticker,ISIN\nABCDEF,US5949181045\nAAPL,US0378331005\nIBM,US4592001014\n")
    cli("instrument", "change", "IBM", "--isin", "US5949181045")

    def imported(user: str) -> list[tuple[str, bool]]:
        columns = (*SYMBOL, "--column", "isin=ISIN")
        told = cli("holding", "import", str(path), "--user", user, *columns, "--yes", "--json").json["decisions"]
        return [(one["outcome"], one["reason"] is not None) for one in told]

    def isins() -> dict[str, str]:
        rows = core.rows("SELECT symbol, isin FROM pricing.instruments WHERE isin IS NOT NULL")
        return {row.symbol: row.isin for row in rows}

    known = {"AAPL": "US0378331005", "IBM": "US5949181045"}
    for user, outcome in (("ann", "new"), ("ann", "held"), ("bob", "new")):
        assert imported(user) == [(outcome, True), (outcome, False), (outcome, True)]
        assert isins() == known
    said = cli("holding", "import", str(path), "--user", "ann", *SYMBOL, "--column", "isin=ISIN")
    assert "ABCDEF: a ticker of the United States has at most five letters" in said.stderr
    assert "IBM: its ISIN is US5949181045 here, and US4592001014 in the file." in said.stderr
    commands = re.findall(r"Its ISIN is not stored; `pricing-pipeline (.*)` keeps it", said.stderr)
    for command in commands:
        assert cli(*shlex.split(command)).exit_code == 0
    assert isins() == {"AAPL": "US0378331005", "IBM": "US4592001014", "ABCDEF": "US5949181045"}
    assert imported("ann") == [("held", False)] * 3, "which is no doubt any more"


def test_f13_a_number_that_may_be_in_thousands_is_told_with_its_line_and_the_way_out(
    cli: CommandLine, core: Core, api: RunningApi, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    caller = api.caller(Scope.WATCH, user="ann")
    params = {"column": ["symbol=Ticker", "quantity=Shares"]}
    command = ("holding", "import", str(path), "--user", "ann", *SYMBOL, "--column", "quantity=Shares", "--yes")
    for text, counted, otherwise in (("1.000", "1", "1000"), ("2,500", "2500", "2.5"), ('"1,234"', "1234", "1.234")):
        path.write_text(f"Ticker;Shares\nMSFT;7\nAAPL;{text}\nKO;3.000\n")
        shown = text.strip('"')
        said = cli(*command)
        assert (
            f"warning: line 3, and 1 more line like it: {shown} counts as {counted}. If it is {otherwise}, name the "
            "decimal mark: --decimal comma; else --decimal point." in said.stderr
        )
        assert quantities(core)["AAPL"] == Decimal(counted)
        answer = caller.ask("POST", "holdings/import", content=path.read_bytes(), params=params).json()
        told = answer["vague_numbers"]
        assert [(one["line"], one["text"]) for one in told] == [(3, shown), (4, "3.000")]
        assert [Decimal(told[0][name]) for name in ("counted", "otherwise")] == [Decimal(counted), Decimal(otherwise)]
        for mark, quantity in (("comma", otherwise), ("point", counted)):
            said = cli(*command, "--decimal", mark)
            assert "counts as" not in said.stderr
            assert quantities(core)["AAPL"] == Decimal(quantity)


def test_f13_a_number_that_shows_its_decimal_mark_here_or_in_another_line_is_no_riddle(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    for other in ("0.5", "1.50", "1,234.5", "12", "0.125"):
        path.write_text(f"Ticker;Shares\nMSFT;{other}\nAAPL;{'1.000' if other != '12' else '3'}\n")
        said = cli("holding", "import", str(path), "--user", "ann", *SYMBOL, "--column", "quantity=Shares")
        assert "counts as" not in said.stderr, other
