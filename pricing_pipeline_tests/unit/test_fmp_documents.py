"""FMP's documents, and its lists of dividends and splits (B29, B18, A9, F5)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, Dividend, FailureKind, SpinOff, Split
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import (
    SchemaDrift,
)
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.fmp import Fmp

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
PROVIDER = Fmp()
PROFILE, EARNINGS, INCOME = Fetcher.PROFILE, Fetcher.EARNINGS, Fetcher.INCOME_STATEMENT
DIVIDENDS, SPLITS = Fetcher.DIVIDENDS, Fetcher.SPLITS


def parse(body: object, *, fetcher: Fetcher, symbol: str = "AAPL") -> Answer:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    answer = PROVIDER.parse(Question(fetcher, [symbol], None, NOW), Response(200, {}, raw, len(raw)))
    return check_answer("fmp", [symbol], answer)


def profile(**changes: Any) -> dict[str, Any]:
    full = {
        "symbol": "AAPL",
        "price": 262.82,
        "marketCap": 3900351299800,
        "beta": 1.086,
        "lastDividend": 1.05,
        "companyName": "Apple Inc.",
        "currency": "USD",
        "exchange": "NASDAQ",
        "fullTimeEmployees": "164000",
        "isEtf": False,
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


def report(day: str = "2026-10-29", **changes: Any) -> dict[str, Any]:
    full = {
        "symbol": "AAPL",
        "date": day,
        "epsActual": 1.85,
        "epsEstimated": 1.77,
        "revenueActual": 102466000000,
        "revenueEstimated": 102227000000,
        "lastUpdated": "2026-11-01",
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


def statement(day: str = "2025-09-27", **changes: Any) -> dict[str, Any]:
    full = {
        "date": day,
        "symbol": "AAPL",
        "reportedCurrency": "USD",
        "fiscalYear": day[:4],
        "period": "FY",
        "revenue": 416161000000,
        "costOfRevenue": 220960000000,
        "grossProfit": 195201000000,
        "netIncome": 112010000000,
        "eps": 7.49,
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


# --- documents ----------------------------------------------------------------------------------


def test_b29_a_profile_says_what_a_company_is_and_not_what_the_market_says_of_it() -> None:
    (document,) = parse([profile()], fetcher=PROFILE).records
    assert (document.symbol, document.period) == ("AAPL", None)
    assert document.body == {
        "symbol": "AAPL",
        "companyName": "Apple Inc.",
        "currency": "USD",
        "exchange": "NASDAQ",
        "fullTimeEmployees": "164000",
        "lastDividend": Decimal("1.05"),
        "isEtf": False,
    }
    (later,) = parse([profile(price=1, marketCap=2, beta=3)], fetcher=PROFILE).records
    assert later == document


def test_a9_a_documents_numbers_are_exact() -> None:
    body = json.dumps([report(epsActual=0)]).replace('"epsActual": 0', '"epsActual": 1.850000000000000001')
    (document,) = parse(body, fetcher=EARNINGS).records
    assert str(document.body["epsActual"]) == "1.850000000000000001"


@pytest.mark.parametrize("fetcher", [PROFILE, EARNINGS, INCOME])
def test_a_document_of_nobody_is_an_unknown_symbol(fetcher: Fetcher) -> None:
    assert [one.kind for one in parse([], fetcher=fetcher).failures] == [FailureKind.UNKNOWN_SYMBOL]


@pytest.mark.parametrize(
    ("fetcher", "row"),
    [
        (PROFILE, profile(companyName=None)),
        (PROFILE, profile(isEtf="no")),
        (PROFILE, profile(fullTimeEmployees=164000)),
        (PROFILE, profile(lastDividend="1.05")),
        (EARNINGS, report(epsActual=...)),
        (EARNINGS, report(epsActual="1.85")),
        (EARNINGS, report(epsActual=True)),
        (EARNINGS, report(epsActual=float("nan"))),
        (EARNINGS, report(revenueActual=1e300)),
        (EARNINGS, report("29.10.2026")),
        (INCOME, statement(reportedCurrency="dollars")),
        (INCOME, statement(revenue=...)),
        (INCOME, statement(eps="7.49")),
        (INCOME, statement(fiscalYear=2025)),
    ],
)
def test_b18_a_document_unlike_its_schema_is_drift(fetcher: Fetcher, row: dict[str, Any]) -> None:
    with pytest.raises(SchemaDrift):
        parse([row], fetcher=fetcher)


@pytest.mark.parametrize(
    ("fetcher", "good", "bad", "words"),
    [
        (EARNINGS, report(), report("2026-11-22"), "actual.*future"),
        (EARNINGS, report(), report("2026-02-30"), "calendar"),
        (INCOME, statement(), statement("2027-09-25"), "future"),
        (INCOME, statement(), statement("2026-09-26", period="Q3"), "Q3"),
    ],
)
def test_b18_a_bad_period_costs_no_good_one(
    fetcher: Fetcher, good: dict[str, Any], bad: dict[str, Any], words: str
) -> None:
    answer = parse([bad, good], fetcher=fetcher)
    assert [str(one.period) for one in answer.records] == [good["date"]]
    (rejected,) = answer.rejected
    assert re.search(words, rejected.reason)
    assert [one.kind for one in parse([bad], fetcher=fetcher).failures] == [FailureKind.IMPLAUSIBLE]


def test_what_is_still_to_come_has_no_actual_figures_and_is_kept() -> None:
    coming = report("2027-01-28", epsActual=None, revenueActual=None)
    (document,) = parse([coming], fetcher=EARNINGS).records
    assert document.period == date(2027, 1, 28)


def test_a_period_with_two_truths_has_none() -> None:
    assert len(parse([report(), report()], fetcher=EARNINGS).records) == 1
    answer = parse([report(), report(epsActual=2), report("2026-07-30")], fetcher=EARNINGS)
    assert [str(one.period) for one in answer.records] == ["2026-07-30"]
    assert len(answer.rejected) == 2


# --- dividends and splits -----------------------------------------------------------------------


def listed(fetcher: Fetcher, *rows: dict[str, object], symbol: str = "AAPL") -> Answer:
    return parse([{"symbol": symbol, **row} for row in rows], fetcher=fetcher, symbol=symbol)


def test_f5_dividends_are_as_of_their_day_and_those_to_come_are_no_actions_yet() -> None:
    answer = listed(
        DIVIDENDS,
        {"date": "2026-12-01", "dividend": 0.3, "adjDividend": 0.3},
        {"date": "2013-02-07", "dividend": 2.65, "adjDividend": 0.094643},
    )
    assert answer.actions == (Dividend("AAPL", date(2013, 2, 7), Decimal("2.65")),)
    assert [one.period for one in answer.records] == [date(2013, 2, 7), date(2026, 12, 1)]
    assert answer.actions_since == {}, "of the splits of these days it says nothing"


def test_f5_splits_may_be_spin_offs_and_go_backwards() -> None:
    answer = listed(
        SPLITS,
        {"date": "2024-06-10", "numerator": 1, "denominator": 8},
        {"date": "2021-08-02", "numerator": 1.281, "denominator": 1},
    )
    assert answer.actions == (
        SpinOff("AAPL", date(2021, 8, 2), Decimal("1.281"), Decimal(1)),
        Split("AAPL", date(2024, 6, 10), Decimal(1), Decimal(8)),
    )


@pytest.mark.parametrize("fetcher", [DIVIDENDS, SPLITS])
def test_f5_a_share_that_paid_nothing_or_was_never_split_has_an_empty_list(fetcher: Fetcher) -> None:
    answer = listed(fetcher)
    assert answer == Answer(empty=frozenset({"AAPL"}))


def test_b18_what_cannot_be_paid_or_split_costs_only_itself() -> None:
    good = {"date": "2026-08-10", "dividend": 0.26}
    answer = listed(
        DIVIDENDS,
        good,
        {"date": "2026-05-12", "dividend": 0, "adjDividend": 0.26},
        {"date": "2026-02-10", "dividend": None},
        {"date": "2025-11-10", "dividend": 0.25},
        {"date": "2025-11-10", "dividend": 1.00},
    )
    assert [one.ex_on for one in answer.actions] == [date(2026, 8, 10)]
    assert sorted(str(value.observed_at)[:10] for value in answer.rejected) == [
        *("2025-11-10", "2025-11-10", "2026-02-10", "2026-05-12")
    ]
    assert not listed(SPLITS, {"date": "2026-08-10", "numerator": 3, "denominator": 3}).actions
    (failure,) = listed(DIVIDENDS, good, symbol="VOD.L").failures
    assert failure.kind is FailureKind.MISCONFIGURED, "in pounds or in pence?"
    assert listed(SPLITS, {"date": "2020-01-02", "numerator": 2, "denominator": 1}, symbol="VOD.L").actions


@pytest.mark.parametrize("junk", [{"date": None}, {"date": ""}, {"date": "2014-06-09T00:00:00"}, {"symbol": None}])
@pytest.mark.parametrize("fetcher", [EARNINGS, INCOME, DIVIDENDS, SPLITS])
def test_b18_one_row_unlike_its_schema_costs_itself_alone(fetcher: Fetcher, junk: dict[str, Any]) -> None:
    given: dict[Fetcher, Callable[[str], dict[str, Any]]] = {
        EARNINGS: report,
        INCOME: statement,
        DIVIDENDS: lambda day: {"symbol": "AAPL", "date": day, "dividend": 0.25},
        SPLITS: lambda day: {"symbol": "AAPL", "date": day, "numerator": 4, "denominator": 1},
    }
    make = given[fetcher]
    days = ["2024-09-28", "2023-09-30", "2022-09-24"]
    answer = parse([make(days[0]), make(days[1]) | junk, make(days[2])], fetcher=fetcher)
    assert [str(one.period) for one in answer.records] == [days[2], days[0]]
    (rejected,) = answer.rejected
    assert f"rows.{2 if 'symbol' in junk else 1}." in rejected.reason


@pytest.mark.parametrize(("bad", "kept"), [("a\0b", "a\\x00b"), ("a\ud800b", "a\\ud800b")])
def test_b18_text_that_no_database_holds_is_kept_escaped(bad: str, kept: str) -> None:
    (document,) = parse([profile(description=bad)], fetcher=PROFILE).records
    assert document.body["description"] == kept
    (document,) = parse([statement(cik=bad)], fetcher=INCOME).records
    assert document.body["cik"] == kept
