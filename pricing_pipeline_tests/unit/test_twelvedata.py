"""Twelve Data's requests and quotes (A9, B18). Its bars, refusals and recorded answers have files of their own."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from typing import Any

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    SchemaDrift,
)
from pricing_pipeline.providers.base import Question
from pricing_pipeline_tests.support.twelvedata_answers import BARS, NOW, PROVIDER, QUOTE, parse

STAMP = int(NOW.timestamp())


def quote(symbol: str = "AAPL", **changes: Any) -> dict[str, Any]:
    full = {
        "symbol": symbol,
        "name": "Apple Inc",
        "exchange": "NASDAQ",
        "mic_code": "XNGS",
        "currency": "USD",
        "datetime": "2026-11-20",
        "timestamp": STAMP - 60,
        "open": "171.73000",
        "high": "175.35001",
        "low": "171.42999",
        "close": "174.83000",
        "volume": "74706900",
        "is_market_open": True,
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


# --- requests -----------------------------------------------------------------------------------


def test_quotes_are_asked_in_one_batch() -> None:
    request = PROVIDER.build(Question(QUOTE, ["AAPL", "EUR/USD"], None, NOW))
    assert (request.path, dict(request.params)) == ("/quote", {"symbol": "AAPL,EUR/USD"})


def test_daily_bars_are_asked_unadjusted_and_whole() -> None:
    request = PROVIDER.build(Question(BARS, ["AAPL", "MSFT"], Window(date(2000, 3, 1), date(2013, 2, 28)), NOW))
    assert request.path == "/time_series"
    assert dict(request.params) == {
        "symbol": "AAPL,MSFT",
        "interval": "1day",
        "start_date": "2000-03-01",
        "end_date": "2013-02-28",
        "outputsize": "5000",
        "order": "ASC",
        "timezone": "UTC",
        "adjust": "none",
    }


def test_the_latest_bars_are_asked_without_dates() -> None:
    params = dict(PROVIDER.build(Question(BARS, ["AAPL"], None, NOW)).params)
    assert params["outputsize"] == "5"
    assert not {"start_date", "end_date"} & params.keys()


def test_batches_are_limited_in_symbols_and_in_bars() -> None:
    start = date(2000, 1, 1)
    assert PROVIDER.batch_limit(QUOTE, None) == 120
    assert PROVIDER.batch_limit(BARS, None) == 120
    assert PROVIDER.batch_limit(BARS, Window(start, start)) == 120
    assert PROVIDER.batch_limit(BARS, Window(start, start + timedelta(days=4999))) == 10
    assert PROVIDER.max_window_days(BARS) == 5000


# --- quotes -------------------------------------------------------------------------------------


def test_a9_a_quote_is_exact_and_keeps_its_spelling() -> None:
    (observation,) = parse(quote(close="171.50"), ["AAPL"]).observations
    assert (str(observation.close), observation.text, observation.currency) == ("171.50", "171.50", "USD")
    assert observation.observed_at == NOW - timedelta(seconds=60)
    assert observation.open is observation.high is observation.low is observation.volume is None


def test_a9_a_json_number_is_read_exactly() -> None:
    body = json.dumps(quote()).replace('"174.83000"', "174.830000000001").encode()
    (observation,) = parse(body, ["AAPL"]).observations
    assert str(observation.close) == observation.text == "174.830000000001"


def test_a_quotes_time_is_that_of_its_last_minute() -> None:
    (observation,) = parse(quote(timestamp=STAMP - 20_000, last_quote_at=STAMP - 5), ["AAPL"]).observations
    assert observation.observed_at == NOW - timedelta(seconds=5)


def test_b18_a_broken_time_of_its_last_minute_leaves_a_quote_the_one_of_its_bar() -> None:
    (observation,) = parse(quote(timestamp=STAMP - 5, last_quote_at=0), ["AAPL"]).observations
    assert observation.observed_at == NOW - timedelta(seconds=5)
    assert parse(quote(timestamp=0, last_quote_at=0), ["AAPL"]).failures
    (observation,) = parse(quote(timestamp=..., last_quote_at=STAMP - 5), ["AAPL"]).observations
    assert observation.observed_at == NOW - timedelta(seconds=5)


def test_a_pair_is_priced_in_the_currency_after_the_slash() -> None:
    body = quote("EUR/JPY", currency=..., volume=..., exchange="Forex", mic_code=...)
    (observation,) = parse(body, ["EUR/JPY"]).observations
    assert observation.currency == "JPY"


def test_a9_pence_become_pounds_exactly() -> None:
    body = quote("VOD:LSE", currency="GBp", exchange="LSE") | {"symbol": "VOD"}
    (observation,) = parse(body, ["VOD:LSE"]).observations
    assert (str(observation.close), observation.currency) == ("1.7483000", "GBP")
    assert observation.text == "174.83000"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"close": "17300.00000"}, "far above its high"),
        ({"close": "1.73000"}, "far below its low"),
        ({"low": "176.00000"}, "is above its high"),
        ({"timestamp": STAMP + 301}, "future"),
        ({"timestamp": ..., "datetime": "2026-11-23"}, "future"),
        ({"timestamp": ..., "datetime": "2026-02-30"}, "calendar"),
    ],
)
def test_b18_a_quote_that_cannot_be_true_fails_alone(changes: dict[str, Any], words: str) -> None:
    answer = parse({"AAPL": quote(**changes), "IBM": quote("IBM")}, ["AAPL", "IBM"])
    (failure,) = answer.failures
    assert (failure.symbol, failure.kind) == ("AAPL", FailureKind.IMPLAUSIBLE)
    assert re.search(words, failure.message)
    assert [observation.symbol for observation in answer.observations] == ["IBM"]


@pytest.mark.parametrize(
    "changes",
    [
        {"close": "176.00000"},
        {"close": "170.00000"},
        {"open": "0"},
        {"open": None, "high": "", "low": "many"},
        {"open": "-1", "high": "99999999999", "low": "0.00001"},
    ],
)
def test_b18_of_a_quote_the_price_is_needed_and_no_more(changes: dict[str, Any]) -> None:
    answer = parse(quote(**changes), ["AAPL"])
    (price,) = answer.observations
    assert price.text == changes.get("close", quote()["close"])
    assert (price.open, price.high, price.low, price.quality) == (None, None, None, None)


def test_b18_a_stamp_may_run_five_minutes_ahead() -> None:
    (observation,) = parse(quote(timestamp=STAMP + 300), ["AAPL"]).observations
    assert observation.observed_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"close": None}, "close"),
        ({"timestamp": "1732305600"}, "timestamp"),
        ({"currency": ...}, "no currency"),
        ({"is_market_open": "yes"}, "is_market_open"),
        ({"timestamp": ..., "datetime": "2026-11-20 10:00:00"}, "time zone"),
    ],
)
def test_b18_a_quote_unlike_its_schema_is_drift(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaDrift, match=words):
        parse(quote(**changes), ["AAPL"])
    answer = parse({"AAPL": quote(**changes), "IBM": quote("IBM")}, ["AAPL", "IBM"])
    assert [(f.symbol, f.kind) for f in answer.failures] == [("AAPL", FailureKind.SCHEMA_DRIFT)]
    assert [observation.symbol for observation in answer.observations] == ["IBM"]


def test_new_fields_are_no_drift() -> None:
    assert parse(quote(rolling_1d_change="1.2", brand_new={"a": 1}), ["AAPL"]).observations
