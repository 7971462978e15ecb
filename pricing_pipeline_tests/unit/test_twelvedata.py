"""Twelve Data's requests and answers (A11, B18, A9, B8). Recorded ones are in test_twelvedata_recordings.py."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    InvalidRange,
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers.base import check_answer
from pricing_pipeline.providers.twelvedata import TwelveData
from pricing_pipeline.quarantine import judgement

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
STAMP = int(NOW.timestamp())
PROVIDER = TwelveData()
QUOTE, BARS = Fetcher.QUOTE, Fetcher.DAILY_BARS


def parse(
    body: object,
    symbols: list[str],
    fetcher: Fetcher = Fetcher.QUOTE,
    window: Window | None = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Response(status, headers or {}, raw, len(raw))
    answer = PROVIDER.parse(fetcher, symbols, window, response, now=NOW)
    return check_answer("twelvedata", symbols, answer)


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


def bar(day: str = "2026-11-19", **changes: Any) -> dict[str, Any]:
    return {
        "datetime": day,
        "open": "10.00000",
        "high": "12.00000",
        "low": "9.50000",
        "close": "11.12340",
        "volume": "100",
    } | changes


def series(*bars: dict[str, Any], symbol: str = "AAPL", **meta: Any) -> dict[str, Any]:
    full = {"symbol": symbol, "interval": "1day", "currency": "USD", "exchange": "NASDAQ", **meta}
    return {
        "meta": {name: value for name, value in full.items() if value is not ...},
        "values": list(bars),
        "status": "ok",
    }


def error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "status": "error"}


# --- requests -----------------------------------------------------------------------------------


def test_quotes_are_asked_in_one_batch() -> None:
    request = PROVIDER.build(QUOTE, ["AAPL", "EUR/USD"], None)
    assert (request.path, dict(request.params)) == ("/quote", {"symbol": "AAPL,EUR/USD"})


def test_daily_bars_are_asked_unadjusted_and_whole() -> None:
    request = PROVIDER.build(BARS, ["AAPL", "MSFT"], Window(date(2000, 3, 1), date(2013, 2, 28)))
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
    params = dict(PROVIDER.build(BARS, ["AAPL"], None).params)
    assert params["outputsize"] == "5"
    assert not {"start_date", "end_date"} & params.keys()


def test_a_window_that_would_be_cut_off_is_refused() -> None:
    start = date(2000, 1, 1)
    longest = Window(start, start + timedelta(days=4999))
    assert PROVIDER.max_window_days(BARS) == 5000
    PROVIDER.build(BARS, ["AAPL"], longest)
    with pytest.raises(InvalidRange, match="in parts"):
        PROVIDER.build(BARS, ["AAPL"], Window(start, start + timedelta(days=5000)))
    with pytest.raises(InvalidRange, match="ends before it starts"):
        PROVIDER.build(BARS, ["AAPL"], Window(start, start - timedelta(days=1)))


def test_batches_are_limited_in_symbols_and_in_bars() -> None:
    start = date(2000, 1, 1)
    assert PROVIDER.batch_limit(QUOTE, None) == 120
    assert PROVIDER.batch_limit(BARS, None) == 120
    assert PROVIDER.batch_limit(BARS, Window(start, start)) == 120
    assert PROVIDER.batch_limit(BARS, Window(start, start + timedelta(days=4999))) == 10
    PROVIDER.build(QUOTE, [f"S{n}" for n in range(120)], None)
    with pytest.raises(ValueError, match="120"):
        PROVIDER.build(QUOTE, [f"S{n}" for n in range(121)], None)


def test_b18_the_data_type_must_match_the_fetcher() -> None:
    with pytest.raises(SettingsError, match="twelvedata cannot fetch nav"):
        PROVIDER.build(Fetcher.NAV, ["125497"], None)


@pytest.mark.parametrize("symbol", ["AAPL", "BRK.A", "BTC/USD", "ALD:TASE", "^GSPC", "7203:XTKS"])
def test_symbols_it_could_know(symbol: str) -> None:
    assert PROVIDER.accepts(symbol)


@pytest.mark.parametrize("symbol", ["", "A,B", "A B", "A\nB", "A\x00", "\u0410APL", "A" * 65])
def test_symbols_that_would_corrupt_a_batch_are_not_sent(symbol: str) -> None:
    assert not PROVIDER.accepts(symbol)


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
        ({"close": "NaN"}, "finite"),
        ({"close": "Infinity"}, "finite"),
        ({"close": "1e400"}, "18 digits"),
        ({"close": "1e308"}, "18 digits"),
        ({"close": "-1.5"}, "above zero"),
        ({"close": "0.00000"}, "above zero"),
        ({"close": "1234567890.123456789"}, "18 digits"),
        ({"close": "1,000.00"}, "finite"),
        ({"close": "17300.00000"}, "far above its high"),
        ({"close": "1.73000"}, "far below its low"),
        ({"low": "176.00000"}, "is above its high"),
        ({"high": "160.00000"}, "is above its high"),
        ({"timestamp": STAMP + 301}, "future"),
        ({"timestamp": 0}, "no time"),
        ({"timestamp": STAMP * 1000}, "future|calendar"),
        ({"timestamp": 10**17}, "calendar"),
        ({"symbol": "MSFT"}, "about MSFT"),
        ({"currency": "US dollars"}, "ISO 4217"),
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


@pytest.mark.parametrize("literal", ["NaN", "-Infinity", "1e400", "-5", "0", "9" * 5000, "1e999999999999"])
def test_b18_json_numbers_that_are_no_price_fail_alone(literal: str) -> None:
    body = json.dumps({"AAPL": quote(close="@"), "IBM": quote("IBM")}).replace('"@"', literal).encode()
    answer = parse(body, ["AAPL", "IBM"])
    assert [(f.symbol, f.kind) for f in answer.failures] == [("AAPL", FailureKind.IMPLAUSIBLE)]
    assert [observation.symbol for observation in answer.observations] == ["IBM"]


def test_b18_a_stamp_may_run_five_minutes_ahead() -> None:
    (observation,) = parse(quote(timestamp=STAMP + 300), ["AAPL"]).observations
    assert observation.observed_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"close": ...}, "close"),
        ({"close": None}, "close"),
        ({"close": True}, "close"),
        ({"close": ["1"]}, "close"),
        ({"timestamp": "1732305600"}, "timestamp"),
        ({"symbol": 5}, "symbol"),
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


# --- daily bars ---------------------------------------------------------------------------------

NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 30))


def test_bars_are_midnight_utc_oldest_first() -> None:
    body = series(bar("2026-11-19"), bar("2026-11-18", close="10.5"))
    answer = parse(body, ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at for o in answer.observations] == [
        datetime(2026, 11, 18, tzinfo=UTC),
        datetime(2026, 11, 19, tzinfo=UTC),
    ]
    assert answer.observations[0].text == "10.5"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (bar(close="0"), "above zero"),
        (bar(close=None), "finite"),
        (bar(close=""), "finite"),
        (bar(close="\ud800"), "finite"),
        (bar("2026-11-19\0"), r"values\.1\.datetime"),
        (bar("1970-01-01"), "no time"),
        (bar("2026-10-31"), "outside"),
        (bar("2026-12-01"), "future|outside"),
        (bar("2026-11-31"), "calendar"),
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
        ("open", "0", "open '0' is not above zero"),
        ("high", "NaN", "high 'NaN' is not a finite decimal number"),
        ("low", {}, "low '{}' is not a finite decimal number"),
        ("low", "\ud800", "low '\\ud800' is not a finite decimal number"),
        ("volume", "-1", "volume '-1' is negative"),
        ("volume", "many", "volume 'many' is not a finite decimal number"),
        *((part, raw, None) for part in ("open", "high", "low", "volume") for raw in (None, "")),
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


def test_b18_a_json_number_that_is_none_costs_its_own_day_only() -> None:
    body = json.dumps(series(bar("2026-11-18"), bar(close="@"))).replace('"@"', "NaN").encode()
    answer = parse(body, ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at.day for o in answer.observations] == [18]
    assert [r.observed_at for r in answer.rejected] == [datetime(2026, 11, 19, tzinfo=UTC)]


def test_f6_thousands_of_days_that_nobody_asked_for_are_one_rejection() -> None:
    """Whatever comes of them: values are counted, with the first of them, and the days that were asked for are kept."""
    strangers = [
        bar(str(date(2015, 1, 1) + timedelta(days=n)), close=f"{10 + n / 1000:.5f}") for n in range(3500)
    ]
    answer = parse(series(*strangers, bar("2026-11-18")), ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at.day for o in answer.observations] == [18]
    (rejected,) = answer.rejected
    assert "3500 value(s) lie outside the asked 2026-11-01..2026-11-30" in rejected.reason
    assert "10.00000 of 2015-01-01, 10.00100 of 2015-01-02" in rejected.reason
    (failure,) = parse(series(*strangers), ["AAPL"], BARS, NOVEMBER).failures
    assert "none of the 3500 values" in failure.message


def test_f6_of_thousands_of_broken_days_a_hundred_are_shown_and_the_others_counted() -> None:
    broken = [bar(str(date(2015, 1, 1) + timedelta(days=n)), close="x") for n in range(3500)]
    answer = parse(series(*broken, bar("2026-11-18")), ["AAPL"], BARS, None)
    shown = judgement.doubts(answer, {}, {"AAPL": 1})
    assert len(shown) == 101
    assert isinstance(shown[-1], RejectedValue)
    assert shown[-1].reason.startswith("3400 more values cannot be true; the first: close 'x'")


def test_b18_tomorrow_is_a_day_somewhere_and_the_day_after_is_not() -> None:
    answer = parse(series(bar("2026-11-21"), bar("2026-11-22")), ["AAPL"], BARS, None)
    assert [o.observed_at.day for o in answer.observations] == [21]
    assert [r.observed_at for r in answer.rejected] == [datetime(2026, 11, 22, tzinfo=UTC)]


def test_b18_a_day_sent_twice_is_kept_once_and_a_contradiction_not_at_all() -> None:
    body = series(bar("2026-11-17"), bar("2026-11-17"), bar("2026-11-18"), bar("2026-11-18", close="11"))
    answer = parse(body, ["AAPL"], BARS, NOVEMBER)
    assert [o.observed_at.day for o in answer.observations] == [17]
    assert sorted(r.observed_at.day for r in answer.rejected if r.observed_at) == [17, 18, 18]


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


# --- errors -------------------------------------------------------------------------------------

PLAN_404 = "This symbol is available starting with Grow or Venture plan. Consider upgrading your API Key"
UNKNOWN_404 = "**symbol** or **figi** parameter is missing or invalid. Please provide a valid symbol"


@pytest.mark.parametrize("as_status", [True, False], ids=["true status", "HTTP 200"])
@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (404, UNKNOWN_404, FailureKind.UNKNOWN_SYMBOL),
        (400, "**symbol** not found: AAPL. Please specify it correctly", FailureKind.UNKNOWN_SYMBOL),
        (404, PLAN_404, FailureKind.PLAN_RESTRICTED),
        (403, PLAN_404, FailureKind.PLAN_RESTRICTED),
        (400, "No data is available on the specified dates. Try other dates.", None),
        (401, "**apikey** parameter is incorrect", KeyRefused),
        (403, "/quote is available exclusively with ultra", PlanRestricted),
        (404, "/quote is available starting with the Pro plan", PlanRestricted),
        (429, "You have run out of API credits for the day.", Throttled),
        (400, "Invalid **start_date** provided", RequestRefused),
        (500, "Internal server error", ProviderDown),
    ],
)
def test_errors_mean_the_same_with_either_status(
    code: int, message: str, outcome: FailureKind | type[ProviderError] | None, as_status: bool
) -> None:
    status = code if as_status else 200
    if isinstance(outcome, type):
        with pytest.raises(outcome) as caught:
            parse(error(code, message), ["AAPL"], BARS, NOVEMBER, status=status)
        assert message.split(".")[0] in str(caught.value)
        return
    answer = parse(error(code, message), ["AAPL"], BARS, NOVEMBER, status=status)
    if outcome is None:
        assert answer == Answer(empty=frozenset({"AAPL"}))
    else:
        assert [(f.symbol, f.kind) for f in answer.failures] == [("AAPL", outcome)]


def test_b8_errors_of_members_leave_the_others_whole() -> None:
    body = {
        "GOOD": series(bar(), symbol="GOOD"),
        "GONE": error(404, UNKNOWN_404),
        "GATED": error(403, PLAN_404),
        "QUIET": error(400, "No data is available on the specified dates."),
        "LATE": error(429, "You have run out of API credits for the current minute."),
        "SICK": error(500, "Internal error"),
        "ODD": [],
        "SURPLUS": series(bar(), symbol="SURPLUS"),
    }
    asked = ["GOOD", "GONE", "GATED", "QUIET", "LATE", "SICK", "ODD", "MISSING"]
    answer = parse(body, asked, BARS, NOVEMBER)
    assert [o.symbol for o in answer.observations] == ["GOOD"]
    assert answer.empty == {"QUIET"}
    assert {f.symbol: f.kind for f in answer.failures} == {
        "GONE": FailureKind.UNKNOWN_SYMBOL,
        "GATED": FailureKind.PLAN_RESTRICTED,
        "LATE": FailureKind.THROTTLED,
        "SICK": FailureKind.PROVIDER_DOWN,
        "ODD": FailureKind.SCHEMA_DRIFT,
        "MISSING": FailureKind.SCHEMA_DRIFT,
    }


@pytest.mark.parametrize(("code", "kind"), [(401, KeyRefused), (429, Throttled), (503, ProviderDown)])
def test_the_same_refusal_of_all_members_is_one_of_the_call(code: int, kind: type[ProviderError]) -> None:
    refused = error(code, "no")
    with pytest.raises(kind):
        parse({"A": refused, "B": refused}, ["A", "B"])


def test_b8_a_batch_refused_for_one_symbol_condemns_none_for_good() -> None:
    for message in (UNKNOWN_404, PLAN_404):
        with pytest.raises(SchemaDrift, match="one by one"):
            parse(error(404, message), ["A", "B"], status=404)


def test_an_empty_window_of_a_whole_batch_is_empty_for_each() -> None:
    body = error(400, "No data is available on the specified dates.")
    assert parse(body, ["A", "B"], BARS, NOVEMBER, status=400).empty == {"A", "B"}


def test_throttled_says_how_long() -> None:
    with pytest.raises(Throttled) as caught:
        parse(error(429, "slow down"), ["AAPL"], status=429, headers={"retry-after": "12"})
    assert caught.value.retry_after == 12.0


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"<html>hello</html>", 200, SchemaDrift),
        (b"", 200, SchemaDrift),
        (b'{"symbol":"AAPL"', 200, SchemaDrift),
        (b"[" * 100_000, 200, SchemaDrift),
        (b"\xff\xfe\xfa", 200, SchemaDrift),
        (b"null", 200, SchemaDrift),
        (b"[]", 200, SchemaDrift),
        (b"{}", 200, SchemaDrift),
        (b"<html>404</html>", 404, ProviderDown),
        (b"<html>Attention Required!</html>", 403, ProviderDown),
        (b"nope", 404, SchemaDrift),
        (b"{}", 429, Throttled),
        (b"", 503, ProviderDown),
    ],
)
def test_fault_11_bodies_that_are_no_answer(body: bytes, status: int, kind: type[ProviderError]) -> None:
    for symbols in (["AAPL"], ["AAPL", "IBM"]):
        with pytest.raises(kind):
            parse(body, symbols, status=status)


def test_messages_are_one_printable_line() -> None:
    answer = parse(error(404, "not\x00 found\r\n\ud800 " + "x" * 5000), ["AAPL"])
    (failure,) = answer.failures
    assert failure.message.isprintable()
    assert len(failure.message) < 500
