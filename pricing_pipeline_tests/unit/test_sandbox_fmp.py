"""The sandbox's FMP: what it answers, what its plans refuse, and in which words (B29)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

NOW = datetime(2026, 11, 18, 15, 30, 20, tzinfo=UTC)


def rows(asked: Asked, endpoint: str, **params: str) -> list[dict[str, Any]]:
    reply = asked.fmp(endpoint, **params)
    assert reply.status == 200, reply.body
    found = parsed(reply)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("endpoint", "file"),
    [
        ("quote", "stable_quote_AAPL.json"),
        ("historical-price-eod/full", "stable_historical_price_eod_full_AAPL_2023_01.json"),
        ("earnings", "stable_earnings_AAPL.json"),
        ("income-statement", "stable_income_statement_AAPL.json"),
        ("dividends", "stable_dividends_AAPL_limit1.json"),
    ],
)
def test_its_rows_have_fields_of_the_recorded_ones(endpoint: str, file: str) -> None:
    (first, *_) = rows(Asked(NOW), endpoint, symbol="AAPL")
    real = parsed(recorded("fmp", file))[0]
    assert first.keys() <= real.keys()
    for name, value in first.items():
        kinds = (int, float) if isinstance(value, (int, float)) else type(value)
        assert value is None or real[name] is None or isinstance(real[name], kinds), name


def test_f1_a_batch_has_what_it_knows_and_is_silent_on_the_rest() -> None:
    found = rows(Asked(NOW), "batch-quote", symbols="MSFT,NOPE,AAPL,EUR/USD")
    assert [row["symbol"] for row in found] == ["MSFT", "AAPL"]
    assert rows(Asked(NOW), "quote", symbol="NOPE1") == []


def test_bars_are_flat_newest_first_inclusive_and_split_adjusted() -> None:
    found = rows(Asked(NOW), "historical-price-eod/full", symbol="AAPL", from_="2005-02-25", to="2005-02-28")
    assert [row["date"] for row in found] == ["2005-02-28", "2005-02-25"]
    raw = Asked(NOW).bars("AAPL", start_date="2005-02-25", end_date="2005-02-25")[0]
    assert Decimal(str(found[1]["close"])) * 2 == Decimal(raw["close"])
    assert "adjClose" not in found[0]


def test_bars_are_of_days_that_are_over_and_of_five_years_at_most() -> None:
    found = rows(Asked(NOW, market_hours="exchange"), "historical-price-eod/full", symbol="IBM")
    assert found[0]["date"] == "2026-11-17"
    assert date.fromisoformat(found[-1]["date"]) >= date(2021, 11, 15)
    assert rows(Asked(NOW), "historical-price-eod/full", symbol="IBM", from_="2026-11-14", to="2026-11-15") == []


def test_reports_that_lie_ahead_have_no_figures_and_get_them_on_their_day() -> None:
    before = rows(Asked(NOW), "earnings", symbol="IBM")
    ahead = [row for row in before if row["epsActual"] is None]
    assert before[:2] == ahead
    assert all(row["date"] > str(NOW.date()) for row in ahead)
    day = datetime.fromisoformat(ahead[-1]["date"]).replace(tzinfo=UTC) + timedelta(hours=12)
    after = {row["date"]: row for row in rows(Asked(day), "earnings", symbol="IBM")}
    told = [row for row in after.values() if row["epsActual"] is not None]
    assert len(told) == len(before) - 1 or ahead[-1]["date"] not in after, "it may have been moved meanwhile"
    assert sum(row["epsActual"] is None for row in after.values()) == 2


def test_a6_the_key_goes_into_header_or_query_and_each_has_limits_of_its_own() -> None:
    asked = Asked(NOW, fmp_calls_per_minute=1)
    assert asked.fmp("quote", symbol="AAPL").status == 200
    refused = asked.fmp("quote", symbol="AAPL")
    assert (refused.status, "Limit Reach" in parsed(refused)["Error Message"]) == (429, True)
    assert asked.fmp("quote", headers={}, symbol="AAPL", apikey="sandbox-key-b").status == 200
    wrong = asked.fmp("quote", headers={"apikey": "wrong"}, symbol="AAPL")
    assert (wrong.status, "Invalid API KEY" in parsed(wrong)["Error Message"]) == (401, True)


@pytest.mark.parametrize(
    ("endpoint", "params", "status", "words"),
    [
        ("batch-quote", {"symbols": "AAPL,IBM"}, 402, "Restricted Endpoint"),
        ("quote", {"symbol": "TSLA"}, 402, "value set for 'symbol'"),
        ("quote", {"symbol": "AAPL,IBM"}, 402, "value set for 'symbol'"),
        ("income-statement", {"symbol": "AAPL", "limit": "6"}, 402, "value set for 'limit'"),
        ("quote", {}, 400, "missing query parameter - symbol"),
        ("income-statement", {"symbol": "AAPL", "period": "quarter"}, 400, "parameter - period"),
        ("historical-price-eod/full", {"symbol": "AAPL", "to": "soon"}, 400, "parameter - to"),
    ],
)
def test_the_free_plan_refuses_in_plain_text(endpoint: str, params: dict[str, str], status: int, words: str) -> None:
    reply = Asked(NOW, fmp_plan="free").fmp(endpoint, **params)
    assert (reply.status, reply.content_type.split(";")[0]) == (status, "text/plain")
    assert words in reply.body.decode()


def test_its_words_are_those_of_the_recordings() -> None:
    free = Asked(NOW, fmp_plan="free")
    for file, reply in (
        ("error_402_symbol_gate.txt", free.fmp("quote", symbol="AVGO")),
        ("error_402_endpoint_gate.txt", free.fmp("batch-quote", symbols="AAPL")),
    ):
        assert reply.body == recorded("fmp", file).body.strip()


def test_f5_dividends_and_splits_are_listed_newest_first() -> None:
    asked = Asked(NOW)
    found = rows(asked, "dividends", symbol="IBM")
    days = [row["date"] for row in found]
    assert days == sorted(days, reverse=True)
    assert len([day for day in days if day.startswith("2012")]) == 4
    assert found == rows(asked, "dividends", symbol="IBM"), "the same at every call"
    assert rows(asked, "dividends", symbol="GOOG") == []
    assert [(row["date"], row["numerator"]) for row in rows(asked, "splits", symbol="AAPL")] == [
        ("2005-02-28", 2),
        ("2000-06-21", 2),
    ]
    early = next(row for row in rows(asked, "dividends", symbol="AAPL") if row["date"] < "2005-02-28")
    assert Decimal(str(early["adjDividend"])) * 2 == Decimal(str(early["dividend"]))
    assert rows(asked, "splits", symbol="IBM") == []


def test_f5_a_dividend_is_a_small_part_of_the_price_before_it() -> None:
    asked = Asked(NOW)
    for symbol in ("IBM", "MSFT", "AAPL"):
        paid = {row["date"]: Decimal(str(row["dividend"])) for row in rows(asked, "dividends", symbol=symbol)}
        for day in [day for day in paid if "2003" < day < "2013"]:
            before = asked.bars(symbol, end_date=day, outputsize="2")[0]
            assert paid[day] < Decimal(before["close"]) / 50


def test_quotes_are_the_same_as_of_any_other_dialect() -> None:
    asked = Asked(NOW)
    (mine,) = rows(asked, "quote", symbol="AAPL")
    other = parsed(asked.twelvedata("quote", symbol="AAPL"))
    for name, theirs in (("price", "close"), ("dayHigh", "high"), ("dayLow", "low"), ("open", "open")):
        assert Decimal(str(mine[name])) == Decimal(other[theirs])
    assert (mine["timestamp"], mine["volume"]) == (other["timestamp"], int(other["volume"]))


def test_statements_add_up_and_are_as_many_as_asked_for() -> None:
    found = rows(Asked(NOW), "income-statement", symbol="IBM", period="annual", limit="3")
    assert [row["fiscalYear"] for row in found] == ["2026", "2025", "2024"]
    for row in found:
        assert row["grossProfit"] == row["revenue"] - row["costOfRevenue"]
    assert len(rows(Asked(NOW), "income-statement", symbol="IBM")) == 5


def test_a_profile_has_what_the_market_says_beside_what_the_company_is() -> None:
    (found,) = rows(Asked(NOW), "profile", symbol="AAPL")
    assert found["companyName"] == "Apple Inc."
    assert {"price", "marketCap", "isin", "sector", "fullTimeEmployees"} <= found.keys()


def test_what_the_free_plan_has() -> None:
    free = Asked(NOW, fmp_plan="free")
    for endpoint in ("quote", "profile", "earnings", "income-statement", "historical-price-eod/full"):
        assert rows(free, endpoint, symbol="AAPL")


def test_paths_it_does_not_have() -> None:
    assert Asked(NOW).fmp("news").status == 404
