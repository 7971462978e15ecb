"""Providers are asked in their own spelling, by rule or as a person has said; what is stored has canonical symbols."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.exchanges import exchanges
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.cli import ROOT, CommandLine
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.server import ScriptedServer
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.refreshing import is_idle, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.sessions import wait_for_locks
from pricing_pipeline_tests.tools.audit import audit

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)
SHARES = ("BRK.B", "VOD:XLON")


@pytest.fixture
def yahoo_stands_in(core: Core, sandbox: RunningSandbox) -> None:
    """Twelve Data refuses its endpoint, and Yahoo is next on the route."""
    core.rows(
        "UPDATE pricing.provider_capabilities SET batch_size = 1 WHERE (provider, fetcher) = ('twelvedata', 'quote')"
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank)"
        " VALUES ('equity_quote', 'yahoo', 2), ('fx_rate', 'yahoo', 2)"
    )
    sandbox.behave("status", status=403, provider=TWELVEDATA)


def paths(sandbox: RunningSandbox, provider: str) -> list[str]:
    return [call["path"].rpartition("/")[2] for call in sandbox.calls(provider)]


@pytest.mark.usefixtures("yahoo_stands_in")
def test_a5_the_next_provider_is_asked_in_its_own_spelling(
    core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in SHARES), (FX, "EUR/USD"))
    work_until(refresher, is_idle(core))
    found = core.rows("SELECT data_type, symbol, provider, currency FROM pricing.latest_prices")
    assert {tuple(row) for row in found} == {
        (QUOTE, "BRK.B", "yahoo", "USD"),
        (QUOTE, "VOD:XLON", "yahoo", "GBP"),
        (FX, "EUR/USD", "yahoo", "USD"),
    }
    assert core.rows("SELECT FROM pricing.route_refusals WHERE provider = 'yahoo'") == []
    assert {row.symbol for row in core.rows("SELECT symbol FROM pricing.price_history")} == {
        *SHARES,
        "EUR/USD",
    }
    audit(core, acknowledged=3)


@pytest.mark.usefixtures("yahoo_stands_in")
def test_an_override_wins_over_the_rule_until_it_is_taken_back(
    core: Core, cli: CommandLine, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "BRK.B"))
    assert cli("instrument", "spell", "brk.b", "--at", "yahoo", "--as", "GME").stdout == (
        "yahoo is asked for BRK.B (equity) as GME.\n"
    )
    work_until(refresher, is_idle(core))
    assert paths(sandbox, "yahoo") == ["GME"]
    assert core.one("SELECT symbol FROM pricing.latest_prices WHERE provider = 'yahoo'") == "BRK.B"
    said = cli("instrument", "spell", "BRK.B", "--at", "yahoo", "--undo").stdout
    assert said == "yahoo is asked for BRK.B (equity) as BRK-B, by its rule.\n"
    core.enqueue(QUOTE, "BRK.B")
    work_until(refresher, is_idle(core))
    assert paths(sandbox, "yahoo")[1:] == ["BRK-B"]


@pytest.mark.usefixtures("yahoo_stands_in")
def test_a_new_spelling_makes_what_failed_due_at_once(core: Core, cli: CommandLine, refresher: Refresher) -> None:
    core.heartbeat("ann", (QUOTE, "NOPE.A"))
    work_until(refresher, is_idle(core))
    task = core.task("NOPE.A")
    assert (task.status, task.failure_kind) == ("failed", "endpoint_restricted")
    (refused,) = (entry for entry in task.errors if entry["kind"] == "unknown_symbol")
    assert refused["message"].startswith("yahoo knows no NOPE.A (asked as NOPE-A)")
    cli("instrument", "spell", "NOPE.A", "--at", "yahoo", "--as", "GME")
    demand = core.demand_of(QUOTE, "NOPE.A")
    assert demand is not None
    assert demand.backoff_until is None
    assert core.rows("SELECT FROM pricing.route_refusals WHERE symbol = 'NOPE.A'") == []


def test_a_recorded_answer_about_a_rate_is_read_under_its_symbol() -> None:
    body = recorded("yahoo", "chart_EURUSD_fx_london_tz.json").body
    with (
        ScriptedServer(lambda connection: connection.answer(body)) as server,
        ProviderClient(PROVIDERS["yahoo"], server.url) as yahoo,
    ):
        answer = yahoo.fetch(Fetcher.QUOTE, ["EUR/USD"], asset_class="fx", now=NOON).answer
        assert b"/v8/finance/chart/EURUSD=X" in server.connections[0].request
    (row,) = answer.observations
    assert (row.symbol, row.currency, row.close) == ("EUR/USD", "USD", Decimal("1.0436"))


def test_what_a_provider_cannot_spell_is_not_sent(sandbox: RunningSandbox) -> None:
    with ProviderClient(PROVIDERS["yahoo"], sandbox.yahoo_url) as yahoo:
        answer = yahoo.fetch(Fetcher.QUOTE, ["PETR:XCAS"], asset_class="equity").answer
        assert "yahoo has no symbols spelled like 'PETR:XCAS'" in answer.failures[0].message
        sandbox.behave("html", provider="yahoo")
        with pytest.raises(ProviderError):
            yahoo.fetch(Fetcher.QUOTE, ["BRK.B"], asset_class="equity")
    assert len(sandbox.calls("yahoo")) == 1


@pytest.mark.parametrize(
    ("symbol", "currency", "reason"),
    [
        ("SAP:XETR", None, "it is in USD, and this instrument in EUR"),
        ("VOD:XLON", "GBP", "it is in USD, and this instrument in GBP"),
    ],
)
def test_a_price_in_another_currency_than_its_exchanges_is_quarantined(
    core: Core, sandbox: RunningSandbox, refresher: Refresher, symbol: str, currency: str | None, reason: str
) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', :symbol, :currency)",
        symbol=symbol,
        currency=currency,
    )
    sandbox.behave("currency", value="USD")
    core.heartbeat("ann", (QUOTE, symbol))
    work_until(refresher, is_idle(core))
    assert core.latest(symbol) is None
    assert [row.reason for row in core.rows("SELECT reason FROM pricing.quarantined_values")] == [reason]


def test_an_instrument_of_an_exchange_trades_when_it_does(core: Core) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in ("VOD:XLON", "SAP:XETR", "BHP:XASX", "NPN:XJSE")))
    found = core.rows("SELECT symbol, calendar FROM pricing.instruments WHERE symbol LIKE '%:%'")
    assert {row.symbol: row.calendar for row in found} == {
        "BHP:XASX": "XASX",
        "NPN:XJSE": "XJSE",
        "SAP:XETR": "XETR",
        "VOD:XLON": "XLON",
    }


def test_every_known_exchange_has_a_calendar_however_its_symbols_are_spelled(core: Core) -> None:
    """By its MIC, by the names that it alone has at Twelve Data and Google, and by the suffix of Yahoo and FMP."""
    symbols = {
        f"T{ending}".upper(): exchange.calendar
        for exchange in exchanges().values()
        for ending in exchange.endings
        if ending[0] != " " and not any(ending.upper() == f":{name.upper()}" for name in exchange.shared)
    }
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'equity', unnest(CAST(:symbols AS text[]))",
        symbols=list(symbols),
    )
    found = {
        row.symbol: row.calendar
        for row in core.rows("SELECT symbol, calendar FROM pricing.instruments WHERE symbol ~ '^T[.:]'")
    }
    assert found == symbols
    assert found["T:XJSE"] == found["T.JO"] == "XJSE"
    assert found["T:NSE"] == "XBOM"
    assert [found[f"T:{name}"] for name in ("JPX", "HKEX", "SIX", "MTA", "TASE")] == [
        *("XTKS", "XHKG", "XSWX", "XMIL", "XTAE")
    ]


def test_a_name_of_several_exchanges_is_told_by_the_currency_or_not_at_all(core: Core) -> None:
    for symbol, currency, calendar in (
        ("TATASTEEL:BSE", "INR", "XBOM"),
        ("OTP:BSE", "HUF", "XBUD"),
        ("X:BSE", None, None),
        ("Y:BSE", "EUR", None),
        ("VOLV.B:OMX", "SEK", "XSTO"),
        ("MC:Euronext", "EUR", None),
    ):
        core.rows(
            "INSERT INTO pricing.instruments (asset_class, symbol, currency) VALUES ('equity', :s, :c)",
            s=symbol,
            c=currency,
        )
        assert core.one("SELECT calendar FROM pricing.instruments WHERE symbol = :s", s=symbol) == calendar


def test_the_exchange_of_an_instrument_can_be_set_and_brings_its_calendar(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'X:BSE')")
    said = " ".join(cli("instrument", "show", "X:BSE").stdout.split())
    assert "exchange: one of XBOM, XBUD; `instrument change --exchange` says which" in said
    told = cli("instrument", "change", "X:BSE", "--exchange", "xbom")
    assert told.exit_code == 0, told.error
    assert core.one("SELECT calendar FROM pricing.instruments WHERE symbol = 'X:BSE'") == "XBOM"
    assert cli("instrument", "change", "X:BSE", "--calendar", "XTAE").exit_code == 0
    row = core.rows("SELECT exchange, calendar FROM pricing.instruments WHERE symbol = 'X:BSE'")[0]
    assert tuple(row) == ("XBOM", "XTAE"), "what a person says of the calendar counts more"
    assert cli("instrument", "change", "X:BSE", "--exchange", "none").exit_code == 0
    assert core.one("SELECT calendar FROM pricing.instruments WHERE symbol = 'X:BSE'") is None
    assert "no exchange has this MIC here" in cli("instrument", "change", "X:BSE", "--exchange", "XXXX").error


def test_show_tells_each_spelling_and_who_has_given_it(core: Core, cli: CommandLine) -> None:
    core.heartbeat("ann", (QUOTE, "BRK.B"), (QUOTE, "PETR:XCAS"))
    cli("instrument", "spell", "BRK.B", "--at", "fmp", "--as", "BRKB")
    assert "BRKB at fmp (override), BRK.B at twelvedata (rule), BRK-B at yahoo (rule)" in " ".join(
        cli("instrument", "show", "BRK.B").stdout.split()
    )
    (known,) = cli("instrument", "show", "BRK.B", "--json").json["instruments"]
    assert known["spellings"][0] == {
        "provider": "fmp",
        "spelling": "BRKB",
        "by": "override",
        "is_possible": True,
    }
    assert "PETR:XCAS at yahoo (which has no such symbols)" in " ".join(
        cli("instrument", "show", "PETR:XCAS").stdout.split()
    )
    cli("instrument", "remove", "BRK.B")
    assert core.rows("TABLE pricing.provider_symbols") == []


def test_what_is_no_spelling_is_refused(core: Core, cli: CommandLine) -> None:
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in ("AAPL", "BRK.B", "IBM")))
    cli("instrument", "spell", "IBM", "--at", "yahoo", "--as", "I-B-M")
    for words, code, sentence in (
        (["BRK.B", "--at", "yahoo"], 2, "give the spelling with --as, or take it back with --undo"),
        (["BRK.B", "--at", "yahoo", "--as", "X", "--undo"], 2, "give the spelling with --as"),
        (["BRK.B", "--at", "nobody", "--as", "X"], 1, "no provider is called 'nobody'"),
        (["NONE", "--at", "yahoo", "--as", "X"], 1, "no instrument is called NONE"),
        (["BRK.B", "--at", "yahoo", "--as", "a b"], 1, "yahoo has no symbols spelled like 'a b'"),
        (["BRK.B", "--at", "yahoo", "--as", "AAPL"], 1, "yahoo is asked for AAPL as AAPL"),
        (["BRK.B", "--at", "yahoo", "--as", "I-B-M"], 1, "another symbol of this class has this spelling"),
        (["BRK.B", "--at", "yahoo", "--undo"], 1, "nobody has given a spelling of BRK.B (equity) at yahoo"),
    ):
        said = cli("instrument", "spell", *words)
        assert (said.exit_code, sentence in " ".join(said.error.split())) == (code, True), said.error
        assert core.one("SELECT symbol FROM pricing.provider_symbols") == "IBM"


def test_a_spelling_is_not_taken_back_while_another_symbol_has_it(core: Core, cli: CommandLine) -> None:
    """AAPL is given another one, IBM takes AAPL's: by its rule AAPL would get IBM's answers."""
    assert cli("instrument", "spell", "AAPL", "--at", "yahoo", "--as", "APPL").exit_code == 0
    assert cli("instrument", "spell", "IBM", "--at", "yahoo", "--as", "AAPL").exit_code == 0
    said = cli("instrument", "spell", "AAPL", "--at", "yahoo", "--undo")
    assert "yahoo is asked for IBM as AAPL: two symbols would get one answer" in said.error
    assert core.one("SELECT spelling FROM pricing.provider_symbols WHERE symbol = 'AAPL'") == "APPL"


@pytest.mark.usefixtures("yahoo_stands_in")
def test_what_was_read_under_another_spelling_is_told_when_it_is_corrected(
    core: Core, cli: CommandLine, refresher: Refresher
) -> None:
    core.heartbeat("ann", (QUOTE, "BRK.B"))
    first = cli("instrument", "spell", "BRK.B", "--at", "yahoo", "--as", "GME")
    assert "stored as" not in first.stderr
    work_until(refresher, is_idle(core))
    said = cli("instrument", "spell", "BRK.B", "--at", "yahoo", "--undo").stderr
    assert "1 value (equity_quote) that yahoo sent for GME stays stored as BRK.B's. If GME is another" in said
    assert "docs/providers.md#values-of-a-wrong-spelling" in said
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE symbol = 'BRK.B'") == 1
    core.rows("UPDATE pricing.price_history SET fetched_at = fetched_at - interval '1 hour'")
    cli("instrument", "spell", "BRK.B", "--at", "yahoo", "--as", "GME")
    told = cli("instrument", "spell", "BRK.B", "--at", "yahoo", "--as", "BRKB", "--json").json
    assert told["before"] == {"spelling": "GME", "values": 0, "data_types": []}


@pytest.mark.parametrize("symbol", ["I-B-M", "BRK.A"])
def test_an_instrument_is_not_added_under_a_spelling_that_another_one_has(
    core: Core, cli: CommandLine, symbol: str
) -> None:
    """I-B-M is spelled so as it is, and BRK.A by Yahoo's rule."""
    core.heartbeat("ann", (QUOTE, "IBM"))
    spelling = {"I-B-M": "I-B-M", "BRK.A": "BRK-A"}[symbol]
    assert cli("instrument", "spell", "IBM", "--at", "yahoo", "--as", spelling).exit_code == 0
    table = f"symbol,asset_class\nNFLX,equity\n{symbol},equity\n"
    for said in (
        cli("instrument", "add", symbol, "--asset-class", "equity"),
        cli("instrument", "add", "--csv", "-", stdin=table),
    ):
        assert said.exit_code == 1
        assert f"yahoo is asked for IBM {'(equity) ' if symbol == spelling else ''}as {spelling}" in said.error
        assert "instrument spell IBM --at yahoo --undo" in said.error
    assert core.rows("SELECT FROM pricing.instruments WHERE symbol IN ('NFLX', 'I-B-M', 'BRK.A')") == []
    cli("instrument", "spell", "IBM", "--at", "yahoo", "--undo")
    assert cli("instrument", "add", symbol, "--asset-class", "equity").exit_code == 0


def test_plain_sql_cannot_add_an_instrument_under_anothers_spelling(core: Core, cli: CommandLine) -> None:
    core.heartbeat("ann", (QUOTE, "IBM"))
    cli("instrument", "spell", "IBM", "--at", "yahoo", "--as", "I-B-M")
    with pytest.raises(DBAPIError, match=r"yahoo is asked for IBM \(equity\) as I-B-M, so no other"):
        core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'I-B-M')")
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('etf', 'I-B-M'), ('equity', 'NFLX')")


def test_a_spelling_and_an_instrument_of_two_sessions_exclude_each_other(core: Core) -> None:
    wait_for_locks(core)
    core.heartbeat("ann", (QUOTE, "IBM"))
    give = (
        "INSERT INTO pricing.provider_symbols (provider, asset_class, symbol, spelling)"
        " VALUES ('yahoo', 'equity', 'IBM', 'I-B-M')"
    )
    add = "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'I-B-M')"
    for first, second in ((give, add), (add, give)):
        with core.owner.connect() as one, ThreadPoolExecutor(1) as pool:
            one.execute(text(first))
            other = pool.submit(core.rows, second)
            with pytest.raises(TimeoutError):
                other.result(0.5)
            one.commit()
            with pytest.raises(DBAPIError, match="I-B-M"):
                other.result(PATIENCE)
        core.rows("DELETE FROM pricing.provider_symbols")
        core.rows("DELETE FROM pricing.instruments WHERE symbol = 'I-B-M'")


def test_the_way_of_the_docs_takes_away_what_a_wrong_spelling_brought(core: Core) -> None:
    page = (ROOT / "docs/providers.md").read_text()
    script = page.partition("### Values of a wrong spelling")[2].partition("```sql\n")[2].partition("```")[0]
    core.heartbeat("ann", (QUOTE, "BRK.B"), (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.price_history SET provider = 'yahoo'")
    core.rows("UPDATE pricing.latest_prices SET provider = 'yahoo'")
    with core.owner.begin() as connection:
        for statement in script.split(";"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    for table in ("price_history", "latest_prices"):
        assert [row.symbol for row in core.rows(f"SELECT symbol FROM pricing.{table}")] == ["AAPL"]
    assert core.read("BRK.B").requested == 2, "its quote again, and its daily bars"
    audit(core)


def test_a_client_who_asks_for_anothers_spelling_holds_nobody_up(core: Core) -> None:
    """Nothing is fetched for such a symbol; what else is asked for, by whomever, is."""
    core.heartbeat("ann", (QUOTE, "IBM"))
    core.rows(
        "INSERT INTO pricing.provider_symbols (provider, asset_class, symbol, spelling)"
        " VALUES ('yahoo', 'equity', 'IBM', 'I-B-M')"
    )
    core.hold("eve", (QUOTE, "I-B-M"), (QUOTE, "TSLA"))
    core.heartbeat("bob", (QUOTE, "I-B-M"), (QUOTE, "MSFT"))
    core.call("SELECT pricing.run_duties()")
    symbols = {row.symbol for row in core.rows("SELECT symbol FROM pricing.demand")}
    assert symbols == {"IBM", "TSLA", "MSFT"}
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol = 'I-B-M'") == 0
    assert "I-B-M is not an instrument" in core.one(
        "SELECT max(message) FROM pricing.warnings WHERE source = 'add_demand'"
    )
