"""FMP's recorded answers, in more detail than in provider_answers.csv (B29)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, Dividend
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
)
from pricing_pipeline_tests.support.fmp_answers import (
    BARS,
    DIVIDENDS,
    EARNINGS,
    INCOME,
    JANUARY,
    QUOTE,
    Check,
    raises,
    read,
)
from pricing_pipeline_tests.support.recordings import recorded


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


RECORDED: dict[str, tuple[Fetcher, Window | None, Check]] = {
    "stable_historical_price_eod_full_AAPL_2023_01.json": (BARS, JANUARY, six_days_of_january),
    "stable_earnings_AAPL.json": (EARNINGS, None, six_reports_of_which_three_are_to_come),
    "stable_income_statement_AAPL.json": (INCOME, None, one_fiscal_year),
    "stable_dividends_AAPL_limit1.json": (DIVIDENDS, None, one_dividend),
    "error_401_invalid_key.json": (QUOTE, None, raises(KeyRefused, "PRICING_FMP_API_KEY")),
    "error_402_endpoint_gate.txt": (QUOTE, None, raises(PlanRestricted, "Restricted", whole=True)),
    "error_403_legacy_endpoint.json": (QUOTE, None, raises(PlanRestricted, "base URL", whole=True)),
}


@pytest.mark.parametrize("file", RECORDED)
def test_b29_recorded_answers(file: str) -> None:
    fetcher, window, check = RECORDED[file]
    response = recorded("fmp", file)
    check(lambda: read(response, ["AAPL"], fetcher, window))


def test_the_old_apis_quote_says_the_same_of_its_price() -> None:
    (observation,) = read(recorded("fmp", "v3_quote_AAPL.json"), ["AAPL"]).observations
    assert (observation.text, observation.observed_at.date()) == ("191.31", date(2023, 11, 22))
