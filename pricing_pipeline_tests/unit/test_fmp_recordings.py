"""FMP's recorded answers: each has one right outcome (B29)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, Dividend, FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline_tests.support.fmp_answers import (
    BARS,
    DIVIDENDS,
    EARNINGS,
    INCOME,
    JANUARY,
    QUOTE,
    Check,
    fails,
    raises,
    read,
)
from pricing_pipeline_tests.support.recordings import recorded, recorded_files


def the_recorded_quote(call: Callable[[], Answer]) -> None:
    (observation,) = call().observations
    assert (str(observation.close), observation.text, observation.currency) == ("256.08", "256.08", "USD")
    assert observation.observed_at == datetime(2025, 9, 22, 20, 0, 1, tzinfo=UTC)
    assert observation.open is observation.volume is None


def six_days_of_january(call: Callable[[], Answer]) -> None:
    answer = call()
    assert (answer.failures, answer.rejected) == ((), ())
    assert [(str(one.observed_at.date()), one.text) for one in answer.observations] == [
        ("2023-01-03", "125.07"),
        ("2023-01-04", "126.36"),
        ("2023-01-05", "125.02"),
        ("2023-01-06", "129.62"),
        ("2023-01-09", "130.15"),
        ("2023-01-10", "130.73"),
    ]
    last = answer.observations[-1]
    assert (last.open, last.high, last.low, last.volume) == tuple(
        map(Decimal, ("130.26", "131.26", "128.12", "63896200"))
    )
    assert {one.adjustment for one in answer.observations} == {Adjustment.SPLITS}


def six_reports_of_which_three_are_to_come(call: Callable[[], Answer]) -> None:
    answer = call()
    assert not answer.rejected
    assert [str(one.period) for one in answer.records] == [
        *("2025-01-30", "2025-05-01", "2025-07-31", "2025-10-30", "2026-01-28", "2026-04-26")
    ]
    told = answer.records[2].body
    assert (told["epsActual"], told["revenueActual"]) == (Decimal("1.57"), 94036000000)
    assert all(one.body["epsActual"] is None for one in answer.records[3:])


def one_fiscal_year(call: Callable[[], Answer]) -> None:
    (document,) = call().records
    assert document.period == date(2024, 9, 28)
    assert len(document.body) == 39
    assert (document.body["revenue"], document.body["eps"]) == (391035000000, Decimal("6.11"))


def one_dividend(call: Callable[[], Answer]) -> None:
    answer = call()
    assert answer.actions == (Dividend("AAPL", date(2025, 8, 11), Decimal("0.26")),)
    assert [(one.period, one.body["paymentDate"]) for one in answer.records] == [(date(2025, 8, 11), "2025-08-14")]
    assert "yield" not in answer.records[0].body, "that is the market's"


RECORDED: dict[str, tuple[Fetcher, str, Window | None, Check]] = {
    "stable_quote_AAPL.json": (QUOTE, "AAPL", None, the_recorded_quote),
    "stable_historical_price_eod_full_AAPL_2023_01.json": (BARS, "AAPL", JANUARY, six_days_of_january),
    "stable_earnings_AAPL.json": (EARNINGS, "AAPL", None, six_reports_of_which_three_are_to_come),
    "stable_income_statement_AAPL.json": (INCOME, "AAPL", None, one_fiscal_year),
    "stable_dividends_AAPL_limit1.json": (DIVIDENDS, "AAPL", None, one_dividend),
    "stable_quote_unknown_symbol_empty200.json": (QUOTE, "NOPE", None, fails(FailureKind.UNKNOWN_SYMBOL)),
    "error_400_query_text.txt": (
        BARS,
        "AAPL",
        None,
        raises(RequestRefused, "missing query parameter - from"),
    ),
    "error_401_invalid_key.json": (QUOTE, "AAPL", None, raises(KeyRefused, "PRICING_FMP_API_KEY")),
    "error_402_endpoint_gate.txt": (QUOTE, "AAPL", None, raises(PlanRestricted, "Restricted", whole=True)),
    "error_402_symbol_gate.txt": (QUOTE, "AVGO", None, fails(FailureKind.PLAN_RESTRICTED)),
    "error_403_legacy_endpoint.json": (QUOTE, "AAPL", None, raises(PlanRestricted, "base URL", whole=True)),
    "error_429_limit_reach.json": (QUOTE, "AAPL", None, raises(Throttled, "Limit Reach")),
    # Answers of other endpoints, and of the old API, are never taken for what was asked.
    "stable_intraday_5min_docs.json": (BARS, "AAPL", None, raises(SchemaDrift, "symbol")),
    "v3_historical_price_full_AAPL_2023_01.json": (BARS, "AAPL", JANUARY, raises(SchemaDrift, "list")),
    "v3_stock_split_AAPL.json": (BARS, "AAPL", JANUARY, raises(SchemaDrift, "list")),
}
OLD_QUOTE = "v3_quote_AAPL.json"


def test_every_recording_has_an_expected_outcome() -> None:
    assert recorded_files("fmp") == RECORDED.keys() | {OLD_QUOTE}


@pytest.mark.parametrize("file", RECORDED)
def test_b29_recorded_answers(file: str) -> None:
    fetcher, symbol, window, check = RECORDED[file]
    response = recorded("fmp", file)
    check(lambda: read(response, [symbol], fetcher, window))


def test_the_old_apis_quote_says_the_same_of_its_price() -> None:
    (observation,) = read(recorded("fmp", OLD_QUOTE), ["AAPL"]).observations
    assert (observation.text, observation.observed_at.date()) == ("191.31", date(2023, 11, 22))
