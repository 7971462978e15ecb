"""Clients that others wrote for the real providers read the sandbox: what they read is what it holds.

They know shapes that nobody here thought of. They live in an environment of their own (`make clients-install`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.sandbox import company_events
from pricing_pipeline.sandbox.instruments import Instrument
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.recorded import recorded_bars
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.spellings import of_yahoo
from pricing_pipeline.sandbox.units import UNITS, decimal_text
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
SCRIPTS, PYTHON = ROOT / "foreign_clients", ROOT / ".venv-clients" / "bin" / "python"
NODE_MODULES = ROOT / ".venv-clients" / "node_modules"
# Nine trading days, with Apple's split of 2005-02-28 among them.
FIRST, LAST = date(2005, 2, 22), date(2005, 3, 4)
QUOTED = ("AAPL", "VOD.L", "EURUSD=X", "BTC-USD")

if not PYTHON.exists():
    pytest.skip("the foreign clients are not installed: make clients-install", allow_module_level=True)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[RunningSandbox]:
    with running_sandbox(clock=lambda: NOON) as running:
        yield running


@pytest.fixture(scope="module")
def market() -> Market:
    return Market(SandboxSettings().seed)


def read(script: str, *arguments: str) -> Any:
    """What a client reads. It meets no proxy and no settings of the environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
    program: list[str | Path] = [PYTHON, "-W", "ignore", SCRIPTS / f"read_{script}.py"]
    if script.endswith(".cjs"):
        if shutil.which("node") is None or not NODE_MODULES.exists():
            pytest.skip("the foreign clients in JavaScript are not installed: make clients-install, with npm")
        program, kept["NODE_PATH"] = ["node", SCRIPTS / f"read_{script}"], str(NODE_MODULES)
    done = subprocess.run(
        [*program, *arguments],
        env=kept,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def twelvedata(sandbox: RunningSandbox) -> Any:
    return read("twelvedata", sandbox.twelvedata_url, sandbox.key)


@pytest.fixture(scope="module")
def yfinance(sandbox: RunningSandbox) -> Any:
    return read("yfinance", sandbox.yahoo_url)


@pytest.fixture(scope="module")
def yahooquery(sandbox: RunningSandbox) -> Any:
    return read("yahooquery", sandbox.yahoo_url)


@pytest.fixture(scope="module")
def fmp_data(sandbox: RunningSandbox) -> Any:
    return read("fmp_data", sandbox.fmp_url, sandbox.key)


@pytest.fixture(scope="module")
def fmpsdk(sandbox: RunningSandbox) -> Any:
    return read("fmpsdk", sandbox.fmp_url, sandbox.key)


@pytest.fixture(scope="module")
def mftool(sandbox: RunningSandbox) -> Any:
    return read("mftool", sandbox.mfapi_url, "118632", "125497", "99999999")


def instrument(yahoo_symbol: str) -> Instrument:
    found = of_yahoo(yahoo_symbol)
    assert found is not None
    return found


def price(market: Market, yahoo_symbol: str) -> Decimal:
    return Decimal(decimal_text(market.quote(instrument(yahoo_symbol), NOON).close))


def closes(symbol: str, *, are_divided: bool = True) -> dict[str, Decimal]:
    """The recorded closes of the span, oldest first."""
    return {
        str(bar.day): Decimal(bar.close) / (bar.split if are_divided else 1)
        for bar in recorded_bars()[symbol]
        if FIRST <= bar.day <= LAST
    }


def paid(market: Market, symbol: str, last: date) -> dict[str, Decimal]:
    """All dividends until a day."""
    share = instrument(symbol)
    found = company_events.dividends(market, share, share.first_day, last)
    return {str(one.day): Decimal(one.units) / UNITS for one in found}


def numbers(values: dict[str, Any]) -> dict[str, Decimal]:
    return {name: Decimal(str(value)) for name, value in values.items()}


# Twelve Data


def test_its_own_client_reads_quotes_alone_and_in_batches(market: Market, twelvedata: Any) -> None:
    for symbol, told in (("AAPL", twelvedata["quote"]), ("VOD.L", twelvedata["abroad"])):
        assert Decimal(told["close"]) == price(market, symbol)
        assert told["currency"] == instrument(symbol).currency
        assert told["last_quote_at"] == int(NOON.timestamp())
    batch = twelvedata["quotes"]
    assert batch["AAPL"] == twelvedata["quote"]
    assert batch["VOD:LSE"] == twelvedata["abroad"]
    assert (batch["NOPE"]["status"], batch["NOPE"]["code"]) == ("error", 404)
    assert {name: Decimal(one["price"]) for name, one in twelvedata["prices"].items()} == {
        name: price(market, name) for name in ("AAPL", "MSFT")
    }


def test_its_own_client_reads_series(twelvedata: Any) -> None:
    def seen(rows: list[dict[str, str]]) -> dict[str, Decimal]:
        return {row["datetime"]: Decimal(row["close"]) for row in rows}

    assert list(seen(twelvedata["series"]).items()) == list(closes("AAPL").items())
    assert seen(twelvedata["raw"]) == closes("AAPL", are_divided=False) != closes("AAPL")
    assert {name: seen(rows) for name, rows in twelvedata["many"].items()} == {
        name: closes(name) for name in ("AAPL", "IBM")
    }
    assert [Decimal(str(close)) for close in twelvedata["frame"]] == list(closes("IBM").values())


def test_its_own_client_knows_every_refusal(twelvedata: Any) -> None:
    for name, error, words in (
        ("unknown", "TwelveDataError", "**symbol** or **figi** parameter is missing or invalid"),
        ("spelling", "TwelveDataError", "**symbol** or **figi** parameter is missing or invalid"),
        ("weekend", "BadRequestError", "No data is available on the specified dates"),
        ("key", "InvalidApiKeyError", "**apikey** parameter is incorrect"),
    ):
        assert twelvedata[name][0] == error
        assert words in twelvedata[name][1]
    assert {(row["symbol"], row["currency"]) for row in twelvedata["search"]} == {("VOD", "GBp")}


def test_the_client_in_javascript_reads_quotes_and_series(market: Market, sandbox: RunningSandbox) -> None:
    found = read("twelvedata.cjs", sandbox.twelvedata_url, sandbox.key)
    assert Decimal(found["quote"]["close"]) == price(market, "AAPL")
    assert {name: Decimal(one["price"]) for name, one in found["prices"].items()} == {
        name: price(market, name) for name in ("AAPL", "MSFT")
    }
    for name, rows in {"AAPL": found["series"], **found["many"]}.items():
        assert {row["datetime"]: Decimal(row["close"]) for row in rows["values"]} == closes(name)
    assert {(row["symbol"], row["currency"]) for row in found["search"]["data"]} == {("VOD", "GBp")}
    assert found["unknown"] == "A twelve data API error occurred. 404"


# Yahoo Finance


def test_yfinance_reads_bars_splits_and_dividends(market: Market, yfinance: Any) -> None:
    bars = {row[0]: row for row in yfinance["bars"]}
    assert [at[:10] for at in bars] == list(closes("AAPL"))
    assert all(at.endswith("T00:00:00-05:00") for at in bars), "days of New York"
    assert [row[4] for row in bars.values()] == pytest.approx([float(one) for one in closes("AAPL").values()])
    assert {at[:10]: ratio for at, ratio in yfinance["splits"].items()} == {"2000-06-21": 2, "2005-02-28": 2}
    dividends = {at[:10]: cash for at, cash in yfinance["dividends"].items()}
    expected = paid(market, "IBM", NOON.date())
    assert dividends == pytest.approx({day: float(cash) for day, cash in expected.items()}, abs=1e-5)
    assert yfinance["many"] == {
        name: pytest.approx([float(one) for one in closes(name).values()]) for name in ("AAPL", "IBM")
    }


def test_yfinance_adjusts_for_all_later_dividends(market: Market, yfinance: Any) -> None:
    share = instrument("AAPL")
    left = 1.0
    for one in company_events.dividends(market, share, LAST + timedelta(days=1), NOON.date()):
        before = market.close_before(share, one.day)
        assert before is not None
        left *= 1 - one.units / before
    assert 0.1 < left < 0.9
    expected = [float(close) * left for close in closes("AAPL").values()]
    assert [row[5] for row in yfinance["bars"]] == pytest.approx(expected, rel=1e-5)
    assert yfinance["adjusted"] == pytest.approx(expected, rel=1e-5)


def test_yfinance_reads_quotes_of_every_kind(market: Market, yfinance: Any) -> None:
    for symbol, (last, before, currency, zone, kind) in yfinance["quotes"].items():
        quote, one = market.quote(instrument(symbol), NOON), instrument(symbol)
        assert last == pytest.approx(float(decimal_text(quote.close))), symbol
        assert before == pytest.approx(float(decimal_text(quote.previous_close))), symbol
        assert (currency, zone) == (one.currency, one.venue.yahoo_zone or one.zone.key)
        assert kind == {"equity": "EQUITY", "forex": "CURRENCY", "crypto": "CRYPTOCURRENCY"}[one.kind]
    assert yfinance["quotes"]["VOD.L"][2] == "GBp"
    assert yfinance["meta"]["validRanges"][0] == "1d"
    assert [at[10:] for at in yfinance["days"]] == ["T00:00:00+11:00"] * len(yfinance["days"])
    assert len(yfinance["days"]) >= 4
    assert yfinance["unknown"] == 0


def test_yahooquery_reads_bars_and_quotes_with_a_cookie_and_a_crumb(market: Market, yahooquery: Any) -> None:
    for symbol in ("AAPL", "IBM"):
        bars = {row[1]: row for row in yahooquery["bars"] if row[0] == symbol}
        assert list(bars) == list(closes(symbol))
        expected = [float(one) for one in closes(symbol).values()]
        assert [row[5] for row in bars.values()] == pytest.approx(expected)
    assert yahooquery["splits"] == {"2005-02-28": 2}
    told = {name: one["regularMarketPrice"] for name, one in yahooquery["quotes"].items()}
    assert numbers(told) == {symbol: price(market, symbol) for symbol in QUOTED}
    assert yahooquery["unknown"] == 0


def test_yahoo_finance2_reads_what_its_schema_accepts(market: Market, sandbox: RunningSandbox) -> None:
    """It refuses answers that lack a member which Yahoo's always have."""
    found = read("yahoo_finance2.cjs", sandbox.yahoo_url)
    bars = {row["date"][:10]: row["close"] for row in found["bars"]}
    assert bars == pytest.approx({day: float(close) for day, close in closes("AAPL").items()})
    assert [one["splitRatio"] for one in found["splits"]] == ["2:1"]
    assert found["zone"] == "America/New_York"
    told = {one["symbol"]: one["regularMarketPrice"] for one in found["quotes"]}
    assert numbers(told) == {symbol: price(market, symbol) for symbol in QUOTED}
    assert found["unknown"] == "Error: No data found, symbol may be delisted"


def test_pricehist_writes_prices_for_journals(market: Market, sandbox: RunningSandbox) -> None:
    found = read("pricehist", sandbox.yahoo_url)
    code, lines = found["csv"]
    assert (code, lines[0]) == (0, "date,base,quote,amount,source,type")
    rows = [line.split(",") for line in lines[1:]]
    assert {row[0]: float(row[3]) for row in rows} == pytest.approx(
        {day: float(close) for day, close in closes("AAPL").items()}
    )
    assert {(row[1], row[2]) for row in rows} == {("AAPL", "USD")}
    assert [line[: len("P 2005-02-22")] for line in found["ledger"][1]] == [f"P {day}" for day in closes("IBM")]
    ((_, today),) = [found["today"][1]]
    assert today.startswith("2026-11-18,VOD.L,GBp,")
    assert float(today.split(",")[3]) == pytest.approx(float(price(market, "VOD.L")))
    assert found["unknown"] == [1, []]


def test_beanprice_reads_latest_and_daily_prices(market: Market, sandbox: RunningSandbox) -> None:
    found = read("beanprice", sandbox.yahoo_url)
    for symbol, (latest, at, _) in found["latest"].items():
        assert Decimal(latest) == price(market, symbol)
        assert datetime.fromisoformat(at) == NOON
    assert found["latest"]["AAPL"][2] == "USD"
    assert float(found["before"][0]) == pytest.approx(float(closes("IBM")[str(LAST)]))
    assert {at[:10]: float(close) for close, at, _ in found["daily"]} == pytest.approx(
        {day: float(close) for day, close in closes("AAPL").items()}
    )
    assert "No data returned from Yahoo" in found["unknown"]


# FMP


def test_two_providers_of_openbb_read_bars_and_quotes(market: Market, sandbox: RunningSandbox) -> None:
    found = read("openbb", sandbox.yahoo_url, sandbox.fmp_url, sandbox.key)
    yahoo = {row["date"][:10]: row["close"] for row in found["yahoo"]}
    assert yahoo == pytest.approx({day: float(close) for day, close in closes("AAPL").items()})
    for symbol in ("AAPL", "IBM"):
        fmp = {row["date"][:10]: row["close"] for row in found["fmp"] if row["symbol"] == symbol}
        assert numbers(fmp) == closes(symbol)
    assert numbers({one["symbol"]: one["last_price"] for one in found["quotes"]}) == {
        symbol: price(market, symbol) for symbol in ("AAPL", "VOD.L")
    }
    assert found["unknown"] == ["EmptyDataError", "EmptyDataError"]


def test_fmp_data_reads_quotes_bars_and_events(market: Market, fmp_data: Any) -> None:
    assert numbers({"AAPL": fmp_data["quote"]["price"], "VOD.L": fmp_data["abroad"]["price"]}) == {
        symbol: price(market, symbol) for symbol in ("AAPL", "VOD.L")
    }
    assert numbers({one["symbol"]: one["price"] for one in fmp_data["quotes"]}) == {
        symbol: price(market, symbol) for symbol in ("AAPL", "IBM")
    }
    assert datetime.fromisoformat(fmp_data["quote"]["timestamp"]) == NOON
    bars = fmp_data["bars"]["historical"]
    assert numbers({one["date"][:10]: one["close"] for one in bars}) == closes("AAPL")
    dividends = numbers({one["ex_dividend_date"]: one["dividend"] for one in fmp_data["dividends"]})
    assert dividends == paid(market, "IBM", NOON.date() + timedelta(days=30))
    assert {one["split_event_date"]: one["numerator"] for one in fmp_data["splits"]} == {
        "2005-02-28": 2,
        "2000-06-21": 2,
    }
    assert {one["symbol"] for one in fmp_data["search"]} == {"VOD", "VOD.L"}
    assert fmp_data["profile"]["company_name"] == "Apple Inc."
    assert (fmp_data["unknown"], fmp_data["key"]) == ("ValueError", "AuthenticationError")


def test_two_clients_of_fmp_read_the_same_statements_and_reports(fmp_data: Any, fmpsdk: Any) -> None:
    assert len(fmpsdk["statements"]) == len(fmp_data["statements"]) == 3
    names = {
        "revenue": "revenue",
        "netIncome": "net_income",
        "eps": "eps",
        "epsDiluted": "eps_diluted",
        "cik": "cik",
    }
    for ours, theirs in zip(fmpsdk["statements"], fmp_data["statements"], strict=True):
        assert {name: ours[name] for name in names} == {name: theirs[other] for name, other in names.items()}
        assert ours["grossProfit"] == ours["revenue"] - ours["costOfRevenue"]
        assert ours["ebitda"] - ours["depreciationAndAmortization"] == ours["ebit"]
    reports = {one["event_date"]: one["eps"] for one in fmp_data["earnings"]}
    assert len(fmpsdk["earnings"]) == 4
    assert {one["date"]: one["epsActual"] for one in fmpsdk["earnings"]}.items() <= reports.items()


def test_fmpsdk_reads_quotes_bars_and_events(market: Market, fmpsdk: Any) -> None:
    assert numbers({one["symbol"]: one["price"] for one in [*fmpsdk["quote"], *fmpsdk["quotes"]]}) == {
        symbol: price(market, symbol) for symbol in ("AAPL", "IBM")
    }
    assert numbers({one["date"]: one["close"] for one in fmpsdk["bars"]}) == closes("AAPL")
    assert numbers({one["date"]: one["dividend"] for one in fmpsdk["dividends"]}) == paid(
        market, "IBM", NOON.date() + timedelta(days=30)
    )
    assert [(one["date"], one["numerator"]) for one in fmpsdk["splits"]] == [
        ("2005-02-28", 2),
        ("2000-06-21", 2),
    ]
    assert [one["companyName"] for one in fmpsdk["profile"]] == ["Apple Inc."]
    assert {one["symbol"]: one["currency"] for one in fmpsdk["search"]} == {"VOD": "USD", "VOD.L": "GBp"}
    assert fmpsdk["unknown"] == []
    assert fmpsdk["key"][0] == "FMPAuthenticationError"
    assert "Invalid or missing query parameter - period" in fmpsdk["endpoint"][1]


# mfapi.in


def test_mftool_reads_schemes_and_their_histories(sandbox: RunningSandbox, mftool: Any) -> None:
    for code in ("118632", "125497"):
        details, history = mftool[code]["details"], mftool[code]["history"]
        assert details["scheme_code"] == int(code)
        assert len(history["data"]) > 3000
        assert history["data"][0]["date"] == "17-11-2026"
        assert history["scheme_start_date"] == details["scheme_start_date"] == history["data"][-1]
        year = [
            Decimal(row["nav"])
            for row in history["data"]
            if datetime.strptime(row["date"], "%d-%m-%Y").replace(tzinfo=UTC) > NOON - timedelta(days=366)
        ]
        assert min(year) <= Decimal(history["52_week_low"]) <= Decimal(history["52_week_high"]) <= max(year)
    assert mftool["118632"]["history"]["data"] != mftool["125497"]["history"]["data"]
    assert mftool["99999999"] == {"details": None, "history": None}, "an unknown scheme has no data"
