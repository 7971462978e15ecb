"""FMP's requests, refusals, quotes and bars (B29, B18, A9, B8).

Its recorded answers are in test_fmp_recordings.py, its documents in test_fmp_documents.py.
"""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.base import Question
from pricing_pipeline_tests.support.fmp_answers import (
    BARS,
    DIVIDENDS,
    EARNINGS,
    INCOME,
    JANUARY,
    NOW,
    PROFILE,
    PROVIDER,
    QUOTE,
    SPLITS,
    Check,
    fails,
    raises,
    read,
)

STAMP = int(NOW.timestamp())

SYMBOL_GATE = (
    "Premium Query Parameter: 'Special Endpoint : This value set for 'symbol' is not available under your "
    "current subscription please visit our subscription page"
)
ENDPOINT_GATE = "Restricted Endpoint: This endpoint is not available under your current subscription"


def parse(
    body: object,
    symbols: list[str] | None = None,
    fetcher: Fetcher = QUOTE,
    window: Window | None = None,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return read(Response(status, headers or {}, raw, len(raw)), symbols or ["AAPL"], fetcher, window)


def quote(symbol: str = "AAPL", **changes: Any) -> dict[str, Any]:
    full = {
        "symbol": symbol,
        "name": "Apple Inc.",
        "price": 174.83,
        "dayLow": 171.42,
        "dayHigh": 175.35,
        "open": 171.73,
        "volume": 74706900,
        "exchange": "NASDAQ",
        "timestamp": STAMP - 60,
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


def bar(day: str = "2026-11-19", **changes: Any) -> dict[str, Any]:
    full = {
        "symbol": "AAPL",
        "date": day,
        "open": 10,
        "high": 12.5,
        "low": 9.5,
        "close": 11.1234,
        "volume": 100,
    }
    return {name: value for name, value in {**full, **changes}.items() if value is not ...}


# --- requests -----------------------------------------------------------------------------------


def asked(fetcher: Fetcher, *symbols: str, window: Window | None = None) -> tuple[str, dict[str, str]]:
    request = PROVIDER.build(Question(fetcher, symbols, window, NOW))
    return request.path, dict(request.params)


def test_b29_each_fetcher_has_its_path() -> None:
    assert asked(QUOTE, "AAPL") == ("/quote", {"symbol": "AAPL"})
    assert asked(QUOTE, "AAPL", "MSFT") == ("/batch-quote", {"symbols": "AAPL,MSFT"})
    assert asked(BARS, "AAPL", window=JANUARY) == (
        "/historical-price-eod/full",
        {"symbol": "AAPL", "from": "2023-01-01", "to": "2023-01-10"},
    )
    assert asked(PROFILE, "AAPL") == ("/profile", {"symbol": "AAPL"})
    assert asked(EARNINGS, "AAPL") == ("/earnings", {"symbol": "AAPL"})
    assert asked(INCOME, "AAPL") == (
        "/income-statement",
        {"symbol": "AAPL", "period": "annual", "limit": "5"},
    )
    assert asked(DIVIDENDS, "AAPL") == ("/dividends", {"symbol": "AAPL"})
    assert asked(SPLITS, "AAPL") == ("/splits", {"symbol": "AAPL"})


def test_the_latest_bars_are_asked_by_the_days_up_to_now() -> None:
    _, params = asked(BARS, "AAPL")
    assert (params["from"], params["to"]) == ("2026-11-10", "2026-11-21")


def test_a_call_is_for_at_most_five_years_and_only_quotes_come_in_batches() -> None:
    assert PROVIDER.max_window_days(BARS) == 1825
    assert {PROVIDER.batch_limit(one, None) for one in PROVIDER.fetchers - {QUOTE}} == {1}
    assert PROVIDER.batch_limit(QUOTE, None) == 100


def test_the_key_goes_into_a_header() -> None:
    assert PROVIDER.authorize("secret") == {"apikey": "secret"}


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "check"),
    [
        (402, SYMBOL_GATE, fails(FailureKind.PLAN_RESTRICTED)),
        (200, {"Error Message": SYMBOL_GATE}, fails(FailureKind.PLAN_RESTRICTED)),
        (
            402,
            SYMBOL_GATE.replace("symbol'", "limit'"),
            raises(PlanRestricted, "parameter limit", whole=False),
        ),
        (402, "Premium Query Parameter: 'period'", raises(PlanRestricted, "parameter period", whole=False)),
        (
            402,
            "Premium Query Parameter: 'Special Endpoint : The values for 'limit' must be between 0 and 5'",
            raises(PlanRestricted, "parameter limit", whole=False),
        ),
        (
            200,
            {"Error Message": "The values for 'limit' must be between 0 and 5 under your current subscription"},
            raises(PlanRestricted, "parameter limit", whole=False),
        ),
        (402, "Special Endpoint : The values for 'symbol'", fails(FailureKind.PLAN_RESTRICTED)),
        (402, "Exclusive Endpoint : upgrade your plan", raises(PlanRestricted, "Exclusive", whole=True)),
        (402, "Special Endpoint : upgrade your plan", raises(PlanRestricted, "Special", whole=True)),
        (402, "This is a premium endpoint", raises(PlanRestricted, "premium", whole=True)),
        (200, {"Error Message": "Only for Premium users"}, raises(PlanRestricted, "Premium", whole=True)),
        (402, ENDPOINT_GATE, raises(PlanRestricted, "Restricted", whole=True)),
        (402, "Something new", raises(PlanRestricted, "Something new", whole=False)),
        (403, {"Error Message": "Exclusive Endpoint : no"}, raises(PlanRestricted, "Exclusive", whole=True)),
        (200, {"Error Message": "Limit Reach . Please upgrade"}, raises(Throttled, "Limit Reach")),
        (403, {"Error Message": "Limit Reach . Please upgrade"}, raises(Throttled, "Limit Reach")),
        (200, {"Error Message": "Invalid API KEY."}, raises(KeyRefused, "PRICING_FMP_API_KEY")),
        (200, {"Error Message": "Out of order"}, raises(SchemaDrift, "Out of order")),
        (200, {"Error Message": 7}, raises(SchemaDrift, "Error Message")),
        (400, {"Error Message": "bad"}, raises(RequestRefused, "bad")),
        (404, "[]", raises(SchemaDrift, "404")),
        (403, "<html>legacy endpoint</html>", raises(ProviderDown, "proxies")),
        (500, {"Error Message": "Limit Reach"}, raises(ProviderDown, "500")),
    ],
)
def test_b29_refusals_are_told_apart_by_their_words(status: int, body: object, check: Check) -> None:
    check(lambda: parse(body, status=status))


def test_b29_only_the_wording_of_the_endpoint_retires_batches_and_says_how_to_do_without() -> None:
    with pytest.raises(PlanRestricted, match="provider change fmp --batch-size quote=1") as caught:
        parse(ENDPOINT_GATE, ["AAPL", "IBM"], status=402)
    assert (caught.value.is_whole_endpoint, caught.value.most_symbols) == (False, 1)
    with pytest.raises(PlanRestricted, match="which of 2 symbols") as caught:
        parse(SYMBOL_GATE, ["AAPL", "IBM"], status=402)
    assert (caught.value.is_whole_endpoint, caught.value.most_symbols) == (False, None)


# --- quotes -------------------------------------------------------------------------------------


def test_f1_a_batch_is_read_by_symbol_whatever_its_order() -> None:
    answer = parse([quote("MSFT", price=174.5), quote()], ["AAPL", "MSFT", "NOPE"])
    assert {one.symbol: one.text for one in answer.observations} == {"AAPL": "174.83", "MSFT": "174.5"}
    assert [(one.symbol, one.kind) for one in answer.failures] == [("NOPE", FailureKind.UNKNOWN_SYMBOL)]


def test_an_answer_that_is_as_much_about_a_stranger_is_not_believed() -> None:
    assert [one.kind for one in parse([quote(), quote("MSFT")]).failures] == [FailureKind.IMPLAUSIBLE]


def test_b18_a_row_of_a_stranger_costs_itself_alone() -> None:
    days = [bar(date=f"2026-11-{day}") for day in (18, 17, 16)]
    answer = parse([*days[:2], {**days[2], "symbol": "MSFT"}], fetcher=Fetcher.DAILY_BARS)
    assert [row.observed_at.day for row in answer.observations] == [17, 18]
    (refused,) = answer.rejected
    assert (str(refused.observed_at)[:10], refused.reason) == ("2026-11-16", "it is about MSFT")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"price": 17483}, "far above its high"),
        ({"dayLow": 180}, "is above its high"),
        ({"timestamp": STAMP + 301}, "future"),
    ],
)
def test_b18_a_quote_that_cannot_be_true_fails_alone(changes: dict[str, Any], words: str) -> None:
    answer = parse([quote(**changes), quote("IBM")], ["AAPL", "IBM"])
    (failure,) = answer.failures
    assert (failure.symbol, failure.kind) == ("AAPL", FailureKind.IMPLAUSIBLE)
    assert re.search(words, failure.message)
    assert [one.symbol for one in answer.observations] == ["IBM"]


@pytest.mark.parametrize("changes", [{"price": None}, {"price": ...}, {"timestamp": "1"}, {"exchange": 5}])
def test_b18_a_quote_unlike_its_schema_is_drift_and_costs_no_other(changes: dict[str, Any]) -> None:
    with pytest.raises(SchemaDrift, match=next(iter(changes))):
        parse([quote(**changes)])
    answer = parse([quote(**changes), quote("IBM")], ["AAPL", "IBM"])
    assert [(one.symbol, one.kind) for one in answer.failures] == [("AAPL", FailureKind.SCHEMA_DRIFT)]
    assert [one.symbol for one in answer.observations] == ["IBM"]


def test_before_the_first_trade_the_days_extremes_are_zero() -> None:
    assert parse([quote(open=0, dayHigh=0, dayLow=0)]).observations


def test_a_symbol_with_two_prices_is_not_believed() -> None:
    assert parse([quote(), quote()]).observations
    assert [one.kind for one in parse([quote(), quote(price=175)]).failures] == [FailureKind.IMPLAUSIBLE]


def test_only_where_all_is_in_dollars_a_price_is_in_dollars() -> None:
    assert parse([quote(exchange="NYSE")]).observations[0].currency == "USD"
    assert parse([quote("SAP.DE", exchange="XETRA")], ["SAP.DE"]).observations[0].currency is None


@pytest.mark.parametrize(
    ("symbol", "currency"),
    [
        *(("EURUSD", "USD"), ("USDJPY", "JPY"), ("BTCUSD", "USD"), ("BTCUSDT", "USDT"), ("BTCBUSD", "BUSD")),
        *(("DOGEUSD", "USD"), ("1INCHUSD", "USD"), ("AAPL", None), ("GOOGL", None), ("^GSPC", None)),
        *(("BRK-B", None), ("EURUSD.DE", None)),
    ],
)
def test_f5_a_pair_is_priced_in_the_currency_that_it_names(symbol: str, currency: str | None) -> None:
    (found,) = parse([quote(symbol, exchange="FOREX")], [symbol]).observations
    (day,) = parse([bar(symbol=symbol)], [symbol], Fetcher.DAILY_BARS).observations
    assert (found.currency, day.currency) == (currency, currency)


@pytest.mark.parametrize("symbol", ["VOD.L", "NPN.JO", "TEVA.TA"])
@pytest.mark.parametrize("fetcher", [QUOTE, BARS])
def test_a9_what_may_be_in_pence_without_saying_so_is_not_stored(symbol: str, fetcher: Fetcher) -> None:
    row = quote(symbol, exchange="LSE") if fetcher is QUOTE else bar(symbol=symbol)
    (failure,) = parse([row], [symbol], fetcher).failures
    assert failure.kind is FailureKind.MISCONFIGURED
    assert "hundredths" in failure.message


# --- daily bars ---------------------------------------------------------------------------------

NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 30))


def test_f3_a_window_without_bars_is_empty_and_latest_days_without_any_are_an_unknown_symbol() -> None:
    assert parse([], ["AAPL"], BARS, NOVEMBER) == Answer(empty=frozenset({"AAPL"}))
    assert [one.kind for one in parse([], ["AAPL"], BARS).failures] == [FailureKind.UNKNOWN_SYMBOL]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"date": "2026-11"}, r"rows\.1\.date"),
        ({"date": "2026-10-31"}, "outside"),
    ],
)
def test_b18_a_bad_day_costs_no_good_one(changes: dict[str, Any], words: str) -> None:
    answer = parse([bar("2026-11-19"), bar("2026-11-18") | changes], ["AAPL"], BARS, NOVEMBER)
    assert [str(one.observed_at.date()) for one in answer.observations] == ["2026-11-19"]
    (rejected,) = answer.rejected
    assert re.search(words, rejected.reason)


# --- one bad row --------------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [None, 5, [], {}, {"symbol": None}, {"symbol": 7, "price": 1}])
def test_b18_a_row_that_names_no_symbol_costs_no_other(junk: object) -> None:
    answer = parse([quote(), junk, quote("IBM")], ["AAPL", "IBM", "NOPE"])
    assert {one.symbol for one in answer.observations} == {"AAPL", "IBM"}
    assert {one.symbol: one.kind for one in answer.failures} == {"NOPE": FailureKind.SCHEMA_DRIFT}, (
        "whose row it was is not said, so nobody is unknown"
    )
    alone = parse([quote(), junk])
    assert (len(alone.observations), len(alone.rejected)) == (1, 1)
    bars = parse([bar(), junk], fetcher=BARS)
    assert (len(bars.observations), len(bars.rejected)) == (1, 1)
    with pytest.raises(SchemaDrift):
        parse([junk], fetcher=BARS)


@pytest.mark.parametrize("symbol", ["NBK.KW", "ZCUSX", "KCUSX"])
@pytest.mark.parametrize("fetcher", [QUOTE, BARS])
def test_a9_fils_and_cents_are_not_stored_as_if_they_were_whole(symbol: str, fetcher: Fetcher) -> None:
    row = quote(symbol, exchange="KUW") if fetcher is QUOTE else bar(symbol=symbol)
    (failure,) = parse([row], [symbol], fetcher).failures
    assert failure.kind is FailureKind.MISCONFIGURED


def test_a_share_may_be_called_usx() -> None:
    assert parse([quote("USX")], ["USX"]).observations[0].currency == "USD"
