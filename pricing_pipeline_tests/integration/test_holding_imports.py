"""A7, B5: what files of four brokers hold is held under one symbol each; every other line is named with a way out."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection

from pricing_client import PricingClient, RequestRefused
from pricing_pipeline.cli import holding_import, instrument_find
from pricing_pipeline.demand import holding_imports as demand_imports
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.providers.searches import Listing
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

FILES = Path(__file__).parents[1] / "data/holdings"
COIN = "crypto_quote"
US = ["AAPL", "MSFT", "IBM", "GOOG", "META", "BRK.B", "NVDA", "KO", "JNJ", "V"]
LONDON = ["VOD:XLON", "BARC:XLON", "BP:XLON", "HSBA:XLON", "SHEL:XLON", "VUSA:XLON"]
XETRA = ["SAP:XETR", "SIE:XETR", "ALV:XETR", "BMW:XETR", "DTE:XETR", "EUNL:XETR"]
MUMBAI = ["RELIANCE:XNSE", "TCS:XNSE", "INFY:XNSE", "M&M:XNSE"]
EUROPE = ["MC:XPAR", "ASML:XAMS", "AIR:XPAR", "NESN:XSWX", "ACN", "TSLA", "SAN:XMAD", "PEP"]
IN_FILE = {
    "portfolio_performance.csv": {*US, *LONDON, *XETRA, *MUMBAI, "118632", "125497", "BTC/USD", "EUR/USD"},
    "interactive_brokers.xml": {
        *US,
        *LONDON,
        *XETRA,
        *MUMBAI,
        "NESN:XSWX",
        "7203:XTKS",
        "0700:XHKG",
        "BTC/USD",
    },
    "trading212.csv": {*US, *LONDON, *XETRA, *EUROPE},
    "degiro_transactions.csv": {*US, *LONDON, *XETRA, *EUROPE},
    "degiro_portfolio.csv": {*US, *LONDON, *XETRA, *EUROPE},
}
"""The thirty holdings of each file."""
UNSAID = {
    "IE00B4L5Y983": "EUNL:XETR",
    "NL0010273215": "ASML:XAMS",
    "NL0000235190": "AIR:XPAR",
    "IE00B4BNMY34": "ACN",
}
"""Whose exchange Trading 212 does not say, and no rule can tell."""


@pytest.fixture(autouse=True)
def type_of_coins(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        f" VALUES ('{COIN}', 'crypto', 'quote', 1)"
    )


def imported(cli: CommandLine, name: str, *options: str) -> dict[str, list[dict[str, Any]]]:
    """The decisions of an import as JSON, by outcome."""
    answer = cli("holding", "import", str(FILES / name), "--user", "ann", "--json", *options).json
    assert answer["dry_run"] is ("--yes" not in options)
    decisions: dict[str, list[dict[str, Any]]] = {}
    for one in answer["decisions"]:
        decisions.setdefault(one["outcome"], []).append(one)
    return decisions


def held(core: Core) -> set[tuple[str, str]]:
    rows = core.rows("SELECT data_type, symbol FROM pricing.holdings WHERE status = 'active' AND user_id = 'ann'")
    return {tuple(row) for row in rows}


def pairs(symbols: set[str]) -> set[tuple[str, str]]:
    types = {"118632": NAV, "125497": NAV, "BTC/USD": COIN, "EUR/USD": FX}
    return {(types.get(symbol, QUOTE), symbol) for symbol in symbols}


def test_a7_files_of_four_brokers_become_one_holding_for_each_instrument(cli: CommandLine, core: Core) -> None:
    named = 0
    for name, symbols in IN_FILE.items():
        own_names = [word for isin, symbol in UNSAID.items() for word in ("--as", f"{isin}={symbol}")]
        options = own_names if name == "trading212.csv" else []
        would = imported(cli, name, *options)
        decided = [one for outcome in ("new", "held") for one in would.get(outcome, [])]
        assert {(one["data_type"], one["symbol"]) for one in decided} == pairs(symbols), name
        assert len(decided) == 30, "two lines of one instrument are one holding"
        assert would.get("refused", []) == []
        left_out = " ".join(f"{one['name']}: {one['reason']}" for one in would["left_out"])
        assert ("Intel" in left_out) is (name not in ("interactive_brokers.xml", "degiro_portfolio.csv"))
        before = held(core)
        assert not {one["symbol"] for one in would.get("new", [])} & {symbol for _, symbol in before}
        imported(cli, name, *options, "--yes")
        assert held(core) == before | pairs(symbols)
        named += len(decided)
    assert named == 150
    assert (
        core.rows(
            "SELECT isin, count(*) FROM pricing.instruments WHERE isin IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
        )
        == []
    ), "no twins"
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol LIKE 'INTC%'") == 0


def test_a7_what_a_file_does_not_say_is_refused_with_a_proposal_that_would_do(cli: CommandLine, core: Core) -> None:
    would = imported(cli, "trading212.csv")
    expected = IN_FILE["trading212.csv"] - set(UNSAID.values())
    assert {one["symbol"] for one in would["new"]} == expected
    assert {one["isin"] for one in would["refused"]} == UNSAID.keys()
    for one in would["refused"]:
        assert one["identifier"] == one["isin"]
        assert UNSAID[one["isin"]] in one["candidates"]
    unknown = imported(cli, "degiro_portfolio.csv")
    assert len(unknown["refused"]) == 30
    for one in unknown["refused"]:
        assert (one["identifier"], one["search"], one["candidates"]) == (one["isin"], one["isin"], [])
    said = cli("holding", "import", str(FILES / "degiro_portfolio.csv"))
    (told,) = [line for line in said.stdout.splitlines() if line.startswith("refused:")]
    assert told.startswith("refused: 30 instruments, because no instrument is known by its ISIN. line 3: Apple Inc.")
    assert "--find looks up what is unknown" in said.stderr
    assert held(core) == set(), "nothing is done without --yes"


def test_a7_the_options_for_many_refused_lines_can_be_copied(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    path = tmp_path / "funds.csv"
    isins = ["US0378331005", "US5949181045", "US67066G1040", "US0846707026", "US1912161007", "US9229087690"]
    tickers = ["AAPL", "MSFT", "NVDA", "BRK-B", "KO", "VTI"]
    rows = [f"{ticker};{isin};EUR" for ticker, isin in zip(tickers, isins, strict=True)]
    path.write_text("\n".join(["Ticker;ISIN;Currency", *rows]) + "\n")
    columns = [word for field in ("symbol=Ticker", "isin=ISIN", "currency=Currency") for word in ("--column", field)]
    said = cli("holding", "import", str(path), "--user", "ann", *columns)
    assert "refused: 6 instruments" in said.stdout
    hints = said.stderr.partition("the likeliest of each, to check: ")[2].splitlines()[0]
    again = cli("holding", "import", str(path), "--user", "ann", *columns, *shlex.split(hints), "--yes")
    assert again.exit_code == 0, again.stdout
    assert len(held(core)) == 6


def test_a7_an_import_shows_lines_for_people_and_asks_for_yes(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("Ticker;Shares\nVOD.L;3\nGBXYZ!;1\nVOD:LSE;4,5\nTCS:FOO;2\n")
    columns = ("--column", "symbol=Ticker", "--column", "quantity=Shares")
    said = cli("holding", "import", str(path), "--user", "ann", *columns)
    assert said.exit_code == 1, "a line is refused"
    assert "VOD:XLON" in said.stdout
    assert "2, 4" in said.stdout
    assert "refused: line 3: GBXYZ!: " in said.stdout
    assert "refused: line 5: TCS:FOO: there is no exchange FOO" in said.stdout
    assert "columns: 1 new pair for ann, 0 held already, 2 refused." in said.stdout
    assert "hint: nothing has changed yet" in said.stderr
    assert held(core) == set()
    said = cli("holding", "import", str(path), "--user", "ann", *columns, "--type", DAILY, "--yes")
    assert "ann holds 1 pair more." in said.stdout
    assert held(core) == {(DAILY, "VOD:XLON")}
    assert cli("holding", "import", str(path)).error.startswith("the header of the file has no known format")
    assert "is not a --column" in cli("holding", "import", str(path), "--column", "symbol").error
    assert "is not a decimal mark" in cli("holding", "import", str(path), "--decimal", ";").error


@pytest.mark.parametrize(("typed", "is_held"), [("y\n", True), ("n\n", False)])
def test_a7_at_a_terminal_it_asks(
    cli: CommandLine, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, is_held: bool
) -> None:
    path = tmp_path / "some.csv"
    path.write_text("Ticker,Shares\nAAPL,3\n")
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(holding_import, "sys", SimpleNamespace(stdin=terminal, stdout=terminal))
    said = cli("holding", "import", str(path), "--user", "ann", "--column", "symbol=Ticker", stdin=typed)
    assert said.exit_code == 0
    assert "Hold 1 new pair?" in said.stdout
    assert held(core) == ({(QUOTE, "AAPL")} if is_held else set())


def test_a7_an_isin_with_a_wrong_check_digit_is_named_and_never_kept(
    cli: CommandLine, core: Core, tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    path.write_text("Ticker,ISIN\nAAPL,US0378331006\n,GB00BH4HKS38\nABCDEF,US5949181045\n")
    columns = ("--column", "symbol=Ticker", "--column", "isin=ISIN", "--json", "--yes")
    doubtful, refused, vague = cli("holding", "import", str(path), "--user", "ann", *columns).json["decisions"]
    assert (doubtful["symbol"], doubtful["outcome"]) == ("AAPL", "new")
    assert "wrong check digit" in doubtful["reason"]
    assert "its check digit is wrong" in refused["reason"]
    assert (vague["outcome"], vague["symbol"]) == ("new", "ABCDEF")
    assert "at most five letters" in vague["reason"], "and so its ISIN may be that of another one"
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE isin IS NOT NULL") == 0
    path.write_text("Ticker,ISIN\nMSFT,-\n")
    assert cli("holding", "import", str(path), *columns).json["decisions"][0]["reason"] is None, "a dash is none"


def test_a7_unknown_isins_are_looked_up_where_that_is_asked_for(
    cli: CommandLine, core: Core, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []
    listings = {
        "GB00BH4HKS39": [("VOD:XLON", "GBP"), ("VODI:XETR", "EUR")],
        "NL0010273215": [("ASML:XAMS", "EUR"), ("ASME:XETR", "EUR")],
        "US0378331005": [],
    }

    def searched(_: object, __: object, isin: str) -> list[Listing]:
        asked.append(isin)
        return [Listing(symbol, "equity", "x", "x", currency) for symbol, currency in listings[isin]]

    monkeypatch.setattr(instrument_find, "searched", searched)
    path = tmp_path / "portfolio.csv"
    path.write_text(
        "Product,Symbol/ISIN,Quantity,Closing,Local value,,Value in EUR\nVodafone,GB00BH4HKS39,1,1,GBP,1,1\n"
        "ASML,NL0010273215,1,1,EUR,1,1\nApple,US0378331005,1,1,USD,1,1\n"
    )
    said = cli("holding", "import", str(path), "--user", "ann", "--find", "--json", "--yes")
    assert sorted(asked) == sorted(listings)
    assert [one["symbol"] for one in said.json["decisions"]] == ["VOD:XLON", None, None]
    assert "NL0010273215 may be ASML:XAMS, ASME:XETR" in said.stderr
    assert core.one("SELECT isin FROM pricing.instruments WHERE symbol = 'VOD:XLON'") == "GB00BH4HKS39"


def test_a7_a_look_up_is_one_counted_call_of_a_provider(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, tmp_path: Path
) -> None:
    path = tmp_path / "portfolio.csv"
    path.write_text(
        "Product,Symbol/ISIN,Quantity,Closing,Local value,,Value in EUR\nX,FR0000120271,1,1,EUR,1,1\n"
        "Vodafone,GB00BH4HKS39,1,1,GBP,1,1\n"
    )
    for held_already in (0, 1):
        said = cli("holding", "import", str(path), "--find", "--yes", sandbox_url=sandbox.url)
        assert "refused: line 2: X (FR0000120271): no instrument is known by its ISIN" in said.stdout
        assert f"{1 - held_already} new pair" in said.stdout
        assert "--find" not in said.stderr, "which has just been tried"
        assert f", {held_already} held already, 1 refused." in said.stdout
    assert core.one("SELECT isin FROM pricing.instruments WHERE symbol = 'VOD:XLON'") == "GB00BH4HKS39"
    assert [(call["path"], call["units"]) for call in sandbox.calls()] == [("/symbol_search", 1)] * 2
    assert core.one("SELECT sum(units) FROM pricing.api_data_usage") == 2


def test_a7_what_no_data_type_is_for_is_refused_with_the_way_out(cli: CommandLine, core: Core) -> None:
    """Neither is a coin held as an exchange rate meanwhile: later it would be there twice."""
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = :t", t=COIN)
    for name in ("portfolio_performance.csv", "interactive_brokers.xml"):
        (coin,) = imported(cli, name)["refused"]
        assert "Bitcoin" in coin["name"].title() or "BTC" in coin["name"]
        assert coin["reason"] == "no data type is for instruments of class crypto"
        assert (coin["lacks_type_of"], coin["identifier"]) == ("crypto", None)
    said = cli("holding", "import", str(FILES / "portfolio_performance.csv"))
    assert "Try `pricing-pipeline type add crypto_quote --fetcher quote --ttl 5 --asset-class crypto`." in said.stdout
    core.rows("UPDATE pricing.data_type_registry SET is_active = false")
    said = cli("holding", "import", str(FILES / "trading212.csv"), "--yes")
    assert said.exit_code == 1
    assert "there is no data type of prices yet" in said.error
    assert "`pricing-pipeline provider use`" in said.error


def test_a7_a_proposal_may_name_any_data_type_of_prices(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("Ticker\nAAPL\nMSFT\n")
    options = ("--column", "symbol=Ticker", "--as", f"aapl={DAILY}:AAPL", "--as", "APPL=IBM", "--yes")
    said = cli("holding", "import", str(path), "--user", "ann", *options)
    assert said.exit_code == 0
    assert said.stderr == "warning: --as: nothing in the file is called APPL.\n"
    assert held(core) == {(DAILY, "AAPL"), (QUOTE, "MSFT")}


def test_a8_a_symbol_of_a_file_is_tried_in_no_class_after_the_one_that_it_fits(
    cli: CommandLine, core: Core, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two thousand funds without an exchange would keep the database busy for a quarter of a minute."""
    asked = list[tuple[str, str]]()
    judge = demand_imports._judge

    def noted(connection: Connection, pairs: Sequence[tuple[str, str]]) -> list[Any]:
        asked.extend(pairs)
        return judge(connection, pairs)

    monkeypatch.setattr(demand_imports, "_judge", noted)
    path = tmp_path / "some.csv"
    path.write_text("Ticker,ISIN,In\nEUNL,IE00B4L5Y983,EUR\n118632,INF204K01XI3,INR\n")
    columns = ("--column", "symbol=Ticker", "--column", "isin=ISIN", "--column", "currency=In", "--json")
    fund, vague = sorted(
        cli("holding", "import", str(path), *columns).json["decisions"], key=lambda one: one["outcome"]
    )
    assert (fund["data_type"], fund["symbol"], vague["outcome"]) == (NAV, "118632", "refused")
    of_vague = [name for name, symbol in asked if symbol.startswith("EUNL:")]
    assert len(of_vague) > 5
    assert set(of_vague) == {QUOTE}


@pytest.fixture
def client(api: RunningApi) -> Iterator[PricingClient]:
    token = api.caller(Scope.READ, Scope.WATCH).token
    assert token is not None
    with PricingClient(api.url, token, user="ann", patience=0) as client:
        yield client


@pytest.mark.usefixtures("still")
def test_a7_the_client_imports_a_file_and_only_operators_teach_isins(
    client: PricingClient, api: RunningApi, core: Core
) -> None:
    content = (FILES / "trading212.csv").read_bytes()
    would = client.import_holdings(content)
    assert (would.format, would.dry_run) == ("trading212", True)
    assert (would.new, would.held, would.refused) == (26, 0, 4)
    unsaid = {one.identifier: one.candidates for one in would.decisions if one.outcome == "refused"}
    assert unsaid.keys() == UNSAID.keys()
    assert all(UNSAID[str(isin)] in candidates for isin, candidates in unsaid.items())
    (sold,) = [one for one in would.decisions if one.name.startswith("Intel") and one.reason != "a payment"]
    assert (len(sold.lines), sold.reason) == (3, "all of it was sold"), "one decision for equal lines"
    assert held(core) == set()
    done = client.import_holdings(content, dry_run=False, own_names=UNSAID)
    assert (done.dry_run, done.new, done.refused) == (False, 30, 0)
    assert held(core) == pairs(IN_FILE["trading212.csv"])
    assert client.import_holdings(content, own_names=UNSAID).held == 30
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE isin IS NOT NULL") == 0
    operator = api.caller(Scope.WATCH, Scope.OPERATE, user="bob")
    answer = operator.ask("POST", "holdings/import", content=content, params={"dry_run": "false"})
    assert answer.json()["new"] == 26
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE isin IS NOT NULL") == 26
    with pytest.raises(RequestRefused, match="no known format"):
        client.import_holdings(b"a,b\n1,2\n")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
        " VALUES ('company_profile', 'equity', 'profile', 1440)"
    )
    for params, words in (
        ({"column": "symbol"}, "has no NAME=VALUE"),
        ({"data_type": "company_profile"}, "company_profile is not a type of prices"),
        ({"data_type": "nosuch"}, "There is no active data type 'nosuch'"),
        ({"data_type": "\0"}, "a name cannot contain NUL"),
        ({"format": "degiro"}, "There is no format 'degiro'"),
    ):
        refusal = operator.refusal("POST", "holdings/import", content=content, params=params)
        assert words in refusal["detail"]


def test_a7_a_file_may_come_by_standard_input_and_is_read_no_further_than_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stdin:
        buffer = io.BytesIO(b"x" * 100)

    monkeypatch.setattr(holding_import.sys, "stdin", Stdin)
    monkeypatch.setattr(holding_import, "MOST_BYTES", 10)
    assert holding_import._content(Path("-")) == b"x" * 11


def test_a7_the_files_have_quirks_of_their_brokers() -> None:
    """What these tests would not see if the files lost it."""
    texts = {name: (FILES / name).read_bytes() for name in IN_FILE}
    assert texts["portfolio_performance.csv"].startswith(b"\xef\xbb\xbfDatum;")
    assert b"1.500" in texts["degiro_transactions.csv"] or b'"1.' in texts["degiro_transactions.csv"]
    assert re.search(rb"Nestl\xe9", texts["degiro_portfolio.csv"]), "Latin-1"
    assert b'levelOfDetail="LOT"' in texts["interactive_brokers.xml"]
    assert b",GBX," in texts["trading212.csv"]
