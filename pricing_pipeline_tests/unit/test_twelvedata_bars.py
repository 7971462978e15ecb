"""Twelve Data's daily bars: one bad day costs no good one, and the close alone is needed (B18)."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.errors import (
    SchemaDrift,
)
from pricing_pipeline.providers.base import Question
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.twelvedata_answers import BARS, NOVEMBER, NOW, PROVIDER, bar, parse, series


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (bar("2026-11-19\0"), r"values\.1\.datetime"),
        (bar("1970-01-01"), "no time"),
        (bar("2026-10-31"), "outside"),
    ],
)
def test_b18_one_bad_day_costs_no_good_one(bad: dict[str, Any], words: str) -> None:
    answer = parse(series(bar("2026-11-18"), bad), ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at.day for o in answer.observations] == [18]
    (rejected,) = answer.rejected
    assert rejected.symbol == "AAPL"
    assert re.search(words, rejected.reason)
    assert not answer.failures


@pytest.mark.parametrize(
    ("part", "raw", "words"),
    [
        ("open", "-3", "open '-3' is not above zero; prices below it are not supported"),
        ("high", "NaN", "high 'NaN' is not a finite decimal number"),
        ("volume", "-1", "volume '-1' is negative"),
        ("volume", "many", "volume 'many' is not a finite decimal number"),
        ("open", None, None),
        ("volume", "", None),
    ],
)
def test_b18_of_a_bar_the_close_is_needed_and_no_more(part: str, raw: object, words: str | None) -> None:
    """What is missing is missing; what cannot be read is left out, and the bar says so."""
    answer = parse(series(bar("2026-11-18"), bar(**{part: raw})), ["AAPL"], BARS, NOVEMBER)
    whole, row = answer.observations
    assert not answer.rejected
    assert (getattr(row, part), row.quality) == (None, words)
    others = {"open", "high", "low", "close", "volume"} - {part}
    assert [getattr(row, name) for name in others] == [getattr(whole, name) for name in others]


def test_f6_thousands_of_days_that_nobody_asked_for_are_one_rejection() -> None:
    """Whatever comes of them: values are counted, with the first of them, and the days that were asked for are kept."""
    strangers = [bar(str(date(2015, 1, 1) + timedelta(days=n)), close=f"{10 + n / 1000:.5f}") for n in range(3500)]
    answer = parse(series(*strangers, bar("2026-11-18")), ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at.day for o in answer.observations] == [18]
    (rejected,) = answer.rejected
    assert "3500 value(s) lie outside the asked 2026-11-01..2026-11-30" in rejected.reason
    assert "10.00000 of 2015-01-01, 10.00100 of 2015-01-02" in rejected.reason
    (failure,) = parse(series(*strangers), ["AAPL"], BARS, NOVEMBER).failures
    assert "no value of AAPL is of the days that were asked for: 3500 value(s)" in failure.message


def test_b18_a_symbol_without_one_good_day_has_failed() -> None:
    answer = parse(series(bar(close="0"), bar("2026-11-18", close="-1")), ["AAPL"], BARS, NOVEMBER)
    (failure,) = answer.failures
    assert (failure.kind, len(answer.rejected)) == (FailureKind.IMPLAUSIBLE, 2)
    assert not answer.observations


def test_b18_bars_of_another_symbol_or_exchange_are_refused() -> None:
    for body in (series(bar(), symbol="MSFT"), series(bar(), symbol="AAPL", exchange="NYSE")):
        answer = parse(body, ["AAPL:NASDAQ"], BARS, NOVEMBER)
        assert [f.kind for f in answer.failures] == [FailureKind.IMPLAUSIBLE]


def test_b18_a_day_without_the_promised_form_is_drift() -> None:
    with pytest.raises(SchemaDrift, match=r"values\.0\.datetime"):
        parse(series(bar("2026-11-19 10:00:00")), ["AAPL"], BARS, NOVEMBER)


def test_no_bars_are_a_valid_answer() -> None:
    assert parse(series(), ["AAPL"], BARS, NOVEMBER) == Answer(empty=frozenset({"AAPL"}))


def test_a_pairs_bars_have_no_volume() -> None:
    forex = bar()
    del forex["volume"]
    body = series(forex, symbol="EUR/USD", currency=..., currency_base="Euro", currency_quote="US Dollar")
    (observation,) = parse(body, ["EUR/USD"], BARS, NOVEMBER).observations
    assert (observation.volume, observation.currency) == (None, "USD")


def test_a9_recorded_bars_are_read_to_the_last_digit() -> None:
    answer = PROVIDER.parse(
        Question(BARS, ["IBM"], None, NOW), recorded("twelvedata", "time_series_IBM_1day_default30.json")
    )
    last = answer.observations[-1]
    assert (last.open, last.high, last.low, last.close) == tuple(
        map(Decimal, ("146.96001", "147.50000", "146.55000", "146.84000"))
    )
